package runs

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type runsCompare struct {
	session.Flags `embed:""`
	A             string `arg:"" help:"ID of a run."`
	B             string `arg:"" help:"ID of another run."`
	All           bool   `env:"-" help:"Also show what is the same."`
}

// Run prints what is different, and what that did.
func (c *runsCompare) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	got, err := s.API.CompareRunsWithResponse(s.Ctx, &api.CompareRunsParams{A: c.A, B: c.B})
	if err != nil {
		return s.Explain(err)
	}
	both := got.JSON200.Data
	return s.Emit(both, func() { c.show(s, both) })
}

func (c *runsCompare) show(s *session.Session, both api.RunComparison) {
	rows := [][]string{{"", "A", "B"}}
	add := func(name, a, b string, same bool) {
		if !same || c.All {
			rows = append(rows, []string{name, a, b})
		}
	}
	add("run", runTitle(both.A), runTitle(both.B), false)
	add("status", string(both.A.Status), string(both.B.Status), false)
	add("duration", screen.Milliseconds(both.A.DurationMs), screen.Milliseconds(both.B.DurationMs), false)
	add("credits", screen.Amount(both.A.CreditsUsed), screen.Amount(both.B.CreditsUsed), false)
	add("size", ComputeText(both.A.Compute), ComputeText(both.B.Compute), both.A.Compute == both.B.Compute)
	for _, p := range both.Parameters {
		add("parameter "+p.Name, jsonText(p.A), jsonText(p.B), p.Same)
	}
	for _, f := range both.Inputs {
		add("input "+f.Name, fileNames(f.A), fileNames(f.B), f.Same)
	}
	for _, n := range both.Nodes {
		add("step "+n.Name, stepText(n.A), stepText(n.B), false)
	}
	for _, o := range both.Outputs {
		add("output "+o.NodeID+"."+o.Port+" "+o.Name, hashText(o.A), hashText(o.B), o.Same)
	}
	s.Table(rows)
	for _, line := range both.DefinitionChanges {
		s.Say("definition: %s", screen.Clean(line))
	}
	n := both.OutputCounts
	s.Say("%d outputs are the same, %d differ, %d are only in A, %d only in B.", n.Same, n.Different, n.OnlyA, n.OnlyB)
}

func runTitle(r api.RunRow) string {
	return strings.TrimSuffix(fmt.Sprintf("%s #%d %s", r.WorkflowName, r.Number, nameText(r.Name, nil)), " –")
}

func jsonText(raw json.RawMessage) string {
	if raw == nil {
		return "–"
	}
	return string(raw)
}

func fileNames(list []api.GivenFile) string {
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.Name
	}
	if len(names) == 0 {
		return "–"
	}
	return strings.Join(names, " ")
}

func stepText(n *api.RunNode) string {
	if n == nil {
		return "–"
	}
	return stepStatus(n.Status, n.Cached) + ", " + screen.Milliseconds(n.DurationMs)
}

func hashText(f *api.GivenFile) string {
	if f == nil || f.Sha256 == nil {
		return "–"
	}
	return fmt.Sprintf("%.12s", *f.Sha256)
}
