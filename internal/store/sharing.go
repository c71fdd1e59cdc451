package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/sharing"
)

var (
	_ sharing.Store     = (*DB)(nil)
	_ sharing.RoomStore = (*DB)(nil)
)

// InsertInvite adds a share link.
func (db *DB) InsertInvite(ctx context.Context, i sharing.Invite, tokenHash string, r *access.IdempotencyRecord) error {
	audit.On(ctx, i.ID)
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.record(ctx, r, i.CreatedAt); err != nil {
			return err
		}
		// Whoever deletes the workflow revokes this link too, or finds it gone.
		if err := tx.lockWorkflow(ctx, i.Team, i.Workflow); err != nil {
			return err
		}
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO share_invites (id, team_id, workflow_id, role, token_hash, token_hint, expires_hours, expires_at, max_uses, max_credits, allow_secrets, allow_results, created_by, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			i.ID, i.Team, i.Workflow, i.Role, tokenHash, i.TokenHint, i.Hours, micros(i.ExpiresAt), i.MaxUses, i.MaxCredits, i.AllowSecrets, i.AllowResults, i.CreatedBy, micros(i.CreatedAt))
		return err
	})
}

// lockWorkflow keeps a team's workflow from going before the transaction ends.
func (db *DB) lockWorkflow(ctx context.Context, team ids.Team, id ids.Workflow) error {
	var n int
	err := db.q.QueryRowContext(ctx, `SELECT 1 FROM workflows WHERE team_id = $1 AND id = $2 `+db.dialect.forUpdate, team, id).Scan(&n)
	return db.asFault(err, "workflow")
}

const inviteRow = `
	SELECT i.id, i.team_id, i.workflow_id, i.role, i.expires_hours, i.expires_at, i.max_uses, i.uses, i.max_credits, i.allow_secrets, i.allow_results, i.token_hint,
	       i.created_by, u.name, i.created_at, i.last_used_at, i.revoked_at
	FROM share_invites i JOIN users u ON u.id = i.created_by `

func scanInvite(row scanner, i *sharing.Invite) error {
	var expires, created int64
	var used, revoked sql.NullInt64
	err := row.Scan((*string)(&i.ID), (*string)(&i.Team), (*string)(&i.Workflow), (*string)(&i.Role), &i.Hours, &expires, &i.MaxUses, &i.Uses,
		(*int64)(&i.MaxCredits), &i.AllowSecrets, &i.AllowResults, &i.TokenHint, (*string)(&i.CreatedBy), &i.CreatedByName, &created, &used, &revoked)
	i.ExpiresAt, i.CreatedAt, i.LastUsedAt, i.RevokedAt = fromMicros(expires), fromMicros(created), fromNull(used), fromNull(revoked)
	return err
}

// Invites are a workflow's share links, newest first.
func (db *DB) Invites(ctx context.Context, team ids.Team, id ids.Workflow) ([]sharing.Invite, error) {
	var n int
	if err := db.q.QueryRowContext(ctx, `SELECT 1 FROM workflows WHERE team_id = $1 AND id = $2`, team, id).Scan(&n); err != nil {
		return nil, db.asFault(err, "workflow")
	}
	return all(ctx, db, func(r *sql.Rows, i *sharing.Invite) error { return scanInvite(r, i) },
		inviteRow+`WHERE i.team_id = $1 AND i.workflow_id = $2 ORDER BY i.id DESC`, team, id)
}

// InvitesOfTeam are a team's share links before one of them, newest first.
func (db *DB) InvitesOfTeam(ctx context.Context, team ids.Team, before ids.Invite, limit int) ([]sharing.Invite, error) {
	before = orAfterAll(db, before)
	return all(ctx, db, func(r *sql.Rows, i *sharing.Invite) error { return scanInvite(r, i) },
		inviteRow+`WHERE i.team_id = $1 AND i.id < $2 ORDER BY i.id DESC LIMIT $3 + 0`, team, before, limit)
}

// RevokeInvite ends a share link, and the links to results that its guests got.
func (db *DB) RevokeInvite(ctx context.Context, team ids.Team, id ids.Invite, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `UPDATE share_invites SET revoked_at = COALESCE(revoked_at, $1) WHERE team_id = $2 AND id = $3`, micros(now), team, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.NotFound("no such share link")
		}
		_, err = tx.changed(ctx, `UPDATE result_links SET revoked_at = $1 WHERE invite_id = $2 AND revoked_at IS NULL`, micros(now), id)
		return err
	})
}

// revokeInvitesOf ends every link to a workflow, and the links to results that their guests got.
func (db *DB) revokeInvitesOf(ctx context.Context, id ids.Workflow, now time.Time) error {
	if _, err := db.changed(ctx, `UPDATE share_invites SET revoked_at = $1 WHERE workflow_id = $2 AND revoked_at IS NULL`, micros(now), id); err != nil {
		return err
	}
	_, err := db.changed(ctx, `
		UPDATE result_links SET revoked_at = $1
		WHERE revoked_at IS NULL AND invite_id IN (SELECT id FROM share_invites WHERE workflow_id = $2)`, micros(now), id)
	return err
}

