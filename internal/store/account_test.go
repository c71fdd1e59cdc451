package store

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/store/freshtest"
)

// stays are tables that hold nothing of a team, or what is stated to outlive
// it.
var stays = strings.Fields(`secret_check signing_keys users sessions rate_hits erasures kept_invoices
	oauth_clients oauth_consents oauth_grants oauth_codes oauth_refresh_tokens oauth_devices slips second_factors recovery_codes
	chat_quota user_identities workers upkeep_lease chores backup_marks notification_choices notification_mails operators request_failures first_account notices maintenance`)

// eachMigrated runs the test on both databases with a row in every table.
func eachMigrated(t *testing.T, test func(t *testing.T, url string, pool *sql.DB)) {
	t.Helper()
	run := func(t *testing.T, url string) {
		schemaOf(t, url)
		pool, err := migrationPool(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pool.Close() })
		test(t, url, pool)
	}
	t.Run("sqlite", func(t *testing.T) { run(t, filepath.Join(t.TempDir(), "m.db")) })
	t.Run("postgres", func(t *testing.T) { run(t, freshtest.Empty(t)) })
}

// Every table is on one list or the other: who adds one decides what erasing a
// team does to it.
func TestErasingATeamLeavesNoRowOfIt(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, url string, pool *sql.DB) {
		ctx := t.Context()
		db, err := Open(ctx, Options{URL: url, SecretKey: "a secret key for tests only"})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, add := range []string{
			`INSERT INTO answers (scope, key, fingerprint, status, sealed, created_at) VALUES ('u t POST /api/runs', 'k', 'f', 201, 'x', 1)`,
			`INSERT INTO outbox (id, team_id, sealed, created_at, next_at) VALUES ('letter', 't', 'x', 1, 0)`,
			`INSERT INTO doomed_blobs (key) VALUES ('teams/t/x')`,
			`UPDATE sessions SET active_team = 't'`,
			`UPDATE users SET active_team = 't'`,
			`UPDATE readings SET charged_to = 't'`,
			`INSERT INTO teams (id, name, plan, created_at) VALUES ('other', 'Other', 'free', 1)`,
			`INSERT INTO workflows (id, team_id, name, description, revision, node_count, created_by, created_at, updated_at, version) VALUES ('x', 'other', 'X', '', 1, 0, 'u', 1, 1, 1)`,
		} {
			if _, err := pool.Exec(add); err != nil {
				t.Fatal(err)
			}
		}
		now := time.Now()
		if err := db.CloseTeam(ctx, "t", account.Lifetimes{UploadLink: time.Minute, Transfer: time.Hour}, now); err != nil {
			t.Fatal(err)
		}
		if err := db.CloseTeam(ctx, "t", account.Lifetimes{}, now); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("closed twice: %v", err)
		}
		if err := db.eraseTeam(ctx, "t"); !fault.Is(err, fault.KindConflict) {
			t.Errorf("with a run that has not ended: %v", err)
		}
		if _, err := pool.Exec(`UPDATE runs SET status = 'cancelled'`); err != nil {
			t.Fatal(err)
		}
		for range 2 { // whoever takes over begins again
			if err := db.EraseRows(ctx, "t"); err != nil {
				t.Fatal(err)
			}
			if err := db.Scrub(ctx); err != nil {
				t.Fatal(err)
			}
		}
		tables := tablesOf(t, pool, url)
		for _, b := range everything {
			var n int
			err := pool.QueryRow(`SELECT COUNT(*) FROM `+b.table+` WHERE `+b.of, "t").Scan(&n)
			if err != nil || n != 0 {
				t.Errorf("%s has %d rows of the team, %v", b.table, n, err)
			}
			tables = slices.DeleteFunc(tables, func(name string) bool { return name == b.table })
		}
		for _, name := range tables {
			if !slices.Contains(append([]string{"teams", "invoices", "orders"}, stays...), name) {
				t.Errorf("nobody has decided what erasing a team does to %s", name)
			}
		}
		for query, want := range map[string]int{
			`SELECT COUNT(*) FROM teams`:                                   1,
			`SELECT COUNT(*) FROM workflows`:                               1,
			`SELECT COUNT(*) FROM users`:                                   1,
			`SELECT COUNT(*) FROM invoices`:                                0,
			`SELECT COUNT(*) FROM orders`:                                  0,
			`SELECT COUNT(*) FROM kept_invoices`:                           2,
			`SELECT COUNT(*) FROM readings WHERE charged_to = 't'`:         0,
			`SELECT COUNT(*) FROM sessions WHERE active_team <> ''`:        0,
			`SELECT COUNT(*) FROM users WHERE active_team <> ''`:           0,
			`SELECT COUNT(*) FROM erasures WHERE counts LIKE '%"runs":1%'`: 1,
		} {
			var n int
			if err := pool.QueryRow(query).Scan(&n); err != nil || n != want {
				t.Errorf("%s: %d, want %d (%v)", query, n, want, err)
			}
		}
	})
}

