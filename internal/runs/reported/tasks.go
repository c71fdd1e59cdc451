package reported

import (
	"context"
	"slices"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// Listed is a task of a step.
type Listed struct {
	Index int
	Kind  string // how it stands, as its step counts it
}

// TaskStore reads the tasks of reported runs.
type TaskStore interface {
	ProcessStore
	TraceStore
	// ReportedShards are tasks of a step that stand in one of some ways, after
	// one, in order.
	ReportedShards(ctx context.Context, id ids.Run, node string, kinds []string, after, limit int) ([]Listed, error)
	// ReportedAttempts are those of some tasks, by task and number.
	ReportedAttempts(ctx context.Context, id ids.Run, node string, shards []int) ([]runs.Attempt, error)
}

// Tasks lists the tasks of reported runs.
type Tasks struct{ Store TaskStore }

// shardStates are what tasks are, by how they stand.
var shardStates = map[kind]lifecycle.NodeState{
	waiting: lifecycle.NodeQueued, active: lifecycle.NodeRunning, retrying: lifecycle.NodeRetrying, done: lifecycle.NodeSucceeded,
	reused: lifecycle.NodeSucceeded, failed: lifecycle.NodeFailed, ignored: lifecycle.NodeFailed, cancelled: lifecycle.NodeCancelled,
}

// stateIn is what a task is: one that has not ended when its run has never will.
func stateIn(r runs.Run, k kind) lifecycle.NodeState {
	state := shardStates[k]
	if r.Status.Terminal() && !state.Terminal() {
		return lifecycle.NodeCancelled
	}
	return state
}

// Shards are the tasks of a step, failed ones first, then by their number. next is
// where the following page begins, or empty.
func (t Tasks) Shards(ctx context.Context, r runs.Run, p runs.ShardPage) (list []runs.Shard, next string, err error) {
	at, err := runs.ReadItemPlace(p.After)
	if err != nil {
		return nil, "", err
	}
	list = []runs.Shard{}
	for rank, from := at.Rank, at.Index; rank < 2; rank, from = rank+1, -1 {
		if list, err = t.add(ctx, r, p, rank == 0, from, list); err != nil {
			return nil, "", err
		}
		if len(list) > p.Limit {
			list = list[:p.Limit]
			last := list[p.Limit-1]
			next = runs.PlaceOfItem(last.State == lifecycle.NodeFailed, last.Index).Text()
			break
		}
	}
	return list, next, t.fill(ctx, r, p.Node, list)
}

// add appends the tasks that failed, or those that did not.
func (t Tasks) add(ctx context.Context, r runs.Run, p runs.ShardPage, failures bool, after int, list []runs.Shard) ([]runs.Shard, error) {
	var kinds []string
	for k := range shardStates {
		if state := stateIn(r, k); (state == lifecycle.NodeFailed) == failures && (p.State == "" || p.State == state) {
			kinds = append(kinds, string(k))
		}
	}
	if len(kinds) == 0 {
		return list, nil
	}
	slices.Sort(kinds) // one text for the database
	found, err := t.Store.ReportedShards(ctx, r.ID, p.Node, kinds, after, p.Limit+1-len(list))
	for _, f := range found {
		list = append(list, runs.Shard{Index: f.Index, State: stateIn(r, kind(f.Kind))})
	}
	return list, err
}

// fill reads the attempts of the tasks of a page.
func (t Tasks) fill(ctx context.Context, r runs.Run, node string, list []runs.Shard) error {
	if len(list) == 0 {
		return nil
	}
	at := map[int]*runs.Shard{}
	indexes := make([]int, len(list))
	for i := range list {
		at[list[i].Index], indexes[i] = &list[i], list[i].Index
	}
	attempts, err := t.Store.ReportedAttempts(ctx, r.ID, node, indexes)
	for _, a := range attempts {
		shard := at[a.Shard]
		if a.StartedAt.IsZero() {
			a.StartedAt = r.StartedAt
		}
		shard.Item, shard.Cached, shard.Attempts = a.Item, a.Reused(), append(shard.Attempts, a)
	}
	return err
}
