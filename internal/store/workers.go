package store

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/runs"
)

// ReportWorker says what a worker has for runs, and that it is there.
func (db *DB) ReportWorker(ctx context.Context, w runs.Worker, now time.Time) error {
	_, err := db.changed(ctx, `
		INSERT INTO workers (owner, host, vcpu, ram_gb, gpu, problem, disk_low, seen_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (owner) DO UPDATE SET vcpu = excluded.vcpu, ram_gb = excluded.ram_gb, gpu = excluded.gpu,
			problem = excluded.problem, disk_low = excluded.disk_low, seen_at = excluded.seen_at`,
		w.Owner, w.Host, w.Size.VCPU, w.Size.RAMGB, w.Size.GPU, w.Problem, w.DiskLow, micros(now))
	if err != nil {
		return err
	}
	_, err = db.changed(ctx, `DELETE FROM workers WHERE seen_at < $1`, micros(now.Add(-time.Hour)))
	return err
}

// ForgetWorker is for one that stops on purpose.
func (db *DB) ForgetWorker(ctx context.Context, owner string) error {
	_, err := db.changed(ctx, `DELETE FROM workers WHERE owner = $1`, owner)
	return err
}
