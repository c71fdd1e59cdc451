package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/runs"
)

var (
	_ operator.Operators    = (*DB)(nil)
	_ operator.Runs         = (*DB)(nil)
	_ operator.Keeping      = (*DB)(nil)
	_ operator.FailureStore = (*DB)(nil)
)

// IsOperator reports whether somebody looks after the installation.
func (db *DB) IsOperator(ctx context.Context, user ids.User) (yes bool, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM operators WHERE user_id = $1)`, user).Scan(&yes)
	return yes, err
}

// SetOperator makes those with an address operators, or no longer. Whoever has
// not confirmed the address may be somebody else: that takes force.
func (db *DB) SetOperator(ctx context.Context, email string, yes, force bool, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "operators"); err != nil {
			return err
		}
		var verified bool
		err := tx.q.QueryRowContext(ctx, `SELECT email_verified_at IS NOT NULL FROM users WHERE email = $1`, email).Scan(&verified)
		if errors.Is(err, sql.ErrNoRows) {
			return fault.NotFound("there is no account with this address")
		}
		if err != nil {
			return err
		}
		if yes && !verified && !force {
			return fault.Conflict("this address is not confirmed: whoever signed up with it may be somebody else. If you know that it is theirs, say --force")
		}
		if !yes {
			_, err := tx.changed(ctx, `DELETE FROM operators WHERE user_id IN (SELECT id FROM users WHERE email = $1)`, email)
			return err
		}
		return tx.addOperator(ctx, email, now)
	})
}

// WorkersOfAll are those that reported lately, by host.
func (db *DB) WorkersOfAll(ctx context.Context, now time.Time) ([]operator.Worker, error) {
	return all(ctx, db, func(r *sql.Rows, w *operator.Worker) error {
		var seen int64
		err := r.Scan(&w.ID, &w.Host, &w.Executor, &w.Version, &w.Size.VCPU, &w.Size.RAMGB, &w.Size.GPU, &w.Problem, &w.DiskLow, &w.Draining, &seen,
			&w.Runs, &w.Used.VCPU, &w.Used.RAMGB, &w.Used.GPU)
		w.SeenAt = fromMicros(seen)
		return err
	}, `
		SELECT w.owner, w.host, w.executor, w.version, w.vcpu, w.ram_gb, w.gpu, w.problem, w.disk_low, w.draining, w.seen_at,
			COALESCE(u.n, 0), COALESCE(u.vcpu, 0), COALESCE(u.ram_gb, 0), COALESCE(u.gpu, 0)
		FROM workers w LEFT JOIN (
			SELECT owner, COUNT(*) AS n, SUM(vcpu) AS vcpu, SUM(ram_gb) AS ram_gb, SUM(gpu) AS gpu FROM runs WHERE status = 'running' AND kind = '' GROUP BY owner
		) u ON u.owner = w.owner
		WHERE w.seen_at > $1 ORDER BY w.host, w.owner`, micros(now.Add(-present)))
}

// OpenRunsOfAll are the oldest runs that have not ended, and how many there are.
func (db *DB) OpenRunsOfAll(ctx context.Context, limit int, now time.Time) (q operator.Queue, err error) {
	err = db.q.QueryRowContext(ctx, `
		SELECT (SELECT COUNT(*) FROM runs WHERE status = 'queued'), (SELECT COUNT(*) FROM runs WHERE status = 'running' AND kind = '')`).Scan(&q.Queued, &q.Running)
	if err != nil {
		return q, err
	}
	list, err := db.OpenRuns(ctx, limit)
	if err != nil {
		return q, err
	}
	waits, err := db.WhyQueued(ctx, list, now)
	q.Runs = make([]operator.OpenRun, len(list))
	for i, r := range list {
		q.Runs[i] = operator.OpenRun{ID: r.ID, Team: r.Team, Status: r.Status, Size: r.Size, Since: r.CreatedAt, Worker: r.Worker}
		if r.Status == lifecycle.Running {
			q.Runs[i].Since = r.StartedAt
		}
		if why := waits[r.ID]; why != nil {
			q.Runs[i].Reason = string(why.Reason)
		}
	}
	return q, err
}

// WhyQueued says why the queued ones among runs wait, which are in the order of
// the queue. However many teams they are of, it takes the same few statements.
func (db *DB) WhyQueued(ctx context.Context, list []OpenRun, now time.Time) (map[ids.Run]*runs.Waiting, error) {
	waiting := slices.DeleteFunc(slices.Clone(list), func(r OpenRun) bool { return r.Status != lifecycle.Queued })
	why := map[ids.Run]*runs.Waiting{}
	if len(waiting) == 0 {
		return why, nil
	}
	state := runs.QueueState{Ahead: map[ids.Run]int{}}
	var err error
	if state.Workers, err = db.Workers(ctx, now); err != nil {
		return nil, err
	}
	if err := db.placesBetween(ctx, waiting[0].ID, waiting[len(waiting)-1].ID, state.Ahead); err != nil {
		return nil, err
	}
	if err := db.preparing(ctx, "", now, &state); err != nil {
		return nil, err
	}
	m, err := db.Maintenance(ctx)
	if err != nil {
		return nil, err
	}
	state.Maintained, state.Announced = m.On, m.Message
	teams, err := db.queuedTeams(ctx)
	for _, r := range waiting {
		t := teams[r.Team]
		state.Running, state.Suspended, state.Others = t.running, t.suspended, len(teams) > 1
		why[r.ID] = state.Why(r.Run.AsQueued())
	}
	return why, err
}

// placesBetween says of the queued runs from one to another how many are older.
func (db *DB) placesBetween(ctx context.Context, first, last ids.Run, ahead map[ids.Run]int) error {
	_, err := all(ctx, db, func(r *sql.Rows, _ *struct{}) error {
		var id ids.Run
		var n int
		err := r.Scan((*string)(&id), &n)
		ahead[id] = n
		return err
	}, `
		SELECT id, place - 1 FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY executor ORDER BY id) AS place FROM runs WHERE status = 'queued' AND id <= $2) queued
		WHERE id >= $1`, first, last)
	return err
}

type queuedTeam struct {
	running   int // vCPUs
	suspended bool
}

// queuedTeams are those of which runs wait.
func (db *DB) queuedTeams(ctx context.Context) (map[ids.Team]queuedTeam, error) {
	teams := map[ids.Team]queuedTeam{}
	_, err := all(ctx, db, func(r *sql.Rows, _ *struct{}) error {
		var id ids.Team
		var t queuedTeam
		err := r.Scan((*string)(&id), &t.suspended, &t.running)
		teams[id] = t
		return err
	}, `
		SELECT q.team_id, t.suspended_at IS NOT NULL, COALESCE(u.vcpu, 0)
		FROM (SELECT DISTINCT team_id FROM runs WHERE status = 'queued') q JOIN teams t ON t.id = q.team_id
		LEFT JOIN (SELECT team_id, SUM(vcpu) AS vcpu FROM runs WHERE status = 'running' GROUP BY team_id) u ON u.team_id = q.team_id`)
	return teams, err
}

// StorageOfAll is what is kept for all teams.
func (db *DB) StorageOfAll(ctx context.Context) (s operator.Storage, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT COALESCE(CAST(SUM(`+storedBytes+`) AS BIGINT), 0), (SELECT COUNT(*) FROM doomed_blobs), (`+db.dialect.size+`) FROM storage s`).
		Scan(&s.Bytes, &s.PendingDelete, &s.Database)
	return s, err
}

