package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/outputcopy"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// copying is a run of a team that was to be copied, and has ended somehow.
func copying(t *testing.T, db *DB, team ids.Team, as lifecycle.Status) ids.Run {
	t.Helper()
	r := newRun(team)
	r.OutputTo = &outputto.Copy{Target: outputto.Target{URL: "s3://lab/out/", Connection: "conn_1"}}
	if err := db.SubmitRun(t.Context(), r, 60*r.Price, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ClaimRuns(t.Context(), claim("w1", 10), august, august.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if c, err := db.OutputCopyOf(t.Context(), team, r.ID); err != nil || c.State != outputto.Waiting {
		t.Fatalf("%+v, %v", c, err)
	}
	if got, err := db.ClaimOutputCopy(t.Context(), "early", august, august.Add(time.Minute)); err != nil || got.Run != "" {
		t.Fatalf("the outputs of a run that has not ended are copied: %+v, %v", got, err)
	}
	if err := db.EndRun(t.Context(), r.ID, 1, runs.Ending{Status: as}, august); err != nil {
		t.Fatal(err)
	}
	return r.ID
}

// A team whose buckets are slow has some copies under way and no more, so that another
// team's outputs are copied.
func TestTeamsTakeTurnsWithTheirCopies(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		slow, _ := newTeam(t, db)
		other, _ := newTeam(t, db)
		at := func(s int) time.Time { return august.Add(time.Duration(s) * time.Second) }
		for range outputcopy.TeamAtOnce + 2 {
			copying(t, db, slow, lifecycle.Completed)
			_, err := db.changed(t.Context(), `UPDATE output_copies SET next_at = $1`, micros(at(10))) // not before all are there
			must(t, err)
		}
		id := copying(t, db, other, lifecycle.Completed)
		claimed := map[ids.Team]int{}
		for i := range 10 {
			c, err := db.ClaimOutputCopy(t.Context(), fmt.Sprint(i), at(11), at(60))
			must(t, err)
			if claimed[c.Team]++; c.Team == other && c.Run != id {
				t.Errorf("%+v", c)
			}
		}
		if claimed[slow] != outputcopy.TeamAtOnce || claimed[other] != 1 {
			t.Errorf("%d and %d copies are under way", claimed[slow], claimed[other])
		}
	})
}

func TestACopyIsOneProcessesAtATime(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		other, _ := newTeam(t, db)
		failed := copying(t, db, team, lifecycle.Failed)
		if c, err := db.OutputCopyOf(ctx, team, failed); err != nil || c.State != outputto.Skipped || c.EndedAt.IsZero() || c.Message == "" {
			t.Errorf("%+v, %v", c, err)
		}
		id := copying(t, db, team, lifecycle.Completed)
		if _, err := db.OutputCopyOf(ctx, other, id); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another team: %v", err)
		}
		at := func(s int) time.Time { return august.Add(time.Duration(s) * time.Second) }
		c, err := db.ClaimOutputCopy(ctx, "a", at(1), at(60))
		if err != nil || c.Run != id || c.Team != team || c.State != outputto.Copying || c.URL != "s3://lab/out/" {
			t.Fatalf("%+v, %v", c, err)
		}
		if again, err := db.ClaimOutputCopy(ctx, "b", at(2), at(62)); err != nil || again.Run != "" {
			t.Errorf("claimed twice: %+v, %v", again, err)
		}
		c.Files, c.Done, c.Bytes, c.Copied, c.Upload, c.UploadOf = 3, 1, 30, 10, "u1", "results/big"
		if err := db.SaveOutputCopy(ctx, "a", c, at(61)); err != nil {
			t.Error(err)
		}
		if again, err := db.ClaimOutputCopy(ctx, "b", at(60), at(120)); err != nil || again.Run != "" {
			t.Errorf("claimed although it is alive: %+v, %v", again, err)
		}
		next, err := db.ClaimOutputCopy(ctx, "b", at(61), at(121))
		if err != nil || next.Done != 1 || next.Upload != "u1" || next.UploadOf != "results/big" || next.Copied != 10 {
			t.Fatalf("of a dead one: %+v, %v", next, err)
		}
		if err := db.SaveOutputCopy(ctx, "a", c, at(200)); !fault.Is(err, fault.KindConflict) {
			t.Errorf("who has lost it writes: %v", err)
		}
		next.Attempts, next.NextAt, next.Message = 1, at(300), "the bucket is closed"
		if err := db.SaveOutputCopy(ctx, "b", next, time.Time{}); err != nil {
			t.Error(err)
		}
		if early, err := db.ClaimOutputCopy(ctx, "c", at(299), at(400)); err != nil || early.Run != "" {
			t.Errorf("claimed in the pause: %+v, %v", early, err)
		}
		if _, err := db.ClaimOutputCopy(ctx, "c", at(300), at(400)); err != nil {
			t.Error(err)
		}
		if err := db.ReleaseOutputCopies(ctx); err != nil {
			t.Error(err)
		}
		last, err := db.ClaimOutputCopy(ctx, "d", at(301), at(400))
		if err != nil || last.Run != id {
			t.Fatalf("after a restart: %+v, %v", last, err)
		}
		last.State, last.EndedAt = outputto.Completed, at(302)
		if err := db.SaveOutputCopy(ctx, "d", last, time.Time{}); err != nil {
			t.Error(err)
		}
		if err := db.SaveOutputCopy(ctx, "d", last, time.Time{}); !fault.Is(err, fault.KindConflict) {
			t.Errorf("a copy that has ended ends again: %v", err)
		}
		if none, err := db.ClaimOutputCopy(ctx, "e", at(9999), at(99999)); err != nil || none.Run != "" {
			t.Errorf("%+v, %v", none, err)
		}
	})
}
