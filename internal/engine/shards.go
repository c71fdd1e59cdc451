package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// shards are those of one node. Most of a large scatter has not begun or has
// ended: the first is a range of numbers, the second a count, and only what is
// in between is kept as objects.
type shards struct {
	total   int
	fresh   int          // from here on none was ever started
	items   bounds.Items // empty without scatter
	head    *shard       // the next one, once somebody has looked
	waiting []*shard     // to be run again, in order
	done    int          // those that have ended
	failed  int
	cached  int
}

// shard is one piece of a node's work.
type shard struct {
	index   int
	item    string // its value or path, as JSON; empty without scatter
	state   lifecycle.NodeState
	attempt int // the newest
	lost    int // attempts that the platform lost
	untried int // those, and ones of which nothing ran: they do not count
	retryAt time.Time
	memory  float64 // GB, after attempts that ran out of it; 0: as asked
	logged  int64   // bytes of its log, over all attempts

	earlier  *earlier // what was computed before, while it is looked for in the cache
	uncached bool     // it was looked for, and has to run
}

// next is the shard that starts next, or nil. It stays the next
// until it is taken.
func (s *shards) next() *shard {
	switch {
	case s.head != nil:
	case s.fresh < s.total:
		s.head = s.newShard(s.fresh)
	case len(s.waiting) > 0:
		s.head = s.waiting[0]
	}
	return s.head
}

func (s *shards) newShard(index int) *shard {
	made := &shard{index: index, state: lifecycle.NodeQueued}
	if index < s.items.Len() {
		made.item = s.items.JSON(index)
	}
	return made
}

// take removes the next one from the line, if its node has not ended with it.
func (s *shards) take() {
	switch {
	case s.head == nil:
	case s.head.index == s.fresh:
		s.fresh++
	default:
		s.waiting = s.waiting[1:]
	}
	s.head = nil
}

// requeue puts a shard at the end of the line.
func (s *shards) requeue(one *shard) {
	one.state = lifecycle.NodeQueued
	s.waiting = append(s.waiting, one)
}

// noneWaiting reports whether none waits to start.
func (s *shards) noneWaiting() bool { return s.fresh == s.total && len(s.waiting) == 0 }

// clear frees what only unfinished shards need.
func (s *shards) clear() { s.fresh, s.items, s.head, s.waiting = s.total, bounds.Items{}, nil, nil }

// scatter gives a node a shard for each item, unless the run would have too
// many.
func (r *runner) scatter(n *node) error {
	items, err := r.g.EvalOver(n.Node, r.scope())
	if err != nil {
		return fmt.Errorf("what it is scattered over cannot be evaluated: %w", err)
	}
	count := items.Len()
	if all := r.scattered + count; all > graph.MaxRunShards {
		return fmt.Errorf("with it the run would have %d items; a run may have at most %d", all, graph.MaxRunShards)
	}
	if r.itemBytes+items.Bytes() > graph.MaxRunItems {
		return fmt.Errorf("with it the run would be scattered over more than %d MB of values; pass long ones as files", graph.MaxRunItems>>20)
	}
	r.scattered, r.itemBytes = r.scattered+count, r.itemBytes+items.Bytes()
	n.row.Shards, n.total, n.items = &count, count, items
	return nil
}

// restoreShards gives a node that has begun what it has not ended, from those of its
// shards that were started before. The values of a scatter are computed again,
// which gives the same ones.
func (r *runner) restoreShards(n *node, known map[int]*shard) {
	n.total = 1
	if n.Scatter != nil {
		n.total = 0
		if items, err := r.g.EvalOver(n.Node, r.scope()); err == nil { // it was evaluated before; what is known must do
			n.items, n.total = items, items.Len()
			r.itemBytes += items.Bytes()
		}
	}
	for index := range known {
		n.fresh = max(n.fresh, index+1)
	}
	n.total = max(n.total, n.fresh)
	for index := range n.fresh {
		s := known[index]
		if s == nil {
			s = n.newShard(index)
		}
		switch s.state {
		case lifecycle.NodeQueued:
			n.waiting = append(n.waiting, s)
		case lifecycle.NodeRetrying:
			r.retrying[s] = n
		case lifecycle.NodeSucceeded:
			n.done++
		case lifecycle.NodeFailed:
			n.done, n.failed = n.done+1, n.failed+1
		}
	}
	n.waiting = slices.Clip(n.waiting)
}
