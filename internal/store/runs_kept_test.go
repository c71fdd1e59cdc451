package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// A team's oldest folders make room, a run has twenty at most, and the bytes of
// what goes are deleted with it.
func TestFailedFoldersAreKeptWithinTheirRoom(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := submit(t, db, team)
		if _, err := db.ClaimRuns(ctx, claim("w1", 10), august, august.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		var step runs.Step
		for i := range 22 {
			state := runs.AttemptFailed
			if i == 21 {
				state = runs.AttemptSucceeded
			}
			step.Attempts = append(step.Attempts, runs.Attempt{Node: "a", Shard: i, Number: 1, Fence: fmt.Sprint("f", i), State: state, StartedAt: august, AbandonedAt: august})
		}
		if err := db.Advance(ctx, r.ID, 1, step, august); err != nil {
			t.Fatal(err)
		}
		may := func(shard int) bool {
			_, ok, err := db.MayKeep(ctx, runs.AttemptKey{Run: r.ID, Node: "a", Shard: shard, Attempt: 1})
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		if may(21) || may(22) || !may(0) {
			t.Error("an attempt that succeeded, or never was, is kept")
		}
		put := func(shard int, bytes int64) {
			k := runs.KeptAttempt{
				AttemptKey: runs.AttemptKey{Run: r.ID, Node: "a", Shard: shard, Attempt: 1}, Team: team, Bytes: bytes,
				KeptAt: august.Add(time.Duration(shard) * time.Second), ExpiresAt: august.Add(time.Hour),
			}
			if err := db.KeepAttempt(ctx, k, []runs.KeptFile{{Path: "x", Kind: "file", Size: bytes, Object: fmt.Sprintf("teams/%s/failed/%d", team, shard)}}); err != nil {
				t.Fatal(err)
			}
		}
		put(0, keptOfTeam)
		put(1, 10) // the first one must go
		list, err := db.KeptAttempts(ctx, team, r.ID)
		if err != nil || len(list) != 1 || list[0].Shard != 1 || list[0].Files != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		if doomed, err := db.PendingDeletes(ctx, "", 10); err != nil || len(doomed) != 1 || doomed[0] != "teams/"+string(team)+"/failed/0" {
			t.Errorf("%v, %v", doomed, err)
		}
		if may(1) {
			t.Error("one is kept twice")
		}
		for i := 2; i < keptOfRun+1; i++ {
			put(i, 1)
		}
		if may(0) {
			t.Error("a run has more than its bound")
		}
		if unknown, err := db.Unknown(ctx, []string{"teams/" + string(team) + "/failed/1", "teams/none"}); err != nil || len(unknown) != 1 {
			t.Errorf("%v, %v", unknown, err)
		}
		if other, err := db.KeptFiles(ctx, ids.NewTeam(), list[0].AttemptKey); err != nil || len(other) != 0 {
			t.Errorf("another team reads %v, %v", other, err)
		}
		if n, err := db.DropExpiredKept(ctx, august); err != nil || n != 0 {
			t.Errorf("%d, %v", n, err)
		}
		if n, err := db.DropExpiredKept(ctx, august.Add(time.Hour)); err != nil || n != keptOfRun {
			t.Errorf("%d, %v", n, err)
		}
	})
}

// What is kept of a run goes with it, and so do the bytes.
func TestDeletingARunDeletesItsFailedFolders(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r, other := submit(t, db, team), submit(t, db, team)
		for i, id := range []ids.Run{r.ID, r.ID, other.ID} {
			k := runs.KeptAttempt{
				AttemptKey: runs.AttemptKey{Run: id, Node: "a", Shard: i, Attempt: 1}, Team: team, Bytes: 1, KeptAt: august, ExpiresAt: august.Add(time.Hour),
			}
			if err := db.KeepAttempt(ctx, k, []runs.KeptFile{{Path: "x", Kind: "file", Size: 1, Object: fmt.Sprint("failed/", i)}, {Path: "y", Kind: "folder"}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.CancelRun(ctx, team, r.ID, r.Starter, august); err != nil {
			t.Fatal(err)
		}
		if _, err := db.DeleteRun(ctx, team, r.ID, august); err != nil {
			t.Fatal(err)
		}
		if doomed, err := db.PendingDeletes(ctx, "", 10); err != nil || fmt.Sprint(doomed) != "[failed/0 failed/1]" {
			t.Errorf("%v, %v", doomed, err)
		}
		if list, err := db.KeptAttempts(ctx, team, other.ID); err != nil || len(list) != 1 {
			t.Errorf("of another run: %v, %v", list, err)
		}
	})
}
