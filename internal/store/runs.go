package store

import (
	"context"
	"database/sql"
	"errors"
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
)

var _ runs.Store = (*DB)(nil)

// SubmitRun accepts a run. What it promises is on disk before it returns: the
// row, the credits held for it, its first event and the answer to repeat.
func (db *DB) SubmitRun(ctx context.Context, r runs.Run, hold credits.Amount, record *access.IdempotencyRecord) error {
	audit.On(ctx, r.ID)
	inTeam(ctx, r.Team)
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.mayRun(ctx, r); err != nil {
			return err
		}
		if err := tx.record(ctx, record, r.CreatedAt); err != nil {
			return err
		}
		if r.For != "" {
			if err := tx.takeAutomatic(ctx, r); err != nil {
				return err
			}
		}
		if err := tx.noteInputs(ctx, r); err != nil {
			return err
		}
		if err := tx.acceptRun(ctx, r, hold); err != nil {
			return err
		}
		return tx.insertGuestResults(ctx, r)
	})
}

// mayRun refuses a closed team, and closes the revision that is run: the next
// edit opens another. Most were closed by an earlier run, and reading that makes
// no row to clean up.
func (db *DB) mayRun(ctx context.Context, r runs.Run) error {
	if err := db.mayStartRuns(ctx, r.Team); err != nil {
		return err
	}
	var closed, ran bool
	err := db.q.QueryRowContext(ctx, `
		SELECT w.ran, v.closed FROM workflows w JOIN workflow_revisions v ON v.workflow_id = w.id
		WHERE w.id = $1 AND v.revision = $2`, r.Workflow, r.Revision).Scan(&ran, &closed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // deleted in this moment
	}
	if err == nil && !closed {
		_, err = db.changed(ctx, `UPDATE workflow_revisions SET closed = TRUE WHERE workflow_id = $1 AND revision = $2 AND NOT closed`, r.Workflow, r.Revision)
	}
	if err == nil && !ran {
		_, err = db.changed(ctx, `UPDATE workflows SET ran = TRUE WHERE id = $1 AND NOT ran`, r.Workflow)
	}
	return err
}

func (db *DB) acceptRun(ctx context.Context, r runs.Run, hold credits.Amount) error {
	if err := db.fitDefinitions(ctx, r.Team, int64(len(r.Definition)+len(r.Parameters)+len(r.Inputs))); err != nil {
		return err
	}
	notify, err := db.insertRun(ctx, &r)
	if err != nil {
		return err
	}
	if err := errors.Join(db.insertAddresses(ctx, r.ID, r.Addresses), db.insertOutputCopy(ctx, r.ID, r.OutputTo)); err != nil {
		return err
	}
	s := spenderOf(r, credits.HoldSeconds)
	s.guests = r.Invite != ""
	if err := db.holdFor(ctx, s, hold, r.CreatedAt); err != nil {
		return err
	}
	if notify {
		if err := db.announce(ctx, r, 1, lifecycle.RunQueued, r.CreatedAt); err != nil {
			return err
		}
	}
	return db.insertEvents(ctx, r.ID, 1, runs.Event{Type: lifecycle.RunQueued, At: r.CreatedAt, Message: "the run waits for its turn"})
}

func (db *DB) insertRun(ctx context.Context, r *runs.Run) (notify bool, err error) {
	if r.Number, notify, err = db.nextRunNumber(ctx, r.Team, r.Workflow); err != nil {
		return false, err
	}
	_, err = db.q.ExecContext(ctx, `
		INSERT INTO runs (id, team_id, workflow_id, workflow_name, workflow_revision, definition, parameters, inputs, vcpu, ram_gb, gpu,
			price, starter_type, starter_id, starter_name, retry_of, status, total_nodes, seq, created_at, invite_id, number, name, note, tags, sweep_id, traceparent, needs, for_user, source_commit, max_credits, executor, launches)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, 1, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32)`,
		r.ID, r.Team, r.Workflow, r.WorkflowName, r.Revision, string(r.Definition), string(r.Parameters), string(r.Inputs),
		r.Size.VCPU, r.Size.RAMGB, r.Size.GPU, r.Price, r.Starter.Type, r.Starter.ID, r.Starter.Name, r.RetryOf,
		lifecycle.Queued, r.TotalNodes, micros(r.CreatedAt), r.Invite, r.Number, r.Name, r.Note, tagsText(r.Tags), r.Sweep, r.Traceparent, writeNeeds(r.Needs), r.For, r.Commit, r.MaxCredits, r.Executor, writeLaunches(r.Needs))
	return notify, db.asFault(err, "run")
}

