package builtin

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/identity"
)

// limiter counts what people do, and says when it is too much.
type limiter struct {
	store   LimitStore
	private bool // nobody but this machine can reach us
	now     func() time.Time
}

// Guessing is slowed per account and per address; failures count, successes
// do not. Live sessions are not touched by it.
var (
	guessesByAccount = limits.Window{Most: 10, Per: 5 * time.Minute}
	guessesByAddress = limits.Window{Most: 100, Per: 5 * time.Minute}
)

// guessing is what guesses at one thing from one address count against.
func guessing(what, clientPrefix string) map[string]limits.Window {
	return map[string]limits.Window{"guess " + what: guessesByAccount, "guess address " + clientPrefix: guessesByAddress}
}

// guess counts the attempt before it is made, so that a burst of parallel
// guesses cannot get through, and takes it back when it was right.
func (l limiter) guess(ctx context.Context, buckets map[string]limits.Window, wrong error, right func() (bool, error)) error {
	const wait = "too many failed attempts; wait and try again"
	at := l.now()
	for bucket, w := range buckets {
		if err := l.takeAt(ctx, bucket, w, at, wait); err != nil {
			return err
		}
	}
	ok, err := right()
	if err != nil {
		return err
	}
	if !ok {
		return wrong
	}
	for bucket := range buckets {
		if err := l.store.ReturnHit(ctx, bucket, at); err != nil {
			return err
		}
	}
	return nil
}

func (l limiter) take(ctx context.Context, bucket string, w limits.Window, message string) error {
	return l.takeAt(ctx, bucket, w, l.now(), message)
}

func (l limiter) takeAt(ctx context.Context, bucket string, w limits.Window, at time.Time, message string) error {
	standing, err := l.store.TakeHit(ctx, bucket, w, at)
	if err != nil {
		return err
	}
	if !standing.Allowed {
		return fault.Limited(standing.Reset, "%s", message)
	}
	return nil
}

func (l limiter) count(ctx context.Context, rules []limits.Rule, report limits.Report) error {
	return identity.Count(ctx, l.store, rules, l.now(), report)
}

// mailPrefix is the address that mail is counted by; on a machine that only
// itself can reach there is none.
func (l limiter) mailPrefix(clientPrefix string) string {
	if l.private {
		return ""
	}
	return clientPrefix
}
