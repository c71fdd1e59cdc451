package runs

import (
	"context"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// Shard is one item of a scattered node. A node that is not scattered has one.
type Shard struct {
	Index    int
	Item     string // its value or path, as JSON; empty without scatter, and before its first attempt; a longer one than MostItem is cut
	State    lifecycle.NodeState
	Cached   bool // an earlier success was reused
	Attempts []Attempt
	Outputs  []Listed
}

// MaxItemChars is how much of an item a list shows, in characters: one may be a
// megabyte.
const MaxItemChars = 4096

// ShardStore reads the shards of one node.
type ShardStore interface {
	// NodeOf is fault.KindNotFound before the node has a state.
	NodeOf(ctx context.Context, id ids.Run, node string) (Node, error)
	// FailedShards are those that failed for good, after one, in order.
	FailedShards(ctx context.Context, id ids.Run, node string, after, limit int) ([]int, error)
	// AttemptStates are the attempts of the shards from one to before another,
	// in order, and of them only how they stand.
	AttemptStates(ctx context.Context, id ids.Run, node string, from, to int) ([]Attempt, error)
	AttemptsOf(ctx context.Context, id ids.Run, node string, shards []int) ([]Attempt, error)
	ShardOutputs(ctx context.Context, id ids.Run, node string, shards []int) ([]Output, error)
}

// ShardPage says which shards are wanted.
type ShardPage struct {
	Node  string
	State lifecycle.NodeState // empty: all
	After string              // where the last page ended
	Limit int
	Base  string // the origin of the addresses of files
}

// Shards lists the shards of a node, failed ones first, then by their number.
// next is where the following page begins, or empty.
func (s *Service) Shards(ctx context.Context, caller access.Caller, id ids.Run, p ShardPage) (list []Shard, next string, err error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, "", err
	}
	r, err := s.details.LeanRun(ctx, caller.Team, id)
	if err != nil {
		return nil, "", err
	}
	if r.Kind == Reported || strings.Contains(p.Node, ProcessMark) {
		return s.reported.Shards(ctx, r, p)
	}
	after, err := ReadItemPlace(p.After)
	if err != nil {
		return nil, "", err
	}
	n, err := s.shards.NodeOf(ctx, id, p.Node)
	if fault.Is(err, fault.KindNotFound) {
		return []Shard{}, "", s.mustHaveNode(ctx, caller.Team, id, p.Node)
	}
	if err != nil {
		return nil, "", err
	}
	list, err = s.findShards(ctx, r, n, p, after)
	if err != nil {
		return nil, "", err
	}
	if len(list) > p.Limit {
		list = list[:p.Limit]
		last := list[p.Limit-1]
		next = PlaceOfItem(last.State == lifecycle.NodeFailed, last.Index).Text()
	}
	return list, next, s.fillShards(ctx, r, n, p.Base, list)
}

// findShards are those of a page, and one more if there is one. It reads no
// more of a large scatter than it must.
func (s *Service) findShards(ctx context.Context, r Run, n Node, p ShardPage, after ItemPlace) ([]Shard, error) {
	list := []Shard{}
	from := after.Index + 1
	if after.Rank == 0 {
		from = 0
		if p.State == "" || p.State == lifecycle.NodeFailed {
			failed, err := s.shards.FailedShards(ctx, r.ID, n.ID, after.Index, p.Limit+1)
			if err != nil {
				return nil, err
			}
			for _, index := range failed {
				list = append(list, Shard{Index: index, State: lifecycle.NodeFailed})
			}
		}
	}
	if p.State == lifecycle.NodeFailed {
		return list, nil
	}
	over := r.Status.Terminal() || n.State.Terminal()
	for width := p.Limit + 1; len(list) <= p.Limit && from < n.shardCount(); width *= 4 {
		to := min(from+width, n.shardCount())
		tried, err := s.shards.AttemptStates(ctx, r.ID, n.ID, from, to)
		if err != nil {
			return nil, err
		}
		for _, shard := range shardsIn(from, to, tried, over) {
			if shard.State != lifecycle.NodeFailed && (p.State == "" || p.State == shard.State) {
				list = append(list, shard)
			}
		}
		from = to
	}
	return list, nil
}

// shardCount is how many shards a node has that has begun.
func (n Node) shardCount() int {
	switch {
	case n.Shards != nil:
		return *n.Shards
	case n.Attempt == 0 && n.State.Terminal():
		return 0 // skipped, or it failed before it could be tried
	}
	return 1
}

// mustHaveNode distinguishes a node that waits for others from one that does not exist.
func (s *Service) mustHaveNode(ctx context.Context, team ids.Team, id ids.Run, node string) error {
	r, err := s.store.Run(ctx, team, id)
	if err != nil {
		return err
	}
	g, _ := graph.Salvage(r.Definition)
	if !slices.ContainsFunc(g.Order(), func(n *graph.Node) bool { return n.ID == node }) {
		return fault.NotFound("the run has no step %q", node)
	}
	return nil
}

// shardsIn are the shards of a range in the state that their newest attempt
// leaves them in. Those that were never tried have none.
func shardsIn(from, to int, tried []Attempt, over bool) []Shard {
	list := make([]Shard, to-from)
	for i := range list {
		list[i] = Shard{Index: from + i, State: waits(over, lifecycle.NodeQueued)}
	}
	for _, a := range tried {
		list[a.Shard-from].State = a.leaves(over)
	}
	return list
}

// leaves is the state of a shard after its newest attempt.
func (a Attempt) leaves(over bool) lifecycle.NodeState {
	switch {
	case a.State == AttemptSucceeded:
		return lifecycle.NodeSucceeded
	case a.State == AttemptFailed && a.RetryAt.IsZero():
		return lifecycle.NodeFailed
	case a.State == AttemptStarted:
		return waits(over, lifecycle.NodeRunning)
	case a.State == AttemptFailed:
		return waits(over, lifecycle.NodeRetrying)
	case a.State == AttemptLost:
		return waits(over, lifecycle.NodeQueued)
	}
	return lifecycle.NodeCancelled
}

// waits is a state that is not final, unless all is over: then the shard never
// came to its end.
func waits(over bool, state lifecycle.NodeState) lifecycle.NodeState {
	if over {
		return lifecycle.NodeCancelled
	}
	return state
}

// ReusedReason marks an attempt that did not run because its result was there.
const ReusedReason = "reused"

// Reused reports whether an earlier result was taken instead of running.
func (a Attempt) Reused() bool { return a.State == AttemptSucceeded && a.Reason == ReusedReason }

// fillShards reads what belongs to the shards of a page.
func (s *Service) fillShards(ctx context.Context, r Run, n Node, base string, list []Shard) error {
	if len(list) == 0 {
		return nil
	}
	at := map[int]*Shard{}
	indexes := make([]int, len(list))
	for i := range list {
		at[list[i].Index], indexes[i] = &list[i], list[i].Index
	}
	attempts, err := s.shards.AttemptsOf(ctx, r.ID, n.ID, indexes)
	if err != nil {
		return err
	}
	for _, a := range attempts {
		shard := at[a.Shard]
		shard.Item, shard.Cached, shard.Attempts = a.Item, a.Reused(), append(shard.Attempts, a)
	}
	made, err := s.shards.ShardOutputs(ctx, r.ID, n.ID, indexes)
	if err != nil {
		return err
	}
	kept, _, err := s.verified(ctx, made, base)
	for _, o := range kept {
		o.Scattered = n.Shards != nil
		shard := at[o.Shard]
		shard.Outputs = append(shard.Outputs, o)
	}
	return err
}
