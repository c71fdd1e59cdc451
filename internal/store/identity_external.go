package store

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// AccountByExternalIdentity finds who somebody at another provider is here.
func (db *DB) AccountByExternalIdentity(ctx context.Context, e builtin.ExternalIdentity) (builtin.Account, error) {
	var a builtin.Account
	err := db.q.QueryRowContext(ctx, `
		SELECT u.id, u.name, u.email, u.email_verified_at IS NOT NULL, u.password_hash, u.disabled_at IS NOT NULL
		FROM user_identities i JOIN users u ON u.id = i.user_id
		WHERE i.issuer = $1 AND i.subject = $2`, e.Issuer, e.Subject).
		Scan(&a.ID, &a.Name, &a.Email, &a.EmailVerified, &a.PasswordHash, &a.Disabled)
	return a, db.asFault(err, "account")
}

// LinkExternalIdentity makes somebody at another provider the person with this
// address. Whoever made the account without ever proving the address loses
// everything they could come in by.
func (db *DB) LinkExternalIdentity(ctx context.Context, e builtin.ExternalIdentity, now time.Time) (a builtin.Account, err error) {
	ctx = audit.Without(ctx)
	err = db.inTx(ctx, func(tx *DB) error {
		var id string
		err := tx.q.QueryRowContext(ctx, `SELECT id FROM users WHERE email = $1 `+tx.dialect.forUpdate, e.Email).Scan(&id)
		if err != nil {
			return tx.asFault(err, "account")
		}
		if a, err = tx.Account(ctx, e.Email); err != nil {
			return err
		}
		if !a.EmailVerified {
			if err := tx.removeCredentials(ctx, a.ID, e.Email); err != nil {
				return err
			}
			if err := tx.markVerified(ctx, a.ID, now); err != nil {
				return err
			}
			a.EmailVerified, a.PasswordHash = true, ""
		}
		return tx.insertExternalIdentity(ctx, e, a.ID, now)
	})
	return a, err
}

// removeCredentials leaves an account that nobody can come into, nor its teams by a
// service account.
func (db *DB) removeCredentials(ctx context.Context, user ids.User, email string) error {
	if _, err := db.changed(ctx, `UPDATE users SET password_hash = '' WHERE id = $1`, user); err != nil {
		return err
	}
	for _, table := range []string{"second_factors", "user_identities"} {
		if _, err := db.changed(ctx, `DELETE FROM `+table+` WHERE user_id = $1`, user); err != nil {
			return err
		}
	}
	_, err := db.changed(ctx, `
		DELETE FROM access_tokens WHERE user_id IN (
			SELECT u.id FROM users u JOIN memberships m ON m.team_id = u.service_of WHERE m.user_id = $1 AND m.role = 'owner')`, user)
	if err != nil {
		return err
	}
	return db.endAccessOf(ctx, email)
}

func (db *DB) insertExternalIdentity(ctx context.Context, e builtin.ExternalIdentity, user ids.User, now time.Time) error {
	_, err := db.q.ExecContext(ctx, `INSERT INTO user_identities (issuer, subject, user_id, created_at) VALUES ($1, $2, $3, $4)`,
		e.Issuer, e.Subject, user, micros(now))
	if err = db.asFault(err, "link"); fault.Is(err, fault.KindConflict) {
		return fault.Unavailable("another sign-in is in progress: try again").WithCause(err)
	}
	return err
}
