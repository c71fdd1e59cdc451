package runs

import (
	"encoding/csv"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type runsTasks struct {
	session.Flags `embed:""`
	runArg        `embed:""`
	CSV           bool `env:"-" name:"csv" help:"Print all columns of Nextflow's trace as comma-separated values."`
}

// Run prints the tasks as a table. As CSV it passes on what the server sends, as it comes.
func (c *runsTasks) Run(w screen.Console) error {
	if c.CSV && c.JSON {
		return errors.New("--csv and --json can't be combined")
	}
	s, id, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	resp, err := s.API.DownloadRunTasks(s.Ctx, id, nil)
	if err != nil {
		return s.Explain(err)
	}
	defer resp.Body.Close()
	if c.CSV {
		_, err = io.Copy(s.Out, resp.Body)
		return cutOff(err)
	}
	rows, err := csv.NewReader(resp.Body).ReadAll()
	if err != nil || len(rows) == 0 {
		return cutOff(err)
	}
	list := make([]map[string]string, 0, len(rows)-1)
	for _, row := range rows[1:] {
		task := map[string]string{}
		for i, cell := range row {
			task[rows[0][i]] = plainCell(cell)
		}
		list = append(list, task)
	}
	return s.Emit(list, func() { showTasks(s, list) })
}

// cutOff says what it means when an answer ends early.
func cutOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the server ended the table early: try again")
	}
	return err
}

// plainCell is a cell without the apostrophe that keeps it from being a formula.
func plainCell(cell string) string {
	if text, ok := strings.CutPrefix(cell, "'"); ok && text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return text
	}
	return cell
}

func showTasks(s *session.Session, list []map[string]string) {
	if len(list) == 0 {
		s.Note("No tasks: no step has started.")
		return
	}
	rows := [][]string{{"ITEM", "PROCESS", "TAG", "STATUS", "ATTEMPT", "EXIT", "DURATION", "%CPU", "PEAK MEMORY"}}
	for _, t := range list {
		duration, memory := "", ""
		if ms, err := strconv.ParseInt(t["realtime"], 10, 64); err == nil {
			duration = screen.Milliseconds(&ms)
		}
		if bytes, err := strconv.ParseInt(t["peak_rss"], 10, 64); err == nil {
			memory = screen.Size(bytes)
		}
		row := []string{t["item"], t["process"], t["tag"], t["status"], t["attempt"], t["exit"], duration, t["%cpu"], memory}
		for i, cell := range row {
			if cell == "" {
				row[i] = "–"
			}
		}
		rows = append(rows, row)
	}
	s.Table(rows)
}