// What comes after its table was emptied goes with the team itself.
func TestTheLastMomentOfATeamTakesEverything(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, url string, pool *sql.DB) {
		db, err := Open(t.Context(), Options{URL: url, SecretKey: "a secret key for tests only"})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, late := range []string{
			`UPDATE runs SET status = 'cancelled'`,
			`INSERT INTO answers (scope, key, fingerprint, status, sealed, created_at) VALUES ('u t POST /api/runs', 'k', 'f', 201, 'x', 1)`,
			`INSERT INTO outbox (id, team_id, sealed, created_at, next_at) VALUES ('letter', 't', 'x', 1, 0)`,
			`INSERT INTO doomed_blobs (key) VALUES ('teams/t/x')`,
		} {
			if _, err := pool.Exec(late); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.eraseTeam(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
		for _, b := range everything {
			var n int
			if err := pool.QueryRow(`SELECT COUNT(*) FROM `+b.table+` WHERE `+b.of, "t").Scan(&n); err != nil || n != 0 {
				t.Errorf("%s has %d rows of the team, %v", b.table, n, err)
			}
		}
	})
}

// An erasure is one server's at a time, until its lease ends or it is done,
// and comes up again when it is time to sweep.
func TestAnErasureIsTakenInTurns(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, url string, pool *sql.DB) {
		ctx := t.Context()
		db, err := Open(ctx, Options{URL: url, SecretKey: "a secret key for tests only"})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := pool.Exec(`DELETE FROM erasures`); err != nil {
			t.Fatal(err)
		}
		now := fromMicros(1_000_000_000)
		if err := db.CloseTeam(ctx, "t", account.Lifetimes{UploadLink: time.Minute, Transfer: time.Hour}, now); err != nil {
			t.Fatal(err)
		}
		claim := func(at time.Time) error {
			_, err := db.ClaimErasure(ctx, at, at.Add(time.Minute))
			return err
		}
		if err := claim(now); err != nil {
			t.Error(err)
		}
		if err := claim(now.Add(time.Second)); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("claimed twice: %v", err)
		}
		if err := claim(now.Add(2 * time.Minute)); err != nil {
			t.Errorf("after the lease: %v", err)
		}
		if err := db.ReleaseErasures(ctx); err != nil {
			t.Error(err)
		}
		if err := claim(now.Add(2 * time.Minute)); err != nil {
			t.Errorf("after it was given back: %v", err)
		}
		if err := db.MarkErased(ctx, "t", now, now.Add(time.Hour)); err != nil {
			t.Error(err)
		}
		if err := claim(now.Add(30 * time.Minute)); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("swept too early: %v", err)
		}
		if err := claim(now.Add(time.Hour)); err != nil {
			t.Errorf("not swept: %v", err)
		}
		e, err := db.Erasure(ctx, "t")
		if err != nil || !e.Erased || !e.SweepUntil.Equal(now.Add(time.Minute+time.Hour)) {
			t.Errorf("%+v %v", e, err)
		}
		if err := db.DeleteTombstone(ctx, "t"); err != nil {
			t.Error(err)
		}
		if _, err := db.Erasure(ctx, "t"); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("buried: %v", err)
		}
	})
}
