package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/retention"
	"github.com/millrace/millrace/internal/upkeep"
)

var _ upkeep.RetentionStore = (*DB)(nil)

func scanPolicy(row scanner, p *retention.Policy, more ...any) error {
	var logs, events, runs, revisions sql.NullInt64
	err := row.Scan(append(more, &logs, &events, &runs, &revisions)...)
	*p = retention.Policy{
		retention.Logs: retention.Days(logs.Int64), retention.Events: retention.Days(events.Int64),
		retention.Runs: retention.Days(runs.Int64), retention.Revisions: retention.Days(revisions.Int64),
	}
	return err
}

// Retention is what a team has chosen.
func (db *DB) Retention(ctx context.Context, team ids.Team) (p retention.Policy, err error) {
	err = scanPolicy(db.q.QueryRowContext(ctx, `SELECT logs, events, runs, revisions FROM team_retention WHERE team_id = $1`, team), &p)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return p, err
}

// SetRetention replaces what a team has chosen.
func (db *DB) SetRetention(ctx context.Context, team ids.Team, p retention.Policy) error {
	days := func(k retention.Kind) any {
		if p[k] == 0 {
			return nil
		}
		return p[k]
	}
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.mustBeOpen(ctx, team); err != nil {
			return err
		}
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO team_retention (team_id, logs, events, runs, revisions) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (team_id) DO UPDATE SET logs = excluded.logs, events = excluded.events, runs = excluded.runs, revisions = excluded.revisions`,
			team, days(retention.Logs), days(retention.Events), days(retention.Runs), days(retention.Revisions))
		return err
	})
}

// TeamPolicies lists what teams have chosen, by team.
func (db *DB) TeamPolicies(ctx context.Context, kind retention.Kind, everyTeam bool, after ids.Team, limit int) ([]upkeep.TeamPolicy, error) {
	join := `JOIN team_retention r ON r.team_id = t.id AND r.` + string(kind) + ` IS NOT NULL`
	if everyTeam {
		join = `LEFT JOIN team_retention r ON r.team_id = t.id`
	}
	return all(ctx, db, func(r *sql.Rows, p *upkeep.TeamPolicy) error { return scanPolicy(r, &p.Policy, (*string)(&p.Team)) },
		`SELECT t.id, r.logs, r.events, r.runs, r.revisions FROM teams t `+join+` WHERE t.id > $1 ORDER BY t.id LIMIT $2 + 0`, after, limit)
}

// Expire deletes some of what a team keeps of a kind since before a time, in
// one small transaction.
func (db *DB) Expire(ctx context.Context, fence int64, kind retention.Kind, team ids.Team, before, now time.Time) (n int, more bool, err error) {
	err = db.Fenced(fence).inTx(ctx, func(tx *DB) error {
		e := &expiring{DB: tx, team: team, before: micros(before), now: micros(now), left: upkeepBatch}
		switch kind {
		case retention.Logs:
			e.left = logsAtOnce
			n, more, err = e.parts(ctx, kind, "logs_deleted_at", e.logs)
		case retention.Events:
			n, more, err = e.parts(ctx, kind, "events_deleted_at", e.events)
		case retention.Runs:
			n, more, err = e.runs(ctx)
		default:
			n, more, err = e.revisions(ctx)
		}
		return err
	})
	return n, more, err
}

const (
	logsAtOnce = 100 // pieces of up to 64 KB
	runsAtOnce = 50
)

// expiring is a transaction that deletes what a team has kept long enough.
type expiring struct {
	*DB
	team        ids.Team
	before, now int64
	left        int      // rows that it may still delete
	pending     []string // the bytes of outputs that are to be deleted
}

// delete runs a statement whose last argument bounds how many rows it deletes,
// and reports whether none is left.
func (e *expiring) delete(ctx context.Context, query string, args ...any) (all bool, err error) {
	n, err := e.changed(ctx, query, append(args, e.left)...)
	e.left -= int(n)
	return e.left > 0, err
}

// endedRun is one whose time may be up.
type endedRun struct {
	id    ids.Run
	ended int64
}

func (e *expiring) ended(ctx context.Context, where string, args ...any) ([]endedRun, error) {
	return all(ctx, e.DB, func(r *sql.Rows, v *endedRun) error { return r.Scan((*string)(&v.id), &v.ended) }, `
		SELECT id, finished_at FROM runs
		WHERE team_id = $1 AND finished_at < $2 AND finished_at IS NOT NULL AND `+where+`
		ORDER BY finished_at LIMIT $3 + 0`, append([]any{e.team, e.before, runsAtOnce}, args...)...)
}

// parts deletes something of the runs that ended longest ago, which stay
// themselves. How far that has come is remembered, so that those are not looked
// at again.
func (e *expiring) parts(ctx context.Context, kind retention.Kind, deletedAt string, remove func(context.Context, ids.Run) (bool, error)) (n int, more bool, err error) {
	var from int64
	err = e.q.QueryRowContext(ctx, `SELECT COALESCE(MAX(until), 0) FROM retention_progress WHERE team_id = $1 AND kind = $2`, e.team, kind).Scan(&from)
	if err != nil {
		return 0, false, err
	}
	list, err := e.ended(ctx, `finished_at >= $4 AND `+deletedAt+` IS NULL`, from)
	if err != nil || len(list) == 0 {
		return 0, false, err
	}
	budget := e.left
	for _, r := range list {
		all, err := remove(ctx, r.id)
		if err != nil || !all {
			return budget - e.left, true, err
		}
		if _, err := e.changed(ctx, `UPDATE runs SET `+deletedAt+` = $1 WHERE id = $2`, e.now, r.id); err != nil {
			return 0, false, err
		}
	}
	_, err = e.changed(ctx, `
		INSERT INTO retention_progress (team_id, kind, until) VALUES ($1, $2, $3) ON CONFLICT (team_id, kind) DO UPDATE SET until = excluded.until`,
		e.team, kind, list[len(list)-1].ended)
	return budget - e.left, len(list) == runsAtOnce, err
}

// logs deletes the log of a run. What lay in objects counts no more.
func (e *expiring) logs(ctx context.Context, id ids.Run) (gone bool, err error) {
	type piece struct {
		size   int64
		object string
	}
	list, err := all(ctx, e.DB, func(r *sql.Rows, p *piece) error { return r.Scan(&p.size, &p.object) }, `
		DELETE FROM run_logs WHERE run_id = $1 AND start IN (SELECT start FROM run_logs WHERE run_id = $1 ORDER BY start LIMIT $2 + 0)
		RETURNING size, object`, id, e.left)
	if err != nil {
		return false, err
	}
	objects := map[string]int64{}
	for _, p := range list {
		if p.object != "" {
			objects[p.object] += p.size
		}
	}
	for key, size := range objects {
		var others int
		if err := e.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM run_logs WHERE object = $1 AND object <> ''`, key).Scan(&others); err != nil {
			return false, err
		}
		if others == 0 {
			err = e.markForDeletion(ctx, e.team, key, size)
		} else {
			_, err = e.addStorage(ctx, e.team, -size, 0)
		}
		if err != nil {
			return false, err
		}
	}
	if e.left -= len(list); e.left == 0 {
		return false, nil
	}
	_, err = e.changed(ctx, `UPDATE runs SET log_size = 0 WHERE id = $1`, id)
	return true, err
}

