package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// Identity is what the built-in identity system sees of the database.
func (db *DB) Identity() builtin.Stores {
	return builtin.Stores{
		Accounts: db, First: db, External: db, Groups: db, Sessions: db, Tokens: db, Teams: db, Invitations: db, Consents: db, Grants: db,
		Devices: db, OneTimeTokens: db, SecondFactors: db, APITokens: db, Programs: db, Keys: db, Limits: db,
	}
}

// SignUp adds an account with its own team and first session, and takes up
// the invitation it names.
func (db *DB) SignUp(ctx context.Context, a builtin.NewAccount) error {
	actor(ctx, a.ID)
	inTeam(ctx, a.Team.ID)
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.insertUser(ctx, a); err != nil {
			return err
		}
		if err := tx.takeFirst(ctx, a); err != nil {
			return err
		}
		if err := tx.InsertTeam(ctx, builtin.NewTeam{Team: a.Team, Owner: a.ID, WaitVerified: a.WaitVerified, CreatedAt: a.CreatedAt}); err != nil {
			return err
		}
		if a.External != nil {
			if err := tx.insertExternalIdentity(ctx, *a.External, a.ID, a.CreatedAt); err != nil {
				return err
			}
		}
		if a.Invitation != "" {
			if err := tx.followInvitation(ctx, a); err != nil {
				return err
			}
		}
		if a.OneTimeToken != nil {
			if err := tx.InsertOneTimeToken(ctx, *a.OneTimeToken, &a.Mail, a.CreatedAt); err != nil {
				return err
			}
		}
		if a.Session == nil {
			return nil
		}
		return tx.InsertSession(ctx, *a.Session)
	})
}

func (db *DB) insertUser(ctx context.Context, a builtin.NewAccount) error {
	var verified time.Time
	if a.EmailVerified {
		verified = a.CreatedAt
	}
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO users (id, email, name, password_hash, email_verified_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		a.ID, a.Email, a.Name, a.PasswordHash, microsOrNull(verified), micros(a.CreatedAt))
	return db.asFault(err, "account")
}

// followInvitation accepts an invitation while signing up: it must be open
// and for this very address.
func (db *DB) followInvitation(ctx context.Context, a builtin.NewAccount) error {
	inv, err := db.InvitationByToken(ctx, a.Invitation)
	if err != nil {
		return err
	}
	if inv.Email != a.Email {
		return fault.NotFound("no such invitation")
	}
	// Their own team is the one they joined first.
	if err := db.AcceptInvitation(ctx, inv, a.ID, "", a.CreatedAt.Add(time.Microsecond)); err != nil {
		return fault.NotFound("no such invitation").WithCause(err)
	}
	return nil
}

// Account finds a person by email address.
func (db *DB) Account(ctx context.Context, email string) (builtin.Account, error) {
	var a builtin.Account
	err := db.q.QueryRowContext(ctx, `
		SELECT id, name, email, email_verified_at IS NOT NULL, password_hash, disabled_at IS NOT NULL
		FROM users
		WHERE email = $1`, email).
		Scan(&a.ID, &a.Name, &a.Email, &a.EmailVerified, &a.PasswordHash, &a.Disabled)
	return a, db.asFault(err, "account")
}

// SetPassword replaces a person's password and ends all they are signed in
// with.
func (db *DB) SetPassword(ctx context.Context, email, hash string) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `UPDATE users SET password_hash = $1 WHERE email = $2 AND service_of IS NULL AND deleted_at IS NULL`, hash, email)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.NotFound("no account has the email address %s", email)
		}
		return tx.endAccessOf(ctx, email)
	})
}

// endAccessOf takes away everything a person is signed in with, apps and API
// tokens included.
func (db *DB) endAccessOf(ctx context.Context, email string) error {
	for _, table := range []string{"sessions", "oauth_consents", "oauth_devices", "access_tokens", "slips"} {
		if _, err := db.changed(ctx, `DELETE FROM `+table+` WHERE user_id = (SELECT id FROM users WHERE email = $1)`, email); err != nil {
			return err
		}
	}
	return nil
}

// InsertSession adds a live session.
func (db *DB) InsertSession(ctx context.Context, s builtin.Session) error {
	actor(ctx, s.User)
	_, err := db.changed(ctx, `
		INSERT INTO sessions (id, user_id, secret_hash, origin, user_agent, address, created_at, last_seen_at, expires_at, active_team)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, (SELECT active_team FROM users WHERE id = $2))`,
		s.ID, s.User, s.SecretHash, s.Origin, s.UserAgent, s.Address,
		micros(s.CreatedAt), micros(s.LastSeenAt), micros(s.ExpiresAt))
	if err == nil {
		err = db.seen(ctx, s.User, s.LastSeenAt)
	}
	return err
}