// appendEvents appends events to a run's log. The row counts them, so that their
// numbers have no gap and no repeat, whoever writes.
func (db *DB) appendEvents(ctx context.Context, id ids.Run, events ...runs.Event) error {
	if len(events) == 0 {
		return nil
	}
	var seq int64
	err := db.q.QueryRowContext(ctx, `UPDATE runs SET seq = seq + $1 WHERE id = $2 RETURNING seq`, len(events), id).Scan(&seq)
	if err != nil {
		return db.asFault(err, "run")
	}
	return db.insertEvents(ctx, id, seq, events...)
}

// insertEvents adds events that the run's row has counted already; last is the
// number of the last of them.
func (db *DB) insertEvents(ctx context.Context, id ids.Run, last int64, events ...runs.Event) error {
	return db.insertEventRows(ctx, eventRows(id, last, events...))
}

func eventRows(id ids.Run, last int64, events ...runs.Event) [][]any {
	rows := make([][]any, len(events))
	for i, e := range events {
		data := string(e.Data)
		if data == "" {
			data = "{}"
		}
		rows[i] = []any{id, last - int64(len(events)-1-i), e.Type, micros(e.At), e.Node, e.NodeName, e.Shard, e.Attempt, e.Message, data}
	}
	return rows
}

func (db *DB) insertEventRows(ctx context.Context, rows [][]any) error {
	return db.insertRows(ctx, `INSERT INTO run_events (run_id, seq, type, at, node_id, node_name, shard, attempt, message, data)`, "", rows)
}

const runRow = `SELECT ` + runColumns

const runColumns = `
	       id, team_id, workflow_id, workflow_name, workflow_revision, vcpu, ram_gb, gpu, price, starter_type, starter_id, starter_name,
	       retry_of, status, error_code, error_message, cancel_requested, total_nodes, done_nodes, progress, seq, fence, losses, crashes,
	       billed_since, billed, credits_used, created_at, started_at, finished_at, number, name, note, tags, sweep_id, for_user, source_commit, max_credits, kind, engine, heard_at, executor`

func scanRun(row scanner, r *runs.Run, more ...any) error {
	var cancel, since, started, finished, heard sql.NullInt64
	var billed, created int64
	err := row.Scan(append([]any{
		(*string)(&r.ID), (*string)(&r.Team), (*string)(&r.Workflow), &r.WorkflowName, &r.Revision, &r.Size.VCPU, &r.Size.RAMGB, &r.Size.GPU,
		&r.Price, &r.Starter.Type, &r.Starter.ID, &r.Starter.Name, (*string)(&r.RetryOf), (*string)(&r.Status), (*string)(&r.ErrorCode),
		&r.ErrorMessage, &cancel, &r.TotalNodes, &r.DoneNodes, &r.Progress, &r.Seq, &r.Fence, &r.Losses, &r.Crashes,
		&since, &billed, &r.CreditsUsed, &created, &started, &finished, &r.Number, &r.Name, &r.Note, (*tagList)(&r.Tags), (*string)(&r.Sweep), (*string)(&r.For), &r.Commit, &r.MaxCredits,
		(*string)(&r.Kind), &r.Engine, &heard, &r.Executor,
	}, more...)...)
	r.CancelRequested, r.BilledSince, r.StartedAt, r.FinishedAt = fromNull(cancel), fromNull(since), fromNull(started), fromNull(finished)
	r.HeardAt = fromNull(heard)
	r.Billed, r.CreatedAt = time.Duration(billed)*time.Microsecond, fromMicros(created)
	return err
}

func fromNull(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return fromMicros(n.Int64)
}

// Run is one run of a team with all that it was given.
func (db *DB) Run(ctx context.Context, team ids.Team, id ids.Run) (runs.Run, error) {
	var r runs.Run
	err := scanRun(db.q.QueryRowContext(ctx, runRow+`, definition, parameters, inputs FROM runs WHERE team_id = $1 AND id = $2`, team, id),
		&r, &r.Definition, &r.Parameters, &r.Inputs)
	return r, db.asFault(err, "run")
}

// LeanRun is one run of a team without what it was given.
func (db *DB) LeanRun(ctx context.Context, team ids.Team, id ids.Run) (runs.Run, error) {
	var r runs.Run
	err := scanRun(db.q.QueryRowContext(ctx, runRow+` FROM runs WHERE team_id = $1 AND id = $2`, team, id), &r)
	return r, db.asFault(err, "run")
}

