package store

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// everyObject keeps each object as it was.
type everyObject struct{}

func (everyObject) StatOutput(context.Context, string) (runs.Stored, error) {
	return runs.Stored{Size: 1, Mark: "m"}, nil
}

func (everyObject) PresignOutput(_ context.Context, o runs.Output, _ time.Time, base string) (string, error) {
	return base + o.Key, nil
}

func (everyObject) Open(context.Context, string, int64, int64) (io.ReadCloser, error) {
	return nil, fault.NotFound("no bytes")
}

// scattered is a running run with one node of so many shards, of which the
// last tenth was not tried yet. Of the others each hundredth failed after a
// second attempt, each that follows one is lost and waits, and the rest
// succeeded with a file.
func scattered(t *testing.T, db *DB, team ids.Team, total int) runs.Run {
	t.Helper()
	ctx := t.Context()
	r := newRun(team)
	r.Definition = []byte(`{"nodes":[{"id":"n","command":"true","scatter":{"over":"[1]"}},{"id":"later","command":"true"}]}`)
	if err := db.SubmitRun(ctx, r, 60*r.Price, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ClaimRuns(ctx, claim("w1", 10), august, august.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	one := 1
	step := runs.Step{Nodes: []runs.Node{{ID: "n", Name: "n", State: lifecycle.NodeRunning, Shards: &total, StartedAt: august}}}
	for i := range total * 9 / 10 {
		a := runs.Attempt{Node: "n", Shard: i, Number: 1, Fence: fmt.Sprint(i), State: runs.AttemptSucceeded, Item: fmt.Sprint(i), Peak: 1 << 20, StartedAt: august, EndedAt: august.Add(time.Second)}
		switch i % 100 {
		case 0:
			a.State, a.ExitCode, a.Reason, a.RetryAt = runs.AttemptFailed, &one, "node_failed", august
			second := a
			second.Number, second.RetryAt, second.Message = 2, time.Time{}, "Step n exited with status 1"
			step.Attempts = append(step.Attempts, second)
		case 1:
			a.State = runs.AttemptLost
		default:
			key := fmt.Sprintf("teams/%s/runs/%s/n.%06d", team, r.ID, i)
			step.Outputs = append(step.Outputs, runs.Output{Key: key, Blob: key, Node: "n", Port: "o", Shard: i, Name: "o.txt", ContentType: "text/plain", Size: 1, Mark: "m"})
		}
		step.Attempts = append(step.Attempts, a)
	}
	if err := db.Advance(ctx, r.ID, 1, step, august); err != nil {
		t.Fatal(err)
	}
	return r
}

func shardsOf(t *testing.T, db *DB, r runs.Run, p runs.ShardPage) (list []runs.Shard, pages int) {
	t.Helper()
	s := runs.NewService(runs.Options{Store: db, Details: db, Shards: db, Objects: everyObject{}, Verifier: runs.NewVerifier(everyObject{}, db), Reports: []byte("k"), Now: func() time.Time { return august }})
	caller := access.Caller{User: "user_1", Team: r.Team, Role: access.Viewer}
	for {
		page, next, err := s.Shards(t.Context(), caller, r.ID, p)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		list = append(list, page...)
		if next == "" {
			return list, pages
		}
		p.After = next
	}
}

func TestAScatterIsReadInPagesFailedItemsFirst(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		r := scattered(t, db, team, 1000)
		list, pages := shardsOf(t, db, r, runs.ShardPage{Node: "n", Limit: 300})
		if len(list) != 1000 || pages != 4 {
			t.Fatalf("%d shards on %d pages", len(list), pages)
		}
		seen := map[int]bool{}
		for i, s := range list {
			if seen[s.Index] || i > 0 && i != 9 && list[i-1].Index > s.Index {
				t.Fatalf("shard %d comes after %d", s.Index, list[i-1].Index)
			}
			seen[s.Index] = true
			if failed := s.State == lifecycle.NodeFailed; failed != (i < 9) || failed && (len(s.Attempts) != 2 || *s.Attempts[1].ExitCode != 1 || s.Attempts[1].Peak != 1<<20) {
				t.Fatalf("place %d has %+v", i, s)
			}
		}
		counts := map[lifecycle.NodeState]int{}
		for _, s := range list {
			counts[s.State]++
			if s.State == lifecycle.NodeSucceeded && (len(s.Outputs) != 1 || s.Item != fmt.Sprint(s.Index) || !s.Outputs[0].Scattered) {
				t.Fatalf("%+v", s)
			}
		}
		if got := fmt.Sprint(counts); got != "map[failed:9 queued:109 succeeded:882]" {
			t.Error(got)
		}
		for state, n := range map[lifecycle.NodeState]int{lifecycle.NodeFailed: 9, lifecycle.NodeQueued: 109, lifecycle.NodeSkipped: 0} {
			if some, _ := shardsOf(t, db, r, runs.ShardPage{Node: "n", State: state, Limit: 50}); len(some) != n || slices.ContainsFunc(some, func(s runs.Shard) bool { return s.State != state }) {
				t.Errorf("%d shards are %s", len(some), state)
			}
		}
		if later, _ := shardsOf(t, db, r, runs.ShardPage{Node: "later", Limit: 50}); len(later) != 0 {
			t.Errorf("a node that has not begun has %+v", later)
		}
		// With the run, what has not ended never will.
		if err := db.EndRun(t.Context(), r.ID, 1, runs.Ending{Status: lifecycle.Cancelled}, august); err != nil {
			t.Fatal(err)
		}
		if some, _ := shardsOf(t, db, r, runs.ShardPage{Node: "n", State: lifecycle.NodeCancelled, Limit: 500}); len(some) != 109 {
			t.Errorf("%d shards are cancelled", len(some))
		}
	})
}