// Join lets somebody in by a link.
func (db *DB) Join(ctx context.Context, j sharing.Joining, refuse func(sharing.Invite, bool) error) (i sharing.Invite, g sharing.Guest, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		var id string
		err := tx.q.QueryRowContext(ctx, `SELECT id FROM share_invites WHERE token_hash = $1 `+tx.dialect.forUpdate, j.TokenHash).Scan(&id)
		if err != nil {
			return tx.asFault(err, "share link")
		}
		if err := scanInvite(tx.q.QueryRowContext(ctx, inviteRow+`WHERE i.id = $1`, id), &i); err != nil {
			return err
		}
		g = sharing.Guest{}
		err = tx.q.QueryRowContext(ctx, `SELECT id, name FROM guests WHERE invite_id = $1 AND visitor = $2`, id, j.Visitor).Scan(&g.ID, &g.Name)
		back := err == nil
		if err = tx.asFault(err, "guest"); err != nil && !fault.Is(err, fault.KindNotFound) {
			return err
		}
		if err := refuse(i, back); err != nil {
			return err
		}
		join := tx.comeBack
		if !back {
			join = func(ctx context.Context, g *sharing.Guest, j sharing.Joining) error { return tx.letIn(ctx, &i, g, j) }
		}
		if err := join(ctx, &g, j); err != nil {
			return err
		}
		if d := audit.From(ctx); d != nil {
			d.Actor, d.Target = audit.Actor{Type: "guest", ID: g.ID, Name: g.Name}, string(i.ID)
			inTeam(ctx, i.Team)
		}
		return nil
	})
	return i, g, err
}

