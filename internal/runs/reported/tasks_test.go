package reported

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// listedTasks are the tasks of a step, by their number.
type listedTasks []string

func (l listedTasks) LaunchedPicture(context.Context, ids.Run) (*Picture, error) { return nil, nil } //nolint:nilnil // it launches nothing

func (l listedTasks) TracedTasks(_ context.Context, _ ids.Run, after TracePlace, limit int) (list []Row, err error) {
	for i := after.Shard + 1; i < len(l) && len(list) < limit; i++ {
		list = append(list, Row{Task: Task{ID: fmt.Sprint(i), Node: "a", Attempt: 1, State: State(l[i])}, Shard: i})
	}
	return list, nil
}

func (l listedTasks) ReportedShards(_ context.Context, _ ids.Run, _ string, kinds []string, after, limit int) (list []Listed, err error) {
	for i, kind := range l {
		if i > after && slices.Contains(kinds, kind) && len(list) < limit {
			list = append(list, Listed{i, kind})
		}
	}
	return list, nil
}

func (l listedTasks) ReportedAttempts(_ context.Context, _ ids.Run, node string, shards []int) (list []runs.Attempt, err error) {
	for _, i := range shards {
		list = append(list, runs.Attempt{Node: node, Shard: i, Number: 1, Item: fmt.Sprintf("%q", l[i])})
	}
	return list, nil
}

func TestTasksArePagedWithFailuresFirst(t *testing.T) {
	t.Parallel()
	tasks := Tasks{listedTasks{"succeeded", "failed", "running", "ignored", "cached", "waiting", "retrying", "cancelled", "failed"}}
	all := func(status lifecycle.Status, state lifecycle.NodeState, limit int) string {
		t.Helper()
		var got []string
		for after := ""; ; {
			list, next, err := tasks.Shards(t.Context(), runs.Run{Status: status, StartedAt: noon}, runs.ShardPage{Node: "a", State: state, After: after, Limit: limit})
			if err != nil || len(list) > limit || next != "" && len(list) < limit {
				t.Fatalf("%d of %d, then %q: %v", len(list), limit, next, err)
			}
			for _, s := range list {
				if len(s.Attempts) != 1 || s.Attempts[0].StartedAt != noon || s.Item == "" {
					t.Errorf("%+v", s)
				}
				got = append(got, fmt.Sprint(s.Index, " ", s.State))
			}
			if after = next; after == "" {
				return strings.Join(got, ", ")
			}
		}
	}
	const failures = "1 failed, 3 failed, 8 failed"
	for limit := 1; limit < 11; limit++ {
		if got, want := all(lifecycle.Running, "", limit), failures+", 0 succeeded, 2 running, 4 succeeded, 5 queued, 6 retrying, 7 cancelled"; got != want {
			t.Errorf("by %d: %s, want %s", limit, got, want)
		}
		if got, want := all(lifecycle.Failed, "", limit), failures+", 0 succeeded, 2 cancelled, 4 succeeded, 5 cancelled, 6 cancelled, 7 cancelled"; got != want {
			t.Errorf("by %d, when it is over: %s, want %s", limit, got, want)
		}
		if got := all(lifecycle.Running, lifecycle.NodeFailed, limit); got != failures {
			t.Errorf("failures by %d: %s", limit, got)
		}
		if got := all(lifecycle.Failed, lifecycle.NodeCancelled, limit); got != "2 cancelled, 5 cancelled, 6 cancelled, 7 cancelled" {
			t.Errorf("by %d, of those that never ended: %s", limit, got)
		}
		if got := all(lifecycle.Failed, lifecycle.NodeRunning, limit); got != "" {
			t.Errorf("by %d, of an ended run some go on: %s", limit, got)
		}
	}
	if _, _, err := tasks.Shards(t.Context(), runs.Run{}, runs.ShardPage{Node: "a", After: "nonsense", Limit: 1}); !fault.Is(err, fault.KindInvalid) {
		t.Errorf("a cursor that is none: %v", err)
	}
}

func TestATraceIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	many := make(listedTasks, 2*tracedAtOnce+1)
	for i := range many {
		many[i] = []string{"succeeded", "failed", "cached", "running", "queued", "cancelled"}[i%6]
	}
	for _, n := range []int{0, 1, tracedAtOnce, len(many)} {
		next := 0
		err := Tasks{many[:n]}.Trace(t.Context(), runs.Run{}, func(task runs.TraceTask) error {
			if want := []runs.TraceStatus{runs.TraceCompleted, runs.TraceFailed, runs.TraceCached, runs.TraceRunning, runs.TraceSubmitted, runs.TraceAborted}[next%6]; task.Shard != next || task.Status != want {
				t.Fatalf("%d: %+v, want %s", next, task, want)
			}
			next++
			return nil
		})
		if err != nil || next != n {
			t.Errorf("%d of %d, %v", next, n, err)
		}
	}
	stop := errors.New("nobody reads any more")
	read := 0
	if err := (Tasks{many}).Trace(t.Context(), runs.Run{}, func(runs.TraceTask) error { read++; return stop }); !errors.Is(err, stop) || read != 1 {
		t.Errorf("%v after %d", err, read)
	}
}