// events deletes those of a run but for the last, which says how it ended.
func (e *expiring) events(ctx context.Context, id ids.Run) (gone bool, err error) {
	return e.delete(ctx, `
		DELETE FROM run_events WHERE run_id = $1 AND seq IN (
			SELECT seq FROM run_events WHERE run_id = $1 AND seq < (SELECT seq FROM runs WHERE id = $1) ORDER BY seq LIMIT $2 + 0)`, id)
}

// inUse is whether a run that has not ended takes something of a run of the
// team $1.
const inUse = `EXISTS (
	SELECT 1 FROM runs o WHERE o.team_id = $1 AND o.status IN ('queued', 'running')
		AND (o.retry_of = runs.id OR o.inputs LIKE '%/runs/' || runs.id || '/%'))`

// DeleteRun deletes a run of a team that has ended, in small transactions: the
// run itself goes with the last, so that whoever is interrupted asks again. It
// returns the bytes that are to be deleted.
func (db *DB) DeleteRun(ctx context.Context, team ids.Team, id ids.Run, now time.Time) (pending []string, err error) {
	for gone := false; !gone; {
		var some []string
		err := db.inTx(ctx, func(tx *DB) error {
			r, err := tx.lockedRun(ctx, id)
			if err == nil && r.Team != team {
				err = fault.NotFound("no such run")
			}
			if err != nil {
				return err
			}
			var used bool
			if err := tx.q.QueryRowContext(ctx, `SELECT `+inUse+` FROM runs WHERE team_id = $1 AND id = $2`, team, id).Scan(&used); err != nil {
				return err
			}
			switch {
			case !r.Status.Terminal():
				return fault.Conflict("the run has not ended: cancel it first")
			case used:
				return fault.Conflict("a run that has not ended takes something of this one: wait for it, or cancel it")
			}
			e := &expiring{DB: tx, team: team, now: micros(now), left: upkeepBatch}
			gone, err = e.run(ctx, id)
			some = e.pending
			return err
		})
		if err != nil {
			return pending, err
		}
		pending = append(pending, some...)
	}
	return pending, nil
}

