package runs

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
)

// SweepTable is a sweep with its runs.
type SweepTable struct {
	Sweep
	Ports []string // the outputs that can be chosen, as node.port
	Rows  []SweptRun
}

// SweptRun is a run of a sweep.
type SweptRun struct {
	Run     Run
	Values  map[string]json.RawMessage // of its parameters
	Outputs []SweptOutput
}

// SweptOutput is what a run made for a chosen output: the first file, and how
// many there are.
type SweptOutput struct {
	Chosen string // as it was asked for, node.port
	Files  int
	Listed
	Value *string // what a small text file says
}

const (
	maxChosen    = 5   // outputs of a table
	maxValueSize = 200 // bytes of a file whose text is shown
	readAtOnce   = 8
)

// SweepTable is a sweep of the caller's team as a table, with the chosen
// outputs, each written as node.port.
func (s *Service) SweepTable(ctx context.Context, caller access.Caller, id ids.Sweep, chosen []string, base string) (SweepTable, error) {
	if err := caller.Must(access.Read); err != nil {
		return SweepTable{}, err
	}
	sweep, err := s.sweeps.Sweep(ctx, caller.Team, id)
	if err != nil {
		return SweepTable{}, err
	}
	if len(chosen) > maxChosen {
		return SweepTable{}, fault.Problems([]fault.Detail{{Path: "outputs", Message: "takes at most 5"}}, "outputs takes at most 5")
	}
	t := SweepTable{Sweep: sweep}
	list, err := s.sweeps.RunsOfSweep(ctx, caller.Team, id, maxSweepRows)
	if err != nil {
		return t, err
	}
	waiting := make([]*Run, len(list))
	for i := range list {
		waiting[i] = &list[i]
	}
	if err := s.explainWaiting(ctx, caller.Team, waiting...); err != nil {
		return t, err
	}
	for _, r := range list {
		row := SweptRun{Run: r}
		if err := json.Unmarshal(r.Parameters, &row.Values); err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, row)
	}
	if err := s.addPorts(ctx, caller.Team, &t); err != nil {
		return t, err
	}
	return t, s.addOutputs(ctx, &t, chosen, base)
}

// addPorts lists the outputs of the definition, which all runs share.
func (s *Service) addPorts(ctx context.Context, team ids.Team, t *SweepTable) error {
	if len(t.Rows) == 0 {
		return nil
	}
	r, err := s.store.Run(ctx, team, t.Rows[0].Run.ID)
	if err != nil {
		return err
	}
	g, _ := graph.Salvage(r.Definition)
	for _, n := range g.Order() {
		for _, o := range n.Outputs {
			t.Ports = append(t.Ports, n.ID+"."+o.Name)
		}
	}
	return nil
}

// addOutputs looks up the chosen outputs of each row, several at once: each may
// be a question to another machine.
func (s *Service) addOutputs(ctx context.Context, t *SweepTable, chosen []string, base string) error {
	if len(chosen) == 0 {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readAtOnce)
	for i := range t.Rows {
		g.Go(func() error {
			return panics.Catch(func() (err error) {
				t.Rows[i].Outputs, err = s.sweptOutputs(ctx, t.Rows[i].Run.ID, chosen, base)
				return err
			})
		})
	}
	return g.Wait()
}

func (s *Service) sweptOutputs(ctx context.Context, id ids.Run, chosen []string, base string) ([]SweptOutput, error) {
	list, err := s.details.OutputsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	var out []SweptOutput
	for _, port := range chosen {
		files := slices.DeleteFunc(slices.Clone(list), func(o Output) bool { return o.Node+"."+o.Port != port })
		if len(files) == 0 {
			continue
		}
		kept, _, err := s.verified(ctx, files[:1], base)
		if err != nil {
			return nil, err
		}
		if len(kept) == 0 {
			continue // it is gone
		}
		one := SweptOutput{Chosen: port, Files: len(files), Listed: kept[0]}
		if one.Value, err = s.smallText(ctx, files[0]); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// smallText is what a file says, if it is small and text.
func (s *Service) smallText(ctx context.Context, o Output) (*string, error) {
	if o.Folder != nil || o.Size > maxValueSize {
		return nil, nil //nolint:nilnil // a folder or a large file has no value
	}
	f, err := s.objects.Open(ctx, o.Blob, 0, o.Size)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxValueSize))
	if err != nil {
		return nil, err
	}
	value := strings.TrimSpace(string(text))
	if !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' }) {
		return nil, nil //nolint:nilnil // it is no text
	}
	return &value, nil
}
