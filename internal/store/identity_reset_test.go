package store

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// listening notes the statements of a transaction.
type listening struct {
	querier
	heard []string
}

func (l *listening) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	l.heard = append(l.heard, query)
	return l.querier.ExecContext(ctx, query, args...)
}

func (l *listening) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	l.heard = append(l.heard, query)
	return l.querier.QueryContext(ctx, query, args...)
}

func (l *listening) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	l.heard = append(l.heard, query)
	return l.querier.QueryRowContext(ctx, query, args...)
}

func TestAResetTakesTheSameStatementsForWhoHasAnAccountAndWhoHasNone(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), Options{URL: databases.SQLite(t), SecretKey: "a key of the tests that is long enough"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	now := time.Now()
	ada := builtin.NewAccount{
		Account: builtin.Account{User: identity.User{ID: ids.NewUser(), Email: "ada@example.org", Name: "Ada"}},
		Team:    identity.Team{ID: ids.NewTeam(), Name: "a", Plan: "free"}, CreatedAt: now,
	}
	if err := db.SignUp(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	ask := func(email string) (heard []string, l mails.Message) {
		err := db.inTx(t.Context(), func(tx *DB) error {
			q := &listening{querier: tx.q}
			defer func() { heard = q.heard }()
			return tx.bound(q).InsertResetToken(t.Context(), builtin.OneTimeToken{Hash: "hash of " + email, Purpose: builtin.ForResetting, ExpiresAt: now.Add(time.Hour)},
				mails.Message{ID: "to " + email, To: email, Text: "a link"}, now)
		})
		if err != nil {
			t.Fatal(err)
		}
		claimed, err := db.ClaimMails(t.Context(), 10, now, time.Minute)
		if err != nil || len(claimed) != 1 {
			t.Fatalf("%d mails, %v", len(claimed), err)
		}
		return heard, claimed[0]
	}
	known, message := ask("ada@example.org")
	unknown, void := ask("nobody@example.org")
	if diff := cmp.Diff(known, unknown); diff != "" || len(known) < 3 {
		t.Errorf("%d statements; they differ:\n%s", len(known), diff)
	}
	if message.Void || !void.Void {
		t.Errorf("void: %v for who has an account, %v for who has none", message.Void, void.Void)
	}
	if _, err := db.OneTimeToken(t.Context(), "hash of ada@example.org", builtin.ForResetting, now); err != nil {
		t.Error(err)
	}
}
