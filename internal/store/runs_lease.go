package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
)

// lockWait is how long a renewal waits for one run to which somebody writes.
const lockWait = 2 * time.Second

// RenewLeases extends leases. With an error it returns what is known of some of them. A
// run that somebody writes to at this moment is renewed by itself, after all others:
// whoever waits for it must not hold those, to which their tasks are being written.
func (db *DB) RenewLeases(ctx context.Context, held []runs.HeldRun, until time.Time) (runs.Renewal, error) {
	var known runs.Renewal
	err := inChunks(held, func(some []runs.HeldRun) error {
		kept, err := db.renew(ctx, some, until, db.dialect.skipLocked)
		known.Kept = append(known.Kept, kept...)
		return err
	})
	if err != nil {
		return known, err
	}
	for _, h := range held {
		if slices.Contains(known.Kept, h) {
			continue
		}
		kept, waitErr := db.renewBusy(ctx, h, until)
		switch {
		case waitErr != nil:
			err = errors.Join(err, fmt.Errorf("run %s: %w", h.Run, waitErr))
		case kept:
			known.Kept = append(known.Kept, h)
		default:
			known.Lost = append(known.Lost, h)
		}
	}
	return known, err
}

// renewBusy extends the lease of a run that may be locked.
func (db *DB) renewBusy(ctx context.Context, h runs.HeldRun, until time.Time) (kept bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	list, err := db.renew(ctx, []runs.HeldRun{h}, until, db.dialect.forUpdate)
	return len(list) > 0, err
}

func (db *DB) renew(ctx context.Context, held []runs.HeldRun, until time.Time, locking string) (kept []runs.HeldRun, err error) {
	which, args := make([]string, len(held)), []any{micros(until)}
	for i, h := range held {
		which[i] = fmt.Sprintf("(id = $%d AND fence = $%d)", len(args)+1, len(args)+2)
		args = append(args, h.Run, h.Fence)
	}
	err = db.forLeases().inTx(ctx, func(tx *DB) error {
		kept, err = all(ctx, tx, func(r *sql.Rows, h *runs.HeldRun) error { return r.Scan((*string)(&h.Run), &h.Fence) }, `
			UPDATE runs SET lease_until = $1 WHERE id IN (SELECT id FROM runs WHERE status = 'running' AND (`+strings.Join(which, " OR ")+`) `+locking+`)
			RETURNING id, fence`, args...)
		return err
	})
	return kept, err
}

// ReleaseLease ends a lease now. Whoever sees the run's tasks goes on with it at
// once, others when its tasks have ended.
func (db *DB) ReleaseLease(ctx context.Context, h runs.HeldRun, now time.Time) error {
	_, err := db.changed(ctx, `
		UPDATE runs SET owner = '', lease_until = $1 WHERE id = $2 AND fence = $3 AND status = 'running'`, micros(now), h.Run, h.Fence)
	return err
}

// TakeOver hands a worker the runs that nobody holds any more: those of earlier
// workers on its host, and its own if it does not know that it had claimed them.
// They stay running until it has looked for tasks that still live. Tasks on another host go on without their worker for a while, so
// that their own host finds them again; until then such a run is left to it.
// Those of another executor are taken when it has been gone for long.
func (db *DB) TakeOver(ctx context.Context, t runs.TakeOver, now, until time.Time) ([]runs.Run, error) {
	var taken []runs.Run
	err := db.inTx(ctx, func(tx *DB) error {
		taken = nil
		whose, owner := `owner = $2`, t.Owner
		if t.Started {
			whose, owner = `SUBSTR(owner, 1, LENGTH($2)) = $2`, t.Host+" "
		}
		free := `lease_until <= $1`
		if t.OnlyOwn { // what was given back, and has tasks here
			free += ` AND owner = '' AND EXISTS (SELECT 1 FROM run_attempts a WHERE a.run_id = runs.id AND a.state = 'started' AND a.host = $4)`
		}
		mine, args := `executor IN ('', $5)`, []any{micros(now), owner, micros(now.Add(-t.AbandonAfter)), cmp.Or(t.Scope, t.Host), t.Executor}
		if t.Orphans {
			mine, args = `(`+mine+` OR lease_until <= $6 AND `+ofGone+`)`, append(args, micros(now.Add(-admission.GoneAfter)))
		}
		list, err := all(ctx, tx, func(r *sql.Rows, u *unleased) error { return r.Scan((*string)(&u.id), &u.owner, &u.until) }, `
			SELECT id, owner, lease_until FROM runs
			WHERE status = 'running' AND kind = '' AND `+mine+` AND (`+free+` OR `+whose+`)
				AND (lease_until <= $3 OR NOT EXISTS (
					SELECT 1 FROM run_attempts a WHERE a.run_id = runs.id AND a.state = 'started' AND a.host <> $4))
			`+tx.dialect.skipLocked, args...)
		if err != nil {
			return err
		}
		for _, u := range list {
			if t.Held[u.id] { // maybe late to renew, as after a stop; that is for its lease to find out
				continue
			}
			var r runs.Run
			err := scanWhole(tx.q.QueryRowContext(ctx, `
				UPDATE runs SET owner = $1, fence = fence + 1, lease_until = $2 WHERE id = $3
				RETURNING `+wholeColumns, t.Owner, micros(until), u.id), &r)
			if err != nil {
				return err
			}
			r.LastHeld = u.lastHeld(until.Sub(now))
			taken = append(taken, r)
		}
		return nil
	})
	return taken, err
}

// unleased is a run whose worker is gone.
type unleased struct {
	id    ids.Run
	owner string
	until int64
}

// lastHeld is when its lease was last renewed, or was given back.
func (u unleased) lastHeld(length time.Duration) time.Time {
	if u.owner == "" {
		return fromMicros(u.until)
	}
	return fromMicros(u.until).Add(-length)
}

// fenced runs fn with the run, if this worker still holds it.
func (db *DB) fenced(ctx context.Context, id ids.Run, fence int64, fn func(tx *DB, r runs.Run) error) error {
	return db.inTx(ctx, func(tx *DB) error {
		r, err := tx.lockedRun(ctx, id)
		if err != nil {
			return err
		}
		if r.Fence != fence || r.Status != lifecycle.Running {
			return runs.ErrFenced
		}
		return fn(tx, r)
	})
}
