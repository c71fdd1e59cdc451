package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
)

// ClaimRuns hands queued runs to a worker that has room for them, fair between
// teams by what they have used of late. Claims take turns, so that what one
// sees is what there is.
func (db *DB) ClaimRuns(ctx context.Context, c admission.Claim, now, until time.Time) (runs.Claimed, error) {
	var claimed runs.Claimed
	err := db.inTx(ctx, func(tx *DB) error {
		claimed = runs.Claimed{}
		if err := tx.lock(ctx, "claim runs"); err != nil {
			return err
		}
		lines, err := tx.teamQueues(ctx, c, now)
		if err != nil || len(lines) == 0 {
			return err
		}
		used, err := tx.usage(ctx, c.Owner, lines, now)
		if err != nil {
			return err
		}
		if err := tx.prepare(ctx, c, lines, &claimed); err != nil {
			return err
		}
		admitted, passed := admission.Admit(c, used, lines)
		for _, id := range passed {
			if _, err := tx.changed(ctx, `UPDATE runs SET passed = passed + 1 WHERE id = $1`, id); err != nil {
				return err
			}
		}
		claimed.Runs, err = tx.take(ctx, admitted, c, now, until)
		return err
	})
	return claimed, err
}

// The heads of lines are the oldest $1 runs q of each that are able to run. They are
// asked for in the order of time: in that of ids PostgreSQL would walk all runs there are
// where it believes that to be cheaper, and only the index of lines has this one.
func headOf(able string) string {
	return `FROM runs WHERE status = 'queued' AND executor = of_executor AND launches = of_launches AND team_id = of_team` + able + ` ORDER BY created_at, id LIMIT $1 + 0`
}

func postgresHeads(able string) string {
	return `lines CROSS JOIN LATERAL (SELECT * ` + headOf(able) + `) q`
}

// SQLite has no LATERAL, and joins in the order in which it is told to.
func sqliteHeads(able string) string {
	return `lines CROSS JOIN runs q ON q.id IN (SELECT id ` + headOf(able) + `)`
}