// runs deletes those that ended longest ago with all that they made. One stays
// while a run that has not ended takes something of it: its outputs, or what it
// had computed before it was tried again.
func (e *expiring) runs(ctx context.Context) (n int, more bool, err error) {
	list, err := e.ended(ctx, `NOT `+inUse)
	if err != nil {
		return 0, false, err
	}
	for _, r := range list {
		gone, err := e.run(ctx, r.id)
		if err != nil || !gone {
			return n, true, err
		}
		n++
	}
	return n, len(list) == runsAtOnce, nil
}

// run deletes one. What it cost stays in the ledger. If it is too much for one
// transaction, the next goes on with what is left.
func (e *expiring) run(ctx context.Context, id ids.Run) (gone bool, err error) {
	for _, remove := range []func(context.Context, ids.Run) (bool, error){e.outputs, e.logs, e.kept, e.rows} {
		if gone, err = remove(ctx, id); err != nil || !gone {
			return false, err
		}
	}
	return true, nil
}

// kept drops the folders of failed attempts: they would go with the run, and
// their bytes stay.
func (e *expiring) kept(ctx context.Context, id ids.Run) (gone bool, err error) {
	list, err := e.KeptAttempts(ctx, e.team, id)
	for _, k := range list {
		if err := e.dropKept(ctx, k.AttemptKey); err != nil {
			return false, err
		}
	}
	return true, err
}

// rows deletes those of a run. By what its cost is counted stays.
func (e *expiring) rows(ctx context.Context, id ids.Run) (gone bool, err error) {
	_, err = e.changed(ctx, `
		INSERT INTO deleted_runs (run_id, team_id, for_user, tags, deleted_at)
		SELECT id, team_id, for_user, tags, CAST($2 AS BIGINT) FROM runs WHERE id = $1 AND kind = '' AND (tags <> '[]' OR for_user <> '')
		ON CONFLICT (run_id) DO UPDATE SET tags = excluded.tags, deleted_at = excluded.deleted_at`, id, e.now)
	if err != nil {
		return false, err
	}
	for _, query := range []string{
		`DELETE FROM run_events WHERE run_id = $1 AND seq IN (SELECT seq FROM run_events WHERE run_id = $1 LIMIT $2 + 0)`,
		`DELETE FROM attempt_logs WHERE (attempt_id, start) IN (SELECT l.attempt_id, l.start FROM attempt_logs l JOIN attempts a ON a.id = l.attempt_id WHERE a.run_id = $1 LIMIT $2 + 0)`,
		`DELETE FROM attempts WHERE run_id = $1 AND id IN (SELECT id FROM attempts WHERE run_id = $1 LIMIT $2 + 0)`,
		`DELETE FROM run_attempts WHERE run_id = $1 AND (node_id, shard, attempt) IN (SELECT node_id, shard, attempt FROM run_attempts WHERE run_id = $1 LIMIT $2 + 0)`,
		`DELETE FROM reported_tasks WHERE run_id = $1 AND id IN (SELECT id FROM reported_tasks WHERE run_id = $1 LIMIT $2 + 0)`,
		`DELETE FROM reported_nodes WHERE run_id = $1 AND node_id IN (SELECT node_id FROM reported_nodes WHERE run_id = $1 LIMIT $2 + 0)`,
		`DELETE FROM run_nodes WHERE run_id = $1 AND node_id IN (SELECT node_id FROM run_nodes WHERE run_id = $1 LIMIT $2 + 0)`,
		`DELETE FROM run_addresses WHERE run_id = $1 AND url IN (SELECT url FROM run_addresses WHERE run_id = $1 LIMIT $2 + 0)`,
	} {
		if gone, err = e.delete(ctx, query, id); err != nil || !gone {
			return false, err
		}
	}
	size, err := e.runBytes(ctx, id)() // before what was reported of it goes, too
	if err == nil {
		_, err = e.changed(ctx, `DELETE FROM runs WHERE id = $1`, id)
	}
	if err == nil {
		e.left--
		err = e.countDefinitions(ctx, e.team, -size)
	}
	return true, err
}

