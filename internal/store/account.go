package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

var (
	_ account.Store  = (*DB)(nil)
	_ account.People = (*DB)(nil)
)

// mustBeOpen refuses work for a team that is being erased. It stays open until
// the transaction ends.
func (db *DB) mustBeOpen(ctx context.Context, team ids.Team) error {
	_, err := db.openTeam(ctx, team)
	return err
}

// mayStartRuns is mustBeOpen for a run: it also refuses those of a team that the
// operator has suspended.
func (db *DB) mayStartRuns(ctx context.Context, team ids.Team) error {
	suspended, err := db.openTeam(ctx, team)
	if err == nil && suspended {
		err = fault.Forbidden("the operator of this installation has suspended the team: it starts no runs until that is lifted").WithCode(runs.TeamSuspended)
	}
	return err
}

func (db *DB) openTeam(ctx context.Context, team ids.Team) (suspended bool, err error) {
	var open bool
	err = db.q.QueryRowContext(ctx, `SELECT closed_at IS NULL, suspended_at IS NOT NULL FROM teams WHERE id = $1 `+db.dialect.forShare, team).Scan(&open, &suspended)
	if err = db.asFault(err, "team"); fault.Is(err, fault.KindNotFound) || err == nil && !open {
		return false, fault.Forbidden("the team is being erased").WithCode("not_a_member")
	}
	return suspended, err
}

// CloseTeam shuts everybody out at once. From here on the team is only erased.
func (db *DB) CloseTeam(ctx context.Context, team ids.Team, l account.Lifetimes, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `UPDATE teams SET closed_at = $1 WHERE id = $2 AND closed_at IS NULL`, micros(now), team)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.NotFound("no such team")
		}
		var uploads int
		if err := tx.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM reservations WHERE team_id = $1`, team).Scan(&uploads); err != nil {
			return err
		}
		sweep := now.Add(l.UploadLink)
		until := sweep
		if uploads > 0 { // one may have begun, and go on
			until = until.Add(l.Transfer)
		}
		_, err = tx.q.ExecContext(ctx, `
			INSERT INTO erasures (team_id, counts, closed_at, lease_until, sweep_at, sweep_until) VALUES ($1, '{}', $2, 0, $3, $4)`,
			team, micros(now), micros(sweep), micros(until))
		if err != nil {
			return err
		}
		return tx.revokeAll(ctx, team, now)
	})
}

// revokeAll ends every access to a team that needs no membership.
func (db *DB) revokeAll(ctx context.Context, team ids.Team, now time.Time) error {
	for _, s := range []string{
		`DELETE FROM reservations WHERE team_id = $1`,
		`DELETE FROM outbox WHERE team_id = $1`,
		`DELETE FROM access_tokens WHERE team_id = $1`,
		`UPDATE sessions SET active_team = '' WHERE active_team = $1`,
		`UPDATE users SET active_team = '' WHERE active_team = $1`,
	} {
		if _, err := db.changed(ctx, s, team); err != nil {
			return err
		}
	}
	if _, err := db.changed(ctx, `UPDATE result_links SET revoked_at = $1 WHERE team_id = $2 AND revoked_at IS NULL`, micros(now), team); err != nil {
		return err
	}
	_, err := db.changed(ctx, `UPDATE share_invites SET revoked_at = $1 WHERE team_id = $2 AND revoked_at IS NULL`, micros(now), team)
	return err
}

const erasureRow = `SELECT team_id, counts, erased_at IS NOT NULL, closed_at, sweep_until FROM erasures WHERE `

func (db *DB) erasure(ctx context.Context, where string, args ...any) (e account.Erasure, err error) {
	var counts string
	var closed, until int64
	err = db.q.QueryRowContext(ctx, erasureRow+where, args...).Scan(&e.Team, &counts, &e.Erased, &closed, &until)
	if err != nil {
		return e, db.asFault(err, "erasure")
	}
	e.ClosedAt, e.SweepUntil = fromMicros(closed), fromMicros(until)
	return e, json.Unmarshal([]byte(counts), &e.Counts)
}

// GoneTeams are those of the teams that are closed or were erased.
func (db *DB) GoneTeams(ctx context.Context, list []ids.Team) (gone []ids.Team, err error) {
	for some := range slices.Chunk(list, headsAtOnce) {
		open, err := db.OpenTeams(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, team := range some {
			if _, ok := open[team]; !ok {
				gone = append(gone, team)
			}
		}
	}
	return gone, nil
}

// Erasure is how far erasing a team has come.
func (db *DB) Erasure(ctx context.Context, team ids.Team) (account.Erasure, error) {
	return db.erasure(ctx, `team_id = $1`, team)
}

// ClaimErasure takes an erasure that nobody is at and whose time has come.
func (db *DB) ClaimErasure(ctx context.Context, now, until time.Time) (e account.Erasure, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		e, err = tx.erasure(ctx, `lease_until <= $1 AND (erased_at IS NULL OR sweep_at <= $1) ORDER BY lease_until, team_id LIMIT 1 `+tx.dialect.skipLocked, micros(now))
		if err != nil {
			return err
		}
		_, err := tx.changed(ctx, `UPDATE erasures SET lease_until = $1 WHERE team_id = $2`, micros(until), e.Team)
		return err
	})
	return e, err
}

// ReleaseErasures gives back what a dead server was at. Only the one owner of
// an embedded database calls it.
func (db *DB) ReleaseErasures(ctx context.Context) error {
	_, err := db.changed(ctx, `UPDATE erasures SET lease_until = 0 WHERE lease_until > 0`)
	return err
}

// MarkErased makes the record a tombstone.
func (db *DB) MarkErased(ctx context.Context, team ids.Team, now, sweepAt time.Time) error {
	_, err := db.changed(ctx, `
		UPDATE erasures SET erased_at = COALESCE(erased_at, $1), sweep_at = $2, lease_until = 0 WHERE team_id = $3`,
		micros(now), micros(sweepAt), team)
	return err
}

// DeleteTombstone removes the tombstone.
func (db *DB) DeleteTombstone(ctx context.Context, team ids.Team) error {
	_, err := db.changed(ctx, `DELETE FROM erasures WHERE team_id = $1`, team)
	return err
}

// CancelRuns calls off runs of a team that have not ended.
func (db *DB) CancelRuns(ctx context.Context, team ids.Team, limit int, now time.Time) ([]ids.Run, error) {
	open, err := all(ctx, db, func(r *sql.Rows, id *ids.Run) error { return r.Scan((*string)(id)) },
		`SELECT id FROM runs WHERE team_id = $1 AND status IN ('queued', 'running') ORDER BY id LIMIT $2 + 0`, team, limit)
	if err != nil {
		return nil, err
	}
	for _, id := range open {
		if _, err := db.CancelRun(ctx, team, id, runs.Starter{Name: "erasing the team"}, now); err != nil {
			return nil, err
		}
	}
	return open, nil
}

// RunsAmong are those of the runs that are a team's.
func (db *DB) RunsAmong(ctx context.Context, team ids.Team, list []ids.Run) ([]ids.Run, error) {
	return all(ctx, db, func(r *sql.Rows, id *ids.Run) error { return r.Scan((*string)(id)) },
		`SELECT id FROM runs WHERE team_id = $1 AND id IN (`+placeholders(2, len(list))+`)`, append([]any{team}, anys(list)...)...)
}