// teamQueues are the teams that wait, each with the oldest of its queued runs. It
// goes from executor to executor, from engine to engine and from team to team by the
// index, and reads neither runs that are further back, nor those that wait for other
// executors, nor pipelines that the worker cannot launch. A run that was accepted for no
// executor in particular, or for one that is gone, waits for one that its team may use.
func (db *DB) teamQueues(ctx context.Context, c admission.Claim, now time.Time) ([]admission.TeamQueue, error) {
	type waiting struct {
		team     ids.Team
		run      admission.Candidate
		used, at int64 // vCPU-milliseconds of late, as of when
	}
	whose, args := `executor IN ('', $5)`, []any{admission.LineLength, c.Owner, c.Host + " ", micros(now.Add(-present)), c.Executor}
	if c.Orphans {
		whose, args = `(`+whose+` OR `+ofGone+`)`, append(args, micros(now.Add(-admission.GoneAfter)))
	}
	able, err := db.startable(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range c.Lacks {
		able += ` AND NOT ` + launches(e) // for runs that were queued by a program that wrote no launches
	}
	list, err := all(ctx, db, func(r *sql.Rows, w *waiting) error {
		var needs string
		err := r.Scan((*string)(&w.team), (*string)(&w.run.ID), &w.run.Size.VCPU, &w.run.Size.RAMGB, &w.run.Size.GPU, &w.run.Passed, &needs, &w.run.PreparedBy, &w.used, &w.at)
		return errors.Join(err, readNeeds(needs, &w.run))
	}, `
		WITH RECURSIVE executors (executor) AS (
			SELECT MIN(executor) FROM runs WHERE status = 'queued'
			UNION ALL SELECT (SELECT MIN(r.executor) FROM runs r WHERE r.status = 'queued' AND r.executor > executors.executor) FROM executors WHERE executor IS NOT NULL
		), engines (executor, launches) AS (
			SELECT executor, (SELECT MIN(r.launches) FROM runs r WHERE r.status = 'queued' AND r.executor = executors.executor) FROM executors WHERE `+whose+`
			UNION ALL SELECT executor, (SELECT MIN(r.launches) FROM runs r WHERE r.status = 'queued' AND r.executor = engines.executor AND r.launches > engines.launches) FROM engines WHERE launches IS NOT NULL
		), lines (of_executor, of_launches, of_team) AS (
			SELECT executor, launches, '' FROM engines WHERE launches IN (`+launchable(c.Lacks)+`) -- before the first team
			UNION ALL SELECT of_executor, of_launches, (SELECT MIN(team_id) FROM runs WHERE status = 'queued' AND executor = of_executor AND launches = of_launches AND team_id > of_team) FROM lines WHERE of_team IS NOT NULL
		)
		SELECT q.team_id, q.id, q.vcpu, q.ram_gb, q.gpu, q.passed, q.needs, CASE
			WHEN q.preparing = '' THEN ''
			WHEN q.preparing_by = $2 THEN q.preparing_by
			WHEN SUBSTR(q.preparing_by, 1, LENGTH($3)) = $3 THEN ''
			WHEN EXISTS (SELECT 1 FROM workers w WHERE w.owner = q.preparing_by AND w.seen_at > $4) THEN q.preparing_by
			ELSE '' END, COALESCE(u.vcpu_ms, 0), COALESCE(u.at, 0)
		FROM `+db.dialect.headsOfLines(able)+` LEFT JOIN team_usage u ON u.team_id = q.team_id
		WHERE NOT EXISTS (SELECT 1 FROM teams t WHERE t.id = q.team_id AND t.suspended_at IS NOT NULL)
			AND (q.executor = $5 OR NOT EXISTS (SELECT 1 FROM team_quotas a WHERE a.team_id = q.team_id AND a.executors NOT LIKE '%"' || $5 || '"%'))
			AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.owner = $2 AND w.draining)
		ORDER BY q.team_id, q.id`, args...)
	var lines []admission.TeamQueue
	for _, w := range list {
		if n := len(lines); n == 0 || lines[n-1].Team != w.team {
			lines = append(lines, admission.TeamQueue{Team: w.team, Used: decayed(w.used, w.at, now) / 1000})
		}
		if last := &lines[len(lines)-1]; len(last.Waiting) < admission.LineLength {
			last.Waiting = append(last.Waiting, w.run)
		}
	}
	return lines, err
}

// usage fills in what the teams use, and returns what runs on a
// worker in all.
func (db *DB) usage(ctx context.Context, owner string, lines []admission.TeamQueue, now time.Time) (used credits.Size, err error) {
	byTeam := map[ids.Team]*admission.TeamQueue{}
	for i := range lines {
		byTeam[lines[i].Team] = &lines[i]
	}
	type running struct {
		team ids.Team
		here bool
		size credits.Size
		busy float64 // vCPU-microseconds since they were claimed
	}
	list, err := all(ctx, db, func(r *sql.Rows, v *running) error {
		return r.Scan((*string)(&v.team), &v.here, &v.size.VCPU, &v.size.RAMGB, &v.size.GPU, &v.busy)
	}, `
		SELECT team_id, owner = $1, SUM(vcpu), SUM(ram_gb), SUM(gpu), SUM(CAST(vcpu AS DOUBLE PRECISION) * ($2 - claimed_at))
		FROM runs WHERE status = 'running' AND kind = '' GROUP BY team_id, owner = $1`, owner, micros(now))
	if err != nil {
		return used, err
	}
	for _, v := range list {
		if v.here {
			used = used.Plus(v.size)
		}
		if l := byTeam[v.team]; l != nil {
			l.Used += v.busy / 1e6
			if v.here {
				l.Running = l.Running.Plus(v.size)
			}
		}
	}
	return used, nil
}

// halfLife is the time in which half of what a team has used is forgotten.
const halfLife = 10 * time.Minute

func decayed(amount, at int64, now time.Time) float64 {
	return float64(amount) * math.Exp2(-max(0, now.Sub(fromMicros(at)).Seconds())/halfLife.Seconds())
}

// addUsage counts what a run has taken of the machines since its worker claimed
// it, in the statement that reads what there was: runs of a team end at once.
func (db *DB) addUsage(ctx context.Context, r runs.Run, claimed int64, now time.Time) error {
	if claimed == 0 {
		return nil
	}
	used := int64(r.Size.VCPU) * max(0, now.Sub(fromMicros(claimed)).Milliseconds())
	_, err := db.changed(ctx, `
		INSERT INTO team_usage (team_id, vcpu_ms, at) VALUES ($1, $2, $3)
		ON CONFLICT (team_id) DO UPDATE SET at = CASE WHEN excluded.at > team_usage.at THEN excluded.at ELSE team_usage.at END,
			vcpu_ms = excluded.vcpu_ms + CAST(team_usage.vcpu_ms * POW(CAST(0.5 AS DOUBLE PRECISION),
				CAST(CASE WHEN excluded.at > team_usage.at THEN excluded.at - team_usage.at ELSE 0 END AS DOUBLE PRECISION) / $4) AS BIGINT)`,
		r.Team, used, micros(now), halfLife.Microseconds())
	return err
}

// take makes a worker the owner of runs, each under a new fence, and returns them in
// their order. One that was cancelled since the queues were read is not among them. The
// worker's executor becomes that of a run whose executor is gone, and of one that was
// accepted when no executor was known. Others wait for their turn to claim meanwhile, so
// all are written at once.
func (db *DB) take(ctx context.Context, admitted []ids.Run, c admission.Claim, now, until time.Time) (taken []runs.Run, err error) {
	var started [][]any
	err = inChunks(admitted, func(some []ids.Run) error {
		list, err := all(ctx, db, func(row *sql.Rows, t *takenRun) error { return scanWhole(row, &t.Run, &t.notify) }, `
			UPDATE runs SET status = 'running', owner = $1, fence = fence + 1, lease_until = $2, started_at = COALESCE(started_at, CASE WHEN created_at > $3 THEN created_at ELSE $3 END), claimed_at = $3,
				preparing_by = '', preparing = '', executor = $4, seq = seq + 1
			WHERE status = 'queued' AND id IN (`+placeholders(5, len(some))+`)
			RETURNING `+wholeColumns+`, `+hasWebhooks("runs"), append([]any{c.Owner, micros(until), micros(now), c.Executor}, anys(some)...)...)
		for _, t := range list {
			if t.notify && err == nil {
				err = db.announce(ctx, t.Run, t.Seq, lifecycle.RunStarted, now)
			}
			taken = append(taken, t.Run)
			started = append(started, eventRows(t.ID, t.Seq, runs.Event{Type: lifecycle.RunStarted, At: latest(now, t.CreatedAt), Message: "a worker has taken the run"})...)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(taken, func(a, b runs.Run) int { return slices.Index(admitted, a.ID) - slices.Index(admitted, b.ID) })
	return taken, db.insertEventRows(ctx, started)
}

// takenRun is one that a worker has taken, and whether its team has webhooks.
type takenRun struct {
	runs.Run
	notify bool
}

// wholeColumns are those of a run with all that it was given, and what is
// held for it.
const wholeColumns = runColumns + `, definition, parameters, inputs,
	COALESCE((SELECT plan FROM teams WHERE teams.id = team_id), ''), (SELECT COALESCE(SUM(vcpu_seconds), 0) FROM holds WHERE holds.id = runs.id),
	COALESCE((SELECT name FROM teams WHERE teams.id = team_id), ''), COALESCE((SELECT q.slurm_account FROM team_quotas q WHERE q.team_id = runs.team_id), ''),
	COALESCE((SELECT q.slurm_qos FROM team_quotas q WHERE q.team_id = runs.team_id), ''), COALESCE((SELECT q.slurm_wckey FROM team_quotas q WHERE q.team_id = runs.team_id), '')`

func scanWhole(row scanner, r *runs.Run, more ...any) error {
	return scanRun(row, r, append([]any{&r.Definition, &r.Parameters, &r.Inputs, (*string)(&r.Plan), &r.HeldVCPU, &r.TeamName, &r.Slurm.Account, &r.Slurm.QOS, &r.Slurm.WCKey}, more...)...)
}
