package builtin

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

// SigningKey signs session tokens from ActiveFrom until the next key takes
// over, and is known to verifiers until RetiresAt.
type SigningKey struct {
	ID         string
	Private    ed25519.PrivateKey
	ActiveFrom time.Time
	RetiresAt  time.Time
}

// Public is the half that verifies.
func (k SigningKey) Public() ed25519.PublicKey { return k.Private.Public().(ed25519.PublicKey) }

const (
	keyLife    = 30 * 24 * time.Hour // how long a key signs
	keyNotice  = time.Hour           // how long it is published before it signs
	keyAfter   = 24 * time.Hour      // how long it is published after its last token
	keyMaxAge  = time.Minute         // how long a server trusts its copy
	keyRecheck = time.Second         // how soon an unknown key id may cause another look
)

// Keyring is a server's copy of the signing keys.
type Keyring struct {
	store KeyStore
	now   func() time.Time

	mu     sync.Mutex
	keys   map[string]SigningKey
	loaded time.Time
}

func newKeyring(store KeyStore, now func() time.Time) *Keyring {
	return &Keyring{store: store, now: now}
}

// Rotate adds the first key, or the next one when the newest is a month old.
// The next one is published an hour before it signs, so that everybody who
// caches the key set has seen it.
func (r *Keyring) Rotate(ctx context.Context) error {
	keys, err := r.load(ctx)
	if err != nil {
		return err
	}
	now := r.now()
	newest := newestOf(keys, now.Add(keyNotice))
	if newest != nil && now.Before(newest.ActiveFrom.Add(keyLife-keyNotice)) {
		return nil
	}
	from, after := now, time.Time{}
	if newest != nil {
		after = newest.ActiveFrom
		// One that is overdue, after a long rest, does not wait for anybody.
		if now.Before(after.Add(keyLife)) {
			from = now.Add(keyNotice)
		}
	}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	k := SigningKey{ID: rand.Text()[:16], Private: private, ActiveFrom: from, RetiresAt: from.Add(keyLife + keyAfter)}
	if err := r.store.AddSigningKey(ctx, k, after); err != nil {
		return err
	}
	_, err = r.load(ctx)
	return err
}

// signer is the newest key that is in force. On a fresh installation none may be yet:
// the server that made the first key may be ahead of this one.
func (r *Keyring) signer(ctx context.Context) (SigningKey, error) {
	keys, err := r.current(ctx, keyMaxAge)
	if err != nil {
		return SigningKey{}, err
	}
	if k := newestOf(keys, r.now()); k != nil {
		return *k, nil
	}
	if len(keys) > 0 {
		return slices.MinFunc(slices.Collect(maps.Values(keys)), func(a, b SigningKey) int { return a.ActiveFrom.Compare(b.ActiveFrom) }), nil
	}
	return SigningKey{}, fault.Unavailable("no key is there to sign session tokens")
}

// verifier finds a key by its id. Another replica may have made one since our
// last look.
func (r *Keyring) verifier(ctx context.Context, id string) (ed25519.PublicKey, bool, error) {
	for _, age := range []time.Duration{keyMaxAge, keyRecheck} {
		keys, err := r.current(ctx, age)
		if err != nil {
			return nil, false, err
		}
		if k, ok := keys[id]; ok && r.now().Before(k.RetiresAt) {
			return k.Public(), true, nil
		}
	}
	return nil, false, nil
}

// Published is every key that a verifier may meet.
func (r *Keyring) Published(ctx context.Context) ([]SigningKey, error) {
	keys, err := r.current(ctx, keyMaxAge)
	if err != nil {
		return nil, err
	}
	var list []SigningKey
	for _, k := range keys {
		if r.now().Before(k.RetiresAt) {
			list = append(list, k)
		}
	}
	return list, nil
}

func (r *Keyring) current(ctx context.Context, maxAge time.Duration) (map[string]SigningKey, error) {
	r.mu.Lock()
	keys, age := r.keys, r.now().Sub(r.loaded)
	r.mu.Unlock()
	if keys != nil && age < maxAge {
		return keys, nil
	}
	return r.load(ctx)
}

func (r *Keyring) load(ctx context.Context) (map[string]SigningKey, error) {
	list, err := r.store.SigningKeys(ctx, r.now())
	if err != nil {
		return nil, err
	}
	keys := make(map[string]SigningKey, len(list))
	for _, k := range list {
		keys[k.ID] = k
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys, r.loaded = keys, r.now()
	return keys, nil
}

// newestOf is the key that started last, of those that have started by then.
func newestOf(keys map[string]SigningKey, by time.Time) *SigningKey {
	var newest *SigningKey
	for _, k := range keys {
		if !k.ActiveFrom.After(by) && (newest == nil || k.ActiveFrom.After(newest.ActiveFrom)) {
			newest = &k
		}
	}
	return newest
}
