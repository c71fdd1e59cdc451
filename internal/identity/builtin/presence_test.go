package builtin_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

// dead fails unless a credential is nobody's.
func (b *bench) dead(what string, c identity.Credential) {
	b.t.Helper()
	_, err := b.Identify(b.t.Context(), c)
	storetest.Refused(b.t, what, err, fault.KindUnauthenticated)
}

func TestASessionEndsWithEverythingThatRestsOnIt(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		first := b.signUp("ada")
		p := b.presence(first)
		second, err := b.Accounts.SignIn(ctx, "ada@example.org", password, "", visit)
		if err != nil {
			t.Fatal(err)
		}
		eve := b.presence(b.signUp("eve"))
		minted, err := b.Sessions.MintToken(ctx, p, "http://a")
		if err != nil {
			t.Fatal(err)
		}
		if found, err := b.Identify(ctx, identity.Credential{Bearer: minted.Text}); err != nil || found.Session != p.Session || found.ByCookie {
			t.Errorf("a minted token: %+v, %v", found, err)
		}
		if found, err := b.Present(ctx, p.By()); err != nil || found.User.ID != p.User.ID {
			t.Errorf("%+v, %v", found, err)
		}
		if role, err := b.RoleOf(ctx, p.By(), p.Memberships[0].Team.ID); err != nil || role != access.Owner {
			t.Errorf("%s, %v", role, err)
		}
		if _, err := b.RoleOf(ctx, p.By(), eve.Memberships[0].Team.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("a role in another's team: %v", err)
		}
		if err := b.Sessions.Revoke(ctx, eve, p.Session); err != nil && !fault.Is(err, fault.KindNotFound) {
			t.Error(err)
		}
		if _, err := b.Present(ctx, p.By()); err != nil {
			t.Errorf("another person has ended it: %v", err)
		}

		if err := b.Sessions.SignOut(ctx, p); err != nil {
			t.Fatal(err)
		}
		b.dead("the cookie", identity.Credential{Cookie: first.Secret})
		b.dead("its first token", identity.Credential{Bearer: first.Token.Text})
		b.dead("its minted token", identity.Credential{Bearer: minted.Text})
		for _, by := range []ids.Session{p.By(), "sess_nothing", "grant_nothing", ""} {
			_, err := b.Present(ctx, by)
			storetest.Refused(t, "a stream of "+string(by), err, fault.KindUnauthenticated)
			_, err = b.RoleOf(ctx, by, p.Memberships[0].Team.ID)
			storetest.Refused(t, "a role by "+string(by), err, fault.KindUnauthenticated)
		}
		if late, err := b.Sessions.MintToken(ctx, p, "http://a"); err == nil { // somebody was faster
			b.dead("a token of a session that has ended", identity.Credential{Bearer: late.Text})
		}
		if list, err := b.Sessions.List(ctx, b.presence(second)); err != nil || len(list) != 1 {
			t.Errorf("the other session: %d, %v", len(list), err)
		}
		b.clock.Pass(31 * 24 * time.Hour)
		b.dead("a month later", identity.Credential{Cookie: second.Secret})
	})
}

func TestACredentialIsLookedAtInItsOrder(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		in, other := b.signUp("ada"), b.signUp("eve")
		p, err := b.Identify(t.Context(), identity.Credential{Bearer: in.Token.Text, Cookie: other.Secret})
		if err != nil || p.User.ID != in.User.ID || p.ByCookie {
			t.Errorf("a bearer token beside a cookie: %+v, %v", p.User, err)
		}
		b.dead("nothing", identity.Credential{})
		// One that is bad is not passed over for one that is good.
		for name, bearer := range map[string]string{
			"words": "nonsense", "an access token of nobody": "oat_nobody", "its beginning alone": "oat_", "a cookie as a bearer": in.Secret,
			"a token that was changed": in.Token.Text[:len(in.Token.Text)-2] + "xx", "half a token": in.Token.Text[:len(in.Token.Text)/2], "a NUL": "\x00", "a long one": strings.Repeat("x", 1<<16),
		} {
			b.dead(name, identity.Credential{Bearer: bearer, Cookie: in.Secret})
		}
		for name, cookie := range map[string]string{"words": "nonsense", "in capitals": strings.ToUpper(in.Secret), "with a space": in.Secret + " ", "a token as a cookie": in.Token.Text} {
			b.dead(name, identity.Credential{Cookie: cookie})
		}
	})
}

