package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/finding"
)

// DeletedRuns is what is kept of a team's deleted runs, by id.
func (db *DB) DeletedRuns(ctx context.Context, team ids.Team, after ids.Run, limit int) ([]finding.Deleted, error) {
	return all(ctx, db, func(r *sql.Rows, d *finding.Deleted) error {
		var at sql.NullInt64
		err := r.Scan((*string)(&d.ID), (*string)(&d.For), (*tagList)(&d.Tags), &at)
		d.At = fromNull(at)
		return err
	}, `SELECT run_id, for_user, tags, deleted_at FROM deleted_runs WHERE team_id = $1 AND run_id > $2 ORDER BY run_id LIMIT $3 + 0`, team, after, limit)
}

// ForgetDeleted drops some of what is kept of runs that were deleted before a
// time. Rows that do not say when count from now on.
func (db *DB) ForgetDeleted(ctx context.Context, fence int64, before, now time.Time) (n int, more bool, err error) {
	err = db.Fenced(fence).inTx(ctx, func(tx *DB) error {
		some := func(where string) string {
			return `WHERE run_id IN (SELECT run_id FROM deleted_runs WHERE ` + where + ` LIMIT $2 + 0)`
		}
		noted, err := tx.changed(ctx, `UPDATE deleted_runs SET deleted_at = $1 `+some(`deleted_at IS NULL`), micros(now), upkeepBatch)
		if err != nil {
			return err
		}
		gone, err := tx.changed(ctx, `DELETE FROM deleted_runs `+some(`deleted_at < $1`), micros(before), upkeepBatch)
		n, more = int(gone), max(noted, gone) == upkeepBatch
		return err
	})
	return n, more, err
}