// ChoresDone are the chores, by name.
func (db *DB) ChoresDone(ctx context.Context) ([]operator.Chore, error) {
	list, err := db.Chores(ctx)
	out := make([]operator.Chore, len(list))
	for i, c := range list {
		out[i] = operator.Chore{Name: c.Name, SucceededAt: c.SucceededAt, Took: c.Took, Done: c.Done, Skipped: c.Skipped, FailedAt: c.FailedAt}
	}
	return out, err
}

// TeamsAfter are teams in the order of their ids, with what they use.
func (db *DB) TeamsAfter(ctx context.Context, after ids.Team, limit int, now time.Time) ([]operator.Team, error) {
	return db.teamsWhere(ctx, `t.id > $1`, after, limit, now)
}

func (db *DB) teamsWhere(ctx context.Context, which string, id ids.Team, limit int, now time.Time) ([]operator.Team, error) {
	month, _ := credits.Period(now)
	return all(ctx, db, func(r *sql.Rows, t *operator.Team) error {
		var created int64
		var suspended sql.NullInt64
		var current bool // what it has is of this month
		b := billing.Balance{}
		err := scanQuotas(r, &t.Quotas, (*string)(&t.ID), &t.Name, (*string)(&t.Plan), &created, &suspended, &t.Members, &t.Storage, &current, &t.Spent, &t.Left, &b.Unverified, &t.VCPU.Used, &t.VCPU.Held)
		if b.Plan = t.Plan; !current && !b.Waiting() {
			t.Left += db.catalog.TermsOf(t.Plan).MonthlyCredits
		}
		t.CreatedAt, t.SuspendedAt = fromMicros(created), fromNull(suspended)
		return err
	}, `
		SELECT `+quotaColumns+`, t.id, t.name, t.plan, t.created_at, t.suspended_at, `+peopleOf+`,
			COALESCE(`+storedBytes+`, 0), COALESCE(b.period = $3, FALSE), CASE WHEN b.period = $3 THEN b.spent ELSE 0 END,
			COALESCE(CASE WHEN b.period = $3 THEN b.monthly ELSE 0 END + b.top_up - b.held, 0), t.credits_wait_for <> '',
			(SELECT COALESCE(CAST(SUM(u.used) AS BIGINT), 0) FROM vcpu_use u WHERE u.team_id = t.id AND u.period = $4), (SELECT COALESCE(CAST(SUM(u.held) AS BIGINT), 0) FROM vcpu_use u WHERE u.team_id = t.id)
		FROM teams t LEFT JOIN storage s ON s.team_id = t.id LEFT JOIN balances b ON b.team_id = t.id LEFT JOIN team_quotas q ON q.team_id = t.id
		WHERE `+which+` AND t.closed_at IS NULL ORDER BY t.id LIMIT $2 + 0`, id, limit, micros(month), billing.Month(now))
}

