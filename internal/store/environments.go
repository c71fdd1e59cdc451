package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/environments"
)

var _ environments.Store = (*DB)(nil)

const environmentRow = `SELECT key, spec, state, lock_text, error, log, updated_at, used_at FROM environments `

func scanEnvironment(row scanner, b *environments.Build) error {
	var updated, used int64
	err := row.Scan(&b.Key, &b.Spec, (*string)(&b.State), &b.Lock, &b.Error, &b.Log, &updated, &used)
	b.UpdatedAt, b.UsedAt = fromMicros(updated), fromZero(used)
	return err
}

// EnvironmentBuild is what was built for a team.
func (db *DB) EnvironmentBuild(ctx context.Context, team ids.Team, key string) (b environments.Build, err error) {
	err = scanEnvironment(db.q.QueryRowContext(ctx, environmentRow+`WHERE team_id = $1 AND key = $2`, team, key), &b)
	return b, db.asFault(err, "environment")
}

// EnvironmentBuilds are a team's, by key, from after a key on; without their
// logs.
func (db *DB) EnvironmentBuilds(ctx context.Context, team ids.Team, after string, limit int) ([]environments.Build, error) {
	return all(ctx, db, func(r *sql.Rows, b *environments.Build) error { return scanEnvironment(r, b) }, `
		SELECT key, spec, state, lock_text, error, '', updated_at, used_at FROM environments
		WHERE team_id = $1 AND key > $2 ORDER BY key LIMIT $3`, team, after, limit)
}

// SaveEnvironmentBuild keeps a build of a team that is not being erased. The first
// lock counts, for everybody.
func (db *DB) SaveEnvironmentBuild(ctx context.Context, team ids.Team, b environments.Build) (lock string, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		if err := tx.mustBeOpen(ctx, team); err != nil {
			return err
		}
		return tx.q.QueryRowContext(ctx, `
			INSERT INTO environments (team_id, key, spec, state, lock_text, error, log, updated_at, used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
			ON CONFLICT (team_id, key) DO UPDATE SET state = excluded.state, error = excluded.error, log = excluded.log, updated_at = excluded.updated_at, used_at = excluded.used_at,
				lock_text = CASE WHEN environments.lock_text = '' THEN excluded.lock_text ELSE environments.lock_text END
			RETURNING lock_text`,
			team, b.Key, b.Spec, b.State, b.Lock, b.Error, b.Log, micros(b.UpdatedAt)).Scan(&lock)
	})
	return lock, err
}

// EnvironmentUsed notes that a run uses what was built for its team; false where that
// is not known any more.
func (db *DB) EnvironmentUsed(ctx context.Context, team ids.Team, key string, now time.Time) (known bool, err error) {
	n, err := db.changed(ctx, `UPDATE environments SET used_at = $3 WHERE team_id = $1 AND key = $2`, team, key, micros(now))
	return n > 0, err
}

// RunDefinition is what a run of a team executes.
func (db *DB) RunDefinition(ctx context.Context, team ids.Team, id ids.Run) (definition []byte, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT definition FROM runs WHERE team_id = $1 AND id = $2`, team, id).Scan(&definition)
	return definition, db.asFault(err, "run")
}
