package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// InsertClient registers a client.
func (db *DB) InsertClient(ctx context.Context, c builtin.Client) error {
	_, err := db.changed(ctx, `INSERT INTO oauth_clients (id, name, redirect_uris, created_at) VALUES ($1, $2, $3, $4)`,
		c.ID, c.Name, strings.Join(c.RedirectURIs, "\n"), micros(c.CreatedAt))
	return db.asFault(err, "client")
}

// DeleteClient forgets a client; all it was ever given ends.
func (db *DB) DeleteClient(ctx context.Context, id string) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `DELETE FROM oauth_clients WHERE id = $1`, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.NotFound("no client is registered as %s", id)
		}
		for _, table := range []string{"oauth_consents", "oauth_devices"} {
			if _, err := tx.q.ExecContext(ctx, `DELETE FROM `+table+` WHERE client_id = $1`, id); err != nil {
				return err
			}
		}
		return nil
	})
}

const client = `SELECT id, name, redirect_uris, created_at FROM oauth_clients `

func scanClient(row scanner, c *builtin.Client) error {
	var uris string
	var created int64
	err := row.Scan(&c.ID, &c.Name, &uris, &created)
	c.RedirectURIs, c.CreatedAt = strings.Split(uris, "\n"), fromMicros(created)
	return err
}

// Client finds a registered client.
func (db *DB) Client(ctx context.Context, id string) (builtin.Client, error) {
	var c builtin.Client
	err := scanClient(db.q.QueryRowContext(ctx, client+`WHERE id = $1`, id), &c)
	return c, db.asFault(err, "client")
}

// Clients are all registered ones, by name.
func (db *DB) Clients(ctx context.Context) ([]builtin.Client, error) {
	return all(ctx, db, func(r *sql.Rows, c *builtin.Client) error { return scanClient(r, c) }, client+`ORDER BY id`)
}

// Consented reports whether a person has allowed a client all they may do.
func (db *DB) Consented(ctx context.Context, user ids.User, client string) (bool, error) {
	var n int
	err := db.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM oauth_consents WHERE user_id = $1 AND client_id = $2 AND scopes = ''`, user, client).Scan(&n)
	return n > 0, err
}

func (db *DB) consent(ctx context.Context, user ids.User, client string, scopes access.ScopeSet, now time.Time) error {
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO oauth_consents (user_id, client_id, scopes, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (user_id, client_id) DO UPDATE SET scopes = CASE WHEN oauth_consents.scopes = '' THEN '' ELSE excluded.scopes END`,
		user, client, scopes.String(), micros(now))
	return err
}

// InsertCode adds a code and the consent it rests on.
func (db *DB) InsertCode(ctx context.Context, c builtin.Code, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.consent(ctx, c.User, c.Client, c.Scopes, now); err != nil {
			return err
		}
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO oauth_codes (code_hash, user_id, client_id, redirect_uri, challenge, scopes, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			c.Hash, c.User, c.Client, c.RedirectURI, c.Challenge, c.Scopes.String(), micros(c.ExpiresAt))
		return err
	})
}

// RedeemCode opens a grant for a code that lives and fits; one that was
// redeemed before ends its grant.
func (db *DB) RedeemCode(ctx context.Context, hash string, fits func(builtin.Code) error, t builtin.NewTokens) error {
	replayed := false
	err := db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "oauth code "+hash); err != nil {
			return err
		}
		c := builtin.Code{Hash: hash}
		var gave, scopes string
		var expires int64
		err := tx.q.QueryRowContext(ctx, `
			SELECT user_id, client_id, redirect_uri, challenge, scopes, grant_id, expires_at FROM oauth_codes WHERE code_hash = $1`, hash).
			Scan(&c.User, &c.Client, &c.RedirectURI, &c.Challenge, &scopes, &gave, &expires)
		if err != nil {
			return tx.asFault(err, "code")
		}
		if replayed = gave != ""; replayed {
			return tx.deleteGrant(ctx, gave)
		}
		if expires <= micros(t.Now) {
			return fault.NotFound("no such code")
		}
		c.Scopes = access.ParseScopes(scopes)
		if err := fits(c); err != nil {
			return err
		}
		t.Scopes = c.Scopes
		if err := tx.openGrant(ctx, c.User, c.Client, t); err != nil {
			return err
		}
		_, err = tx.q.ExecContext(ctx, `UPDATE oauth_codes SET grant_id = $1 WHERE code_hash = $2`, t.Grant, hash)
		return err
	})
	return orReplayed(replayed, err)
}

