package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/sharing"
)

var _ sharing.ResultStore = (*DB)(nil)

// InsertResultLink adds a link to the results of a team's run.
func (db *DB) InsertResultLink(ctx context.Context, l sharing.ResultLink, tokenHash string, r *access.IdempotencyRecord) error {
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.record(ctx, r, l.CreatedAt); err != nil {
			return err
		}
		if err := tx.mustBeOpen(ctx, l.Team); err != nil { // whoever closes it revokes this link, too
			return err
		}
		var n int
		if err := tx.q.QueryRowContext(ctx, `SELECT 1 FROM runs WHERE team_id = $1 AND id = $2`, l.Team, l.Run).Scan(&n); err != nil {
			return tx.asFault(err, "run")
		}
		return tx.insertResultLink(ctx, l, tokenHash)
	})
}

func (db *DB) insertResultLink(ctx context.Context, l sharing.ResultLink, tokenHash string) error {
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO result_links (id, team_id, run_id, token_hash, token_hint, expires_hours, expires_at, parameters, allow_copy, created_by, created_at, invite_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		l.ID, l.Team, l.Run, tokenHash, l.TokenHint, l.Hours, micros(l.ExpiresAt), tagsText(l.Parameters), l.AllowCopy, l.CreatedBy, micros(l.CreatedAt), l.Invite)
	return err
}

// insertGuestResults adds the link to the results of a run that a guest starts, in the name of
// who made the share link. That row is locked by the hold for the run: whoever revokes it
// revokes this link, too.
func (db *DB) insertGuestResults(ctx context.Context, r runs.Run) error {
	if r.ResultLink == nil {
		return nil
	}
	l := sharing.ResultLink{
		ID: r.ResultLink.ID, Team: r.Team, Run: r.ID, Hours: r.ResultLink.Hours, ExpiresAt: r.ResultLink.ExpiresAt, TokenHint: r.ResultLink.TokenHint,
		CreatedAt: r.CreatedAt, Invite: r.Invite,
	}
	err := db.q.QueryRowContext(ctx, `SELECT created_by FROM share_invites WHERE id = $1 AND allow_results`, r.Invite).Scan((*string)(&l.CreatedBy))
	if err != nil {
		return db.asFault(err, "share link with results")
	}
	if err := db.insertResultLink(ctx, l, r.ResultLink.TokenHash); err != nil {
		return err
	}
	return db.alsoOnRecord(ctx, "result_link.created", string(l.ID))
}

const resultLink = `
	SELECT l.id, l.team_id, l.run_id, l.expires_hours, l.expires_at, l.parameters, l.allow_copy, l.token_hint, l.views, l.created_by, u.name, l.created_at,
	       l.last_used_at, l.revoked_at, l.invite_id
	FROM result_links l JOIN users u ON u.id = l.created_by `

func scanResultLink(row scanner, l *sharing.ResultLink) error {
	var expires, created int64
	var used, revoked sql.NullInt64
	err := row.Scan((*string)(&l.ID), (*string)(&l.Team), (*string)(&l.Run), &l.Hours, &expires, (*tagList)(&l.Parameters), &l.AllowCopy, &l.TokenHint, &l.Views,
		(*string)(&l.CreatedBy), &l.CreatedByName, &created, &used, &revoked, (*string)(&l.Invite))
	l.ExpiresAt, l.CreatedAt, l.LastUsedAt, l.RevokedAt = fromMicros(expires), fromMicros(created), fromNull(used), fromNull(revoked)
	return err
}

// ResultLinks are those of a run, newest first.
func (db *DB) ResultLinks(ctx context.Context, team ids.Team, run ids.Run) ([]sharing.ResultLink, error) {
	return all(ctx, db, func(r *sql.Rows, l *sharing.ResultLink) error { return scanResultLink(r, l) },
		resultLink+`WHERE l.team_id = $1 AND l.run_id = $2 ORDER BY l.id DESC LIMIT 1000`, team, run)
}

// ResultLinksOfTeam are a team's before one of them, newest first.
func (db *DB) ResultLinksOfTeam(ctx context.Context, team ids.Team, before ids.ResultLink, limit int) ([]sharing.ResultLink, error) {
	before = orAfterAll(db, before)
	return all(ctx, db, func(r *sql.Rows, l *sharing.ResultLink) error { return scanResultLink(r, l) },
		resultLink+`WHERE l.team_id = $1 AND l.id < $2 ORDER BY l.id DESC LIMIT $3 + 0`, team, before, limit)
}

// RevokeResultLink ends a link.
func (db *DB) RevokeResultLink(ctx context.Context, team ids.Team, run ids.Run, id ids.ResultLink, now time.Time) error {
	n, err := db.changed(ctx, `UPDATE result_links SET revoked_at = COALESCE(revoked_at, $1) WHERE team_id = $2 AND run_id = $3 AND id = $4`,
		micros(now), team, run, id)
	if err == nil && n == 0 {
		return fault.NotFound("no such result link")
	}
	return err
}

// OpenResultLink finds a link by the hash of its token, and counts a view of
// one that is open.
func (db *DB) OpenResultLink(ctx context.Context, tokenHash string, now time.Time) (l sharing.ResultLink, err error) {
	_, err = db.changed(ctx, `
		UPDATE result_links SET views = views + 1, last_used_at = $1 WHERE token_hash = $2 AND revoked_at IS NULL AND expires_at > $1`,
		micros(now), tokenHash)
	if err != nil {
		return l, err
	}
	return db.ResultLinkOf(ctx, tokenHash)
}

// ResultLinkOf finds a link by the hash of its token.
func (db *DB) ResultLinkOf(ctx context.Context, tokenHash string) (l sharing.ResultLink, err error) {
	err = scanResultLink(db.q.QueryRowContext(ctx, resultLink+`WHERE l.token_hash = $1`, tokenHash), &l)
	return l, db.asFault(err, "link to results")
}
