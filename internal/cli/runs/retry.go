package runs

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/definitions"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type runsRetry struct {
	session.Flags `embed:""`
	Run_          string   `arg:"" name:"run" help:"ID of the run."`
	Param         []string `short:"p" env:"-" sep:"none" placeholder:"NAME=VALUE" help:"Change the value of a parameter."`
	Compute       string   `env:"-" placeholder:"VCPUxGB" help:"Change the size, such as 4x16."`
	Current       bool     `env:"-" help:"Use the workflow's current version, not the version of the run."`
	Only          []string `env:"-" sep:"none" placeholder:"STEP" help:"Run only this step, with its inputs from the run; its items that completed are reused. Repeatable."`
	Preview       bool     `env:"-" help:"Start nothing: show what would be reused, and why the rest wouldn't."`
	watchFlags    `embed:""`
}

// Run starts a new run; parameters that are not named stay as they were.
func (c *runsRetry) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	size, _, err := definitions.ComputeFlags{Compute: c.Compute}.Size()
	if err != nil {
		return err
	}
	in := api.RetryRun{Compute: size}
	for _, text := range c.Only {
		node, err := stepOf(text)
		if err != nil {
			return err
		}
		in.Only = append(in.Only, node)
	}
	if c.Current {
		in.Definition = new(api.RetryRunDefinitionCurrent)
	}
	if len(c.Param) > 0 {
		if in.Parameters, err = changed(s, c.Run_, c.Param, c.Current); err != nil {
			return err
		}
	}
	if c.Preview {
		return previewRetry(s, c.Run_, in)
	}
	key := rand.Text()
	r, err := s.API.RetryRunWithResponse(s.Ctx, c.Run_, &api.RetryRunParams{IdempotencyKey: &key}, in)
	if err != nil {
		return s.Explain(err)
	}
	return started(s, r.JSON202.Data, c.watchFlags)
}

func previewRetry(s *session.Session, run string, in api.RetryRun) error {
	r, err := s.API.PreviewRetryWithResponse(s.Ctx, run, nil, in)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() {
		rows := [][]string{{"STEP", "NAME", "EXPECTED", "WHY"}}
		for _, n := range r.JSON200.Data.Nodes {
			rows = append(rows, []string{n.ID, n.Name, string(n.Expect), n.Reason})
		}
		s.Table(rows)
	})
}

// changed is an earlier run's parameters with some others in their place. For the
// workflow as it is now, what that does not ask for any more is left out, and a value
// that was only the default follows the default, as without any others.
func changed(s *session.Session, run string, given []string, current bool) (api.Parameters, error) {
	old, err := s.API.GetRunWithResponse(s.Ctx, run, nil)
	if err != nil {
		return nil, s.Explain(err)
	}
	g, err := definitions.ReadGraph(old.JSON200.Definition)
	if err != nil {
		return nil, err
	}
	now := g
	if current {
		f, err := s.Workflow(old.JSON200.WorkflowID)
		if err != nil {
			return nil, err
		}
		if now, err = definitions.ReadGraph(f.Definition); err != nil {
			return nil, err
		}
	}
	fresh, err := now.ReadParameters(given)
	if err != nil {
		return nil, err
	}
	for name, value := range old.JSON200.Parameters {
		p, asked := now.Parameters[name]
		follows := current && p.Default != nil && sameJSON(value, g.Parameters[name].Default)
		if _, named := fresh[name]; !named && !follows && (asked || !current) {
			fresh[name] = value
		}
	}
	return fresh, nil
}

// sameJSON reports whether two texts are the same value, however it is written.
func sameJSON(a, b json.RawMessage) bool {
	x, err := exactJSON(a)
	if err != nil {
		return false
	}
	y, err := exactJSON(b)
	return err == nil && sameValue(x, y)
}

func exactJSON(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v)
}

func sameValue(x, y any) bool {
	switch a := x.(type) {
	case json.Number:
		b, ok := y.(json.Number)
		f, _ := a.Float64()
		g, _ := b.Float64()
		return ok && (a == b || f == g && math.Abs(f) < 1<<53) // beyond, different numbers are the same float
	case []any:
		b, ok := y.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case map[string]any:
		b, ok := y.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	}
	return x == y
}
