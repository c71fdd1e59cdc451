package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/secrets"
	"github.com/millrace/millrace/internal/sharing"
)

func TestATeamKeepsSoManySecrets(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		other, _ := newTeam(t, db)
		put := func(name, value string) (secrets.Secret, error) {
			return db.PutSecret(ctx, team, secrets.Secret{Name: name, Hint: "hint", CreatedAt: august, UpdatedAt: august}, value, 2)
		}
		if done, errs := atOnce(6, func(i int) error { return second(put(fmt.Sprint("S", i), "v")) }); done != 2 {
			t.Errorf("%d were kept: %v", done, errs)
		}
		_, err := put("MORE", "v")
		refused(t, "one more", err, fault.KindConflict, "too_many_secrets")
		list, err := db.Secrets(ctx, team)
		if err != nil || len(list) != 2 || list[0].Name >= list[1].Name || list[0].Version != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		// As many at once write another value: each is a version of its own.
		name := list[0].Name
		if done, errs := atOnce(5, func(i int) error { return second(put(name, fmt.Sprint("value ", i))) }); done != 5 {
			t.Error(errs)
		}
		kept, err := put(name, "the last \x00 of them")
		if err != nil || kept.Version != 7 {
			t.Errorf("%+v, %v", kept, err)
		}
		r := submit(t, db, team)
		got, err := db.SecretsOf(ctx, r.ID, []string{name}, august)
		if err != nil || got[name].Value != "the last \x00 of them" {
			t.Errorf("%+v, %v", got, err)
		}
		theirs := submit(t, db, other)
		_, err = db.SecretsOf(ctx, theirs.ID, []string{name}, august)
		refused(t, "a run of another team", err, fault.KindInvalid, "")
		_, err = db.SecretsOf(ctx, "run_nothing", nil, august)
		refused(t, "no run", err, fault.KindNotFound, "")
		if missing, err := db.MissingSecrets(ctx, team, []string{"A", name, "B"}); err != nil || fmt.Sprint(missing) != "[A B]" {
			t.Errorf("%v, %v", missing, err)
		}
		refused(t, "another team", db.DeleteSecret(ctx, other, name), fault.KindNotFound, "")
		must(t, db.DeleteSecret(ctx, team, name))
		refused(t, "twice", db.DeleteSecret(ctx, team, name), fault.KindNotFound, "")
		_, err = db.SecretsOf(ctx, r.ID, []string{name}, august)
		refused(t, "one that is gone", err, fault.KindInvalid, "")
		must(t, db.CloseTeam(ctx, team, account.Lifetimes{}, august))
		_, err = put("LATE", "v")
		refused(t, "of a team that is being erased", err, fault.KindForbidden, "not_a_member")
	})
}

// That a secret was used is written down once in a while, and not for each step.
func TestWhenASecretWasUsed(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		_, err := db.PutSecret(ctx, team, secrets.Secret{Name: "KEY", CreatedAt: august, UpdatedAt: august}, "v", 5)
		must(t, err)
		r := submit(t, db, team)
		for after, want := range map[time.Duration]time.Duration{0: 0, usedEvery - time.Microsecond: 0, usedEvery: usedEvery} {
			if _, err := db.changed(ctx, `UPDATE secrets SET last_used_at = NULL`); err != nil {
				t.Fatal(err)
			}
			for _, at := range []time.Duration{0, after} {
				if _, err := db.SecretsOf(ctx, r.ID, []string{"KEY"}, august.Add(at)); err != nil {
					t.Fatal(err)
				}
			}
			if list, err := db.Secrets(ctx, team); err != nil || !list[0].LastUsedAt.Equal(august.Add(want)) {
				t.Errorf("used again after %v: %v, %v", after, list[0].LastUsedAt, err)
			}
		}
	})
}

func TestAConnectionThatIsUsedStays(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		other, _ := newTeam(t, db)
		add := func(name string) (connections.Connection, error) {
			return db.AddConnection(ctx, connections.Connection{
				ID: ids.NewConnection(), Team: team, Name: name, Type: "s3", Settings: connections.Settings{Bucket: "lab"}, CreatedBy: owner, CreatedAt: august,
				Test: connections.Test{OK: true, At: august},
			}, connections.Credentials{SecretKey: "secret"}, 2)
		}
		if done, errs := atOnce(5, func(i int) error { return second(add(fmt.Sprint(i))) }); done != 2 {
			t.Errorf("%d were kept: %v", done, errs)
		}
		_, err := add("more")
		refused(t, "one more", err, fault.KindConflict, "too_many_connections")
		list, err := db.Connections(ctx, team)
		if err != nil || len(list) != 2 || list[0].ID <= list[1].ID {
			t.Fatalf("%+v, %v", list, err)
		}
		c := list[0]
		c.Test = connections.Test{Message: "refused", At: august.Add(time.Hour)}
		c.HostKey = "key"
		must(t, db.SetTested(ctx, c))
		stray := c
		stray.Team, stray.Test = other, connections.Test{Message: "by another team", At: august}
		must(t, db.SetTested(ctx, stray))
		got, secret, err := db.OpenConnection(ctx, team, c.ID)
		if err != nil || secret.SecretKey != "secret" || got.Test != c.Test || got.HostKey != "key" || got.Bucket != "lab" {
			t.Errorf("%+v, %v", got, err)
		}
		_, _, err = db.OpenConnection(ctx, other, c.ID)
		refused(t, "another team", err, fault.KindNotFound, "")
		w := newWorkflow(t, db, team, owner)
		s := schedules.Schedule{ID: ids.NewSchedule(), Team: team, Workflow: w.ID, Cron: "0 0 * * *", TimeZone: "UTC", Overlap: schedules.Skip, CreatedBy: owner, CreatedAt: august, UpdatedAt: august}
		s.Given.Parameters = fmt.Appendf(nil, `{"from":"%s"}`, c.ID)
		must(t, db.InsertSchedule(ctx, s, 5))
		refused(t, "one that a schedule names", db.DeleteConnection(ctx, team, c.ID), fault.KindConflict, "connection_in_use")
		if _, _, err := db.OpenConnection(ctx, team, c.ID); err != nil {
			t.Errorf("it is gone all the same: %v", err)
		}
		must(t, db.DeleteSchedule(ctx, team, w.ID, s.ID))
		refused(t, "another team", db.DeleteConnection(ctx, other, c.ID), fault.KindNotFound, "")
		must(t, db.DeleteConnection(ctx, team, c.ID))
		refused(t, "twice", db.DeleteConnection(ctx, team, c.ID), fault.KindNotFound, "")
		// A run may have one of its team, a guest's only where the link allows it.
		left := list[1].ID
		r := submit(t, db, team)
		_, _, err = db.ConnectionOf(ctx, r.ID, c.ID)
		refused(t, "one that is gone", err, fault.KindInvalid, "")
		if _, secret, err := db.ConnectionOf(ctx, r.ID, left); err != nil || secret.SecretKey != "secret" {
			t.Error(err)
		}
		for _, allowed := range []bool{false, true} {
			i := link(t, db, w, func(i *sharing.Invite) { i.AllowSecrets = allowed })
			g := newRun(team)
			g.Invite, g.Starter = i.ID, runs.Starter{Type: "guest", ID: "g"}
			must(t, db.SubmitRun(ctx, g, 0, nil))
			if _, _, err := db.ConnectionOf(ctx, g.ID, left); (err == nil) != allowed || err != nil && !fault.Is(err, fault.KindInvalid) {
				t.Errorf("a guest's run, allowed %v: %v", allowed, err)
			}
		}
	})
}
