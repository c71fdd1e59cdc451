package runs

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type runsItems struct {
	session.Flags `embed:""`
	Run_          string `arg:"" name:"run" help:"ID of the run."`
	Node          string `arg:"" name:"step" help:"ID of a step that runs once per item, or of one of its items, such as align/3."`
	Status        string `env:"-" help:"Only items in this state, such as failed."`
	Limit         int    `short:"n" env:"-" default:"0" help:"Maximum number to list; 0: all."`
}

// Run lists the items of a scatter, failed ones first.
func (c *runsItems) Run(w screen.Console) error {
	if c.Limit < 0 {
		return errors.New("--limit must be at least 0")
	}
	of, err := placeOf(c.Node, nil)
	if err != nil {
		return err
	}
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	size := 500
	params := api.ListRunShardsParams{Limit: &size}
	if c.Status != "" {
		status := api.NodeStatus(c.Status)
		if c.Status == completed {
			status = api.NodeStatusSucceeded
		}
		params.Status = &status
	}
	most := c.Limit
	if of.OfItem {
		most = 0 // which page it is on is not known
	}
	list, err := session.Pages(most, func(cursor *string) ([]api.Shard, api.Page, error) {
		params.Cursor = cursor
		r, err := s.API.ListRunShardsWithResponse(s.Ctx, c.Run_, of.Node, &params)
		if err != nil {
			return nil, api.Page{}, s.Explain(err)
		}
		return r.JSON200.Data, r.JSON200.Page, nil
	})
	if err != nil {
		return err
	}
	if of.OfItem {
		list = slices.DeleteFunc(list, func(i api.Shard) bool { return i.Index != of.Item })
	}
	return s.Emit(list, func() { showItems(s, of.Node, list) })
}

func showItems(s *session.Session, node string, list []api.Shard) {
	if len(list) == 0 {
		s.Note("No items: the step hasn't started, or no item is in this state")
		return
	}
	rows := [][]string{{"ITEM", "VALUE", "STATUS", "ATTEMPTS", "DURATION", "PEAK MEMORY", "EXIT", "FILES"}}
	for _, i := range list {
		duration, memory, exit := "–", "–", "–"
		if n := len(i.Attempts); n > 0 {
			a := i.Attempts[n-1]
			if a.FinishedAt != nil {
				ms := a.FinishedAt.Sub(a.StartedAt.Time).Milliseconds()
				duration = screen.Milliseconds(&ms)
			}
			if a.PeakMemBytes != nil {
				memory = screen.Size(*a.PeakMemBytes)
			}
			if a.ExitCode != nil {
				exit = strconv.Itoa(*a.ExitCode)
			}
		}
		rows = append(rows, []string{itemID(node, i.Index), itemText(i.Item), stepStatus(i.Status, i.Cached), strconv.Itoa(len(i.Attempts)), duration, memory, exit, strconv.Itoa(len(i.Outputs))})
	}
	s.Table(rows)
}

const mostItemText = 40

// itemText is an item in a cell: the name of a file, or the value itself.
func itemText(item any) string {
	if item == nil {
		return "–"
	}
	text, isText := item.(string)
	if !isText {
		raw, _ := json.Marshal(item) // it came as JSON
		text = string(raw)
	} else if strings.HasPrefix(text, "teams/") {
		text = path.Base(text)
	}
	if letters := []rune(text); len(letters) > mostItemText {
		text = string(letters[:mostItemText-1]) + "…"
	}
	return text
}
