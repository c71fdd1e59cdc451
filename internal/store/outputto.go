package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs/outputcopy"
	"github.com/millrace/millrace/internal/runs/outputto"
)

var _ outputcopy.Store = (*DB)(nil)

func (db *DB) insertOutputCopy(ctx context.Context, id ids.Run, c *outputto.Copy) error {
	if c == nil {
		return nil
	}
	_, err := db.q.ExecContext(ctx, `INSERT INTO output_copies (run_id, url, connection_id, state) VALUES ($1, $2, $3, $4)`, id, c.URL, c.Connection, outputto.Waiting)
	return err
}

// hasOutputCopy is whether the outputs of a run are to be copied, as part of a
// statement that ends it.
const hasOutputCopy = `EXISTS (SELECT 1 FROM output_copies c WHERE c.run_id = runs.id)`

// startOutputCopy has the outputs of a run copied from now on, or never, in the
// transaction that ends the run.
func (db *DB) startOutputCopy(ctx context.Context, id ids.Run, status lifecycle.Status, now time.Time) error {
	state, message, ended := outputto.Copying, "", sql.NullInt64{}
	if status != lifecycle.Completed {
		state, message, ended = outputto.Skipped, "the run did not complete, so nothing is copied", sql.NullInt64{Int64: micros(now), Valid: true}
	}
	_, err := db.changed(ctx, `UPDATE output_copies SET state = $1, message = $2, next_at = $3, ended_at = $4 WHERE run_id = $5 AND state = $6`,
		state, message, micros(now), ended, id, outputto.Waiting)
	return err
}

const outputCopyRow = `
	SELECT c.run_id, r.team_id, c.url, c.connection_id, c.state, c.message, c.attempts, c.next_at, c.files, c.done, c.bytes, c.copied, c.upload, c.upload_of, c.ended_at
	FROM output_copies c JOIN runs r ON r.id = c.run_id `

func scanOutputCopy(row scanner, c *outputto.Copy) error {
	var next int64
	var ended sql.NullInt64
	err := row.Scan((*string)(&c.Run), (*string)(&c.Team), &c.URL, (*string)(&c.Connection), (*string)(&c.State), &c.Message, &c.Attempts, &next,
		&c.Files, &c.Done, &c.Bytes, &c.Copied, &c.Upload, &c.UploadOf, &ended)
	c.NextAt, c.EndedAt = fromMicros(next), fromNull(ended)
	return err
}

// OutputCopyOf is where a run's outputs are copied to; one that has none is
// fault.KindNotFound.
func (db *DB) OutputCopyOf(ctx context.Context, team ids.Team, id ids.Run) (c outputto.Copy, err error) {
	err = scanOutputCopy(db.q.QueryRowContext(ctx, outputCopyRow+`WHERE r.team_id = $1 AND c.run_id = $2`, team, id), &c)
	return c, db.asFault(err, "copy of the outputs")
}

// dueOutputCopy is one that nobody is at, of a team that is there.
const dueOutputCopy = `c.state = 'copying' AND c.next_at <= $1 AND c.busy_until <= $1`

// busyTeams are those that have as many copies under way as one may.
const busyTeams = `(SELECT s.team_id FROM output_copies o JOIN runs s ON s.id = o.run_id
	WHERE o.state = 'copying' AND o.busy_until > $1 GROUP BY s.team_id HAVING COUNT(*) >= $2)`

// ClaimOutputCopy takes a copy that is due, for one process.
func (db *DB) ClaimOutputCopy(ctx context.Context, owner string, now, until time.Time) (c outputto.Copy, err error) {
	// Reading first keeps an idle server from writing.
	err = scanOutputCopy(db.q.QueryRowContext(ctx, outputCopyRow+`JOIN teams t ON t.id = r.team_id AND t.closed_at IS NULL
		WHERE `+dueOutputCopy+` AND r.team_id NOT IN `+busyTeams+` ORDER BY c.next_at, c.run_id LIMIT 1`, micros(now), outputcopy.TeamAtOnce), &c)
	if errors.Is(err, sql.ErrNoRows) {
		return outputto.Copy{}, nil
	}
	if err != nil {
		return outputto.Copy{}, err
	}
	n, err := db.changed(ctx, `UPDATE output_copies AS c SET owner = $2, busy_until = $3 WHERE c.run_id = $4 AND `+dueOutputCopy, micros(now), owner, micros(until), c.Run)
	if err != nil || n == 0 { // somebody else was faster
		return outputto.Copy{}, err
	}
	// What it was read before may have changed until it was claimed.
	err = scanOutputCopy(db.q.QueryRowContext(ctx, outputCopyRow+`WHERE c.run_id = $1`, c.Run), &c)
	return c, db.asFault(err, "copy of the outputs")
}

// SaveOutputCopy writes down how far a copy has come. Whoever has lost it to another,
// or whose run is gone, gets fault.KindConflict.
func (db *DB) SaveOutputCopy(ctx context.Context, owner string, c outputto.Copy, until time.Time) error {
	n, err := db.changed(ctx, `
		UPDATE output_copies SET state = $1, message = $2, attempts = $3, next_at = $4, files = $5, done = $6, bytes = $7, copied = $8, upload = $9, upload_of = $10, ended_at = $11, busy_until = $12
		WHERE run_id = $13 AND owner = $14 AND state = 'copying'`,
		c.State, c.Message, c.Attempts, micros(c.NextAt), c.Files, c.Done, c.Bytes, c.Copied, c.Upload, c.UploadOf, microsOrNull(c.EndedAt), zeroMicros(until), c.Run, owner)
	if err == nil && n == 0 {
		err = fault.Conflict("another process copies these outputs, or the run is gone")
	}
	return err
}

// ReleaseOutputCopies lets copies go on that a dead server was at. Only the one owner
// of an embedded database may think that it is dead.
func (db *DB) ReleaseOutputCopies(ctx context.Context) error {
	_, err := db.changed(ctx, `UPDATE output_copies SET busy_until = 0 WHERE state = 'copying' AND busy_until > 0`)
	return err
}