// Where an attempt runs is known to whoever looks, and to the worker that goes on
// with it, which writes the row again.
func TestAnAttemptsPlaceIsKept(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := submit(t, db, team)
		if _, err := db.ClaimRuns(ctx, claim("h w", 1), august, august.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		place := runs.Placement{Machine: "n1", Job: "7", Inspect: "scontrol show job 7"}
		a := runs.Attempt{Node: "n", Number: 1, Fence: "f", Host: "h", State: runs.AttemptStarted, StartedAt: august, Placement: place}
		n := runs.Node{ID: "n", Name: "n", State: lifecycle.NodeQueued, WaitsFor: "waits in Slurm's queue: Priority"}
		write := func() {
			t.Helper()
			if err := db.Advance(ctx, r.ID, 1, runs.Step{Nodes: []runs.Node{n}, Attempts: []runs.Attempt{a}}, august); err != nil {
				t.Fatal(err)
			}
		}
		read := func() (runs.Attempt, runs.Node) {
			t.Helper()
			shown, err := db.AttemptsOf(ctx, r.ID, "n", []int{0})
			if err != nil || len(shown) != 1 {
				t.Fatalf("%+v, %v", shown, err)
			}
			rec, err := db.RecordOf(ctx, r.ID)
			if err != nil || len(rec.Attempts) != 1 || rec.Attempts[0].Placement != shown[0].Placement {
				t.Fatalf("%+v, %v", rec.Attempts, err)
			}
			return shown[0], rec.Nodes[0]
		}
		write()
		got, waits := read()
		if _, began := got.Queued(); got.Placement != place || began || waits.WaitsFor != n.WaitsFor {
			t.Errorf("%+v waits for %q", got.Placement, waits.WaitsFor)
		}
		a.BeganAt, n.State, n.WaitsFor = august.Add(time.Minute), lifecycle.NodeRunning, ""
		write()
		got, waits = read()
		if waited, began := got.Queued(); !began || waited != time.Minute || waits.WaitsFor != "" {
			t.Errorf("it waited %s for %q", waited, waits.WaitsFor)
		}
	})
}
