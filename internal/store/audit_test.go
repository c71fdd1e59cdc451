package store_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/secrets"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

func pending(t *testing.T, chain, action string, at time.Time) context.Context {
	return audit.With(t.Context(), &audit.Pending{Entry: audit.Entry{Chain: chain, Action: action, At: at, Actor: audit.Actor{Type: "user", ID: "u", Name: "U"}}})
}

// whole reports what is wrong with a chain.
func whole(t *testing.T, db *store.DB, chain string) (problem string, entries int64) {
	t.Helper()
	list, err := db.VerifyAudit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		if v.Chain == chain {
			return v.Problem, v.Entries
		}
	}
	return "it is not there", 0
}

// What somebody changes in the database without the secret key shows, whatever
// they do about the hashes.
func TestTamperingWithTheLogShows(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url)
		driver := "sqlite"
		if strings.HasPrefix(url, "postgres") {
			driver = "pgx"
		}
		raw, err := sql.Open(driver, url)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		now := time.Now()
		for name, tamper := range map[string]string{
			"an entry is changed":           `UPDATE audit SET target = 'other' WHERE chain = '%' AND seq = 2`,
			"an entry is removed":           `DELETE FROM audit WHERE chain = '%' AND seq = 2`,
			"the first is removed":          `DELETE FROM audit WHERE chain = '%' AND seq = 1`,
			"the last is removed":           `DELETE FROM audit WHERE chain = '%' AND seq = 5`,
			"the end is cut off":            `UPDATE audit_chains SET seq = 4, hash = (SELECT hash FROM audit WHERE chain = '%' AND seq = 4) WHERE chain = '%'`,
			"the beginning is cut off":      `UPDATE audit_chains SET first_seq = 3, anchor = (SELECT hash FROM audit WHERE chain = '%' AND seq = 2) WHERE chain = '%'`,
			"the record of the end is gone": `DELETE FROM audit_chains WHERE chain = '%'`,
		} {
			chain := "team_" + strings.ReplaceAll(name, " ", "_")
			for range 5 {
				if err := db.WritePending(pending(t, chain, "secret.set", now)); err != nil {
					t.Fatal(err)
				}
			}
			if problem, n := whole(t, db, chain); problem != "" || n != 5 {
				t.Fatalf("%s: %d entries, %s", name, n, problem)
			}
			if _, err := raw.Exec(strings.ReplaceAll(tamper, "%", chain)); err != nil {
				t.Fatal(err)
			}
			if problem, _ := whole(t, db, chain); problem == "" {
				t.Errorf("%s, and nothing shows", name)
			}
		}
	})
}

// A change and its entry are there together or not at all, and many at once are one
// chain.
func TestAChangeAndItsEntryAreOneTransaction(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := person(t, db, "ada@example.org")
		chain, now := string(a.Team.ID), time.Now()
		put := func(ctx context.Context, name string, most int) error {
			_, err := db.PutSecret(ctx, a.Team.ID, secrets.Secret{Name: name, CreatedAt: now, UpdatedAt: now}, "a value of it", most)
			return err
		}
		if err := put(pending(t, chain, "secret.set", now), "A", 1); err != nil {
			t.Fatal(err)
		}
		if err := put(pending(t, chain, "secret.set", now), "B", 1); err == nil {
			t.Error("one too many")
		}
		if err := db.DeleteSecret(pending(t, chain, "secret.deleted", now), a.Team.ID, "NONE"); err == nil {
			t.Error("deleted what is not there")
		}
		if problem, n := whole(t, db, chain); problem != "" || n != 1 {
			t.Errorf("%d entries, %s", n, problem)
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if err := put(pending(t, chain, "secret.set", now), "A", 1); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if problem, n := whole(t, db, chain); problem != "" || n != 21 {
			t.Errorf("%d entries, %s", n, problem)
		}
	})
}

// What retention takes leaves a chain that is whole from its anchor on.
func TestATrimmedLogIsWhole(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Now()
		for i := range 1300 { // more than two batches
			if err := db.WritePending(pending(t, "team_a", "run.started", now.Add(time.Duration(i-1300)*time.Hour))); err != nil {
				t.Fatal(err)
			}
		}
		for {
			n, err := db.TrimAudit(t.Context(), now.Add(-100*time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			if problem, _ := whole(t, db, "team_a"); problem != "" {
				t.Fatal(problem)
			}
			if n == 0 {
				break
			}
		}
		if problem, n := whole(t, db, "team_a"); problem != "" || n != 100 {
			t.Errorf("%d entries, %s", n, problem)
		}
		if _, err := db.TrimAudit(t.Context(), now.Add(time.Hour)); err != nil { // all of it
			t.Fatal(err)
		}
		if err := db.WritePending(pending(t, "team_a", "run.started", now)); err != nil {
			t.Fatal(err)
		}
		if problem, n := whole(t, db, "team_a"); problem != "" || n != 1 {
			t.Errorf("%d entries, %s", n, problem)
		}
	})
}

// Nothing in the store changes an entry, and only retention and erasure delete
// any.
func TestTheLogIsOnlyAppendedTo(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if strings.Contains(string(text), "UPDATE audit ") || file != "audit.go" && strings.Contains(string(text), "FROM audit ") && strings.Contains(string(text), "DELETE FROM audit") {
			t.Errorf("%s changes the log", file)
		}
	}
}
