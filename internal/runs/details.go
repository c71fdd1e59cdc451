package runs

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Detailed is a run with what it has come to.
type Detailed struct {
	Run
	Nodes   []Node
	Failure *Failure // nil: it did not fail, or in no step
	Log     LogPage
}

// Reused counts what a run took from earlier ones: steps as a whole, and items of steps that run
// once per item.
func (d Detailed) Reused() (steps, items int) {
	for _, n := range d.Nodes {
		if n.Cached {
			steps++
		}
		if n.Shards != nil {
			items += n.ShardsReused
		}
	}
	return steps, items
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
	if d.Nodes, err = s.NodesOf(ctx, r); err != nil {
		return d, err
	}
	if d.Failure, err = s.failureOf(ctx, r, d.Nodes); err != nil {
		return d, err
	}
	now, err := s.Snapshot(ctx, caller.Team, id, -1)
	d.Log = now.Log
	return d, err
}

// NodesOf lists the steps of a run as far as they have come, and behind them the
// processes of the pipeline that one of them launches.
func (s *Service) NodesOf(ctx context.Context, r Run) ([]Node, error) {
	known, err := s.details.NodesOf(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	list := NodesIn(r, known)
	if r.Kind != Reported && r.Status.Terminal() {
		counts, err := s.details.ReusedShards(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		for i, n := range list {
			list[i].ShardsReused = counts[n.ID]
		}
	}
	if r.Kind == Reported || r.Engine == "" {
		return list, nil
	}
	processes, err := s.reported.Processes(ctx, r)
	return append(list, processes...), err
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
	DataURL   string // where the bytes of its files are, if it is a folder
	Scattered bool   // its node has several shards
	Result    *bool  // whether it is among the results of its run; nil: not known
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
	list, next, gone, err := s.listed(ctx, r, g, made, q)
	if err == nil && gone != nil && !q.All {
		err = outputGone(g, *gone)
	}
	return list, next, err
}

// listed is a page of the outputs that a run hands out, without those that are gone; gone is the
// first of these.
func (s *Service) listed(ctx context.Context, r Run, g *graph.Graph, made []Output, q OutputQuery) (list []Listed, next string, gone *Output, err error) {
	isResult := results(g, r, made)
	if !q.All && len(g.Outputs) > 0 {
		made = slices.DeleteFunc(made, func(o Output) bool { return !isResult(o) })
	}
	made, next = q.page(made)
	list, gone, err = s.verified(ctx, made, q.Base)
	for i := range list {
		list[i].Result = new(isResult(list[i].Output))
	}
	return ofShards(g, list), next, gone, err
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

// verified gives those outputs an address that are as they were, in their
// order. gone is the first that is not.
func (s *Service) verified(ctx context.Context, list []Output, base string) (kept []Listed, gone *Output, err error) {
	changed, err := s.verifier.Changed(ctx, list)
	if err != nil {
		return nil, nil, err
	}
	kept = []Listed{}
	for i, o := range list {
		if changed[i] {
			if gone == nil {
				gone = &o
			}
			continue
		}
		l, err := s.signed(ctx, o, base)
		if err != nil {
			return nil, nil, err
		}
		kept = append(kept, l)
	}
	return kept, gone, nil
}

// outputGone says of an output that it is not as it was.
func outputGone(g *graph.Graph, o Output) error {
	node := graph.Node{ID: o.Node}
	if n, known := g.Node(o.Node); known {
		node.Name = n.Name
	}
	title := node.Title()
	return fault.Conflict("the output %s of %s is missing or has changed since it was verified", o.Name, strings.ToLower(title[:1])+title[1:]).WithCode("invalid_outputs")
}

// signed gives an output its addresses.
func (s *Service) signed(ctx context.Context, o Output, base string) (Listed, error) {
	until := s.now().Add(downloadLife)
	url, err := s.objects.PresignOutput(ctx, o, until, base)
	l := Listed{Output: o, URL: url, ReportURL: s.reportURL(o, until, base), Archive: s.ArchiveURL(o, until, base), ExpiresAt: until}
	if err == nil && o.Folder != nil {
		data := Output{Blob: o.Folder.Data, Name: o.Name, ContentType: "application/octet-stream"}
		l.DataURL, err = s.objects.PresignOutput(ctx, data, until, base)
	}
	return l, err
}

// results tells which of the outputs that a run has made are its results. Of a run that has ended
// and whose last nodes have made none, all are.
func results(g *graph.Graph, r Run, made []Output) func(Output) bool {
	of := g.Results()
	is := func(o Output) bool { return of(o.Node, o.Port) }
	if len(g.Outputs) == 0 && r.Status.Terminal() && !slices.ContainsFunc(made, is) {
		return func(Output) bool { return true }
	}
	return is
}