// letIn counts a use and adds the guest. The row of the link is ours.
func (db *DB) letIn(ctx context.Context, i *sharing.Invite, g *sharing.Guest, j sharing.Joining) error {
	i.Uses, i.LastUsedAt = i.Uses+1, j.Now
	*g = j.Guest
	if g.Name == "" {
		g.Name = fmt.Sprintf("Guest %d", i.Uses)
	}
	if _, err := db.changed(ctx, `UPDATE share_invites SET uses = uses + 1, last_used_at = $1 WHERE id = $2`, micros(j.Now), i.ID); err != nil {
		return err
	}
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO guests (id, invite_id, visitor, name, token_hash, joined_at, seen_at)
		VALUES ($1, $2, $3, $4, $5, $6, $6)`, g.ID, i.ID, j.Visitor, g.Name, j.RunToken(g.ID), micros(j.Now))
	return err
}

func (db *DB) comeBack(ctx context.Context, g *sharing.Guest, j sharing.Joining) error {
	if j.Guest.Name != "" {
		g.Name = j.Guest.Name
	}
	_, err := db.changed(ctx, `UPDATE guests SET name = $1, seen_at = $2, token_hash = $3 WHERE id = $4`,
		g.Name, micros(j.Now), j.RunToken(g.ID), g.ID) // another one, if the key it is derived from is
	return err
}

// Bearer finds whose token has this hash: a link's own, or a guest's.
func (db *DB) Bearer(ctx context.Context, tokenHash string) (i sharing.Invite, g *sharing.Guest, err error) {
	err = scanInvite(db.q.QueryRowContext(ctx, inviteRow+`WHERE i.token_hash = $1`, tokenHash), &i)
	if err = db.asFault(err, "token"); !fault.Is(err, fault.KindNotFound) {
		return i, nil, err
	}
	g = &sharing.Guest{}
	var invite string
	err = db.q.QueryRowContext(ctx, `SELECT id, name, invite_id FROM guests WHERE token_hash = $1`, tokenHash).Scan(&g.ID, &g.Name, &invite)
	if err != nil {
		return i, nil, db.asFault(err, "token")
	}
	return i, g, scanInvite(db.q.QueryRowContext(ctx, inviteRow+`WHERE i.id = $1`, invite), &i)
}

// OpenInvites are those of the links that are neither revoked nor expired.
func (db *DB) OpenInvites(ctx context.Context, list []ids.Invite, now time.Time) (map[ids.Invite]bool, error) {
	open := make(map[ids.Invite]bool, len(list))
	if len(list) == 0 {
		return open, nil
	}
	found, err := all(ctx, db, func(r *sql.Rows, id *ids.Invite) error { return r.Scan((*string)(id)) },
		`SELECT id FROM share_invites WHERE revoked_at IS NULL AND expires_at > $1 AND id IN (`+placeholders(2, len(list))+`)`,
		append([]any{micros(now)}, anys(list)...)...)
	for _, id := range found {
		open[id] = true
	}
	return open, err
}

// placeholders are n of them, counted from first.
func placeholders(first, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", first+i)
	}
	return b.String()
}

func anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// Epoch is that of a workflow's live document, or the one it would begin with,
// and whether the workflow is edited elsewhere.
func (db *DB) Epoch(ctx context.Context, team ids.Team, id ids.Workflow) (epoch int64, readOnly bool, err error) {
	err = db.q.QueryRowContext(ctx, `
		SELECT COALESCE(d.epoch, 1), EXISTS (SELECT 1 FROM followed_repositories f WHERE f.workflow_id = w.id)
		FROM workflows w LEFT JOIN documents d ON d.workflow_id = w.id
		WHERE w.team_id = $1 AND w.id = $2`, team, id).Scan(&epoch, &readOnly)
	return epoch, readOnly, db.asFault(err, "workflow")
}

// withinInvite refuses what would go beyond what a link's guests may spend, or
// comes by a link that has ended meanwhile. The team's balance is ours.
func (db *DB) withinInvite(ctx context.Context, id string, amount credits.Amount, now time.Time) error {
	var invite, status string
	err := db.q.QueryRowContext(ctx, `SELECT invite_id, status FROM runs WHERE id = $1`, id).Scan(&invite, &status)
	if err = db.asFault(err, "run"); fault.Is(err, fault.KindNotFound) || err == nil && invite == "" {
		return nil // held for something else, or for a member
	}
	if err != nil {
		return err
	}
	var most, expires, created int64
	var team string
	var revoked sql.NullInt64
	err = db.q.QueryRowContext(ctx, `SELECT team_id, max_credits, created_at, expires_at, revoked_at FROM share_invites WHERE id = $1 `+db.dialect.forUpdate, invite).
		Scan(&team, &most, &created, &expires, &revoked)
	if err != nil {
		return db.asFault(err, "share link")
	}
	if starting := status == string(lifecycle.Queued); starting && (revoked.Valid || expires <= micros(now)) {
		return fault.Unauthenticated("the link this token belongs to has ended").WithCode(string(sharing.Revoked))
	}
	if most == 0 {
		return nil
	}
	var spent, deleted int64
	err = db.q.QueryRowContext(ctx, `
		SELECT COALESCE(SUM(CASE WHEN r.status IN ('queued', 'running') THEN COALESCE(h.amount, 0) ELSE r.credits_used END), 0)
		FROM runs r LEFT JOIN holds h ON h.id = r.id
		WHERE r.invite_id = $1`, invite).Scan(&spent)
	if err != nil {
		return err
	}
	err = db.q.QueryRowContext(ctx, `
		SELECT COALESCE(-SUM(l.monthly + l.top_up), 0) FROM ledger l
		WHERE l.team_id = $1 AND l.created_at >= $2 AND l.type = 'run' AND l.actor_type = 'guest'
			AND (l.actor_id = $3 OR l.actor_id IN (SELECT id FROM guests WHERE invite_id = $3))
			AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = l.run_id)`, team, created, invite).Scan(&deleted)
	if err == nil && spent+deleted+int64(amount) > most {
		return fault.Payment("the guests of this link may not spend more: it is limited to %s credits", credits.Amount(most)).WithCode(billing.InviteLimit)
	}
	return err
}

// FilesNotUsed are those of the keys that no earlier run of the workflow was
// given.
func (db *DB) FilesNotUsed(ctx context.Context, team ids.Team, id ids.Workflow, keys []string) (left []string, err error) {
	used := map[string]bool{}
	err = inChunks(keys, func(some []string) error {
		found, err := all(ctx, db, func(r *sql.Rows, key *string) error { return r.Scan(key) },
			`SELECT key FROM workflow_inputs WHERE team_id = $1 AND workflow_id = $2 AND key IN (`+placeholders(3, len(some))+`)`, append([]any{team, id}, anys(some)...)...)
		for _, key := range found {
			used[key] = true
		}
		return err
	})
	for _, key := range keys {
		if !used[key] {
			left = append(left, key)
		}
	}
	return left, err
}

// noteInputs remembers the files that a run was given, for guests of its workflow. A guest
// was given none that were not remembered before.
func (db *DB) noteInputs(ctx context.Context, r runs.Run) error {
	if r.Invite != "" {
		return nil
	}
	var inputs map[string][]string
	if err := json.Unmarshal(r.Inputs, &inputs); err != nil {
		return err
	}
	keys := slices.DeleteFunc(slices.Concat(slices.Collect(maps.Values(inputs))...), addresses.Is)
	slices.Sort(keys) // all lock the rows in one order
	var size int64
	err := inChunks(slices.Compact(keys), func(some []string) error {
		rows := make([]any, 0, 3*len(some))
		for _, key := range some {
			rows = append(rows, r.Workflow, key, r.Team)
		}
		added, err := all(ctx, db, func(r *sql.Rows, n *int64) error { return r.Scan(n) },
			`INSERT INTO workflow_inputs (workflow_id, key, team_id) VALUES `+db.dialect.rowPlaceholders(len(some), 3)+` ON CONFLICT (workflow_id, key) DO NOTHING RETURNING octet_length(key)`, rows...)
		for _, n := range added {
			size += n
		}
		return err
	})
	if err != nil {
		return err
	}
	return db.countDefinitions(ctx, r.Team, size)
}
