package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
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
func (s *Service) Recover(ctx context.Context) error { return s.store.ResetUploads(ctx) }

// Clean ends uploads whose time is over, deletes doomed bytes, hashes what
// went past us, and removes bytes that nobody knows. It never deletes what a row points to.
func (s *Service) Clean(ctx context.Context) error {
	if err := s.endUploads(ctx); err != nil {
		return err
	}
	if err := s.bury(ctx); err != nil {
		return err
	}
	if err := s.hash(ctx); err != nil {
		return err
	}
	if err := s.objects.SweepUploads(ctx, s.now().Add(-orphanAge)); err != nil {
		return err
	}
	return s.removeOrphans(ctx)
}

func (s *Service) endUploads(ctx context.Context) error {
	over, err := s.store.ExpiredReservations(ctx, s.now().Add(-uploadGrace), cleaningBatch)
	if err != nil {
		return err
	}
	for _, r := range over {
		err := s.settleOne(ctx, r) // it may have arrived unseen
		if fault.Is(err, fault.KindNotFound) {
			err = s.store.Drop(ctx, r.Key)
		}
		if err != nil && !fault.Is(err, fault.KindUnsupported) {
			return err
		}
	}
	return nil
}

// hash reads blobs that clients sent straight to the object store.
func (s *Service) hash(ctx context.Context) error {
	keys, err := s.store.Unhashed(ctx, cleaningBatch)
	if err != nil {
		return err
	}
	for _, key := range keys {
		sum, err := s.sum(ctx, key)
		if err != nil {
			return err
		}
		if err := s.store.SetHash(ctx, key, sum); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) sum(ctx context.Context, key string) (string, error) {
	f, err := s.objects.Open(ctx, key, 0, -1)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// bury deletes bytes whose last row is gone.
func (s *Service) bury(ctx context.Context) error {
	keys, err := s.store.Doomed(ctx, cleaningBatch)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := s.objects.Delete(ctx, key); err != nil {
			return err
		}
		if err := s.store.Undoom(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// removeOrphans walks over everything that is kept. A key is never used twice
// and a row is written before or with its bytes, so bytes that are old and
// that no row knows will never be known.
func (s *Service) removeOrphans(ctx context.Context) error {
	after := ""
	for {
		keys, since, err := s.objects.Keys(ctx, "teams/", after, cleaningBatch)
		if err != nil || len(keys) == 0 {
			return err
		}
		after = keys[len(keys)-1]
		var old []string
		for i, key := range keys {
			if s.now().Sub(since[i]) > orphanAge {
				old = append(old, key)
			}
		}
		unknown, err := s.store.Unknown(ctx, old)
		if err != nil {
			return err
		}
		for _, key := range unknown {
			if err := s.objects.Delete(ctx, key); err != nil {
				return err
			}
		}
	}
}
