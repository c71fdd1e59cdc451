package store

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/runs/offers"
)

func TestOneWorkerPreparesAQueuedRun(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := newRun(team)
		r.Needs = []admission.Need{{Kind: admission.Image, Ref: "alpine:3"}}
		if err := db.SubmitRun(ctx, r, 60*r.Price, nil); err != nil {
			t.Fatal(err)
		}
		ask := func(owner, host string, preparing map[ids.Run]bool, now time.Time) runs.Claimed {
			t.Helper()
			if err := db.ReportWorker(ctx, runs.Worker{Owner: owner, Host: host, Size: credits.Size{VCPU: 8}}, now); err != nil {
				t.Fatal(err)
			}
			c := claim(owner, 10)
			c.Host, c.Prepares, c.Preparing = host, true, preparing
			got, err := db.ClaimRuns(ctx, c, now, now.Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		reason := func(now time.Time) runs.WaitReason {
			t.Helper()
			q, err := db.QueueState(ctx, team, []ids.Run{r.ID}, now)
			if err != nil {
				t.Fatal(err)
			}
			return q.Preparing[r.ID]
		}
		if got := ask("h1 a", "h1", nil, august); len(got.Runs) != 0 || len(got.Prepare) != 1 || got.Prepare[0].Needs[0] != r.Needs[0] {
			t.Fatalf("%+v", got)
		}
		if queued, err := db.QueuedRun(ctx, r.ID); err != nil || queued.Team != team || string(queued.Definition) != string(r.Definition) {
			t.Errorf("%+v, %v", queued, err)
		}
		if reason(august) != offers.WaitsForImage {
			t.Error("it does not say what it waits for")
		}
		for owner, bytes := range map[string]int64{"h1 a": 3, "h0 z": 7} { // the other had it before
			if err := db.InputsFetched(ctx, owner, r.ID, bytes, 12); err != nil {
				t.Fatal(err)
			}
		}
		q, err := db.QueueState(ctx, team, []ids.Run{r.ID}, august)
		if w := q.Why(r.AsQueued()); err != nil || w.Reason != offers.WaitsForInputs || w.Fetched != (offers.Fetched{Bytes: 3, Total: 12}) {
			t.Errorf("%+v, %v", w, err)
		}
		if got := ask("h2 b", "h2", nil, august); len(got.Prepare) != 0 || len(got.Runs) != 0 {
			t.Errorf("another worker does the same: %+v", got)
		}
		// The worker was killed: the next on its machine begins at once, another when it has not been heard of.
		if got := ask("h1 a2", "h1", nil, august); len(got.Prepare) != 1 {
			t.Errorf("%+v", got)
		}
		later := august.Add(2 * time.Minute)
		if reason(later) != "" {
			t.Error("it waits for a worker that is gone")
		}
		if got := ask("h2 b", "h2", nil, later); len(got.Prepare) != 1 {
			t.Errorf("%+v", got)
		}
		half := map[ids.Run]bool{r.ID: false}
		if got := ask("h2 b", "h2", half, later); len(got.Runs)+len(got.Prepare) != 0 || !got.Queued[r.ID] {
			t.Errorf("%+v", got)
		}
		// It is there, and the machine is full.
		full := claim("h2 b", 0)
		full.Host, full.Prepares, full.Preparing = "h2", true, map[ids.Run]bool{r.ID: true}
		if _, err := db.ClaimRuns(ctx, full, later, later); err != nil || reason(later) != "" {
			t.Errorf("it still says %q, %v", reason(later), err)
		}
		if got := ask("h2 b", "h2", map[ids.Run]bool{r.ID: true}, later); len(got.Runs) != 1 {
			t.Errorf("%+v", got)
		}
		if got := ask("h1 a2", "h1", half, later); got.Queued[r.ID] {
			t.Error("it counts as queued after it has started")
		}
		if _, err := db.QueuedRun(ctx, r.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("it is read as queued: %v", err)
		}
	})
}
