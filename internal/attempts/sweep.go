package attempts

import (
	"context"
	"strings"
	"time"
)

// Leftovers are attempts that nobody will release.
type Leftovers interface {
	// RemoveEndedAttempts forgets some that were submitted before a time, and whose
	// runs have ended before it or are gone.
	RemoveEndedAttempts(ctx context.Context, before time.Time) (n int, err error)
	// UnknownAttempts are those ids that no attempt has.
	UnknownAttempts(ctx context.Context, ids []string) ([]string, error)
}

// Keys lists objects below a prefix after a key, with the time since which each is
// there.
type Keys interface {
	Keys(ctx context.Context, prefix, after string, limit int) (keys []string, since []time.Time, err error)
	DeletePrefix(ctx context.Context, prefix string) (n int, err error)
}

const (
	// leftAfter is far longer than what is staged waits to be submitted, and than a
	// run that has ended takes to release its attempts.
	leftAfter  = 48 * time.Hour
	sweepBatch = 500
)

// Sweep removes what was left of attempts by servers that went down, and by executors
// that are not there any more. It goes on after a key; next is empty at the end.
func Sweep(ctx context.Context, rows Leftovers, objects Keys, after string, now time.Time) (n int, next string, err error) {
	if after == "" {
		if n, err = rows.RemoveEndedAttempts(ctx, now.Add(-leftAfter)); err != nil {
			return n, "", err
		}
	}
	keys, since, err := objects.Keys(ctx, prefix, after, sweepBatch)
	if err != nil || len(keys) == 0 {
		return n, "", err
	}
	var old []string
	for i, key := range keys {
		id, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
		if now.Sub(since[i]) > leftAfter && (len(old) == 0 || old[len(old)-1] != id) {
			old = append(old, id)
		}
	}
	unknown, err := rows.UnknownAttempts(ctx, old)
	for _, id := range unknown {
		deleted, failed := objects.DeletePrefix(ctx, ObjectPrefix(id))
		if n += deleted; failed != nil {
			return n, "", failed
		}
	}
	return n, keys[len(keys)-1], err
}
