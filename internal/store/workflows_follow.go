package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/workflows"
)

var _ workflows.FollowStore = (*DB)(nil)

// followed are the columns of what a workflow follows, all null where that is
// nothing.
type followed struct {
	source, commit, problem sql.NullString
	refreshed               sql.NullInt64
}

const followedColumns = `f.source, f.commit_id, f.problem, f.refreshed_at`

func (f *followed) into() []any { return []any{&f.source, &f.commit, &f.problem, &f.refreshed} }

func (f *followed) read() (*workflows.Followed, error) {
	if !f.source.Valid {
		return nil, nil //nolint:nilnil // it follows nothing
	}
	g := &workflows.Followed{Commit: f.commit.String, Problem: f.problem.String, RefreshedAt: fromNull(f.refreshed)}
	return g, json.Unmarshal([]byte(f.source.String), &g.Source)
}

// saveFollowed keeps which commit a workflow's definition is of, and that it is
// the newest.
func (db *DB) saveFollowed(ctx context.Context, w workflows.Workflow) error {
	if w.Git == nil {
		return nil
	}
	text, err := json.Marshal(w.Git.Source)
	if err != nil {
		return err
	}
	_, err = db.changed(ctx, `
		INSERT INTO followed_repositories (workflow_id, source, commit_id, refreshed_at, problem) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (workflow_id) DO UPDATE SET commit_id = excluded.commit_id, refreshed_at = excluded.refreshed_at, problem = excluded.problem`,
		w.ID, string(text), w.Git.Commit, micros(w.Git.RefreshedAt), w.Git.Problem)
	if err != nil {
		return err
	}
	if err := db.saveSource(ctx, w, w.UpdatedAt); err != nil {
		return err
	}
	_, err = db.changed(ctx, `UPDATE workflow_sources SET latest = $1, behind = 0, behind_of = $1, checked_at = $2, problem = '' WHERE workflow_id = $3 AND checked_at < $2`,
		w.Git.Commit, micros(w.Git.RefreshedAt), w.ID)
	return err
}

// SetRefreshProblem notes why a refresh failed.
func (db *DB) SetRefreshProblem(ctx context.Context, team ids.Team, id ids.Workflow, problem string, now time.Time) error {
	_, err := db.changed(ctx, `
		UPDATE followed_repositories SET problem = $1, refreshed_at = $2
		WHERE workflow_id = $3 AND EXISTS (SELECT 1 FROM workflows w WHERE w.id = $3 AND w.team_id = $4)`, problem, micros(now), id, team)
	return err
}

// StopFollowing has a workflow follow nothing any more. Whoever refreshes it at
// the same time sees that it was saved.
func (db *DB) StopFollowing(ctx context.Context, w workflows.Workflow) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `UPDATE workflows SET version = version + 1, updated_at = $1 WHERE team_id = $2 AND id = $3`, micros(w.UpdatedAt), w.Team, w.ID)
		if err != nil || n == 0 {
			return orMissing(err, "workflow")
		}
		if _, err := tx.changed(ctx, `DELETE FROM followed_repositories WHERE workflow_id = $1`, w.ID); err != nil {
			return err
		}
		return tx.saveSource(ctx, w, w.UpdatedAt)
	})
}

// AskForRefresh has a workflow refreshed because its trigger was called, soon
// but not more often than once in a while.
func (db *DB) AskForRefresh(ctx context.Context, t schedules.Trigger, r *access.IdempotencyRecord, now time.Time) error {
	audit.On(ctx, t.Workflow)
	inTeam(ctx, t.Team)
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.record(ctx, r, now); err != nil {
			return err
		}
		if err := tx.mayStillStart(ctx, t.Team, t.CreatedBy); err != nil {
			return err
		}
		n, err := tx.changed(ctx, `UPDATE triggers SET last_used_at = $1 WHERE team_id = $2 AND id = $3`, micros(now), t.Team, t.ID)
		if err != nil || n == 0 {
			return orMissing(err, "trigger")
		}
		n, err = tx.changed(ctx, `
			UPDATE followed_repositories SET asked_at = $1, asked_by = $2,
				due_at = CASE WHEN due_at > 0 THEN due_at WHEN triggered_at + $3 > $1 THEN triggered_at + $3 ELSE $1 END
			WHERE workflow_id = $4`, micros(now), t.CreatedBy, workflows.RefreshPause.Microseconds(), t.Workflow)
		if err == nil && n == 0 {
			err = fault.Conflict("this workflow does not follow a Git repository any more: delete this trigger").WithCode("not_from_git")
		}
		return err
	})
}

// TakeDueRefresh takes the workflow that waits for longest, of a team that is not
// busy.
func (db *DB) TakeDueRefresh(ctx context.Context, now, again time.Time, busy []ids.Team) (d workflows.DueRefresh, err error) {
	var asked int64
	var not [workflows.MaxBusyTeams]ids.Team // one text for every number of teams
	copy(not[:], busy)
	err = db.inTx(ctx, func(tx *DB) error {
		err := tx.q.QueryRowContext(ctx, `
			UPDATE followed_repositories SET due_at = $1
			WHERE workflow_id = (
				SELECT f.workflow_id FROM followed_repositories f JOIN workflows w ON w.id = f.workflow_id
				WHERE f.due_at > 0 AND f.due_at <= $2 AND w.team_id NOT IN (`+placeholders(3, len(not))+`) ORDER BY f.due_at LIMIT 1) AND due_at <= $2
			RETURNING workflow_id, asked_at, asked_by`, append([]any{micros(again), micros(now)}, anys(not[:])...)...).Scan((*string)(&d.Workflow), &asked, (*string)(&d.By))
		if err != nil {
			return tx.asFault(err, "refresh")
		}
		return tx.q.QueryRowContext(ctx, `
			SELECT w.team_id, COALESCE(m.role, '') FROM workflows w LEFT JOIN memberships m ON m.team_id = w.team_id AND m.user_id = $2
			WHERE w.id = $1`, d.Workflow, d.By).Scan((*string)(&d.Team), (*string)(&d.Role))
	})
	d.AskedAt = fromMicros(asked)
	return d, err
}

// EndRefresh says that a refresh was done.
func (db *DB) EndRefresh(ctx context.Context, d workflows.DueRefresh, now time.Time) error {
	_, err := db.changed(ctx, `
		UPDATE followed_repositories SET triggered_at = $1, due_at = CASE WHEN asked_at > $2 THEN CAST($3 AS BIGINT) ELSE 0 END WHERE workflow_id = $4`,
		micros(now), micros(d.AskedAt), micros(now.Add(workflows.RefreshPause)), d.Workflow)
	return err
}
