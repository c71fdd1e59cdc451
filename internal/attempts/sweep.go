package attempts

import (
	"context"
	"slices"
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
		if still, failed := inUse(ctx, objects, id, now); failed != nil {
			return n, "", failed
		} else if still {
			continue
		}
		deleted, failed := objects.DeletePrefix(ctx, ObjectPrefix(id))
		if n += deleted; failed != nil {
			return n, "", failed
		}
	}
	return n, keys[len(keys)-1], err
}

// inUse reports whether something came lately below the prefix of an attempt: an input
// may be staged for longer than others of it are old.
func inUse(ctx context.Context, objects Keys, id string, now time.Time) (bool, error) {
	for after := ""; ; {
		keys, since, err := objects.Keys(ctx, ObjectPrefix(id), after, sweepBatch)
		if err != nil || len(keys) == 0 {
			return false, err
		}
		if slices.ContainsFunc(since, func(t time.Time) bool { return now.Sub(t) <= leftAfter }) {
			return true, nil
		}
		after = keys[len(keys)-1]
	}
}