func orReplayed(replayed bool, err error) error {
	if err == nil && replayed {
		return fault.NotFound("this was used before")
	}
	return err
}

func (db *DB) deleteGrant(ctx context.Context, id string) error {
	_, err := db.q.ExecContext(ctx, `DELETE FROM oauth_grants WHERE id = $1`, id)
	return err
}

// openGrant adds a grant with its first tokens.
func (db *DB) openGrant(ctx context.Context, user ids.User, client string, t builtin.NewTokens) error {
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO oauth_grants (id, user_id, client_id, scopes, created_at, last_used_at, expires_at) VALUES ($1, $2, $3, $4, $5, $5, $6)`,
		t.Grant, user, client, t.Scopes.String(), micros(t.Now), micros(t.GrantUntil))
	if err != nil {
		return err
	}
	return db.insertTokens(ctx, user, t)
}

func (db *DB) insertTokens(ctx context.Context, user ids.User, t builtin.NewTokens) error {
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO access_tokens (id, token_hash, user_id, grant_id, scopes, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		t.AccessID, t.AccessHash, user, t.Grant, t.Scopes.String(), micros(t.Now), micros(t.AccessUntil))
	if err != nil {
		return err
	}
	_, err = db.q.ExecContext(ctx, `INSERT INTO oauth_refresh_tokens (token_hash, grant_id) VALUES ($1, $2)`, t.RefreshHash, t.Grant)
	return err
}

// Rotate replaces a grant's tokens; a refresh token that was used before ends
// its grant. The grant keeps its scopes, whatever the access token gets of them.
func (db *DB) Rotate(ctx context.Context, hash, client string, narrowed func(granted access.ScopeSet) (access.ScopeSet, error), t builtin.NewTokens) error {
	replayed := false
	err := db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "oauth refresh "+hash); err != nil {
			return err
		}
		var user ids.User
		var scopes string
		var used bool
		err := tx.q.QueryRowContext(ctx, `
			SELECT g.id, g.user_id, g.scopes, r.used_at IS NOT NULL
			FROM oauth_refresh_tokens r
			JOIN oauth_grants g ON g.id = r.grant_id
			JOIN users u ON u.id = g.user_id
			WHERE r.token_hash = $1 AND g.client_id = $2 AND g.expires_at > $3 AND u.disabled_at IS NULL`, hash, client, micros(t.Now)).
			Scan(&t.Grant, &user, &scopes, &used)
		if err != nil {
			return tx.asFault(err, "refresh token")
		}
		if replayed = used; replayed {
			return tx.deleteGrant(ctx, t.Grant)
		}
		if _, err := tx.q.ExecContext(ctx, `UPDATE oauth_refresh_tokens SET used_at = $1 WHERE token_hash = $2`, micros(t.Now), hash); err != nil {
			return err
		}
		_, err = tx.q.ExecContext(ctx, `UPDATE oauth_grants SET last_used_at = $1, expires_at = $2 WHERE id = $3`,
			micros(t.Now), micros(t.GrantUntil), t.Grant)
		if err != nil {
			return err
		}
		if t.Scopes, err = narrowed(access.ParseScopes(scopes)); err != nil {
			return err
		}
		return tx.insertTokens(ctx, user, t)
	})
	return orReplayed(replayed, err)
}

// EndGrant ends the grant of an access or refresh token, or an API token.
func (db *DB) EndGrant(ctx context.Context, hash, client string) error {
	return db.inTx(ctx, func(tx *DB) error {
		_, err := tx.q.ExecContext(ctx, `
			DELETE FROM oauth_grants
			WHERE ($2 = '' OR client_id = $2) AND id IN (
				SELECT grant_id FROM access_tokens WHERE token_hash = $1
				UNION ALL SELECT grant_id FROM oauth_refresh_tokens WHERE token_hash = $1)`, hash, client)
		if err != nil {
			return err
		}
		_, err = tx.q.ExecContext(ctx, `DELETE FROM access_tokens WHERE token_hash = $1 AND grant_id IS NULL`, hash)
		return err
	})
}

// Apps are the clients that a person has allowed, newest first.
func (db *DB) Apps(ctx context.Context, user ids.User, now time.Time) ([]builtin.App, error) {
	return all(ctx, db, func(r *sql.Rows, a *builtin.App) error {
		var allowed int64
		var used sql.NullInt64
		err := r.Scan(&a.Client.ID, &a.Client.Name, &allowed, &a.Grants, &used)
		a.AllowedAt = fromMicros(allowed)
		if used.Valid {
			a.LastUsedAt = fromMicros(used.Int64)
		}
		return err
	}, `
		SELECT c.client_id, COALESCE(MAX(k.name), ''), c.created_at, COUNT(g.id), MAX(g.last_used_at)
		FROM oauth_consents c
		LEFT JOIN oauth_clients k ON k.id = c.client_id
		LEFT JOIN oauth_grants g ON g.user_id = c.user_id AND g.client_id = c.client_id AND g.expires_at > $2
		WHERE c.user_id = $1
		GROUP BY c.client_id, c.created_at
		ORDER BY c.created_at DESC, c.client_id`, user, micros(now))
}

// DeleteConsent takes back what a person allowed a client, with all it gave.
func (db *DB) DeleteConsent(ctx context.Context, user ids.User, client string) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `DELETE FROM oauth_consents WHERE user_id = $1 AND client_id = $2`, user, client)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.NotFound("no such app")
		}
		_, err = tx.q.ExecContext(ctx, `DELETE FROM oauth_devices WHERE user_id = $1 AND client_id = $2`, user, client)
		return err
	})
}

// An API token reaches its one team, the others all.
const tokenPresence = `
	SELECT '', '', COALESCE(a.grant_id, a.id), a.role, a.scopes, u.id, u.name, ` + emailOf + `, u.email_verified_at IS NOT NULL,
	       t.id, t.name, t.plan, m.role, m.joined_at
	FROM access_tokens a
	JOIN users u ON u.id = a.user_id
	LEFT JOIN memberships m ON m.user_id = u.id AND (a.team_id IS NULL OR a.team_id = m.team_id)
	LEFT JOIN teams t ON t.id = m.team_id AND t.closed_at IS NULL
	WHERE a.token_hash = $1 AND a.expires_at > $2 AND u.disabled_at IS NULL
	ORDER BY m.joined_at, m.team_id`

// PresenceByAccess finds who a live access token belongs to.
func (db *DB) PresenceByAccess(ctx context.Context, hash string, now time.Time) (identity.Presence, error) {
	return db.presence(ctx, tokenPresence, hash, now)
}

const grantPresence = `
	SELECT '', '', a.id, a.role, a.scopes, u.id, u.name, ` + emailOf + `, u.email_verified_at IS NOT NULL,
	       t.id, t.name, t.plan, m.role, m.joined_at
	FROM (
		SELECT id, user_id, expires_at, '' AS role, scopes, NULL AS team_id FROM oauth_grants WHERE id = $1
		UNION ALL SELECT id, user_id, expires_at, role, scopes, team_id FROM access_tokens WHERE id = $1 AND grant_id IS NULL
	) a
	JOIN users u ON u.id = a.user_id
	LEFT JOIN memberships m ON m.user_id = u.id AND (a.team_id IS NULL OR a.team_id = m.team_id)
	LEFT JOIN teams t ON t.id = m.team_id AND t.closed_at IS NULL
	WHERE a.expires_at > $2 AND u.disabled_at IS NULL
	ORDER BY m.joined_at, m.team_id`

// PresenceByGrant finds who a live grant or API token belongs to.
func (db *DB) PresenceByGrant(ctx context.Context, grant string, now time.Time) (identity.Presence, error) {
	return db.presence(ctx, grantPresence, grant, now)
}
