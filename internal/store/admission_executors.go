package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/runs"
)

// Workers are those that reported lately and take runs, in the order in which their executors
// are offered.
func (db *DB) Workers(ctx context.Context, now time.Time) ([]runs.Worker, error) {
	return db.workersWhere(ctx, `seen_at > $1`, micros(now.Add(-present)))
}

// GoneWorkers are those that last reported after a time, and are there no more: the
// latest of each host and executor, as it was when it worked.
func (db *DB) GoneWorkers(ctx context.Context, since, now time.Time) ([]runs.Worker, error) {
	return db.workersWhere(ctx, `vcpu > 0 AND seen_at > $1 AND seen_at <= $2 AND NOT EXISTS (
		SELECT 1 FROM workers o WHERE o.host = workers.host AND o.executor = workers.executor AND o.vcpu > 0 AND (o.seen_at, o.owner) > (workers.seen_at, workers.owner))`,
		micros(since), micros(now.Add(-present)))
}

func (db *DB) workersWhere(ctx context.Context, which string, args ...any) ([]runs.Worker, error) {
	return all(ctx, db, func(r *sql.Rows, w *runs.Worker) error {
		return r.Scan(&w.Owner, &w.Host, &w.Size.VCPU, &w.Size.RAMGB, &w.Size.GPU, &w.Problem, &w.DiskLow,
			&w.Executor, &w.Kind, &w.Scope, &w.Place, &w.PricePercent, &w.NoImages, &w.NoEnvironments, &w.Draining, &w.Launches)
	}, `
		SELECT owner, host, vcpu, ram_gb, gpu, problem, disk_low, executor, kind, scope, place, price_percent, no_images, no_environments, draining, launches
		FROM workers WHERE `+which+` ORDER BY place, executor, owner`, args...)
}

// latestRuns is how many runs the typical wait for an executor is read from.
const latestRuns = 20

// ExecutorLoads is what runs take of each executor.
func (db *DB) ExecutorLoads(ctx context.Context, names []string) (map[string]runs.Load, error) {
	loads := map[string]runs.Load{}
	_, err := all(ctx, db, func(r *sql.Rows, _ *struct{}) error {
		var name, status string
		var l runs.Load
		var n int
		if err := r.Scan(&name, &status, &n, &l.Used.VCPU, &l.Used.RAMGB, &l.Used.GPU); err != nil {
			return err
		}
		if status == "queued" {
			l = runs.Load{Used: loads[name].Used, Queued: n}
		} else {
			l.Queued = loads[name].Queued
		}
		loads[name] = l
		return nil
	}, `
		SELECT executor, status, COUNT(*), SUM(vcpu), SUM(ram_gb), SUM(gpu) FROM runs
		WHERE status = 'queued' GROUP BY executor, status
		UNION ALL SELECT executor, status, COUNT(*), SUM(vcpu), SUM(ram_gb), SUM(gpu) FROM runs
		WHERE status = 'running' GROUP BY executor, status`)
	for _, name := range names {
		if err != nil {
			break
		}
		l := loads[name]
		l.Waits, err = db.latestWaits(ctx, name)
		loads[name] = l
	}
	return loads, err
}

// latestWaits is how long the latest runs on an executor waited until their first
// command began.
func (db *DB) latestWaits(ctx context.Context, executor string) (waits []time.Duration, err error) {
	list, err := all(ctx, db, func(r *sql.Rows, wait *sql.NullInt64) error { return r.Scan(wait) }, `
		SELECT (SELECT MIN(a.began_at) FROM run_attempts a WHERE a.run_id = r.id) - r.created_at
		FROM runs r WHERE r.executor = $1 AND r.started_at IS NOT NULL ORDER BY r.id DESC LIMIT $2 + 0`, executor, latestRuns)
	for _, wait := range list {
		if wait.Valid {
			waits = append(waits, max(0, time.Duration(wait.Int64)*time.Microsecond))
		}
	}
	return waits, err
}
