package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/runs"
)

// ReportWorker says what a worker has for runs, and that it is there.
func (db *DB) ReportWorker(ctx context.Context, w runs.Worker, now time.Time) error {
	_, err := db.changed(ctx, `
		INSERT INTO workers (owner, host, vcpu, ram_gb, gpu, problem, disk_low, seen_at, executor, kind, scope, place, price_percent, no_images, no_environments, version, launches)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
		ON CONFLICT (owner) DO UPDATE SET vcpu = excluded.vcpu, ram_gb = excluded.ram_gb, gpu = excluded.gpu,
			problem = excluded.problem, disk_low = excluded.disk_low, no_images = excluded.no_images, no_environments = excluded.no_environments, launches = excluded.launches, seen_at = excluded.seen_at`,
		w.Owner, w.Host, w.Size.VCPU, w.Size.RAMGB, w.Size.GPU, w.Problem, w.DiskLow, micros(now), w.Executor, w.Kind, w.Scope, w.Place, w.PricePercent, w.NoImages, w.NoEnvironments, w.Version, w.Launches)
	return err
}

// ForgetWorker is for one that stops on purpose: it is there no more from now on,
// but when it last was is known, so that a restart does not cost its executor
// the runs.
func (db *DB) ForgetWorker(ctx context.Context, owner string) error {
	_, err := db.changed(ctx, `UPDATE workers SET seen_at = seen_at - $1 WHERE owner = $2`, present.Microseconds(), owner)
	return err
}

// ofGone finds the runs of executors that no worker has had since a time.
const ofGone = `executor NOT IN (SELECT w.executor FROM workers w WHERE w.seen_at > $6)`

// present is how long a worker counts as there after it last reported.
const present = time.Minute

// WorkerHosts are where processes of this installation run now, each with its
// folder.
func (db *DB) WorkerHosts(ctx context.Context, now time.Time) ([]string, error) {
	return all(ctx, db, func(r *sql.Rows, host *string) error { return r.Scan(host) },
		`SELECT DISTINCT host FROM workers WHERE seen_at > $1 ORDER BY host`, micros(now.Add(-present)))
}

// mostAhead is how many older runs are counted: whoever waits behind more waits
// long, and counting them all for each who asks takes the longer the more wait.
const mostAhead = "1000"

// QueueState is what decides over the waiting of a team's queued runs.
func (db *DB) QueueState(ctx context.Context, team ids.Team, waiting []ids.Run, now time.Time) (runs.QueueState, error) {
	q := runs.QueueState{Ahead: map[ids.Run]int{}, Launches: map[ids.Run]pipeline.Engine{}}
	var err error
	if q.Workers, err = db.Workers(ctx, now); err != nil {
		return q, err
	}
	err = db.q.QueryRowContext(ctx, `
		SELECT (SELECT COALESCE(SUM(vcpu), 0) FROM runs WHERE status = 'running' AND team_id = $1),
			EXISTS (SELECT 1 FROM runs WHERE status = 'queued' AND team_id <> $1),
			EXISTS (SELECT 1 FROM teams WHERE id = $1 AND suspended_at IS NOT NULL),
			EXISTS (SELECT 1 FROM maintenance), COALESCE((SELECT message FROM maintenance), '')`, team).
		Scan(&q.Running, &q.Others, &q.Suspended, &q.Maintained, &q.Announced)
	if err != nil {
		return q, err
	}
	err = inChunks(waiting, func(some []ids.Run) error {
		_, err := all(ctx, db, func(r *sql.Rows, _ *struct{}) error {
			var id ids.Run
			var n int
			var launched pipeline.Engine
			err := r.Scan((*string)(&id), &n, (*string)(&launched))
			q.Ahead[id], q.Launches[id] = n, launched
			return err
		}, `
			SELECT q.id, (SELECT COUNT(*) FROM (SELECT 1 FROM runs r WHERE r.status = 'queued' AND r.executor = q.executor AND r.id < q.id LIMIT `+mostAhead+`) older), `+launchedEngine("q")+`
			FROM runs q WHERE q.status = 'queued' AND q.id IN (`+placeholders(1, len(some))+`)`, anys(some)...)
		return err
	})
	if err != nil {
		return q, err
	}
	return q, db.preparing(ctx, team, now, &q)
}

// RunQueue is how many runs of a team wait and run.
type RunQueue struct {
	Team            ids.Team
	Queued, Running int
}

// RunQueues are those of all teams that have any, and since when the oldest
// waits (zero: none does).
func (db *DB) RunQueues(ctx context.Context) (list []RunQueue, oldest time.Time, err error) {
	var since sql.NullInt64
	if err := db.q.QueryRowContext(ctx, `SELECT MIN(created_at) FROM runs WHERE status = 'queued'`).Scan(&since); err != nil {
		return nil, oldest, err
	}
	list, err = all(ctx, db, func(r *sql.Rows, q *RunQueue) error { return r.Scan((*string)(&q.Team), &q.Queued, &q.Running) }, `
		SELECT team_id, SUM(queued), SUM(running) FROM (
			SELECT team_id, COUNT(*) AS queued, 0 AS running FROM runs WHERE status = 'queued' GROUP BY team_id
			UNION ALL SELECT team_id, 0, COUNT(*) FROM runs WHERE status = 'running' AND kind = '' GROUP BY team_id) counted
		GROUP BY team_id`)
	return list, fromNull(since), err
}

// RunTraceparent is the span that a run came of, or empty.
func (db *DB) RunTraceparent(ctx context.Context, id ids.Run) (span string, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT traceparent FROM runs WHERE id = $1`, id).Scan(&span)
	return span, err
}