// Events are a run's events after a number, in order.
func (db *DB) Events(ctx context.Context, team ids.Team, id ids.Run, after int64, limit int) ([]runs.Event, error) {
	return all(ctx, db, func(r *sql.Rows, e *runs.Event) error {
		var at int64
		err := r.Scan(&e.Seq, &e.Type, &at, &e.Node, &e.NodeName, &e.Shard, &e.Attempt, &e.Message, &e.Data)
		e.At = fromMicros(at)
		return err
	}, `
		SELECT e.seq, e.type, e.at, e.node_id, e.node_name, e.shard, e.attempt, e.message, e.data
		FROM run_events e JOIN runs r ON r.id = e.run_id
		WHERE r.team_id = $1 AND r.id = $2 AND e.seq > $3
		ORDER BY e.seq
		LIMIT $4 + 0`, team, id, after, limit)
}

// CancelRun ends a queued run at once, with its hold, and asks for the end of
// a running one.
func (db *DB) CancelRun(ctx context.Context, team ids.Team, id ids.Run, by runs.Starter, now time.Time) (status lifecycle.Status, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		r, err := tx.lockedRun(ctx, id)
		if err == nil && r.Team != team {
			err = fault.NotFound("no such run")
		}
		if err != nil {
			return err
		}
		status = r.Status
		switch {
		case r.Status == lifecycle.Running && r.Kind == runs.Reported:
			status = lifecycle.Cancelled
			return tx.endReported(ctx, r, runs.Ending{Status: lifecycle.Cancelled, Message: by.Name + " cancelled the run here; where it runs it goes on"}, now)
		case r.Status == lifecycle.Queued:
			status = lifecycle.Cancelled
			return tx.end(ctx, r, runs.Ending{Status: lifecycle.Cancelled, Message: by.Name + " cancelled the run"}, now)
		case r.Status == lifecycle.Running && r.CancelRequested.IsZero():
			if _, err := tx.changed(ctx, `UPDATE runs SET cancel_requested = $1 WHERE id = $2`, micros(now), id); err != nil {
				return err
			}
			return tx.appendEvents(ctx, id, runs.Event{Type: lifecycle.RunCancelRequested, At: now, Message: by.Name + " asked for the run to be cancelled"})
		}
		return nil
	})
	return status, err
}

// lockedRun reads a run that the transaction is about to change.
func (db *DB) lockedRun(ctx context.Context, id ids.Run) (runs.Run, error) {
	var r runs.Run
	err := scanRun(db.q.QueryRowContext(ctx, runRow+` FROM runs WHERE id = $1 `+db.dialect.forUpdate, id), &r)
	return r, db.asFault(err, "run")
}

