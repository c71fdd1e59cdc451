package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// InsertInvitation adds an invitation with its mail. Who is in the team or
// has an open invitation is a conflict.
func (db *DB) InsertInvitation(ctx context.Context, in builtin.SentInvitation) error {
	if p := audit.From(ctx); p != nil && in.OfList {
		own := *p
		ctx = audit.With(ctx, &own)
	}
	audit.On(ctx, in.ID)
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.record(ctx, in.Once, in.CreatedAt); err != nil {
			return err
		}
		if err := tx.refuseMember(ctx, in.Team.ID, in.Email); err != nil {
			return err
		}
		// One that ran out makes room for the next.
		_, err := tx.q.ExecContext(ctx, `
			UPDATE invitations SET ended_as = $1, ended_at = expires_at
			WHERE team_id = $2 AND email = $3 AND ended_as = '' AND expires_at <= $4`,
			identity.Expired, in.Team.ID, in.Email, micros(in.CreatedAt))
		if err != nil {
			return err
		}
		if err := tx.insertInvitation(ctx, in); err != nil || in.Mail == nil {
			return err
		}
		if err := tx.notifyOfInvitation(ctx, in.Team.ID, in.Email, "You are invited to "+mails.QuotedName(in.Team.Name), in.CreatedAt); err != nil {
			return err
		}
		if err := tx.insertMail(ctx, *in.Mail, in.SentAt); err != nil || len(in.Limits) == 0 {
			return err
		}
		return tx.holdMail(ctx, in.Mail.ID, in.Limits)
	})
}

func (db *DB) refuseMember(ctx context.Context, team ids.Team, email string) error {
	var n int
	err := db.q.QueryRowContext(ctx, `
		SELECT COUNT(*)
		FROM memberships m JOIN users u ON u.id = m.user_id
		WHERE m.team_id = $1 AND u.email = $2`, team, email).Scan(&n)
	if err == nil && n > 0 {
		return fault.Conflict("%s belongs to the team already", email).WithCode("already_member")
	}
	return err
}

