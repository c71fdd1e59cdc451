package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/clerk"
)

var _ clerk.Store = (*DB)(nil)

// MirrorPerson makes a person, their teams and their place in each what they
// are at an identity system that keeps them itself: our rows are copies that
// others refer to.
func (db *DB) MirrorPerson(ctx context.Context, u identity.User, list []identity.Membership, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		var verified time.Time
		if u.EmailVerified {
			verified = now
		}
		email := u.Email
		if email == "" {
			email = string(u.ID)
		}
		// Whoever had the address before has it no more.
		if _, err := tx.q.ExecContext(ctx, `UPDATE users SET email = id WHERE email = $1 AND id <> $2`, email, u.ID); err != nil {
			return err
		}
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO users (id, email, name, password_hash, email_verified_at, created_at) VALUES ($1, $2, $3, '', $4, $5)
			ON CONFLICT (id) DO UPDATE SET email = excluded.email, name = excluded.name, email_verified_at = excluded.email_verified_at`,
			u.ID, email, u.Name, microsOrNull(verified), micros(now))
		if err != nil {
			return err
		}
		return tx.mirrorPlaces(ctx, u.ID, list, now)
	})
}

func (db *DB) mirrorPlaces(ctx context.Context, user ids.User, list []identity.Membership, now time.Time) error {
	args := []any{user}
	for _, m := range list {
		args = append(args, m.Team.ID)
		// The name of a team that is being erased is not brought back.
		created, err := all(ctx, db, func(r *sql.Rows, at *int64) error { return r.Scan(at) }, `
			INSERT INTO teams (id, name, plan, created_at)
			SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS BIGINT) WHERE NOT EXISTS (SELECT 1 FROM erasures WHERE team_id = $1)
			ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING created_at`, m.Team.ID, m.Team.Name, m.Team.Plan, micros(now))
		if err == nil && len(created) == 1 && created[0] == micros(now) {
			err = db.beginWithDefaults(ctx, m.Team.ID)
		}
		if err != nil {
			return err
		}
		_, err = db.q.ExecContext(ctx, `
			INSERT INTO memberships (team_id, user_id, role, joined_at)
			SELECT id, CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS BIGINT) FROM teams WHERE id = $1 AND closed_at IS NULL
			ON CONFLICT (team_id, user_id) DO UPDATE SET role = excluded.role, joined_at = excluded.joined_at`,
			m.Team.ID, user, m.Role, micros(m.JoinedAt))
		if err != nil {
			return err
		}
	}
	gone := `DELETE FROM memberships WHERE user_id = $1`
	if len(list) > 0 {
		gone += ` AND team_id NOT IN (` + placeholders(2, len(list)) + `)`
	}
	_, err := db.q.ExecContext(ctx, gone, args...)
	return err
}

// OpenTeams are the plans of those of the teams that are not being erased.
func (db *DB) OpenTeams(ctx context.Context, list []ids.Team) (map[ids.Team]string, error) {
	plans := map[ids.Team]string{}
	if len(list) == 0 {
		return plans, nil
	}
	type row struct{ id, plan string }
	found, err := all(ctx, db, func(r *sql.Rows, v *row) error { return r.Scan(&v.id, &v.plan) },
		`SELECT id, plan FROM teams WHERE closed_at IS NULL AND id IN (`+placeholders(1, len(list))+`)`, anys(list)...)
	for _, v := range found {
		plans[ids.Team(v.id)] = v.plan
	}
	return plans, err
}