// end writes the terminal state, its event and the settlement together.
func (db *DB) end(ctx context.Context, r runs.Run, e runs.Ending, now time.Time) error {
	if !r.Status.MayBecome(e.Status) {
		return fault.Conflict("the run has already ended: it is %s", r.Status)
	}
	finished := now
	if r.Kind != runs.Reported { // the times of a reported run are those of its program
		finished = latest(now, r.CreatedAt, r.StartedAt)
	}
	var last runs.Step
	if e.Last != nil {
		last = *e.Last
		r.DoneNodes, r.Progress = last.Done, max(r.Progress, last.Progress)
		r.Billed, r.BilledSince = last.Billed, last.BilledSince
	}
	said, _, _ := strings.Cut(e.Message, "\n") // the rest is an error message's
	last.Events = append(slices.Clone(last.Events), runs.Event{Type: lifecycle.Ended(e.Status), At: finished, Message: said})
	cost := r.Costs(now)
	if db.catalog.Off {
		cost = 0
	}
	var notify, wanted, copies bool
	var claimed int64
	err := db.q.QueryRowContext(ctx, `
		UPDATE runs SET status = $1, error_code = $2, error_message = $3, finished_at = $4, credits_used = $5, billed = $6,
			billed_since = NULL, owner = '', lease_until = 0, done_nodes = $7, progress = CASE WHEN $1 = 'completed' THEN 100 ELSE $8 + 0 END,
			seq = seq + $9, log_size = log_size + $10, search_due = search_due OR $1 <> 'completed'
		WHERE id = $11
		RETURNING seq, log_size, claimed_at, `+hasWebhooks("runs")+`, `+wantsAllRuns+`, `+hasOutputCopy,
		e.Status, e.Code, e.Message, micros(finished), cost, r.Took(now).Microseconds(), r.DoneNodes, r.Progress,
		len(last.Events), last.LogSize(), r.ID).Scan(&r.Seq, &r.LogSize, &claimed, &notify, &wanted, &copies)
	if err != nil {
		return err
	}
	if err := db.writeStep(ctx, r, last, now); err != nil {
		return err
	}
	if copies {
		if err := db.startOutputCopy(ctx, r.ID, e.Status, now); err != nil {
			return err
		}
	}
	ended := r
	ended.Status, ended.ErrorCode, ended.ErrorMessage, ended.FinishedAt, ended.CreditsUsed = e.Status, e.Code, e.Message, finished, cost
	if wanted || failed(e.Status) {
		if err := db.notifyOfRun(ctx, ended, now); err != nil {
			return err
		}
	}
	if notify {
		if err := db.announce(ctx, ended, r.Seq, lifecycle.Ended(e.Status), now); err != nil {
			return err
		}
	}
	if r.Kind == runs.Reported {
		return nil // it used nothing of ours
	}
	seconds := credits.StartedSeconds(r.Took(now))
	err = db.SettleHold(ctx, string(r.ID), billing.Entry{
		Team: r.Team, Type: billing.RunEntry, Source: "run", SourceID: string(r.ID), Run: r.ID, Workflow: r.Workflow,
		Actor:    billing.Actor{Type: r.Starter.Type, ID: r.Starter.ID, Name: r.Starter.Name},
		Quantity: float64(seconds), Unit: "seconds", Description: "run of " + r.WorkflowName, CreatedAt: now, VCPUSeconds: seconds * int64(r.Size.VCPU),
	}, cost)
	if err != nil || r.Status != lifecycle.Running {
		return err
	}
	return db.addUsage(ctx, r, claimed, now) // after the balance, for which runs of the team wait already
}

// RunSource is the workflow that a run is made of.
func (db *DB) RunSource(ctx context.Context, team ids.Team, id ids.Workflow) (runs.Source, error) {
	var s runs.Source
	err := db.q.QueryRowContext(ctx, `
		SELECT w.name, w.revision, r.definition
		FROM workflows w JOIN workflow_revisions r ON r.workflow_id = w.id AND r.revision = w.revision
		WHERE w.team_id = $1 AND w.id = $2`, team, id).Scan(&s.Name, &s.Revision, &s.Definition)
	return s, db.asFault(err, "workflow")
}

// ConfirmedSource is what a member last confirmed of a workflow.
func (db *DB) ConfirmedSource(ctx context.Context, team ids.Team, id ids.Workflow) (runs.Source, error) {
	var s runs.Source
	err := db.q.QueryRowContext(ctx, `
		SELECT w.name, r.revision, r.definition
		FROM workflows w JOIN workflow_revisions r ON r.workflow_id = w.id AND r.confirmed
		WHERE w.team_id = $1 AND w.id = $2
		ORDER BY r.revision DESC LIMIT 1`, team, id).Scan(&s.Name, &s.Revision, &s.Definition)
	return s, db.asFault(err, "workflow")
}

// FoldersAmong are those of the keys that are folders of the team.
func (db *DB) FoldersAmong(ctx context.Context, team ids.Team, keys []string) (map[string]bool, error) {
	folders := map[string]bool{}
	return folders, inChunks(keys, func(some []string) error {
		found, err := all(ctx, db, func(r *sql.Rows, key *string) error { return r.Scan(key) }, `
			SELECT f.key FROM files f JOIN blobs b ON b.key = f.blob_key
			WHERE f.team_id = $1 AND b.data_key <> '' AND f.key IN (`+placeholders(2, len(some))+`)`, append([]any{team}, anys(some)...)...)
		for _, key := range found {
			folders[key] = true
		}
		return err
	})
}

// MissingFiles are those of the keys that are not the team's files.
func (db *DB) MissingFiles(ctx context.Context, team ids.Team, keys []string) (missing []string, err error) {
	there := map[string]bool{}
	err = inChunks(keys, func(some []string) error {
		found, err := all(ctx, db, func(r *sql.Rows, key *string) error { return r.Scan(key) },
			`SELECT key FROM files WHERE team_id = $1 AND key IN (`+placeholders(2, len(some))+`)`, append([]any{team}, anys(some)...)...)
		for _, key := range found {
			there[key] = true
		}
		return err
	})
	for _, key := range keys {
		if !there[key] {
			missing = append(missing, key)
		}
	}
	return missing, err
}
