package builtin_test

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

// granted is what the command line gets when the person allows it these scopes.
func (b *bench) granted(p identity.Presence, scopes ...access.Scope) builtin.Tokens {
	b.t.Helper()
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	code, err := b.OAuth.Allow(b.t.Context(), p, builtin.AuthorizationRequest{
		ClientID: builtin.CommandLine.ID, RedirectURI: "http://127.0.0.1:1/x", Challenge: base64.RawURLEncoding.EncodeToString(sum[:]), Scopes: scopes,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	t, err := b.OAuth.RedeemCode(b.t.Context(), builtin.CommandLine, code, verifier, "")
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

// scopesOf is what a token may do; "none" is a dead one.
func (b *bench) scopesOf(token string) string {
	b.t.Helper()
	p, err := b.Identify(b.t.Context(), identity.Credential{Bearer: token})
	if err != nil {
		storetest.Refused(b.t, "a token", err, fault.KindUnauthenticated)
		return "none"
	}
	return p.Scopes.String()
}

// A client may ask for less than it was granted, for one access token. What it was
// granted stays, and asking for more costs it nothing.
func TestAClientAsksForLessForAWhile(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, p := t.Context(), b.presence(b.signUp("ada"))
		now := b.granted(p, access.ScopeRead, access.ScopeRun)
		for _, tt := range []struct {
			asked, got string
			kind       fault.Kind
		}{
			{"", "read run", ""},
			{"read", "read", ""},
			{"run", "read run", ""}, // reading is part of it
			{"write", "", fault.KindInvalid},
			{"read run write", "", fault.KindInvalid},
			{"user", "", fault.KindInvalid}, // all that the person may do
			{"read everything", "", fault.KindInvalid},
			{"  ", "read run", ""},
		} {
			next, err := b.OAuth.Refresh(ctx, builtin.CommandLine, now.Refresh, tt.asked)
			storetest.Refused(t, "asked for "+tt.asked, err, tt.kind)
			if err != nil {
				continue
			}
			if got := b.scopesOf(next.Access); got != tt.got || next.Scopes.String() != tt.got {
				t.Errorf("asked for %q it is %q, and says %q", tt.asked, got, next.Scopes)
			}
			now = next
		}
		all := b.granted(p)
		for _, tt := range [][2]string{{"read", "read"}, {"user", ""}, {"", ""}} {
			next, err := b.OAuth.Refresh(ctx, builtin.CommandLine, all.Refresh, tt[0])
			if err != nil || b.scopesOf(next.Access) != tt[1] {
				t.Errorf("of everything, asked for %q: %q, %v", tt[0], next.Scopes, err)
			}
			all = next
		}
	})
}

// Tokens live for their time: an access token for an hour, a grant for thirty days after
// it was last used.
func TestAGrantLivesAsLongAsItIsUsed(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, now := t.Context(), b.granted(b.presence(b.signUp("ada")))
		b.clock.Pass(time.Hour - time.Second)
		if b.scopesOf(now.Access) == "none" {
			t.Error("an access token died early")
		}
		b.clock.Pass(time.Second)
		if b.scopesOf(now.Access) != "none" {
			t.Error("an access token outlives its hour")
		}
		const month = 30 * 24 * time.Hour
		for range 3 {
			b.clock.Pass(month - time.Hour - time.Second)
			next, err := b.OAuth.Refresh(ctx, builtin.CommandLine, now.Refresh, "")
			if err != nil {
				t.Fatal(err)
			}
			now = next
			b.clock.Pass(time.Hour)
		}
		b.clock.Pass(month)
		_, err := b.OAuth.Refresh(ctx, builtin.CommandLine, now.Refresh, "")
		wantCode(t, "after a month without use", err, "invalid_grant")
	})
}

// Who revokes a token ends all that was granted with it. A client ends its own alone.
func TestRevokingATokenEndsItsGrant(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, p := t.Context(), b.presence(b.signUp("ada"))
		other := b.granted(p)
		for name, tt := range map[string]struct {
			client string
			which  func(builtin.Tokens) string
			ends   bool
		}{
			"by its access token":         {builtin.CommandLine.ID, func(t builtin.Tokens) string { return t.Access }, true},
			"by its refresh token":        {builtin.CommandLine.ID, func(t builtin.Tokens) string { return t.Refresh }, true},
			"by nobody in particular":     {"", func(t builtin.Tokens) string { return t.Refresh }, true},
			"by another client":           {"other", func(t builtin.Tokens) string { return t.Access }, false},
			"by half of it":               {"", func(t builtin.Tokens) string { return t.Access[:20] }, false},
			"by a token that nobody made": {"", func(builtin.Tokens) string { return "oat_nobody" }, false},
			"by nothing":                  {"", func(builtin.Tokens) string { return "" }, false},
		} {
			given := b.granted(p)
			for range 2 { // a dead one is dead
				if err := b.OAuth.Revoke(ctx, tt.client, tt.which(given)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			_, err := b.OAuth.Refresh(ctx, builtin.CommandLine, given.Refresh, "")
			if ended := b.scopesOf(given.Access) == "none"; ended != tt.ends || (err != nil) != tt.ends {
				t.Errorf("%s: ended %t, %v", name, ended, err)
			}
		}
		if b.scopesOf(other.Access) == "none" {
			t.Error("another grant of the same client ended")
		}
	})
}

// A refresh token that several send at once gives tokens to one of them at most, and
// then to none: nobody knows which of them stole it.
func TestARefreshTokenSentByManyEnds(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, given := t.Context(), b.granted(b.presence(b.signUp("ada")))
		tokens := make(chan builtin.Tokens, 8)
		if n := atOnce(t, fault.KindInvalid, func() error {
			next, err := b.OAuth.Refresh(ctx, builtin.CommandLine, given.Refresh, "")
			if err == nil {
				tokens <- next
			}
			return err
		}); n > 1 {
			t.Errorf("it was used %d times", n)
		}
		close(tokens)
		for next := range tokens {
			if b.scopesOf(next.Access) != "none" {
				t.Error("what it gave lives")
			}
		}
		if b.scopesOf(given.Access) != "none" {
			t.Error("what was given before lives")
		}
	})
}

// Who is shown an app can take back what they allowed it, and another's stays.
func TestAnAppIsRevokedForOnePerson(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, ada, bob := t.Context(), b.presence(b.signUp("ada")), b.presence(b.signUp("bob"))
		mine, again, theirs := b.granted(ada), b.granted(ada, access.ScopeRead), b.granted(bob)
		apps, err := b.OAuth.Apps(ctx, ada)
		if err != nil || len(apps) != 1 || apps[0].Client.Name != builtin.CommandLine.Name || apps[0].Grants != 2 {
			t.Fatalf("%+v, %v", apps, err)
		}
		if err := b.OAuth.RevokeApp(ctx, ada, builtin.CommandLine.ID); err != nil {
			t.Fatal(err)
		}
		if b.scopesOf(mine.Access) != "none" || b.scopesOf(again.Access) != "none" || b.scopesOf(theirs.Access) == "none" {
			t.Error("a token of an app that was revoked lives, or another's died")
		}
		if apps, err := b.OAuth.Apps(ctx, ada); err != nil || len(apps) != 0 {
			t.Errorf("%+v, %v", apps, err)
		}
		storetest.Refused(t, "an app that was never allowed", b.OAuth.RevokeApp(ctx, ada, "nobody"), fault.KindNotFound)
	})
}
