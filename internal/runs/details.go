package runs

import (
	"context"
	"io"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Detailed is a run with what it has come to.
type Detailed struct {
	Run
	Nodes []Node
	Log   LogPage
}

// Detailed is one run of the caller's team with its nodes and the end of its
// log.
func (s *Service) Detailed(ctx context.Context, caller access.Caller, id ids.Run) (Detailed, error) {
	r, err := s.Run(ctx, caller, id)
	if err != nil {
		return Detailed{}, err
	}
	if err := s.explain(ctx, caller.Team, &r); err != nil {
		return Detailed{}, err
	}
	d := Detailed{Run: r}
	known, err := s.details.NodesOf(ctx, id)
	if err != nil {
		return d, err
	}
	d.Nodes = allNodes(r, known)
	now, err := s.Standing(ctx, caller.Team, id, -1)
	d.Log = now.Log
	return d, err
}

// allNodes lists the tasks of the definition in their order; those without a
// state wait.
func allNodes(r Run, known []Node) []Node {
	g, _ := graph.Salvage(r.Definition)
	byID := map[string]Node{}
	for _, n := range known {
		byID[n.ID] = n
	}
	var list []Node
	for _, n := range g.Order() {
		row, ok := byID[n.ID]
		if !ok {
			row = Node{ID: n.ID, Name: n.Name, State: "pending"}
		}
		list = append(list, row)
	}
	return list
}

// Stored is what the object store says of an output.
type Stored struct {
	Size int64
	Mark string
}

// Objects is where outputs are kept.
type Objects interface {
	StatOutput(ctx context.Context, key string) (Stored, error)
	PresignOutput(ctx context.Context, o Output, until time.Time, base string) (string, error)
	// OpenLog reads a stretch of a log that lies in an object.
	OpenLog(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
}

// Listed is an output with where it is downloaded.
type Listed struct {
	Output
	URL       string
	ExpiresAt time.Time
}

const downloadLife = 15 * time.Minute

// Outputs are the files that the run hands out, each verified and with an
// address. One that is missing or has changed is a conflict.
func (s *Service) Outputs(ctx context.Context, caller access.Caller, id ids.Run, base string) ([]Listed, error) {
	r, err := s.Run(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	list, err := s.details.OutputsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	out := []Listed{}
	for _, o := range declared(r, list) {
		l, err := s.listed(ctx, o, base)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// AllOutputs are the files of every node, also of those in between. What is
// gone by now is left out.
func (s *Service) AllOutputs(ctx context.Context, caller access.Caller, id ids.Run, base string) ([]Listed, error) {
	if _, err := s.Run(ctx, caller, id); err != nil {
		return nil, err
	}
	list, err := s.details.OutputsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	out := []Listed{}
	for _, o := range list {
		l, err := s.listed(ctx, o, base)
		if fault.Is(err, fault.KindConflict) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// listed verifies an output and gives it an address.
func (s *Service) listed(ctx context.Context, o Output, base string) (Listed, error) {
	kept, err := s.objects.StatOutput(ctx, o.Blob)
	if fault.Is(err, fault.KindNotFound) || (err == nil && (kept.Size != o.Size || kept.Mark != o.Mark)) {
		return Listed{}, fault.Conflict("the output %s of node %s is missing or has changed since it was verified", o.Name, o.Node).WithCode("invalid_outputs")
	}
	if err != nil {
		return Listed{}, err
	}
	until := s.now().Add(downloadLife)
	url, err := s.objects.PresignOutput(ctx, o, until, base)
	return Listed{Output: o, URL: url, ExpiresAt: until}, err
}

func declared(r Run, list []Output) []Output {
	g, _ := graph.Salvage(r.Definition)
	if len(g.Outputs) == 0 {
		return list
	}
	wanted := map[string]bool{}
	for _, o := range g.Outputs {
		wanted[o.Node+"."+o.Port] = true
	}
	var chosen []Output
	for _, o := range list {
		if wanted[o.Node+"."+o.Port] {
			chosen = append(chosen, o)
		}
	}
	return chosen
}
