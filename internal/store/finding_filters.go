package store

import (
	"context"
	"database/sql"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/finding"
)

var (
	_ finding.Store    = (*DB)(nil)
	_ finding.RunStore = (*DB)(nil)
)

// SavedFilters are somebody's in a team, by name.
func (db *DB) SavedFilters(ctx context.Context, team ids.Team, user ids.User) ([]finding.SavedFilter, error) {
	return all(ctx, db, func(r *sql.Rows, f *finding.SavedFilter) error {
		var created int64
		err := r.Scan(&f.ID, &f.Name, (*string)(&f.Filter.Status), (*string)(&f.Filter.Workflow), &f.Filter.Tag, &f.Filter.Starter, &f.Filter.Text, &f.Days, &created)
		f.CreatedAt = fromMicros(created)
		return err
	}, `
		SELECT id, name, status, workflow_id, tag, starter_id, words, days, created_at FROM saved_filters
		WHERE team_id = $1 AND user_id = $2 ORDER BY name, id`, team, user)
}

// SaveFilter keeps a filter in place of that of the same name.
func (db *DB) SaveFilter(ctx context.Context, team ids.Team, user ids.User, f finding.SavedFilter, most int) (finding.SavedFilter, error) {
	err := db.inTx(ctx, func(tx *DB) error {
		if err := tx.mustBeOpen(ctx, team); err != nil {
			return err
		}
		if err := tx.lock(ctx, "filters of "+string(user)); err != nil {
			return err
		}
		var others int
		err := tx.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM saved_filters WHERE team_id = $1 AND user_id = $2 AND name <> $3`, team, user, f.Name).Scan(&others)
		if err != nil {
			return err
		}
		if others >= most {
			return fault.Conflict("you keep %d filters already: delete one first", most)
		}
		return tx.q.QueryRowContext(ctx, `
			INSERT INTO saved_filters (id, team_id, user_id, name, status, workflow_id, tag, starter_id, words, days, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
			ON CONFLICT (team_id, user_id, name) DO UPDATE SET status = excluded.status, workflow_id = excluded.workflow_id, tag = excluded.tag,
				starter_id = excluded.starter_id, words = excluded.words, days = excluded.days, created_at = excluded.created_at
			RETURNING id`, f.ID, team, user, f.Name, f.Filter.Status, f.Filter.Workflow, f.Filter.Tag, f.Filter.Starter, f.Filter.Text, f.Days, micros(f.CreatedAt)).Scan(&f.ID)
	})
	return f, err
}

// DeleteFilter drops one.
func (db *DB) DeleteFilter(ctx context.Context, team ids.Team, user ids.User, id string) error {
	n, err := db.changed(ctx, `DELETE FROM saved_filters WHERE team_id = $1 AND user_id = $2 AND id = $3`, team, user, id)
	if err == nil && n == 0 {
		return fault.NotFound("no such filter")
	}
	return err
}
