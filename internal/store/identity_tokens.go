package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// InsertAPIToken adds an API token unless the person has the most already.
func (db *DB) InsertAPIToken(ctx context.Context, t builtin.APIToken, most int) error {
	audit.On(ctx, t.ID)
	inTeam(ctx, t.Team.ID)
	return db.inTx(ctx, func(tx *DB) error { return tx.insertAPIToken(ctx, t, most) })
}

func (db *DB) insertAPIToken(ctx context.Context, t builtin.APIToken, most int) error {
	if err := db.lock(ctx, "api tokens "+string(t.User)); err != nil {
		return err
	}
	var n int
	err := db.q.QueryRowContext(ctx, `
		SELECT COUNT(*) FROM access_tokens WHERE user_id = $1 AND grant_id IS NULL AND expires_at > $2`, t.User, micros(t.CreatedAt)).Scan(&n)
	if err != nil {
		return err
	}
	if n >= most {
		return fault.Conflict("there are %d API tokens: revoke one first", n).WithCode("too_many_tokens")
	}
	_, err = db.q.ExecContext(ctx, `
		INSERT INTO access_tokens (id, token_hash, user_id, team_id, role, scopes, name, hint, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		t.ID, t.Hash, t.User, t.Team.ID, t.Role, t.Scopes.String(), t.Name, t.Hint, micros(t.CreatedAt), micros(t.ExpiresAt))
	return err
}

const apiTokenRow = `
	SELECT a.id, a.user_id, t.id, t.name, a.role, a.scopes, a.name, a.hint, a.created_at, a.expires_at, a.last_used_at, a.last_used_from
	FROM access_tokens a JOIN teams t ON t.id = a.team_id
	WHERE a.grant_id IS NULL AND a.expires_at > $1 `

func scanAPIToken(row scanner, t *builtin.APIToken) error {
	var created, expires int64
	var used sql.NullInt64
	var scopes string
	err := row.Scan(&t.ID, &t.User, &t.Team.ID, &t.Team.Name, &t.Role, &scopes, &t.Name, &t.Hint, &created, &expires, &used, &t.LastUsedFrom)
	t.Scopes, t.CreatedAt, t.ExpiresAt, t.LastUsedAt = access.ParseScopes(scopes), fromMicros(created), fromMicros(expires), fromNull(used)
	return err
}

// APITokens are a person's live ones, newest first.
func (db *DB) APITokens(ctx context.Context, user ids.User, now time.Time) ([]builtin.APIToken, error) {
	return all(ctx, db, func(r *sql.Rows, t *builtin.APIToken) error { return scanAPIToken(r, t) },
		apiTokenRow+`AND a.user_id = $2 ORDER BY a.id DESC`, micros(now), user)
}

// DeleteAPIToken ends an API token of this person.
func (db *DB) DeleteAPIToken(ctx context.Context, user ids.User, id string) error {
	n, err := db.changed(ctx, `DELETE FROM access_tokens WHERE id = $1 AND user_id = $2 AND grant_id IS NULL`, id, user)
	if err == nil && n == 0 {
		return fault.NotFound("no such API token")
	}
	return err
}

// TouchAPIToken notes that a token is in use, and from where.
func (db *DB) TouchAPIToken(ctx context.Context, id, address string, now time.Time) error {
	_, err := db.changed(ctx, `UPDATE access_tokens SET last_used_at = $1, last_used_from = $2 WHERE id = $3`, micros(now), address, id)
	if err == nil {
		_, err = db.changed(ctx, `UPDATE users SET seen_at = $1 WHERE id = (SELECT user_id FROM access_tokens WHERE id = $2)`, micros(now), id)
	}
	return err
}

// RotateAPIToken adds a token like an old one, which ends by a time. One that is
// replaced again, because its new one was lost, has a new one of its whole life.
func (db *DB) RotateAPIToken(ctx context.Context, old string, t builtin.APIToken, until time.Time, most int) (builtin.APIToken, error) {
	err := db.inTx(ctx, func(tx *DB) error {
		var was builtin.APIToken
		err := scanAPIToken(tx.q.QueryRowContext(ctx, apiTokenRow+`AND a.id = $2 AND a.user_id = $3`, micros(t.CreatedAt), old, t.User), &was)
		if err != nil {
			return tx.asFault(err, "API token")
		}
		t.Team, t.Role, t.Scopes, t.Name = was.Team, was.Role, was.Scopes, was.Name
		var life int64
		err = tx.q.QueryRowContext(ctx, `SELECT CASE WHEN life > 0 THEN life ELSE expires_at - created_at END FROM access_tokens WHERE id = $1`, old).Scan(&life)
		if err != nil {
			return err
		}
		t.ExpiresAt = t.CreatedAt.Add(time.Duration(life) * time.Microsecond)
		_, err = tx.changed(ctx, `UPDATE access_tokens SET expires_at = $1, life = $2 WHERE id = $3 AND expires_at > $1`, micros(until), life, old)
		if err != nil {
			return err
		}
		return tx.insertAPIToken(ctx, t, most)
	})
	return t, err
}

// emailOf is the address of a user u, empty for who has none: the column is
// unique, and holds their id then.
const emailOf = `COALESCE(NULLIF(u.email, u.id), '')`

// InsertServiceAccount adds a service account to its team.
func (db *DB) InsertServiceAccount(ctx context.Context, a builtin.ServiceAccount, most int) error {
	audit.On(ctx, a.ID)
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "members of "+string(a.Team)); err != nil {
			return err
		}
		if err := tx.mustBeOpen(ctx, a.Team); err != nil {
			return err
		}
		var n int
		if err := tx.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM users WHERE service_of = $1 AND disabled_at IS NULL`, a.Team).Scan(&n); err != nil {
			return err
		}
		if n >= most {
			return fault.Conflict("a team has at most %d service accounts: delete one first", most).WithCode("too_many_service_accounts")
		}
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO users (id, email, name, password_hash, created_at, service_of, made_by) VALUES ($1, $1, $2, '', $3, $4, $5)`,
			a.ID, a.Name, micros(a.CreatedAt), a.Team, a.MadeBy)
		if err != nil {
			return err
		}
		return tx.insertMember(ctx, a.Team, a.ID, a.Role, a.CreatedAt)
	})
}

// ServiceAccounts are a team's, newest first, with their live tokens.
func (db *DB) ServiceAccounts(ctx context.Context, team ids.Team, now time.Time) ([]builtin.ServiceAccount, error) {
	list, err := all(ctx, db, func(r *sql.Rows, a *builtin.ServiceAccount) error {
		var created int64
		err := r.Scan(&a.ID, &a.Team, &a.Name, &a.Role, &a.MadeBy, &created)
		a.CreatedAt, a.Tokens = fromMicros(created), []builtin.APIToken{}
		return err
	}, `
		SELECT u.id, u.service_of, u.name, m.role, u.made_by, u.created_at
		FROM users u JOIN memberships m ON m.user_id = u.id AND m.team_id = u.service_of
		WHERE u.service_of = $1 AND u.disabled_at IS NULL ORDER BY u.id DESC`, team)
	if err != nil {
		return nil, err
	}
	tokens, err := all(ctx, db, func(r *sql.Rows, t *builtin.APIToken) error { return scanAPIToken(r, t) },
		apiTokenRow+`AND a.user_id IN (SELECT id FROM users WHERE service_of = $2) ORDER BY a.id DESC`, micros(now), team)
	for _, t := range tokens {
		for i := range list {
			if list[i].ID == t.User {
				list[i].Tokens = append(list[i].Tokens, t)
			}
		}
	}
	return list, err
}

// DeleteServiceAccount ends a service account; its row stays for its name.
func (db *DB) DeleteServiceAccount(ctx context.Context, team ids.Team, id ids.User, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `UPDATE users SET disabled_at = $1 WHERE id = $2 AND service_of = $3 AND disabled_at IS NULL`, micros(now), id, team)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.NotFound("no such service account")
		}
		for _, table := range []string{"access_tokens", "memberships"} {
			if _, err := tx.q.ExecContext(ctx, `DELETE FROM `+table+` WHERE user_id = $1`, id); err != nil {
				return err
			}
		}
		return nil
	})
}
