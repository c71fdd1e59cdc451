package store

import (
	"context"
	"database/sql"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/finding"
)

var _ finding.FavoriteStore = (*DB)(nil)

// favorite is where marks of a kind are: the table, its column, and what is marked.
type favorite struct{ table, column, of string }

var (
	favoriteWorkflow = favorite{"favorite_workflows", "workflow_id", "workflows"}
	favoriteRun      = favorite{"favorite_runs", "run_id", "runs"}
)

func favoriteOf(id string) favorite {
	if strings.HasPrefix(id, "run_") {
		return favoriteRun
	}
	return favoriteWorkflow
}

// Favorites is what somebody has marked in a team, newest first.
func (db *DB) Favorites(ctx context.Context, team ids.Team, user ids.User) (f finding.Favorites, err error) {
	list := func(k favorite) string {
		return `SELECT ` + k.column + ` FROM ` + k.table + ` WHERE user_id = $1 AND team_id = $2 ORDER BY ` + k.column + ` DESC`
	}
	f.Workflows, err = all(ctx, db, func(r *sql.Rows, id *ids.Workflow) error { return r.Scan((*string)(id)) }, list(favoriteWorkflow), user, team)
	if err == nil {
		f.Runs, err = all(ctx, db, func(r *sql.Rows, id *ids.Run) error { return r.Scan((*string)(id)) }, list(favoriteRun), user, team)
	}
	return f, err
}

// AddFavorite marks a workflow or a run of a team.
func (db *DB) AddFavorite(ctx context.Context, team ids.Team, user ids.User, id string, most int) error {
	k := favoriteOf(id)
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.mustBeOpen(ctx, team); err != nil {
			return err
		}
		if err := tx.lock(ctx, "favorites of "+string(user)); err != nil {
			return err
		}
		var there, others int
		err := tx.q.QueryRowContext(ctx, `
			SELECT (SELECT COUNT(*) FROM `+k.of+` WHERE team_id = $1 AND id = $2),
			       (SELECT COUNT(*) FROM `+k.table+` WHERE team_id = $1 AND user_id = $3 AND `+k.column+` <> $2)`, team, id, user).Scan(&there, &others)
		switch {
		case err != nil:
			return err
		case there == 0:
			return fault.NotFound("no such workflow or run")
		case others >= most:
			return fault.Conflict("you have %d favorites of this kind already: take one off first", most).WithCode("too_many_favorites")
		}
		_, err = tx.q.ExecContext(ctx, `INSERT INTO `+k.table+` (`+k.column+`, user_id, team_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, id, user, team)
		return err
	})
}

// RemoveFavorite takes a mark off.
func (db *DB) RemoveFavorite(ctx context.Context, team ids.Team, user ids.User, id string) error {
	k := favoriteOf(id)
	_, err := db.changed(ctx, `DELETE FROM `+k.table+` WHERE team_id = $1 AND user_id = $2 AND `+k.column+` = $3`, team, user, id)
	return err
}
