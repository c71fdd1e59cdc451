package runs

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

// sweep starts a run for each combination.
func (c *Start) sweep(s *session.Session, vary map[string][]json.RawMessage, in api.StartRun) error {
	key := rand.Text()
	r, err := s.API.StartSweepWithResponse(s.Ctx, &api.StartSweepParams{IdempotencyKey: &key}, api.StartSweep{
		WorkflowID: in.WorkflowID, Compute: in.Compute, ResourceProfile: in.ResourceProfile, Parameters: in.Parameters, Inputs: in.Inputs, Executor: in.Executor,
		Name: in.Name, Note: in.Note, Tags: in.Tags, Vary: vary,
	})
	if err != nil {
		return s.Explain(err)
	}
	started := r.JSON202.Data
	return s.Emit(started, func() {
		s.Say("%s", started.SweepID)
		s.Note("Started %d runs. See them with: millrace runs sweep %s", len(started.RunIds), started.SweepID)
	})
}

type runsSweep struct {
	session.Flags `embed:""`
	Sweep         string   `arg:"" optional:"" help:"ID of the sweep. Without it: list the newest sweeps."`
	Output        []string `short:"o" env:"-" sep:"none" placeholder:"STEP.PORT" help:"An output to show; repeatable."`
	CSV           bool     `env:"-" name:"csv" help:"Print the table as comma-separated values."`
}

// Run prints a sweep's runs as a table.
func (c *runsSweep) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	if c.Sweep == "" {
		return c.list(s)
	}
	if c.CSV {
		return c.csv(s)
	}
	chosen := strings.Join(c.Output, ",")
	got, err := s.API.GetSweepWithResponse(s.Ctx, c.Sweep, &api.GetSweepParams{Outputs: &chosen})
	if err != nil {
		return s.Explain(err)
	}
	sweep := got.JSON200.Data
	return s.Emit(sweep, func() { c.show(s, sweep) })
}

func (c *runsSweep) list(s *session.Session) error {
	got, err := s.API.ListSweepsWithResponse(s.Ctx, &api.ListSweepsParams{})
	if err != nil {
		return s.Explain(err)
	}
	list := got.JSON200.Data
	return s.Emit(list, func() {
		if len(list) == 0 {
			s.Note("No sweeps. Start one with millrace run <workflow> --vary name=value,value")
			return
		}
		rows := [][]string{{"ID", "WORKFLOW", "NAME", "VARIES", "RUNS", "STARTED"}}
		for _, one := range list {
			rows = append(rows, []string{one.ID, one.WorkflowName, nameText(one.Name, nil), strings.Join(one.Varied, " "), strconv.Itoa(one.RunCount), s.Ago(one.CreatedAt.Time)})
		}
		s.Table(rows)
	})
}

func (c *runsSweep) show(s *session.Session, sweep api.Sweep) {
	head := append([]string{"RUN", "#"}, sweep.Varied...)
	rows := [][]string{append(append(head, "STATUS", "DURATION", "CREDITS"), c.Output...)}
	for _, r := range sweep.Runs {
		row := []string{r.Run.ID, strconv.FormatInt(r.Run.Number, 10)}
		for _, name := range sweep.Varied {
			row = append(row, jsonText(r.Parameters[name]))
		}
		row = append(row, string(r.Run.Status), screen.Milliseconds(r.Run.DurationMs), screen.Amount(r.Run.CreditsUsed))
		for _, port := range c.Output {
			row = append(row, outputCell(r.Outputs, port))
		}
		rows = append(rows, row)
	}
	s.Table(rows)
	if len(c.Output) == 0 && len(sweep.Ports) > 0 {
		s.Note("Outputs to choose with -o: %s", strings.Join(sweep.Ports, ", "))
	}
}

func outputCell(list []api.SweepOutput, port string) string {
	for _, o := range list {
		switch {
		case o.Port != port:
		case o.Value != nil:
			return *o.Value
		default:
			return fmt.Sprintf("%s %.12s", o.Name, o.Sha256)
		}
	}
	return "–"
}

// csv passes the server's table on.
func (c *runsSweep) csv(s *session.Session) error {
	chosen := strings.Join(c.Output, ",")
	got, err := s.API.GetSweepTableWithResponse(s.Ctx, c.Sweep, &api.GetSweepTableParams{Outputs: &chosen})
	if err != nil {
		return s.Explain(err)
	}
	_, err = s.Out.Write(got.Body)
	return err
}
