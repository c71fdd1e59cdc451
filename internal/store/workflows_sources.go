package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/workflows"
	"github.com/millrace/millrace/internal/workflows/sourcecheck"
)

var _ sourcecheck.Store = (*DB)(nil)

// saveSource has the host of new code asked, but not more often than once in a
// while.
func (db *DB) saveSource(ctx context.Context, w workflows.Workflow, now time.Time) error {
	from := w.Source
	if w.Git != nil {
		from = &w.Git.Source // whose commits its own code has
	}
	if from == nil {
		_, err := db.changed(ctx, `DELETE FROM workflow_sources WHERE workflow_id = $1`, w.ID)
		return err
	}
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	_, err = db.changed(ctx, `
		INSERT INTO workflow_sources (workflow_id, source, due_at) VALUES ($1, $2, $3)
		ON CONFLICT (workflow_id) DO UPDATE SET source = excluded.source, latest = '', behind = -1, behind_of = '', problem = '',
			due_at = CASE WHEN workflow_sources.checked_at + $4 > excluded.due_at THEN workflow_sources.checked_at + $4 ELSE excluded.due_at END
		WHERE workflow_sources.source <> excluded.source`, w.ID, string(text), micros(now), sourcecheck.Pause.Microseconds())
	return err
}

// newestCommit is that of the definition where it comes from Git, else that of
// the newest run.
const newestCommit = `COALESCE((SELECT f.commit_id FROM followed_repositories f WHERE f.workflow_id = s.workflow_id), (SELECT r.source_commit FROM runs r WHERE r.workflow_id = s.workflow_id AND r.source_commit <> '' ORDER BY r.id DESC LIMIT 1), '')`

// SourceStatus is what is known of a workflow's code.
func (db *DB) SourceStatus(ctx context.Context, team ids.Team, id ids.Workflow) (st sourcecheck.Status, err error) {
	var checked int64
	var of string
	err = db.q.QueryRowContext(ctx, `
		SELECT s.latest, s.checked_at, s.behind, s.behind_of, s.problem, `+newestCommit+`
		FROM workflow_sources s JOIN workflows w ON w.id = s.workflow_id WHERE w.team_id = $1 AND w.id = $2`, team, id).
		Scan(&st.Latest, &checked, &st.Behind, &of, &st.Problem, &st.Commit)
	if st.Latest != "" {
		st.ResolvedAt = fromMicros(checked)
	}
	switch {
	case st.Commit != "" && st.Commit == st.Latest:
		st.Behind = 0
	case of != st.Commit:
		st.Behind = -1
	}
	return st, db.asFault(err, "workflow with code from Git")
}

// AskForSource has a host asked that was not since a time.
func (db *DB) AskForSource(ctx context.Context, team ids.Team, id ids.Workflow, since, now time.Time) error {
	_, err := db.changed(ctx, `
		UPDATE workflow_sources SET due_at = $1 WHERE workflow_id = $2 AND due_at = 0 AND checked_at < $3
			AND EXISTS (SELECT 1 FROM workflows w WHERE w.id = $2 AND w.team_id = $4)`, micros(now), id, micros(since), team)
	return err
}

// TakeDueSource takes the one that waits for longest.
func (db *DB) TakeDueSource(ctx context.Context, now, again time.Time) (d sourcecheck.Due, err error) {
	var text string
	err = db.inTx(ctx, func(tx *DB) error {
		err := tx.q.QueryRowContext(ctx, `
			UPDATE workflow_sources SET due_at = $1
			WHERE workflow_id = (SELECT workflow_id FROM workflow_sources WHERE due_at > 0 AND due_at <= $2 ORDER BY due_at LIMIT 1) AND due_at <= $2
			RETURNING workflow_id`, micros(again), micros(now)).Scan((*string)(&d.Workflow))
		if err != nil {
			return tx.asFault(err, "source")
		}
		return tx.q.QueryRowContext(ctx, `
			SELECT w.team_id, s.source, `+newestCommit+` FROM workflow_sources s JOIN workflows w ON w.id = s.workflow_id WHERE s.workflow_id = $1`, d.Workflow).
			Scan((*string)(&d.Team), &text, &d.Commit)
	})
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal([]byte(text), &d.Source)
}

// SetSourceStatus keeps what a host has said.
func (db *DB) SetSourceStatus(ctx context.Context, d sourcecheck.Due, s sourcecheck.Status, now time.Time) error {
	text, err := json.Marshal(d.Source)
	if err != nil {
		return err
	}
	_, err = db.changed(ctx, `
		UPDATE workflow_sources SET due_at = 0, checked_at = $1, latest = $2, behind = $3, behind_of = $4, problem = $5
		WHERE workflow_id = $6 AND source = $7`, micros(now), s.Latest, s.Behind, s.Commit, s.Problem, d.Workflow, string(text))
	return err
}
