package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/panics"
)

const (
	cleaningBatch = 500
	// orphanAge is how old bytes must be that no row knows before they go:
	// far older than any upload or task can take.
	orphanAge = 48 * time.Hour
	// uploadGrace is how long after its address has expired an upload may
	// still be found to have arrived.
	uploadGrace = 10 * time.Minute
)

// Recover gives uploads that a dead server was receiving another chance. Only
// the one owner of an embedded database calls it, before it serves.
func (s *Service) Recover(ctx context.Context) error { return s.stores.Cleaning.ResetUploads(ctx) }

// Cleaned is what a batch of cleaning did. What could not be done is left out,
// so that it stops nothing else.
type Cleaned struct {
	Done    int
	Skipped int
	Why     error // of the first that was left out
	More    bool
}

func (c *Cleaned) count(err error) {
	if err == nil {
		c.Done++
		return
	}
	if c.Skipped++; c.Why == nil {
		c.Why = err
	}
}

// askedAtOnce is how many questions the object store is asked at the same time.
const askedAtOnce = 16

// severalAtOnce does something with each of a list.
func severalAtOnce[T any](list []T, do func(T) error) (r Cleaned) {
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(askedAtOnce)
	for _, one := range list {
		g.Go(func() error {
			err := panics.Catch(func() error { return do(one) })
			mu.Lock()
			defer mu.Unlock()
			r.count(err)
			return nil
		})
	}
	_ = g.Wait() // none of them returns an error
	return r
}

// Cleaner does the chores of the room, in batches. None of them deletes what a
// row points to.
type Cleaner struct{ s Service }

// Cleaner works on stores of its own, such as ones that let one process
// at a time write.
func (s *Service) Cleaner(stores Stores) Cleaner {
	c := *s
	c.stores = stores
	return Cleaner{c}
}

// SettleArrived settles uploads that went straight to the object store, after a key, and
// returns where the next batch begins.
func (c Cleaner) SettleArrived(ctx context.Context, after string) (r Cleaned, next string, err error) {
	keys, err := c.s.bytes.Presigner.Staged(ctx, "teams/", after, cleaningBatch)
	if err != nil || len(keys) == 0 {
		return r, "", err
	}
	open, err := c.s.stores.Uploads.ReservationsOf(ctx, keys)
	if err != nil {
		return r, "", err
	}
	r = c.s.settleAll(ctx, open)
	r.More = len(keys) == cleaningBatch
	return r, keys[len(keys)-1], ctx.Err()
}

// EndUploads ends those whose time is over, after a key, and returns where the
// next batch begins.
func (c Cleaner) EndUploads(ctx context.Context, after string) (r Cleaned, next string, err error) {
	over, err := c.s.stores.Cleaning.ExpiredReservations(ctx, c.s.now().Add(-uploadGrace), after, cleaningBatch)
	if err != nil {
		return r, "", err
	}
	for _, reserved := range over {
		err := c.s.settleOne(ctx, reserved) // it may have arrived unseen
		if fault.Is(err, fault.KindNotFound) {
			err = c.s.stores.Uploads.Drop(ctx, reserved.Key)
		}
		if fault.Is(err, fault.KindUnsupported) {
			err = nil
		}
		r.count(err)
		next = reserved.Key
	}
	r.More = len(over) == cleaningBatch
	return r, next, ctx.Err()
}

// Hash reads blobs that clients sent straight to the object store.
func (c Cleaner) Hash(ctx context.Context, after string) (r Cleaned, next string, err error) {
	const few = 20 // each may take minutes to read
	keys, err := c.s.stores.Hashes.Unhashed(ctx, after, few)
	if err != nil {
		return r, "", err
	}
	for _, key := range keys {
		sum, err := c.s.sum(ctx, key)
		if err == nil {
			err = c.s.stores.Hashes.SetHash(ctx, key, sum)
		}
		r.count(err)
		next = key
	}
	r.More = len(keys) == few
	return r, next, ctx.Err()
}

// silence is how long the object store may keep the next bytes of a file back.
const silence = time.Minute

var errSilent = errors.New("the object store sends no more of it")

func (s *Service) sum(ctx context.Context, key string) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer timer.Stop()
	f, err := s.bytes.Objects.Open(ctx, key, 0, -1)
	if err != nil {
		return "", errors.Join(err, context.Cause(ctx))
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, timed{f, timer}); err != nil {
		return "", errors.Join(err, context.Cause(ctx))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// timed begins the time of silence anew with every piece.
type timed struct {
	io.Reader
	timer *time.Timer
}

func (t timed) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	t.timer.Reset(silence)
	return n, err
}

// DeletePending deletes bytes whose last row is gone.
func (c Cleaner) DeletePending(ctx context.Context, after string) (r Cleaned, next string, err error) {
	keys, err := c.s.stores.Cleaning.PendingDeletes(ctx, after, cleaningBatch)
	if err != nil {
		return r, "", err
	}
	r = c.s.deletePending(ctx, keys)
	if len(keys) > 0 {
		next = keys[len(keys)-1]
	}
	r.More = len(keys) == cleaningBatch
	return r, next, ctx.Err()
}

// deletePending deletes bytes that nobody points to, and then the note of them.
func (s *Service) deletePending(ctx context.Context, keys []string) Cleaned {
	return severalAtOnce(keys, func(key string) error {
		err := s.bytes.Objects.Delete(ctx, key)
		if err == nil {
			err = s.stores.Cleaning.ForgetDelete(ctx, key)
		}
		return err
	})
}

// SweepUploads removes what uploads left unfinished in the object store.
func (c Cleaner) SweepUploads(ctx context.Context) error {
	return c.s.bytes.Sweep.SweepUploads(ctx, c.s.now().Add(-orphanAge))
}

// RemoveOrphans removes bytes that nobody knows. A key is never used twice and
// a row is written before or with its bytes, so bytes that are old and that no
// row knows will never be known.
func (c Cleaner) RemoveOrphans(ctx context.Context, after string) (r Cleaned, next string, err error) {
	keys, since, err := c.s.bytes.Sweep.Keys(ctx, "teams/", after, cleaningBatch)
	if err != nil || len(keys) == 0 {
		return r, "", err
	}
	var old []string
	for i, key := range keys {
		if c.s.now().Sub(since[i]) > orphanAge {
			old = append(old, key)
		}
	}
	unknown, err := c.s.stores.Cleaning.Unknown(ctx, old)
	if err != nil {
		return r, "", err
	}
	for _, key := range unknown {
		r.count(c.s.bytes.Objects.Delete(ctx, key))
	}
	r.More = true
	return r, keys[len(keys)-1], ctx.Err()
}