// What a browser calls itself is anybody's text: it is kept short, whole and harmless.
func TestWhatABrowserCallsItselfIsCut(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		p := b.presence(b.signUp("ada"))
		for name, tt := range map[string]struct{ agent, want string }{
			"plain":          {"Firefox", "Firefox"},
			"empty":          {"", ""},
			"with controls":  {"a\x00b\x1b[2Jc\nd", "ab[2Jcd"},
			"no UTF-8":       {"a\xff\xfeb", "ab"},
			"long":           {strings.Repeat("x", 5000), strings.Repeat("x", 400)},
			"cut in a rune":  {strings.Repeat("x", 399) + "é", strings.Repeat("x", 399)},
			"up to its rune": {strings.Repeat("x", 398) + "éé", strings.Repeat("x", 398) + "é"},
		} {
			v := visit
			v.UserAgent = tt.agent
			in, err := b.Accounts.SignIn(t.Context(), "ada@example.org", password, "", v)
			if err != nil {
				t.Fatal(err)
			}
			list, err := b.Sessions.List(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list {
				if s.ID == b.presence(in).Session && (s.UserAgent != tt.want || !utf8.ValidString(s.UserAgent)) {
					t.Errorf("%s: kept as %q", name, s.UserAgent)
				}
			}
			if err := b.Sessions.SignOut(t.Context(), b.presence(in)); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestACodeIsReadHoweverItWasTyped(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"BCDF-GHJK": "BCDF-GHJK", "bcdfghjk": "BCDF-GHJK", " bcdf ghjk ": "BCDF-GHJK", "b-c-d-f-g-h-j-k": "BCDF-GHJK",
		"": "", "BCDF": "BCDF", "漢漢ab": "漢漢ab", "ab\x00defgh": "ab\x00defgh", "BCDF-GHJK-L": "BCDF-GHJK-L", strings.Repeat("B", 100): strings.Repeat("B", 100),
	} {
		if got := builtin.UserCode(typed); got != want {
			t.Errorf("%q is %q", typed, got)
		}
	}
	for _, typed := range []string{"漢漢ab", "ab漢漢", "é漢é1", strings.Repeat("é", 33)} {
		if got := builtin.UserCode(typed); !utf8.ValidString(got) {
			t.Errorf("%q is cut to %q", typed, got)
		}
	}
}

func TestTheUseOfATokenIsNotedOnceAMinute(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		p := b.presence(b.signUp("ada"))
		_, secret, err := b.APITokens.CreateAPIToken(ctx, p, p.Memberships[0], builtin.NewAPIToken{Name: "script", Role: access.Viewer, Days: 1})
		if err != nil {
			t.Fatal(err)
		}
		used := func(address string) (at time.Time) {
			t.Helper()
			found, err := b.Identify(ctx, identity.Credential{Bearer: secret, Address: address})
			if err != nil || found.Memberships[0].Role != access.Viewer || !found.Narrowed() {
				t.Fatalf("%+v, %v", found, err)
			}
			list, err := b.APITokens.Store.APITokens(ctx, p.User.ID, b.clock.Now())
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			return list[0].LastUsedAt
		}
		first := used("203.0.113.1")
		b.clock.Pass(30 * time.Second)
		if again := used("203.0.113.2"); !again.Equal(first) || first.IsZero() {
			t.Errorf("noted at %v, then at %v", first, again)
		}
		b.clock.Pass(30 * time.Second)
		if again := used("203.0.113.2"); !again.After(first) {
			t.Errorf("noted at %v, then at %v", first, again)
		}
		b.clock.Pass(24 * time.Hour)
		b.dead("a day later", identity.Credential{Bearer: secret})
	})
}
