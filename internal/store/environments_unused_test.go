package store

import (
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/environments"
)

// A run shows the lock of its environment as long as it is kept.
func TestEnvironmentsGoWithTheRunsThatHadThem(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		other, _ := newTeam(t, db)
		run := submit(t, db, team) // in august
		day := 24 * time.Hour
		for key, at := range map[string]time.Time{"of the run": august.Add(day), "long before": august.AddDate(0, -6, 0), "of an older server": august.AddDate(0, -6, 0)} {
			b := environments.Build{Key: key, Spec: "{}", State: environments.Ready, Lock: "lock", UpdatedAt: at}
			if _, err := db.SaveEnvironmentBuild(ctx, team, b); err != nil {
				t.Fatal(err)
			}
		}
		without := environments.Build{Key: "of no run", Spec: "{}", State: environments.Failed, UpdatedAt: august}
		if _, err := db.SaveEnvironmentBuild(ctx, other, without); err != nil {
			t.Fatal(err)
		}
		if _, err := db.changed(ctx, `UPDATE environments SET used_at = 0 WHERE key = 'of an older server'`); err != nil {
			t.Fatal(err)
		}
		left := func(now time.Time, want ...string) {
			t.Helper()
			if _, err := db.DeleteExpired(ctx, now); err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, of := range []ids.Team{team, other} {
				list, err := db.EnvironmentBuilds(ctx, of, "", 10)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range list {
					keys = append(keys, b.Key)
				}
			}
			if slices.Sort(keys); !slices.Equal(keys, want) {
				t.Errorf("at %s there are %q, want %q", now, keys, want)
			}
		}
		left(august.Add(2*day), "of an older server", "of no run", "of the run")
		left(august.AddDate(1, 0, 0), "of an older server", "of the run")
		if known, err := db.EnvironmentUsed(ctx, team, "of no run", august); err != nil || known {
			t.Errorf("what is not there any more is used: %v, %v", known, err)
		}
		if _, err := db.changed(ctx, `DELETE FROM runs WHERE id = $1`, run.ID); err != nil {
			t.Fatal(err)
		}
		later := august.AddDate(1, 0, 0)
		if known, err := db.EnvironmentUsed(ctx, team, "of an older server", later); err != nil || !known {
			t.Errorf("it is not known to be used: %v, %v", known, err)
		}
		if b, err := db.EnvironmentBuild(ctx, team, "of an older server"); err != nil || !b.UsedAt.Equal(later) || b.Lock != "lock" {
			t.Errorf("it is %+v, %v", b, err)
		}
		left(later.Add(day), "of an older server")
		left(later.AddDate(0, 2, 0))
	})
}
