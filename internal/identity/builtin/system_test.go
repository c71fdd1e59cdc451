package builtin_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// bench is the system on a real database, and its post.
type bench struct {
	*builtin.System
	t       *testing.T
	db      *store.DB
	clock   *storetest.Clock
	options builtin.Options
	hurried atomic.Int64 // how often the post was asked to hurry
}

func (b *bench) SendNow(context.Context) { b.hurried.Add(1) }
func (b *bench) SendSoon()               { b.hurried.Add(1) }

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := &bench{t: t, db: db, clock: storetest.NewClock()}
		b.options = builtin.Options{
			Stores: db.Identity(), Post: b, Passwords: builtin.NewPasswordsOfCost(64, 1), Origins: []string{"http://a"},
			SignUp: builtin.SignUpOpen, Private: true, FirstPlan: "free", Now: b.clock.Now,
		}
		b.System = builtin.New(b.options)
		if err := b.Keys.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, b)
	})
}

// with is the same system on stores of which some fail.
func (b *bench) with(change func(*builtin.Stores)) *builtin.System {
	o := b.options
	change(&o.Stores)
	return builtin.New(o)
}

const password = "correct horse"

var visit = builtin.Visit{Origin: "http://a", ClientPrefix: "203.0.113.1"}

func (b *bench) signUp(name string) builtin.SignedIn {
	b.t.Helper()
	in, err := b.Accounts.SignUp(b.t.Context(), builtin.SignUp{Email: name + "@example.org", Password: password, Name: name}, visit)
	if err != nil {
		b.t.Fatal(err)
	}
	return in
}

func (b *bench) presence(in builtin.SignedIn) identity.Presence {
	b.t.Helper()
	p, err := b.Identify(b.t.Context(), identity.Credential{Cookie: in.Secret})
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

var errAway = errors.New("the database is away")

// The parts of a database that is away.
type (
	noKeys     struct{ builtin.KeyStore }
	noSessions struct{ builtin.SessionStore }
	noLimits   struct{ builtin.LimitStore }
	noTokens   struct{ builtin.OneTimeTokenStore }
	noInvites  struct{ builtin.InvitationStore }
	noAccounts struct{ builtin.AccountStore }
	noFactors  struct{ builtin.SecondFactorStore }
)

func (noKeys) SigningKeys(context.Context, time.Time) ([]builtin.SigningKey, error) {
	return nil, errAway
}

func (noSessions) PresenceBySession(context.Context, ids.Session, time.Time) (identity.Presence, error) {
	return identity.Presence{}, errAway
}

func (noSessions) PresenceBySecret(context.Context, string, time.Time) (identity.Presence, error) {
	return identity.Presence{}, errAway
}

func (noLimits) TakeHits(context.Context, []limits.Rule, time.Time) ([]limits.Result, error) {
	return nil, errAway
}

func (noLimits) TakeHit(context.Context, string, limits.Window, time.Time) (limits.Result, error) {
	return limits.Result{}, errAway
}

func (noTokens) InsertOneTimeToken(context.Context, builtin.OneTimeToken, *mails.Message, time.Time) error {
	return errAway
}

func (noTokens) InsertResetToken(context.Context, builtin.OneTimeToken, mails.Message, time.Time) error {
	return errAway
}
func (noInvites) InsertInvitation(context.Context, builtin.SentInvitation) error { return errAway }
func (noAccounts) SignUp(context.Context, builtin.NewAccount) error              { return errAway }
func (noFactors) SecondFactor(context.Context, ids.User) (builtin.SecondFactor, error) {
	return builtin.SecondFactor{}, errAway
}

// Whoever has a good token is not told that it is bad because we cannot look.
func TestADatabaseThatIsAwayIsNoBadToken(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		in := b.signUp("ada")
		for name, s := range map[string]*builtin.System{
			"keys":     b.with(func(s *builtin.Stores) { s.Keys = noKeys{} }),
			"sessions": b.with(func(s *builtin.Stores) { s.Sessions = noSessions{} }),
		} {
			if _, err := s.Identify(t.Context(), identity.Credential{Bearer: in.Token.Text}); !errors.Is(err, errAway) {
				t.Errorf("without %s a token is %v", name, err)
			}
		}
		s := b.with(func(s *builtin.Stores) { s.Sessions = noSessions{} })
		if _, err := s.Identify(t.Context(), identity.Credential{Cookie: in.Secret}); !errors.Is(err, errAway) {
			t.Errorf("a cookie is %v", err)
		}
	})
}

