package store_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/secrets"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

const anotherKey = "another key that is long enough"

func installation(t *testing.T, db *store.DB) string {
	t.Helper()
	name, err := db.Installation(t.Context())
	if err != nil || len(name) < 16 {
		t.Fatal(name, err)
	}
	return name
}

// Two installations with one key have different names.
func TestTheNameOfAnInstallationDoesNotFollowFromItsKey(t *testing.T) {
	t.Parallel()
	one, other := storetest.Open(t, storetest.SQLite(t)), storetest.Open(t, storetest.SQLite(t))
	if name := installation(t, one); name == installation(t, other) {
		t.Errorf("both are called %s", name)
	}
}

// A key is changed as a whole, however often the change is cut off: until it has
// ended no server starts with either key, and then everything opens with the new
// one and nothing with the old.
func TestTheSecretKeyIsChangedAsAWhole(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		db, err := store.Open(t.Context(), store.Options{URL: url, SecretKey: storetest.SecretKey})
		if err != nil {
			t.Fatal(err)
		}
		name := installation(t, db)
		a := person(t, db, "ada@example.org")
		now := time.Now()
		const many = 450 // more than two batches
		for i := range many {
			name := "S" + strings.Repeat("x", i%50) + string(rune('a'+i/50))
			if _, err := db.PutSecret(t.Context(), a.Team.ID, secrets.Secret{Name: name, CreatedAt: now, UpdatedAt: now}, "value of "+name, 1000); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		old := store.Options{URL: url, SecretKey: storetest.SecretKey}
		if _, err := store.RotateSecretKey(t.Context(), store.Options{URL: url, SecretKey: "not the key of this one"}, anotherKey); err == nil {
			t.Error("a wrong old key was taken")
		}
		cut := 0
		for sealed := 0; ; cut++ {
			ctx := &dying{Context: t.Context()}
			ctx.left.Store(int64(4 + cut))
			n, err := store.RotateSecretKey(ctx, old, anotherKey)
			if sealed += n; err == nil {
				break
			}
			if _, err := store.Open(t.Context(), old); err == nil && n > 0 {
				t.Fatal("a server started in the middle with the old key")
			}
			if _, err := store.Open(t.Context(), store.Options{URL: url, SecretKey: anotherKey}); err == nil && n > 0 {
				t.Fatal("a server started in the middle with the new key")
			}
			if _, err := store.RotateSecretKey(t.Context(), old, "a third key, which is not it"); err == nil && n > 0 {
				t.Fatal("another change was begun in the middle")
			}
		}
		if cut == 0 {
			t.Error("nothing was cut off")
		}
		if _, err := store.Open(t.Context(), old); err == nil {
			t.Error("the old key still opens it")
		}
		if n, err := store.RotateSecretKey(t.Context(), old, anotherKey); n != 0 || err != nil {
			t.Errorf("a second time: %d, %v", n, err)
		}
		db, err = store.Open(t.Context(), store.Options{URL: url, SecretKey: anotherKey})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if got := installation(t, db); got != name {
			t.Errorf("the installation was called %s and is called %s", name, got)
		}
		list, err := db.Secrets(t.Context(), a.Team.ID)
		if err != nil || len(list) == 0 {
			t.Fatal(len(list), err)
		}
		run := aRun(t, db, a.Team.ID)
		for _, s := range list {
			got, err := db.SecretsOf(t.Context(), run, []string{s.Name}, now)
			if err != nil || got[s.Name].Value != "value of "+s.Name {
				t.Fatalf("%s: %v, %v", s.Name, got, err)
			}
		}
	})
}

// A change that is killed at any statement can be undone, and an undoing that is killed
// be undone or finished: then everything opens with one key.
func TestAKilledChangeOfTheKeyIsUndone(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		db, err := store.Open(t.Context(), store.Options{URL: url, SecretKey: storetest.SecretKey})
		if err != nil {
			t.Fatal(err)
		}
		a, now := person(t, db, "ada@example.org"), time.Now()
		if _, err := db.PutSecret(t.Context(), a.Team.ID, secrets.Secret{Name: "S", CreatedAt: now, UpdatedAt: now}, "the value", 1000); err != nil {
			t.Fatal(err)
		}
		run := aRun(t, db, a.Team.ID)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		// change runs a change until it has begun so many statements, and reports whether
		// it was killed.
		change := func(from, to string, statements int) bool {
			t.Helper()
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			o := store.Options{URL: url, SecretKey: from, Statement: func(string) {
				if statements--; statements < 0 {
					kill()
				}
			}}
			_, err := store.RotateSecretKey(ctx, o, to)
			if err != nil && statements >= 0 {
				t.Fatal(err)
			}
			return err != nil
		}
		const all = 1 << 20
		n := 0
		for key := storetest.SecretKey; change(key, anotherKey, n); n++ {
			killed := change(anotherKey, key, n)
			if n%2 == 0 || !killed { // else it goes on to the new key after all
				change(anotherKey, key, all)
			} else {
				change(key, anotherKey, all)
				change(anotherKey, key, all)
			}
			db, err := store.Open(t.Context(), store.Options{URL: url, SecretKey: key})
			if err != nil {
				t.Fatalf("after %d statements: %v", n, err)
			}
			got, err := db.SecretsOf(t.Context(), run, []string{"S"}, now)
			if err != nil || got["S"].Value != "the value" {
				t.Fatalf("after %d statements: %v, %v", n, got, err)
			}
			chains, err := db.VerifyAudit(t.Context())
			for _, c := range chains {
				if err != nil || c.Problem != "" {
					t.Errorf("after %d statements: %+v, %v", n, c, err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if n < 20 {
			t.Errorf("it was killed %d times", n)
		}
	})
}

// dying is a context that ends after so many looks at it.
type dying struct {
	context.Context
	left atomic.Int64
}

func (d *dying) Err() error {
	if d.left.Add(-1) < 0 {
		return errors.New("killed")
	}
	return d.Context.Err()
}

// aRun is a row to ask secrets for.
func aRun(t *testing.T, db *store.DB, team ids.Team) ids.Run {
	t.Helper()
	r := runs.Run{ID: ids.NewRun(), Team: team, Definition: []byte("{}"), Parameters: []byte("{}"), Inputs: []byte("{}"), CreatedAt: time.Now()}
	if err := db.SubmitRun(t.Context(), r, 0, nil); err != nil {
		t.Fatal(err)
	}
	return r.ID
}
