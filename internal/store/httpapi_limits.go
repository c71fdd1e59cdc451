package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/limits"
)

// TakeHit counts one more in a bucket unless its window is full. Askers for
// one bucket take turns, so the limit is exact on any number of servers.
func (db *DB) TakeHit(ctx context.Context, bucket string, w limits.Window, now time.Time) (limits.Result, error) {
	ctx = audit.Without(ctx)
	var s limits.Result
	err := db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "rate "+bucket); err != nil {
			return err
		}
		var n int
		var oldest int64
		err := tx.q.QueryRowContext(ctx, `
			SELECT COUNT(*), COALESCE(MIN(at), $3) FROM rate_hits WHERE bucket = $1 AND at > $2`,
			bucket, micros(now.Add(-w.Per)), micros(now)).Scan(&n, &oldest)
		if err != nil {
			return err
		}
		s = limits.Result{Allowed: n < w.Most, Remaining: max(0, w.Most-n-1), Reset: fromMicros(oldest).Add(w.Per).Sub(now)}
		if !s.Allowed {
			return nil
		}
		_, err = tx.q.ExecContext(ctx, `INSERT INTO rate_hits (bucket, at, expires_at) VALUES ($1, $2, $3)`,
			bucket, micros(now), micros(now.Add(w.Per)))
		return err
	})
	return s, err
}

// errRefused undoes what was counted before a rule was found used up.
var errRefused = errors.New("a limit is used up")

// TakeHits counts one more by every rule, or by none if one is used up.
func (db *DB) TakeHits(ctx context.Context, rules []limits.Rule, now time.Time) (standings []limits.Result, err error) {
	ctx = audit.Without(ctx)
	order := make([]int, len(rules))
	for i := range order {
		order[i] = i
	}
	// In one order, so that two never wait for each other in a circle.
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(rules[a].Bucket, rules[b].Bucket) })
	err = db.inTx(ctx, func(tx *DB) error {
		standings = make([]limits.Result, len(rules))
		var refused error
		for _, i := range order {
			s, err := tx.TakeHit(ctx, rules[i].Bucket, rules[i].Window, now)
			if err != nil {
				return err
			}
			if standings[i] = s; !s.Allowed {
				refused = errRefused
			}
		}
		return refused
	})
	if errors.Is(err, errRefused) {
		err = nil
	}
	return standings, err
}

// ReturnHit takes back what TakeHit counted at this time.
func (db *DB) ReturnHit(ctx context.Context, bucket string, at time.Time) error {
	ctx = audit.Without(ctx)
	_, err := db.changed(ctx, `DELETE FROM rate_hits WHERE bucket = $1 AND at = $2`, bucket, micros(at))
	return err
}
