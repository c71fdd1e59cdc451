package runs

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

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
	if err := s.explainWaiting(ctx, caller.Team, &r); err != nil {
		return Detailed{}, err
	}
	if r.Addresses, err = s.known.AddressesOf(ctx, caller.Team, id); err != nil {
		return Detailed{}, err
	}
	if r.OutputTo, err = s.outputCopy(ctx, r); err != nil {
		return Detailed{}, err
	}
	d := Detailed{Run: r}
	known, err := s.details.NodesOf(ctx, id)
	if err != nil {
		return d, err
	}
	d.Nodes = NodesIn(r, known)
	if r.Kind != Reported && r.Engine != "" {
		processes, err := s.reported.Processes(ctx, r)
		if err != nil {
			return d, err
		}
		d.Nodes = append(d.Nodes, processes...)
	}
	now, err := s.Snapshot(ctx, caller.Team, id, -1)
	d.Log = now.Log
	return d, err
}

// NodesIn lists the tasks of the definition in their order; those without a
// state wait.
func NodesIn(r Run, known []Node) []Node {
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
	// Open reads a stretch of an object, to its end where length is negative.
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
}

// Listed is an output with where it is downloaded.
type Listed struct {
	Output
	URL       string
	ReportURL string // where it opens as a page, if it is one
	Archive   string // where it is read as an archive, if it is a folder
	Scattered bool   // its node has several shards
	ExpiresAt time.Time
}

const downloadLife = 15 * time.Minute

// OutputQuery is which of a run's outputs are asked for.
type OutputQuery struct {
	All   bool   // also those of nodes in between; what is gone by now is left out
	Node  string // this node's alone; empty: every node's
	After string // the key that the page before ended with
	Limit int    // 0: all of them
	Base  string // the origin that addresses are on
}

// Outputs are files that the run hands out, by key, each verified and with an
// address; next is the key to go on after, or empty. One that is missing or has
// changed is a conflict.
func (s *Service) Outputs(ctx context.Context, caller access.Caller, id ids.Run, q OutputQuery) (list []Listed, next string, err error) {
	r, err := s.Run(ctx, caller, id)
	if err != nil {
		return nil, "", err
	}
	return s.outputs(ctx, r, q)
}

func (s *Service) outputs(ctx context.Context, r Run, q OutputQuery) (list []Listed, next string, err error) {
	made, err := s.details.OutputsOf(ctx, r.ID)
	if err != nil {
		return nil, "", err
	}
	g, _ := graph.Salvage(r.Definition)
	if !q.All {
		made = declared(g, made)
	}
	made, next = q.page(made)
	list, gone, err := s.verified(ctx, made, q.Base)
	if err == nil && !q.All {
		err = gone
	}
	return ofShards(g, list), next, err
}

// OpenOutput reads an output that Outputs listed.
func (s *Service) OpenOutput(ctx context.Context, o Output) (io.ReadCloser, error) {
	return s.objects.Open(ctx, o.Blob, 0, -1)
}

// page is the part that was asked for, in the order of the keys' bytes,
// whatever the database sorts by.
func (q OutputQuery) page(list []Output) (page []Output, next string) {
	list = slices.DeleteFunc(list, func(o Output) bool { return o.Key <= q.After || q.Node != "" && o.Node != q.Node })
	slices.SortFunc(list, func(a, b Output) int { return strings.Compare(a.Key, b.Key) })
	if q.Limit == 0 || len(list) <= q.Limit {
		return list, ""
	}
	return list[:q.Limit], list[q.Limit-1].Key
}

// ofShards notes which outputs are those of one shard among others.
func ofShards(g *graph.Graph, list []Listed) []Listed {
	for i := range list {
		n, known := g.Node(list[i].Node)
		list[i].Scattered = known && n.Scatter != nil
	}
	return list
}

// verifyAtOnce is how many outputs are looked up at a time: a remote store
// takes milliseconds for each.
const verifyAtOnce = 16

// verified gives those outputs an address that are as they were, in their
// order. gone says of one that it is not.
func (s *Service) verified(ctx context.Context, list []Output, base string) (kept []Listed, gone, err error) {
	found, faults := make([]Listed, len(list)), make([]error, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(verifyAtOnce)
	for i, o := range list {
		g.Go(func() (err error) {
			found[i], err = s.listed(ctx, o, base)
			if fault.Is(err, fault.KindConflict) {
				faults[i], err = err, nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	kept = []Listed{}
	for i, l := range found {
		if faults[i] == nil {
			kept = append(kept, l)
		} else if gone == nil {
			gone = faults[i]
		}
	}
	return kept, gone, nil
}

// listed verifies an output and gives it an address.
func (s *Service) listed(ctx context.Context, o Output, base string) (Listed, error) {
	if err := s.intact(ctx, o); err != nil {
		return Listed{}, err
	}
	until := s.now().Add(downloadLife)
	url, err := s.objects.PresignOutput(ctx, o, until, base)
	return Listed{Output: o, URL: url, ReportURL: s.reportURL(o, until, base), Archive: s.ArchiveURL(o, until, base), ExpiresAt: until}, err
}

// intact is a conflict unless an output is what it was when it was verified.
func (s *Service) intact(ctx context.Context, o Output) error {
	for key, want := range o.Stored() {
		kept, err := s.objects.StatOutput(ctx, key)
		if fault.Is(err, fault.KindNotFound) || (err == nil && kept != want) {
			return fault.Conflict("the output %s of node %s is missing or has changed since it was verified", o.Name, o.Node).WithCode("invalid_outputs")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func declared(g *graph.Graph, list []Output) []Output {
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
