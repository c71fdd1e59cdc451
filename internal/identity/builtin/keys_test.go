package builtin_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

// Over three months and their keys, a token that one server signs is good on another at
// once and for its five minutes, whichever of them made the key.
func TestKeysTakeOverWithoutAGap(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, in := t.Context(), b.signUp("ada")
		servers := []*builtin.System{b.System, b.with(func(*builtin.Stores) {})}
		signed := map[string]bool{}
		for step := range 200 {
			mints, checks := servers[step%2], servers[(step+1)%2]
			if step%3 != 2 { // who should have may be away
				if err := mints.Keys.Rotate(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if step%10 == 0 { // sessions have their own time
				in = b.again("ada")
			}
			p := b.presence(in)
			token, err := mints.Sessions.MintToken(ctx, p, "http://a")
			if err != nil {
				t.Fatal(err)
			}
			found, err := checks.Identify(ctx, identity.Credential{Bearer: token.Text})
			if err != nil || found.User.ID != p.User.ID {
				t.Fatalf("step %d: %v", step, err)
			}
			b.clock.Pass(5*time.Minute - 2*time.Second)
			if _, err := checks.Identify(ctx, identity.Credential{Bearer: token.Text}); err != nil {
				t.Fatalf("step %d, in its last seconds: %v", step, err)
			}
			b.clock.Pass(2 * time.Second)
			_, err = checks.Identify(ctx, identity.Credential{Bearer: token.Text})
			storetest.Refused(t, "a token after its time", err, fault.KindUnauthenticated)
			keys, err := checks.Keys.Published(ctx)
			if err != nil || len(keys) == 0 || len(keys) > 3 {
				t.Fatalf("step %d: %d keys, %v", step, len(keys), err)
			}
			for _, k := range keys {
				if k.ActiveFrom.After(b.clock.Now().Add(time.Hour)) {
					t.Errorf("step %d: a key is published %s before it signs", step, k.ActiveFrom.Sub(b.clock.Now()))
				}
			}
			signed[keyOf(keys, b.clock.Now())] = true
			b.clock.Pass(12*time.Hour - 5*time.Minute)
		}
		if n := len(signed); n != 4 {
			t.Errorf("%d keys signed in a hundred days", n)
		}
	})
}

// Of two servers, one is behind the other. The first key begins in its future, and so
// do the tokens of the other.
func TestServersWhoseClocksDifferSignForEachOther(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, p := t.Context(), b.presence(b.signUp("ada"))
		o := b.options
		o.Now = func() time.Time { return b.clock.Now().Add(-2 * time.Minute) }
		behind := builtin.New(o)
		for name, servers := range map[string][2]*builtin.System{"signed by the one ahead": {b.System, behind}, "signed by the one behind": {behind, b.System}} {
			token, err := servers[0].Sessions.MintToken(ctx, p, "http://a")
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if found, err := servers[1].Identify(ctx, identity.Credential{Bearer: token.Text}); err != nil || found.User.ID != p.User.ID {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// keyOf is the id of the key that signs now.
func keyOf(keys []builtin.SigningKey, now time.Time) (id string) {
	var newest time.Time
	for _, k := range keys {
		if !k.ActiveFrom.After(now) && k.ActiveFrom.After(newest) {
			newest, id = k.ActiveFrom, k.ID
		}
	}
	return id
}

// After a long rest the next key signs at once: the old one is nobody's any more. A
// server that has just looked for keys finds it all the same.
func TestAKeyThatIsOverdueIsReplacedAtOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, in := t.Context(), b.signUp("ada")
		before, err := b.Keys.Published(ctx)
		if err != nil || len(before) != 1 || before[0].ActiveFrom.After(b.clock.Now()) {
			t.Fatalf("%d keys, %v", len(before), err)
		}
		if in, err := b.Identify(ctx, identity.Credential{Bearer: in.Token.Text}); err != nil || in.User.Name != "ada" {
			t.Fatal(err)
		}
		b.clock.Pass(40 * 24 * time.Hour)
		other := b.with(func(*builtin.Stores) {})
		if _, err := other.Keys.Published(ctx); err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(time.Second)
		if err := b.Keys.Rotate(ctx); err != nil {
			t.Fatal(err)
		}
		after, err := b.Keys.Published(ctx)
		if err != nil || len(after) != 1 || after[0].ID == before[0].ID || after[0].ActiveFrom.After(b.clock.Now()) {
			t.Errorf("%d keys, %v", len(after), err)
		}
		if _, err := other.Identify(ctx, identity.Credential{Bearer: b.again("ada").Token.Text}); err != nil {
			t.Error(err)
		}
	})
}

// counted are keys of which it is counted how often they are read.
type counted struct {
	builtin.KeyStore
	reads int
	fails error
}

func (c *counted) SigningKeys(ctx context.Context, now time.Time) ([]builtin.SigningKey, error) {
	if c.reads++; c.fails != nil {
		return nil, c.fails
	}
	return c.KeyStore.SigningKeys(ctx, now)
}

// Tokens that nobody signed make us look for their key once a second, not once each.
func TestForgedTokensReadNoKeysEachTime(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		keys := &counted{KeyStore: b.options.Stores.Keys}
		s := b.with(func(stores *builtin.Stores) { stores.Keys = keys })
		// {"alg":"EdDSA","kid":"none"} {"sid":"x","exp":9999999999}
		const forged = "eyJhbGciOiJFZERTQSIsImtpZCI6Im5vbmUifQ.eyJzaWQiOiJ4IiwiZXhwIjo5OTk5OTk5OTk5fQ.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		for second := 1; second <= 3; second++ {
			for range 20 {
				_, err := s.Identify(ctx, identity.Credential{Bearer: forged})
				storetest.Refused(t, "a forged token", err, fault.KindUnauthenticated)
			}
			if keys.reads != second {
				t.Errorf("after %d seconds keys were read %d times", second, keys.reads)
			}
			b.clock.Pass(time.Second)
		}
		keys.fails = errors.New("away")
		if _, err := s.Identify(ctx, identity.Credential{Bearer: forged}); !errors.Is(err, keys.fails) {
			t.Errorf("keys that cannot be read: %v", err)
		}
	})
}