// Where attempts cannot be counted, or a second factor cannot be asked for,
// nobody comes in.
func TestNobodyComesInWhenNobodyCanCount(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		p := b.presence(b.signUp("ada"))
		blind := b.with(func(s *builtin.Stores) { s.Limits = noLimits{} })
		lone := b.with(func(s *builtin.Stores) { s.SecondFactors = noFactors{} })
		for name, try := range map[string]func() error{
			"a sign-in": func() error {
				_, err := blind.Accounts.SignIn(t.Context(), "ada@example.org", password, "", visit)
				return err
			},
			"a sign-in past the second factor": func() error {
				_, err := lone.Accounts.SignIn(t.Context(), "ada@example.org", password, "", visit)
				return err
			},
			"a sign-in in two steps past it": func() error {
				_, _, err := lone.Accounts.BeginSignIn(t.Context(), "ada@example.org", password, visit)
				return err
			},
			"a sign-up": func() error {
				_, err := blind.Accounts.SignUp(t.Context(), builtin.SignUp{Email: "eve@example.org", Password: password, Name: "Eve"}, visit)
				return err
			},
			"another password": func() error {
				return blind.Recovery.ChangePassword(t.Context(), p, password, "another horse", visit.ClientPrefix)
			},
			"a second factor": func() error {
				_, err := blind.SecondFactors.Begin(t.Context(), p, password, visit.ClientPrefix)
				return err
			},
			"a device's code": func() error {
				_, err := blind.Devices.Find(t.Context(), p, "ABCD-EFGH", visit.ClientPrefix)
				return err
			},
			"a team": func() error {
				_, err := blind.Teams.Create(t.Context(), p, "another", nil)
				return err
			},
		} {
			if err := try(); !errors.Is(err, errAway) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if list, err := b.Sessions.List(t.Context(), p); err != nil || len(list) != 1 {
			t.Errorf("%d sign-ins, %v", len(list), err)
		}
		if _, err := b.Accounts.SignIn(t.Context(), "ada@example.org", password, "", visit); err != nil {
			t.Errorf("the password has changed: %v", err)
		}
	})
}

func TestNoMailLeavesWithoutWhatItTellsOf(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		p := b.presence(b.signUp("ada"))
		before := b.hurried.Load()
		broken := b.with(func(s *builtin.Stores) {
			s.OneTimeTokens, s.Invitations, s.Accounts = noTokens{}, noInvites{}, noAccounts{s.Accounts}
		})
		link := func(token string) string { return token }
		for name, try := range map[string]func() error{
			"a verification": func() error {
				_, err := broken.Recovery.SendVerification(t.Context(), p, visit, link)
				return err
			},
			"a reset": func() error { return broken.Recovery.RequestReset(t.Context(), "ada@example.org", visit, link) },
			"an invitation": func() error {
				_, err := broken.Invite(t.Context(), p.Caller(p.Memberships[0]), identity.NewInvitation{Email: "x@example.org", Role: access.Member, Verified: true, Link: link})
				return err
			},
			"a welcome": func() error {
				_, err := broken.Accounts.SignUp(t.Context(), builtin.SignUp{Email: "eve@example.org", Password: password, Name: "Eve", VerifyLink: link}, visit)
				return err
			},
		} {
			if err := try(); !errors.Is(err, errAway) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := b.hurried.Load(); n != before {
			t.Errorf("the post was asked %d times", n-before)
		}
	})
}

// atOnce makes many tries at the same moment and counts those that succeed;
// the others are refused with this kind.
func atOnce(t *testing.T, kind fault.Kind, try func() error) (succeeded int64) {
	t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := try(); err == nil {
				n.Add(1)
			} else if !fault.Is(err, kind) {
				t.Errorf("%v, want kind %s", err, kind)
			}
		})
	}
	wg.Wait()
	return n.Load()
}