// seen notes that somebody was there.
func (db *DB) seen(ctx context.Context, user ids.User, at time.Time) error {
	_, err := db.changed(audit.Without(ctx), `UPDATE users SET seen_at = $1 WHERE id = $2`, micros(at), user)
	return err
}

// A session, its person and all their teams in one look: this runs on every
// request.
const presence = `
	SELECT s.id, s.active_team, '', '', '', u.id, u.name, u.email, u.email_verified_at IS NOT NULL,
	       t.id, t.name, t.plan, m.role, m.joined_at
	FROM sessions s
	JOIN users u ON u.id = s.user_id
	LEFT JOIN memberships m ON m.user_id = u.id
	LEFT JOIN teams t ON t.id = m.team_id AND t.closed_at IS NULL
	WHERE s.expires_at > $2 AND u.disabled_at IS NULL AND `

// PresenceBySecret finds who a session cookie belongs to.
func (db *DB) PresenceBySecret(ctx context.Context, secretHash string, now time.Time) (identity.Presence, error) {
	return db.presence(ctx, presence+`s.secret_hash = $1 ORDER BY m.joined_at, m.team_id`, secretHash, now)
}

// PresenceBySession finds who a session belongs to.
func (db *DB) PresenceBySession(ctx context.Context, id ids.Session, now time.Time) (identity.Presence, error) {
	return db.presence(ctx, presence+`s.id = $1 ORDER BY m.joined_at, m.team_id`, string(id), now)
}

func (db *DB) presence(ctx context.Context, query, key string, now time.Time) (identity.Presence, error) {
	rows, err := db.q.QueryContext(ctx, query, key, micros(now))
	if err != nil {
		return identity.Presence{}, err
	}
	defer rows.Close()
	var p identity.Presence
	for rows.Next() {
		var team, name, plan, role sql.NullString
		var joined sql.NullInt64
		var scopes string
		err := rows.Scan((*string)(&p.Session), (*string)(&p.Active), &p.Grant, (*string)(&p.Most), &scopes, (*string)(&p.User.ID), &p.User.Name, &p.User.Email, &p.User.EmailVerified,
			&team, &name, &plan, &role, &joined)
		if err != nil {
			return p, err
		}
		p.Scopes = access.ParseScopes(scopes)
		if team.Valid { // not of nobody's team, nor of one that is closed
			p.Memberships = append(p.Memberships, identity.Membership{
				Team: identity.Team{ID: ids.Team(team.String), Name: name.String, Plan: plan.String},
				Role: access.Role(role.String), JoinedAt: fromMicros(joined.Int64),
			})
		}
	}
	if err := rows.Err(); err != nil {
		return p, err
	}
	if p.User.ID == "" {
		return p, fault.NotFound("no such session")
	}
	return p, nil
}

// TouchSession notes that a session is in use.
func (db *DB) TouchSession(ctx context.Context, id ids.Session, now time.Time) error {
	ctx = audit.Without(ctx)
	_, err := db.changed(ctx, `UPDATE sessions SET last_seen_at = $1 WHERE id = $2`, micros(now), id)
	if err == nil {
		_, err = db.changed(ctx, `UPDATE users SET seen_at = $1 WHERE id = (SELECT user_id FROM sessions WHERE id = $2)`, micros(now), id)
	}
	return err
}

// Sessions are a person's live sessions, newest first.
func (db *DB) Sessions(ctx context.Context, user ids.User, now time.Time) ([]builtin.Session, error) {
	return all(ctx, db, func(r *sql.Rows, s *builtin.Session) error {
		var created, seen, expires int64
		err := r.Scan(&s.ID, &s.User, &s.Origin, &s.UserAgent, &s.Address, &created, &seen, &expires)
		s.CreatedAt, s.LastSeenAt, s.ExpiresAt = fromMicros(created), fromMicros(seen), fromMicros(expires)
		return err
	}, `
		SELECT id, user_id, origin, user_agent, address, created_at, last_seen_at, expires_at
		FROM sessions
		WHERE user_id = $1 AND expires_at > $2
		ORDER BY id DESC`, user, micros(now))
}

// DeleteSession ends a session of this person.
func (db *DB) DeleteSession(ctx context.Context, user ids.User, id ids.Session) error {
	n, err := db.changed(ctx, `DELETE FROM sessions WHERE id = $1 AND user_id = $2`, id, user)
	if err == nil && n == 0 {
		return fault.NotFound("no such session")
	}
	return err
}
