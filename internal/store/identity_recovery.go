package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// InsertOneTimeToken adds a one-time token in place of others for the same, with the mail that
// contains it.
func (db *DB) InsertOneTimeToken(ctx context.Context, s builtin.OneTimeToken, message *mails.Message, now time.Time) error {
	if s.Purpose == builtin.ForSecondFactor {
		ctx = audit.Without(ctx) // nobody is signed in yet
	}
	return db.inTx(ctx, func(tx *DB) error {
		if _, err := tx.q.ExecContext(ctx, `DELETE FROM slips WHERE user_id = $1 AND purpose = $2`, s.User, s.Purpose); err != nil {
			return err
		}
		_, err := tx.q.ExecContext(ctx, `INSERT INTO slips (token_hash, user_id, purpose, expires_at) VALUES ($1, $2, $3, $4)`,
			s.Hash, s.User, s.Purpose, micros(s.ExpiresAt))
		if err != nil || message == nil {
			return err
		}
		return tx.insertMail(ctx, *message, now)
	})
}

// InsertResetToken adds a one-time token and its mail for whoever has the address. The
// statements are the same, and are committed, whether there is somebody or
// not, so that the time it takes reveals nothing.
func (db *DB) InsertResetToken(ctx context.Context, s builtin.OneTimeToken, message mails.Message, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		const reachable = `FROM users WHERE email = $1 AND disabled_at IS NULL`
		_, err := tx.q.ExecContext(ctx, `DELETE FROM slips WHERE purpose = $2 AND user_id IN (SELECT id `+reachable+`)`, message.To, s.Purpose)
		if err != nil {
			return err
		}
		n, err := tx.changed(ctx, `
			INSERT INTO slips (token_hash, user_id, purpose, expires_at)
			SELECT CAST($2 AS TEXT), id, CAST($3 AS TEXT), CAST($4 AS BIGINT) `+reachable, message.To, s.Hash, s.Purpose, micros(s.ExpiresAt))
		if err != nil {
			return err
		}
		message.Void = n == 0
		return tx.insertMail(ctx, message, now)
	})
}

// OneTimeToken finds one that still works.
func (db *DB) OneTimeToken(ctx context.Context, hash string, purpose builtin.Purpose, now time.Time) (builtin.OneTimeToken, error) {
	s := builtin.OneTimeToken{Hash: hash, Purpose: purpose}
	var expires int64
	err := db.q.QueryRowContext(ctx, `
		SELECT user_id, expires_at FROM slips WHERE token_hash = $1 AND purpose = $2 AND expires_at > $3`, hash, purpose, micros(now)).
		Scan(&s.User, &expires)
	s.ExpiresAt = fromMicros(expires)
	return s, db.asFault(err, "link")
}

// useOneTimeToken deletes a one-time token that still works.
func (db *DB) useOneTimeToken(ctx context.Context, hash string, purpose builtin.Purpose, now time.Time) (ids.User, error) {
	var user ids.User
	err := db.q.QueryRowContext(ctx, `
		DELETE FROM slips WHERE token_hash = $1 AND purpose = $2 AND expires_at > $3 RETURNING user_id`, hash, purpose, micros(now)).Scan(&user)
	actor(ctx, user)
	return user, db.asFault(err, "link")
}

// markVerified notes that an address is a person's own. Credits that waited
// for that come at once.
func (db *DB) markVerified(ctx context.Context, user ids.User, now time.Time) error {
	_, err := db.q.ExecContext(ctx, `UPDATE users SET email_verified_at = $1 WHERE id = $2 AND email_verified_at IS NULL`, micros(now), user)
	if err != nil {
		return err
	}
	waiting, err := all(ctx, db, func(r *sql.Rows, t *ids.Team) error { return r.Scan(t) }, `
		SELECT id FROM teams WHERE credits_wait_for = $1 ORDER BY id`, user)
	if err != nil {
		return err
	}
	for _, team := range waiting {
		if err := db.grantWithheld(ctx, team, now); err != nil {
			return err
		}
	}
	return nil
}

// VerifyEmail notes that a person has read the mail with the one-time token.
func (db *DB) VerifyEmail(ctx context.Context, tokenHash string, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		user, err := tx.useOneTimeToken(ctx, tokenHash, builtin.ForVerifying, now)
		if err != nil {
			return err
		}
		return tx.markVerified(ctx, user, now)
	})
}

