package builtin_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// watched notes everything that a system asks of its database and its post.
// Whatever is not noted here is not there: a call to it fails the test.
type watched struct {
	db    *store.DB
	calls []string
}

// stores are what a system may ask.
func (w *watched) stores() builtin.Stores {
	return builtin.Stores{Accounts: watchedAccounts{nil, w}, OneTimeTokens: watchedTokens{nil, w}, Limits: w}
}

type watchedAccounts struct {
	builtin.AccountStore
	*watched
}

type watchedTokens struct {
	builtin.OneTimeTokenStore
	*watched
}

func (w *watched) note(call string) { w.calls = append(w.calls, call) }

func (w *watched) SendNow(context.Context) { w.note("hurry") }
func (w *watched) SendSoon()               { w.note("wake") }

func (w *watched) TakeHit(ctx context.Context, bucket string, l limits.Window, now time.Time) (limits.Result, error) {
	w.note("count")
	return w.db.TakeHit(ctx, bucket, l, now)
}

func (w *watched) ReturnHit(ctx context.Context, bucket string, at time.Time) error {
	w.note("take back")
	return w.db.ReturnHit(ctx, bucket, at)
}

func (w *watched) TakeHits(ctx context.Context, rules []limits.Rule, now time.Time) ([]limits.Result, error) {
	w.note(fmt.Sprintf("count by %d", len(rules)))
	return w.db.TakeHits(ctx, rules, now)
}

func (w watchedAccounts) Account(ctx context.Context, email string) (builtin.Account, error) {
	w.note("account")
	return w.db.Account(ctx, email)
}

func (w watchedTokens) InsertResetToken(ctx context.Context, s builtin.OneTimeToken, l mails.Message, now time.Time) error {
	w.note(fmt.Sprintf("reset of %d", len(l.Text)))
	return w.db.InsertResetToken(ctx, s, l, now)
}

// Whoever asks learns neither from the answer nor from the work done for it
// who has an account.
func TestTheSameWorkIsDoneForWhoHasAnAccountAndWhoHasNone(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t))
	maker := builtin.New(builtin.Options{Stores: db.Identity(), Passwords: builtin.NewPasswordsOfCost(64, 1), Origins: []string{"http://a"}, Now: time.Now})
	var eve identity.User
	for _, email := range []string{"ada@example.org", "eve@example.org"} {
		var err error
		if eve, err = maker.Accounts.Create(t.Context(), builtin.SignUp{Email: email, Password: "correct horse", Name: "N"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.SuspendPerson(t.Context(), eve.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(s *builtin.System, email string) error{
		"a reset": func(s *builtin.System, email string) error {
			return s.Recovery.RequestReset(t.Context(), email, builtin.Visit{ClientPrefix: "h"}, func(token string) string { return token })
		},
		"a sign-in": func(s *builtin.System, email string) error {
			_, err := s.Accounts.SignIn(t.Context(), email, "wrong horse", "", builtin.Visit{ClientPrefix: "h"})
			return err
		},
	} {
		var first []string
		var said string
		for _, email := range []string{"ada@example.org", "eve@example.org", "bob@example.org"} {
			passwords := builtin.NewPasswordsOfCost(64, 1)
			w := &watched{db: db}
			err := fmt.Sprint(ask(builtin.New(builtin.Options{Stores: w.stores(), Post: w, Passwords: passwords, Origins: []string{"http://a"}, Now: time.Now}), email))
			w.note(fmt.Sprintf("%d hashes", passwords.Made()))
			if first == nil {
				first, said = w.calls, err
			}
			if diff := cmp.Diff(first, w.calls); diff != "" || err != said {
				t.Errorf("%s for %s: %s (before: %s)\n%s", name, email, err, said, diff)
			}
		}
		if len(first) < 3 {
			t.Errorf("%s does nothing: %v", name, first)
		}
	}
	var _ identity.Counter = (*watched)(nil)
}
