package store

import (
	"bytes"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/webhooks"
	"github.com/millrace/millrace/internal/runs/webhooks/templates"
)

// Whoever has a copy of the database cannot write into a team's chat, and addresses
// that an earlier version kept plainly are sealed when a server starts.
func TestAddressesOfWebhooksAreSealed(t *testing.T) {
	t.Parallel()
	const address, key, next = "https://hooks.example.org/services/T0/B0/longsecret", "a secret key for tests only", "another secret key for tests"
	url := databases.SQLite(t)
	db := openLedger(t, url)
	team, owner := newTeam(t, db)
	w := webhooks.Webhook{ID: ids.NewWebhook(), Team: team, URL: address, Format: templates.Slack, Enabled: true, CreatedBy: owner, CreatedAt: august, UpdatedAt: august}
	old := w
	old.ID = ids.NewWebhook()
	for _, one := range []webhooks.Webhook{w, old} {
		if err := db.InsertWebhook(t.Context(), one, 10); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.changed(t.Context(), `UPDATE webhooks SET url = $1, sealed_url = NULL WHERE id = $2`, address, old.ID); err != nil {
		t.Fatal(err)
	}
	sealed := func(db *DB) {
		t.Helper()
		for _, id := range []ids.Webhook{w.ID, old.ID} {
			var plain string
			var hidden []byte
			if err := db.q.QueryRowContext(t.Context(), `SELECT url, sealed_url FROM webhooks WHERE id = $1`, id).Scan(&plain, &hidden); err != nil {
				t.Fatal(err)
			}
			got, err := db.Webhook(t.Context(), team, id)
			if err != nil || got.URL != address || plain != "" || len(hidden) == 0 || bytes.Contains(hidden, []byte("longsecret")) {
				t.Errorf("%+v %v, kept as %q and %q", got, err, plain, hidden)
			}
		}
	}
	opened := func(key string) *DB {
		t.Helper()
		again, err := Open(t.Context(), Options{URL: url, SecretKey: key})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { again.Close() })
		db = again
		return again
	}
	if got, err := db.Webhook(t.Context(), team, old.ID); err != nil || got.URL != address {
		t.Errorf("before it is sealed: %+v %v", got, err)
	}
	closed := func() {
		t.Helper()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	closed()
	sealed(opened(key))
	closed()
	if _, err := RotateSecretKey(t.Context(), Options{URL: url, SecretKey: key}, next); err != nil {
		t.Fatal(err)
	}
	sealed(opened(next))
	changed, err := db.Webhook(t.Context(), team, w.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.SaveWebhook(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	sealed(db)
}