// keptFailures is how many are kept.
const keptFailures = 500

// RecordFailure adds one, in place of the oldest.
func (db *DB) RecordFailure(ctx context.Context, f operator.Failure) error {
	return db.inTx(ctx, func(tx *DB) error {
		_, err := tx.q.ExecContext(ctx, `INSERT INTO request_failures (id, at, request_id, route, code, host) VALUES ($1, $2, $3, $4, $5, $6)`,
			ids.NewFailure(), micros(f.At), f.RequestID, f.Route, f.Code, f.Host)
		if err != nil {
			return err
		}
		_, err = tx.changed(ctx, `DELETE FROM request_failures WHERE id IN (SELECT id FROM request_failures ORDER BY id DESC LIMIT 1000 OFFSET $1)`, keptFailures)
		return err
	})
}

// Failures are the newest requests that failed by our fault.
func (db *DB) Failures(ctx context.Context, limit int) ([]operator.Failure, error) {
	return all(ctx, db, func(r *sql.Rows, f *operator.Failure) error {
		var at int64
		err := r.Scan(&at, &f.RequestID, &f.Route, &f.Code, &f.Host)
		f.At = fromMicros(at)
		return err
	}, `SELECT at, request_id, route, code, host FROM request_failures ORDER BY id DESC LIMIT $1 + 0`, limit)
}