func TestWhatWorksOnceWorksOnceForAllAtOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		p := b.presence(b.signUp("ada"))
		begun, err := b.SecondFactors.Begin(ctx, p, password, "a")
		if err != nil {
			t.Fatal(err)
		}
		codes, err := b.SecondFactors.Confirm(ctx, p, builtin.CodeOf(begun.Secret, b.clock.Now()), "a")
		if err != nil {
			t.Fatal(err)
		}
		if n := atOnce(t, fault.KindUnauthenticated, func() error {
			_, err := b.Accounts.SignIn(ctx, "ada@example.org", password, codes[0], visit)
			return err
		}); n != 1 {
			t.Errorf("a recovery code opened %d times", n)
		}
		b.clock.Pass(10 * time.Minute)
		code := builtin.CodeOf(begun.Secret, b.clock.Now())
		if n := atOnce(t, fault.KindUnauthenticated, func() error {
			_, err := b.Accounts.SignIn(ctx, "ada@example.org", password, code, visit)
			return err
		}); n != 1 {
			t.Errorf("a code opened %d times", n)
		}
		var token string
		if err := b.Recovery.RequestReset(ctx, "ada@example.org", visit, func(t string) string { token = t; return t }); err != nil {
			t.Fatal(err)
		}
		if n := atOnce(t, fault.KindNotFound, func() error { return b.Recovery.ResetPassword(ctx, token, "another horse") }); n != 1 {
			t.Errorf("a link reset the password %d times", n)
		}
	})
}

func TestAStolenCodeOrRefreshTokenEndsWhatItGave(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		p := b.presence(b.signUp("ada"))
		verifier := strings.Repeat("v", 43)
		sum := sha256.Sum256([]byte(verifier))
		request := builtin.AuthorizationRequest{
			ResponseType: "code", ClientID: builtin.CommandLine.ID, RedirectURI: "http://127.0.0.1:1/x", State: "s",
			Challenge: base64.RawURLEncoding.EncodeToString(sum[:]), ChallengeMethod: "S256",
		}
		code, err := b.OAuth.Allow(ctx, p, request)
		if err != nil {
			t.Fatal(err)
		}
		for name, try := range map[string][3]string{
			"another client":   {"other", verifier, ""},
			"another verifier": {builtin.CommandLine.ID, strings.Repeat("w", 43), ""},
			"a short verifier": {builtin.CommandLine.ID, "v", ""},
			"another address":  {builtin.CommandLine.ID, verifier, "http://127.0.0.1:2/x"},
		} {
			_, err := b.OAuth.RedeemCode(ctx, builtin.Client{ID: try[0]}, code, try[1], try[2])
			storetest.Refused(t, name, err, fault.KindInvalid)
		}
		alive := func(token string) bool {
			_, err := b.Identify(ctx, identity.Credential{Bearer: token})
			return err == nil
		}
		first, err := b.OAuth.RedeemCode(ctx, builtin.CommandLine, code, verifier, request.RedirectURI)
		if err != nil || !alive(first.Access) {
			t.Fatal(err)
		}
		second, err := b.OAuth.Refresh(ctx, builtin.CommandLine, first.Refresh, "")
		if err != nil || !alive(second.Access) {
			t.Fatal(err)
		}
		_, err = b.OAuth.Refresh(ctx, builtin.CommandLine, first.Refresh, "")
		storetest.Refused(t, "a refresh token for the second time", err, fault.KindInvalid)
		if alive(first.Access) || alive(second.Access) {
			t.Error("the family lives")
		}
		if code, err = b.OAuth.Allow(ctx, p, request); err != nil {
			t.Fatal(err)
		}
		third, err := b.OAuth.RedeemCode(ctx, builtin.CommandLine, code, verifier, "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.OAuth.RedeemCode(ctx, builtin.CommandLine, code, verifier, "")
		storetest.Refused(t, "a code for the second time", err, fault.KindInvalid)
		if alive(third.Access) {
			t.Error("what a stolen code gave lives")
		}
	})
}

func TestServersThatRotateAtOnceAgreeOnOneKey(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.clock.Pass(31 * 24 * time.Hour)
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if err := builtin.New(b.options).Keys.Rotate(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		keys, err := builtin.New(b.options).Keys.Published(t.Context())
		if err != nil || len(keys) > 2 {
			t.Errorf("%d keys, %v", len(keys), err)
		}
	})
}

func TestAHashThatIsNoneMatchesNothing(t *testing.T) {
	t.Parallel()
	p := builtin.NewPasswordsOfCost(64, 1)
	good := p.Hash(password)
	if ok, err := p.Match(good, password); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for name, hash := range map[string]string{
		"bcrypt": "$2a$10$abcdefghijklmnopqrstuv", "no parts": "hash", "another kind": strings.Replace(good, "argon2id", "argon2i", 1),
		"no cost": strings.Replace(good, "m=64", "m=x", 1), "no base64": good[:len(good)-3] + "***", "a short key": good[:len(good)-8],
	} {
		if ok, err := p.Match(hash, password); ok || err == nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	if ok, err := p.Match("", ""); ok || err != nil {
		t.Errorf("nobody has a password: %v, %v", ok, err)
	}
}
