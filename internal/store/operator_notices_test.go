package store

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/runs"
)

// There is one notice at most, whoever sets it.
func TestANoticeReplacesTheOneBefore(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		for _, n := range []operator.Notice{
			{},
			{ID: "notice_1", Text: "one", Level: operator.Info},
			{ID: "notice_2", Text: "two", Level: operator.Warning, Until: august.Add(time.Hour)},
			{},
		} {
			must(t, db.SetNotice(ctx, n, august))
			if got, err := db.Notice(ctx); err != nil || got.ID != n.ID || got.Text != n.Text || got.Level != n.Level || !got.Until.Equal(n.Until) {
				t.Errorf("%+v, %v; want %+v", got, err, n)
			}
		}
	})
}

func TestRunsThatHaveNotStartedWaitForTheEndOfMaintenance(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		before := started(t, db, team, `{}`)
		fence, err := db.SeizeRun(ctx, before.ID, "operator", august, august.Add(time.Minute))
		must(t, err)
		must(t, db.ReturnRun(ctx, before.ID, fence, august))
		m, err := db.SetMaintenance(ctx, operator.Maintenance{On: true, Message: "The cluster is updated."}, august)
		if err != nil || !m.On || !m.Since.Equal(august) {
			t.Fatalf("%+v, %v", m, err)
		}
		later := submit(t, db, team)
		m, err = db.SetMaintenance(ctx, operator.Maintenance{On: true, Message: "Until noon."}, august.Add(time.Hour))
		if err != nil || !m.Since.Equal(august) || m.Message != "Until noon." {
			t.Errorf("on once more: %+v, %v", m, err)
		}
		state, err := db.QueueState(ctx, team, []ids.Run{before.ID, later.ID}, august)
		must(t, err)
		why := state.Why(runs.Run{ID: later.ID}.AsQueued())
		if why.Reason != "maintenance" || why.Message != "New runs wait until maintenance is over. Until noon." {
			t.Errorf("it waits for %+v", why)
		}
		if why := state.Why(before.AsQueued()); why.Reason == "maintenance" {
			t.Errorf("a run that had started waits for %+v", why)
		}
		queue, err := db.OpenRunsOfAll(ctx, 10, august)
		if err != nil || len(queue.Runs) != 2 || queue.Runs[0].Reason == "maintenance" || queue.Runs[1].Reason != "maintenance" {
			t.Errorf("%+v, %v", queue, err)
		}
		taken := func(want ids.Run) {
			t.Helper()
			claimed, err := db.ClaimRuns(ctx, claim("w1", 10), august, august.Add(time.Minute))
			if err != nil || len(claimed.Runs) != 1 || claimed.Runs[0].ID != want {
				t.Errorf("%+v are taken, %v; want %s", claimed.Runs, err, want)
			}
		}
		taken(before.ID)
		if claimed, err := db.ClaimRuns(ctx, claim("w1", 10), august, august.Add(time.Minute)); err != nil || len(claimed.Runs) != 0 {
			t.Errorf("%+v are taken, %v", claimed.Runs, err)
		}
		if m, err := db.SetMaintenance(ctx, operator.Maintenance{}, august); err != nil || m != (operator.Maintenance{}) {
			t.Errorf("%+v, %v", m, err)
		}
		taken(later.ID)
	})
}