func (db *DB) insertInvitation(ctx context.Context, in builtin.SentInvitation) error {
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO invitations (id, team_id, email, role, token_hash, link_hash, mailed_at, invited_by, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, NULLIF($6, ''), $7, $8, $9, $10)`,
		in.ID, in.Team.ID, in.Email, in.Role, in.TokenHash, in.LinkHash, mailedAt(in), in.InvitedBy, micros(in.CreatedAt), micros(in.ExpiresAt))
	if err = db.asFault(err, "invitation"); fault.Is(err, fault.KindConflict) {
		return fault.Conflict("%s has an open invitation to this team: resend or revoke that one", in.Email).WithCode("already_invited").WithCause(err)
	}
	return err
}

func mailedAt(in builtin.SentInvitation) any {
	if in.Mail == nil {
		return nil
	}
	return micros(in.SentAt)
}

// RenewInvitation gives an open invitation another token and mail.
func (db *DB) RenewInvitation(ctx context.Context, in builtin.SentInvitation) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `
			UPDATE invitations SET token_hash = $1, link_hash = $2, mailed_at = $3, expires_at = $4
			WHERE team_id = $5 AND id = $6 AND ended_as = ''`,
			in.TokenHash, in.LinkHash, mailedAt(in), micros(in.ExpiresAt), in.Team.ID, in.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Conflict("this invitation is not open any more")
		}
		if err := tx.dropHeldMail(ctx, in.ID); err != nil || in.Mail == nil {
			return err
		}
		return tx.insertMail(ctx, *in.Mail, in.SentAt)
	})
}

// RevokeInvitation ends an open invitation.
func (db *DB) RevokeInvitation(ctx context.Context, team ids.Team, id ids.Invitation, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `
			UPDATE invitations SET ended_as = $1, ended_at = $2
			WHERE team_id = $3 AND id = $4 AND ended_as = ''`, identity.Revoked, micros(now), team, id)
		if err != nil {
			return err
		}
		if n > 0 {
			return tx.dropHeldMail(ctx, id)
		}
		inv, err := tx.Invitation(ctx, team, id)
		if err == nil && inv.EndedAs == identity.Accepted {
			return fault.Conflict("this invitation has been accepted already: remove the member instead").WithCode("accepted")
		}
		return err // one that ended before is revoked enough
	})
}

const invitation = `
	SELECT i.id, i.email, i.role, i.invited_by, u.name, i.created_at, i.expires_at, i.ended_as, i.mailed_at IS NOT NULL, i.token_hash,
	       t.id, t.name, t.plan
	FROM invitations i
	JOIN users u ON u.id = i.invited_by
	JOIN teams t ON t.id = i.team_id AND t.closed_at IS NULL
	WHERE `

type scanner interface{ Scan(into ...any) error }

// scanInvitation reads one that was found by this token, or by none.
func scanInvitation(row scanner, i *identity.Invitation, tokenHash string) error {
	var created, expires int64
	var mailed string
	err := row.Scan(&i.ID, &i.Email, &i.Role, &i.InvitedBy, &i.InvitedByName, &created, &expires, &i.EndedAs, &i.Mailed, &mailed,
		&i.Team.ID, &i.Team.Name, &i.Team.Plan)
	i.Proves = i.Mailed && mailed == tokenHash
	i.CreatedAt, i.ExpiresAt = fromMicros(created), fromMicros(expires)
	return err
}

// Invitation is one invitation of a team.
func (db *DB) Invitation(ctx context.Context, team ids.Team, id ids.Invitation) (identity.Invitation, error) {
	var i identity.Invitation
	err := scanInvitation(db.q.QueryRowContext(ctx, invitation+`i.team_id = $1 AND i.id = $2`, team, id), &i, "")
	return i, db.asFault(err, "invitation")
}

// InvitationByToken is the invitation that a link belongs to, mailed or
// copied.
func (db *DB) InvitationByToken(ctx context.Context, tokenHash string) (identity.Invitation, error) {
	var i identity.Invitation
	err := scanInvitation(db.q.QueryRowContext(ctx, invitation+`(i.token_hash = $1 OR i.link_hash = $1)`, tokenHash), &i, tokenHash)
	return i, db.asFault(err, "invitation")
}

// PendingInvitations are a team's open ones, newest first.
func (db *DB) PendingInvitations(ctx context.Context, team ids.Team, now time.Time) ([]identity.Invitation, error) {
	return all(ctx, db, func(r *sql.Rows, i *identity.Invitation) error { return scanInvitation(r, i, "") },
		invitation+`i.team_id = $1 AND i.ended_as = '' AND i.expires_at > $2 ORDER BY i.id DESC`, team, micros(now))
}

// AcceptInvitation makes the user a member if the invitation is still open, and the
// team the active one of their session and of those to come. Following the link in
// the mail proves that the address is theirs.
func (db *DB) AcceptInvitation(ctx context.Context, inv identity.Invitation, user ids.User, session ids.Session, now time.Time) error {
	inTeam(ctx, inv.Team.ID)
	audit.On(ctx, user)
	return db.inTx(ctx, func(tx *DB) error {
		// Whoever deletes their account counts who is in their team.
		if err := tx.lock(ctx, "members of "+string(inv.Team.ID)); err != nil {
			return err
		}
		if err := tx.mustBeOpen(ctx, inv.Team.ID); err != nil {
			return err
		}
		n, err := tx.changed(ctx, `
			UPDATE invitations SET ended_as = $1, ended_at = $2
			WHERE id = $3 AND ended_as = '' AND expires_at > $2`, identity.Accepted, micros(now), inv.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Conflict("this invitation is not open any more").WithCode("accepted")
		}
		if err := tx.dropHeldMail(ctx, inv.ID); err != nil {
			return err
		}
		_, err = tx.q.ExecContext(ctx, `
			INSERT INTO memberships (team_id, user_id, role, joined_at)
			SELECT team_id, $1, role, CAST($2 AS BIGINT) FROM invitations WHERE id = $3
			ON CONFLICT (team_id, user_id) DO NOTHING`, user, micros(now), inv.ID)
		if err != nil {
			return err
		}
		// Who was in the team by a group stays in it without.
		_, err = tx.changed(ctx, `UPDATE mapped_members SET kept_role = $1 WHERE team_id = $2 AND user_id = $3 AND kept_role = ''`, inv.Role, inv.Team.ID, user)
		if err != nil {
			return err
		}
		if _, err := tx.changed(ctx, `UPDATE sessions SET active_team = $1 WHERE id = $2`, inv.Team.ID, session); err != nil {
			return err
		}
		if err := tx.beginIn(ctx, user, inv.Team.ID); err != nil || !inv.Proves {
			return err
		}
		return tx.markVerified(ctx, user, now)
	})
}
