package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/fault"
)

var errAttemptEnded = fault.Stale("this attempt has ended")

// BeginAttempt binds an attempt to the first session that comes.
func (db *DB) BeginAttempt(ctx context.Context, id, fence, session string, now time.Time) (o attempts.Order, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		_, err := tx.q.ExecContext(ctx, `
			UPDATE attempts SET session = $1, began_at = $2, heard_at = $2
			WHERE id = $3 AND fence = $4 AND session = '' AND exit_record = '' AND outcome = ''`, session, micros(now), id, fence)
		if err != nil {
			return err
		}
		kept, err := tx.attemptOrder(ctx, id)
		switch {
		case err != nil:
			return err
		case kept.fence != fence || kept.ended:
			return errAttemptEnded
		case kept.session != session:
			return fault.Conflict("this attempt has begun elsewhere")
		}
		o = kept.order
		return nil
	})
	return o, err
}

// attemptRow is what a session may do.
type attemptRow struct {
	fence, session string
	ended          bool
	order          attempts.Order
}

func (db *DB) attemptOrder(ctx context.Context, id string) (kept attemptRow, err error) {
	var sealed []byte
	err = db.q.QueryRowContext(ctx, `SELECT fence, session, exit_record <> '' OR outcome <> '', sealed FROM attempts WHERE id = $1`, id).
		Scan(&kept.fence, &kept.session, &kept.ended, &sealed)
	if err != nil {
		return kept, db.asFault(err, "attempt")
	}
	text, err := db.sealer.open(attemptPlace(id), sealed)
	if err == nil {
		err = json.Unmarshal(text, &kept.order)
	}
	return kept, err
}

// CheckSession is nil where an attempt has the session and has not ended.
func (db *DB) CheckSession(ctx context.Context, id, session string) error {
	var kept string
	var ended bool
	err := db.q.QueryRowContext(ctx, `SELECT session, exit_record <> '' OR outcome <> '' FROM attempts WHERE id = $1`, id).Scan(&kept, &ended)
	switch {
	case err != nil:
		return db.asFault(err, "attempt")
	case kept != session || session == "":
		return fault.Unauthenticated("this session is another's")
	case ended:
		return errAttemptEnded
	}
	return nil
}

// OrderOf is that of an attempt, for whoever has its session.
func (db *DB) OrderOf(ctx context.Context, id, session string) (string, attempts.Order, error) {
	if err := db.CheckSession(ctx, id, session); err != nil {
		return "", attempts.Order{}, err
	}
	kept, err := db.attemptOrder(ctx, id)
	return kept.fence, kept.order, err
}

// ReportAttempt takes in what a shim says.
func (db *DB) ReportAttempt(ctx context.Context, id, session string, r attempts.Report, now time.Time) (a attempts.Answer, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		// Writing first takes the row, so that two servers do not append at once.
		n, err := tx.changed(ctx, `
			UPDATE attempts SET heard_at = $1, state = CASE WHEN $2 = '' THEN state ELSE $2 END, running_at = CASE WHEN $3 THEN COALESCE(running_at, $1) ELSE running_at END
			WHERE id = $4 AND session = $5 AND exit_record = '' AND outcome = ''`, micros(now), string(r.State), r.Running, id, session)
		if err != nil {
			return err
		}
		if n == 0 {
			return tx.CheckSession(ctx, id, session)
		}
		if r.Log != nil {
			if err := tx.appendAttemptLog(ctx, id, *r.Log); err != nil {
				return err
			}
		}
		if r.Exit != nil {
			if _, err := tx.q.ExecContext(ctx, `UPDATE attempts SET exit_record = $1, ended_at = $2 WHERE id = $3`, string(r.Exit), micros(now), id); err != nil {
				return err
			}
		}
		var grace *int64
		err = tx.q.QueryRowContext(ctx, `
			SELECT renewals, grace, log_size, COALESCE((SELECT fence FROM runs r WHERE r.id = attempts.run_id), 0) FROM attempts WHERE id = $1`, id).
			Scan(&a.Renewals, &grace, &a.LogSize, &a.RunFence)
		if grace != nil {
			a.Stop, a.Grace = true, time.Duration(*grace)*time.Microsecond
		}
		return err
	})
	return a, err
}

// appendAttemptLog adds what is new of a piece. One that would leave a gap is not
// taken, unless the shim has no more of it: the answer says where to go on.
func (db *DB) appendAttemptLog(ctx context.Context, id string, l attempts.Log) error {
	var size int64
	if err := db.q.QueryRowContext(ctx, `SELECT log_size FROM attempts WHERE id = $1`, id).Scan(&size); err != nil {
		return err
	}
	if l.Offset > size && l.Offset < attempts.MaxSize && l.Missing == l.Offset-size {
		size = l.Offset
	}
	known := size - l.Offset
	if known < 0 || known >= int64(len(l.Text)) {
		return nil
	}
	text := l.Text[known:]
	if size+int64(len(text)) > attempts.MaxLogs {
		var kept int64
		if err := db.q.QueryRowContext(ctx, `SELECT COALESCE(SUM(size), 0) FROM attempt_logs WHERE attempt_id = $1`, id).Scan(&kept); err != nil {
			return err
		}
		if kept+int64(len(text)) > attempts.MaxLogs {
			return nil
		}
	}
	_, err := db.q.ExecContext(ctx, `INSERT INTO attempt_logs (attempt_id, start, size, text, marks) VALUES ($1, $2, $3, $4, $5)`, id, size, len(text), text, string(l.Marks))
	if err == nil {
		_, err = db.q.ExecContext(ctx, `UPDATE attempts SET log_size = $1 WHERE id = $2`, size+int64(len(text)), id)
	}
	return err
}