// deleteCounted deletes rows and returns the storage that they took.
func (e *expiring) deleteCounted(ctx context.Context, query string, args ...any) error {
	sizes, err := all(ctx, e.DB, func(r *sql.Rows, size *int64) error { return r.Scan(size) }, query, args...)
	if err != nil {
		return err
	}
	e.left -= len(sizes)
	var freed int64
	for _, size := range sizes {
		freed += size
	}
	return e.countDefinitions(ctx, e.team, -freed)
}

// outputs deletes what a run made. Bytes that other runs use again stay for
// them.
func (e *expiring) outputs(ctx context.Context, id ids.Run) (gone bool, err error) {
	list, err := all(ctx, e.DB, func(r *sql.Rows, blob *string) error { return r.Scan(blob) }, `
		DELETE FROM files WHERE run_id = $1 AND key IN (SELECT key FROM files WHERE run_id = $1 AND source = 'output' ORDER BY key LIMIT $2 + 0)
		RETURNING blob_key`, id, e.left)
	if err != nil {
		return false, err
	}
	for _, blob := range list {
		pending, err := e.dropBlob(ctx, e.team, blob)
		if err != nil {
			return false, err
		}
		e.pending = append(e.pending, pending...)
	}
	e.left -= len(list)
	return e.left > 0, e.countDefinitions(ctx, e.team, -fileRow*int64(len(list)))
}

// revisions deletes those that were replaced before a time, unless they are
// those of runs that are kept.
func (e *expiring) revisions(ctx context.Context) (n int, more bool, err error) {
	workflows, err := all(ctx, e.DB, func(r *sql.Rows, id *ids.Workflow) error { return r.Scan((*string)(id)) },
		`SELECT id FROM workflows WHERE team_id = $1 AND revision > 1 ORDER BY id`, e.team)
	if err != nil {
		return 0, false, err
	}
	for _, id := range workflows {
		err := e.deleteCounted(ctx, `
			DELETE FROM workflow_revisions WHERE workflow_id = $1 AND revision IN (
				SELECT r.revision FROM workflow_revisions r
				WHERE r.workflow_id = $1
					AND r.revision < (SELECT MAX(n.revision) FROM workflow_revisions n WHERE n.workflow_id = $1 AND n.created_at < $2)
					AND r.revision < (SELECT revision FROM workflows WHERE id = $1)
					AND r.revision NOT IN (SELECT workflow_revision FROM runs WHERE workflow_id = $1)
					AND r.revision <> COALESCE((SELECT MAX(c.revision) FROM workflow_revisions c WHERE c.workflow_id = $1 AND c.confirmed), 0)
				ORDER BY r.revision LIMIT $3 + 0)
			RETURNING `+revisionSize, id, e.before, e.left)
		if err != nil || e.left <= 0 {
			return upkeepBatch - e.left, true, err
		}
	}
	return upkeepBatch - e.left, false, nil
}