// ResetPassword sets the password of who has the one-time token, whose address that
// proves, and ends all they are signed in with.
func (db *DB) ResetPassword(ctx context.Context, tokenHash, passwordHash string, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		user, err := tx.useOneTimeToken(ctx, tokenHash, builtin.ForResetting, now)
		if err != nil {
			return err
		}
		var email string
		err = tx.q.QueryRowContext(ctx, `UPDATE users SET password_hash = $1 WHERE id = $2 RETURNING email`, passwordHash, user).Scan(&email)
		if err != nil {
			return err
		}
		if err := tx.markVerified(ctx, user, now); err != nil {
			return err
		}
		return tx.endAccessOf(ctx, email)
	})
}

// ChangePassword replaces a password and ends all sessions but one.
func (db *DB) ChangePassword(ctx context.Context, user ids.User, passwordHash string, keep ids.Session) error {
	return db.inTx(ctx, func(tx *DB) error {
		if _, err := tx.q.ExecContext(ctx, `UPDATE users SET password_hash = $1 WHERE id = $2`, passwordHash, user); err != nil {
			return err
		}
		if _, err := tx.q.ExecContext(ctx, `DELETE FROM slips WHERE user_id = $1 AND purpose <> $2`, user, builtin.ForVerifying); err != nil {
			return err
		}
		_, err := tx.q.ExecContext(ctx, `DELETE FROM sessions WHERE user_id = $1 AND id <> $2`, user, keep)
		return err
	})
}

// Complete uses a one-time token up and adds the session it was for.
func (db *DB) Complete(ctx context.Context, tokenHash string, s builtin.Session) error {
	actor(ctx, s.User)
	return db.inTx(ctx, func(tx *DB) error {
		if _, err := tx.useOneTimeToken(ctx, tokenHash, builtin.ForSecondFactor, s.CreatedAt); err != nil {
			return err
		}
		return tx.InsertSession(ctx, s)
	})
}

func factorPlace(user ids.User) string { return "second_factors/" + string(user) }

// PutSecondFactor replaces a second factor that is not on.
func (db *DB) PutSecondFactor(ctx context.Context, f builtin.SecondFactor) error {
	n, err := db.changed(ctx, `
		INSERT INTO second_factors (user_id, sealed) VALUES ($1, $2)
		ON CONFLICT (user_id) DO UPDATE SET sealed = excluded.sealed, last_step = 0 WHERE NOT second_factors.enabled`,
		f.User, db.sealer.seal(factorPlace(f.User), f.Secret))
	if err == nil && n == 0 {
		return fault.Conflict("two-factor authentication is already on: turn it off first").WithCode("already_enabled")
	}
	return err
}

// SecondFactor is a person's, on or not.
func (db *DB) SecondFactor(ctx context.Context, user ids.User) (builtin.SecondFactor, error) {
	f := builtin.SecondFactor{User: user}
	var sealed []byte
	err := db.q.QueryRowContext(ctx, `SELECT sealed, enabled FROM second_factors WHERE user_id = $1`, user).Scan(&sealed, &f.Enabled)
	if err != nil {
		return f, db.asFault(err, "second factor")
	}
	f.Secret, err = db.sealer.open(factorPlace(user), sealed)
	return f, err
}

// EnableSecondFactor turns one on, with its recovery codes.
func (db *DB) EnableSecondFactor(ctx context.Context, user ids.User, step int64, recovery []string) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `UPDATE second_factors SET enabled = TRUE, last_step = $1 WHERE user_id = $2 AND NOT enabled`, step, user)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Conflict("two-factor authentication is already on: turn it off first").WithCode("already_enabled")
		}
		for _, hash := range recovery {
			if _, err := tx.q.ExecContext(ctx, `INSERT INTO recovery_codes (user_id, code_hash) VALUES ($1, $2)`, user, hash); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteSecondFactor turns it off, with its recovery codes.
func (db *DB) DeleteSecondFactor(ctx context.Context, user ids.User) error {
	_, err := db.changed(ctx, `DELETE FROM second_factors WHERE user_id = $1`, user)
	return err
}

// UseStep reports whether a code of this step is the first of it or a later
// one.
func (db *DB) UseStep(ctx context.Context, user ids.User, step int64) (bool, error) {
	ctx = audit.Without(ctx)
	n, err := db.changed(ctx, `UPDATE second_factors SET last_step = $1 WHERE user_id = $2 AND last_step < $1`, step, user)
	return n > 0, err
}

// UseRecoveryCode reports whether the code was there, and takes it away.
func (db *DB) UseRecoveryCode(ctx context.Context, user ids.User, hash string) (bool, error) {
	ctx = audit.Without(ctx)
	n, err := db.changed(ctx, `DELETE FROM recovery_codes WHERE user_id = $1 AND code_hash = $2`, user, hash)
	return n > 0, err
}
