package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/workflows"
)

// WorkflowStores is the database as the workflows see it.
func (db *DB) WorkflowStores() workflows.Stores {
	return workflows.Stores{Workflows: db, Revisions: db, Secrets: db, Follow: db, Folders: db, Definitions: db}
}

// InsertWorkflow adds a workflow with its first revision. One too many for the team is
// fault.KindConflict, and one that its storage has no room for fault.KindPayment.
func (db *DB) InsertWorkflow(ctx context.Context, w workflows.Workflow, rev workflows.Revision, r *access.IdempotencyRecord) error {
	audit.On(ctx, w.ID)
	size, err := revisionBytes(w)
	if err != nil {
		return err
	}
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.record(ctx, r, w.CreatedAt); err != nil {
			return err
		}
		// It also has all others of the team wait who add a workflow, so that they are
		// counted one after the other.
		if err := tx.fitDefinitions(ctx, w.Team, size+int64(len(w.Description))); err != nil {
			return err
		}
		n, err := tx.changed(ctx, `
			INSERT INTO workflows (id, team_id, name, description, revision, node_count, created_by, created_at, updated_at, version, tags, kind, folder, license)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14
			WHERE (SELECT COUNT(*) FROM workflows WHERE team_id = $2) < $15`,
			w.ID, w.Team, w.Name, w.Description, w.Revision, w.NodeCount, w.CreatedBy, micros(w.CreatedAt), micros(w.UpdatedAt), w.Version, tagsText(w.Tags), w.Kind, w.Folder, w.License,
			workflows.MaxPerTeam)
		if err != nil {
			return tx.asFault(err, "workflow")
		}
		if n == 0 {
			return fault.Conflict("the team has %d workflows, which is as many as it may have: delete some first", workflows.MaxPerTeam).WithCode("too_many_workflows")
		}
		if err := tx.saveRevision(ctx, w, rev, true); err != nil {
			return err
		}
		return tx.saveFollowed(ctx, w)
	})
}

// Workflow is one workflow of a team with its current definition.
func (db *DB) Workflow(ctx context.Context, team ids.Team, id ids.Workflow) (workflows.Workflow, error) {
	w := workflows.Workflow{Row: workflows.Row{ID: id, Team: team}}
	var created, updated int64
	var problems []byte
	var git followed
	err := db.q.QueryRowContext(ctx, `
		SELECT w.name, w.description, w.revision, w.node_count, w.created_by, u.name, w.created_at, w.updated_at, w.version, w.tags, w.kind, w.folder, w.license,
		       r.definition, r.fingerprint, r.problems, r.confirmed, COALESCE(d.seq, 0), COALESCE(d.settled_seq, 0), COALESCE(s.problem, ''), `+followedColumns+`
		FROM workflows w
		JOIN users u ON u.id = w.created_by
		JOIN workflow_revisions r ON r.workflow_id = w.id AND r.revision = w.revision
		LEFT JOIN documents d ON d.workflow_id = w.id
		LEFT JOIN workflow_sources s ON s.workflow_id = w.id
		LEFT JOIN followed_repositories f ON f.workflow_id = w.id
		WHERE w.team_id = $1 AND w.id = $2`, team, id).
		Scan(append([]any{
			&w.Name, &w.Description, &w.Revision, &w.NodeCount, &w.CreatedBy, &w.CreatedByName, &created, &updated, &w.Version, (*tagList)(&w.Tags), &w.Kind, &w.Folder, &w.License,
			&w.Definition, &w.Fingerprint, &problems, &w.Confirmed, &w.DocumentSeq, &w.SyncedSeq, &w.SourceProblem,
		}, git.into()...)...)
	if err != nil {
		return w, db.asFault(err, "workflow")
	}
	if w.Git, err = git.read(); err != nil {
		return w, err
	}
	w.CreatedAt, w.UpdatedAt = fromMicros(created), fromMicros(updated)
	if err := json.Unmarshal(problems, &w.Problems); err != nil {
		return w, err
	}
	// Both are kept in one list.
	first := slices.IndexFunc(w.Problems, func(p graph.Problem) bool { return p.Warning })
	if first >= 0 {
		w.Problems, w.Warnings = w.Problems[:first:first], w.Problems[first:]
	}
	one := []workflows.Row{w.Row}
	err = db.lastRuns(ctx, team, one)
	w.LastRuns = one[0].LastRuns
	return w, err
}

// TeamOfWorkflow is the team that a workflow belongs to, for operators.
func (db *DB) TeamOfWorkflow(ctx context.Context, id ids.Workflow) (team ids.Team, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT team_id FROM workflows WHERE id = $1`, id).Scan(&team)
	return team, db.asFault(err, "workflow")
}

// Workflows lists a team's workflows, newest first; ids sort by creation.
func (db *DB) Workflows(ctx context.Context, team ids.Team, before ids.Workflow, limit int) ([]workflows.Row, error) {
	before = orAfterAll(db, before)
	anyRan := false
	list, err := all(ctx, db, func(r *sql.Rows, w *workflows.Row) error {
		var created, updated int64
		var ran bool
		// Plain strings spare the reflection that named ones cost.
		err := r.Scan((*string)(&w.ID), &w.Name, &w.Description, &w.Revision, &w.NodeCount, (*string)(&w.CreatedBy), &w.CreatedByName, &created, &updated, &ran, (*tagList)(&w.Tags), (*string)(&w.Kind), &w.Folder)
		anyRan = anyRan || ran
		w.Team, w.CreatedAt, w.UpdatedAt = team, fromMicros(created), fromMicros(updated)
		return err
	}, `
		SELECT w.id, w.name, w.description, w.revision, w.node_count, w.created_by, u.name, w.created_at, w.updated_at, w.ran, w.tags, w.kind, w.folder
		FROM workflows w
		JOIN users u ON u.id = w.created_by
		WHERE w.team_id = $1 AND w.id < $2
		ORDER BY w.id DESC
		LIMIT $3 + 0`, team, before, limit)
	if err != nil || !anyRan {
		return list, err
	}
	return list, db.lastRuns(ctx, team, list)
}

// SaveWorkflow writes what was changed, unless somebody saved in between, or a run
// has closed the revision.
func (db *DB) SaveWorkflow(ctx context.Context, w workflows.Workflow, rev *workflows.Revision) (saved bool, err error) {
	saved, err = db.saveWorkflow(ctx, w, rev, rev == nil || rev.Guest == "", (*DB).fitDefinitions)
	if errors.Is(err, errOutrun) {
		return false, nil
	}
	return saved, err
}

// saveWorkflow writes a workflow, if nobody saved in between; count counts the storage that it
// takes more than before.
func (db *DB) saveWorkflow(ctx context.Context, w workflows.Workflow, rev *workflows.Revision, confirmed bool, count func(tx *DB, ctx context.Context, team ids.Team, size int64) error) (saved bool, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		size, err := tx.growth(ctx, w, rev)
		if err != nil {
			return err
		}
		n, err := tx.changed(ctx, `
			UPDATE workflows SET name = $1, description = $2, revision = $3, node_count = $4, updated_at = $5, tags = $6, kind = $7, folder = $8, license = $9, version = version + 1
			WHERE team_id = $10 AND id = $11 AND version = $12`,
			w.Name, w.Description, w.Revision, w.NodeCount, micros(w.UpdatedAt), tagsText(w.Tags), w.Kind, w.Folder, w.License, w.Team, w.ID, w.Version)
		if saved = n == 1; err != nil || !saved {
			return err
		}
		if err := count(tx, ctx, w.Team, size); err != nil {
			return err
		}
		if rev != nil {
			err = tx.saveRevision(ctx, w, *rev, confirmed)
		}
		if err == nil {
			err = tx.saveFollowed(ctx, w)
		}
		return err
	})
	return saved, err
}

// SaveSynced writes what a document came to. Which of two is the newer is
// decided by how much of the document they hold, in the same transaction.
func (db *DB) SaveSynced(ctx context.Context, w workflows.Workflow, rev *workflows.Revision) (saved bool, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `UPDATE documents SET settled_seq = $1 WHERE workflow_id = $2 AND settled_seq < $1`, w.SyncedSeq, w.ID)
		if err != nil || n == 0 || rev == nil {
			saved = err == nil
			return err
		}
		var confirmed bool // no guest has drawn in it since a member confirmed it
		if err := tx.q.QueryRowContext(ctx, `SELECT guest_seq = 0 FROM documents WHERE workflow_id = $1`, w.ID).Scan(&confirmed); err != nil {
			return err
		}
		// What people have drawn is there, with or without room for the definition of it.
		if saved, err = tx.saveWorkflow(ctx, w, rev, confirmed, (*DB).countDefinitions); err == nil && !saved {
			return errOutrun
		}
		return err
	})
	if errors.Is(err, errOutrun) {
		return false, nil
	}
	return saved, err
}

// growth is how many bytes a workflow takes more than the stored one of the same version.
func (db *DB) growth(ctx context.Context, w workflows.Workflow, rev *workflows.Revision) (bytes int64, err error) {
	number := -1
	bytes = int64(len(w.Description))
	if rev != nil {
		size, err := revisionBytes(w)
		if err != nil {
			return 0, err
		}
		number, bytes = rev.Number, bytes+size
	}
	var before int64
	err = db.q.QueryRowContext(ctx, `
		SELECT octet_length(description) + COALESCE((SELECT `+revisionSize+` FROM workflow_revisions WHERE workflow_id = workflows.id AND revision = $3), 0)
		FROM workflows WHERE team_id = $1 AND id = $2`, w.Team, w.ID, number).Scan(&before)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil // deleted in this moment
	}
	return bytes - before, err
}

// revisionBytes is how many bytes a revision of a workflow takes.
func revisionBytes(w workflows.Workflow) (int64, error) {
	problems, err := json.Marshal(w.Problems)
	return int64(len(w.Definition) + len(problems)), err
}

// errOutrun takes a transaction back because somebody was faster.
var errOutrun = errors.New("somebody was faster")

func (db *DB) saveRevision(ctx context.Context, w workflows.Workflow, rev workflows.Revision, confirmed bool) error {
	problems, err := json.Marshal(slices.Concat(w.Problems, w.Warnings))
	if err != nil {
		return err
	}
	n, err := db.changed(ctx, `
		INSERT INTO workflow_revisions (workflow_id, revision, definition, fingerprint, problems, summary, created_by, created_at, updated_at, guest_id, guest_name, confirmed)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (workflow_id, revision) DO UPDATE SET
			definition = excluded.definition, fingerprint = excluded.fingerprint, problems = excluded.problems,
			summary = excluded.summary, updated_at = excluded.updated_at, confirmed = excluded.confirmed
		WHERE NOT workflow_revisions.closed`,
		w.ID, rev.Number, string(w.Definition), w.Fingerprint, string(problems), rev.Summary, rev.CreatedBy, micros(rev.CreatedAt), micros(rev.UpdatedAt),
		rev.Guest, rev.GuestName, confirmed)
	if err != nil {
		return err
	}
	if n == 0 { // a run has closed it since it was read
		return errOutrun
	}
	return db.saveSource(ctx, w, w.UpdatedAt)
}

// ConfirmRevision says that a member stands behind the current definition, if it
// is still the one that they have seen.
func (db *DB) ConfirmRevision(ctx context.Context, team ids.Team, id ids.Workflow, number int, fingerprint string, closes bool) (confirmed bool, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `
			UPDATE workflow_revisions SET confirmed = TRUE, closed = closed OR $5
			WHERE workflow_id = $2 AND revision = $3 AND fingerprint = $4
				AND EXISTS (SELECT 1 FROM workflows w WHERE w.team_id = $1 AND w.id = $2 AND w.revision = $3)`, team, id, number, fingerprint, closes)
		if confirmed = n == 1; err != nil || !confirmed {
			return err
		}
		_, err = tx.changed(ctx, `UPDATE documents SET guest_seq = 0 WHERE workflow_id = $1 AND guest_seq <= settled_seq`, id)
		return err
	})
	return confirmed, err
}

// DeleteWorkflow removes a workflow with its revisions and its live document,
// calls its runs off and revokes its links.
func (db *DB) DeleteWorkflow(ctx context.Context, team ids.Team, id ids.Workflow, by string, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		size, err := tx.lockedSize(ctx, team, id)
		if err != nil {
			return err
		}
		if _, err := tx.changed(ctx, `DELETE FROM workflows WHERE team_id = $1 AND id = $2`, team, id); err != nil {
			return err
		}
		if _, err := tx.changed(ctx, `DELETE FROM workflow_inputs WHERE workflow_id = $1 AND team_id = $2`, id, team); err != nil {
			return err
		}
		if err := tx.countDefinitions(ctx, team, -size); err != nil {
			return err
		}
		if err := tx.revokeInvitesOf(ctx, id, now); err != nil {
			return err
		}
		open, err := all(ctx, tx, func(r *sql.Rows, run *ids.Run) error { return r.Scan((*string)(run)) },
			`SELECT id FROM runs WHERE workflow_id = $1 AND status IN ('queued', 'running')`, id)
		for _, run := range open {
			if _, err := tx.CancelRun(ctx, team, run, runs.Starter{Type: "user", Name: by}, now); err != nil {
				return err
			}
		}
		return err
	})
}

// lockedSize is how many bytes a workflow takes until the transaction ends: whoever saves it
// or draws in it waits.
func (db *DB) lockedSize(ctx context.Context, team ids.Team, id ids.Workflow) (size int64, err error) {
	for _, query := range []string{
		`SELECT COUNT(*) FROM (SELECT 1 FROM documents WHERE workflow_id = $2 AND $1 <> '' ` + db.dialect.forUpdate + `) d`,
		`SELECT 1 FROM workflows WHERE team_id = $1 AND id = $2 ` + db.dialect.forUpdate,
		`SELECT ` + workflowSize + ` FROM workflows WHERE team_id = $1 AND id = $2`, // after the locks, so that it sees what they waited for
	} {
		if err := db.q.QueryRowContext(ctx, query, team, id).Scan(&size); err != nil {
			return 0, db.asFault(err, "workflow")
		}
	}
	return size, nil
}

// lastRuns adds the newest ten runs to each of the workflows.
func (db *DB) lastRuns(ctx context.Context, team ids.Team, list []workflows.Row) error {
	if len(list) == 0 {
		return nil
	}
	at := make(map[ids.Workflow]int, len(list))
	for i, w := range list {
		at[w.ID] = i
	}
	type last struct {
		workflow ids.Workflow
		run      workflows.LastRun
	}
	found, err := all(ctx, db, func(r *sql.Rows, l *last) error {
		var billed int64
		var finished sql.NullInt64
		err := r.Scan((*string)(&l.workflow), (*string)(&l.run.ID), &l.run.Status, &billed, &finished)
		l.run.Took, l.run.FinishedAt = time.Duration(billed)*time.Microsecond, fromNull(finished)
		return err
	}, `
		SELECT w.id, r.id, r.status, r.billed, r.finished_at
		FROM workflows w `+db.dialect.newestRuns+`
		WHERE w.team_id = $1 AND w.id >= $2 AND w.id <= $3
		ORDER BY r.id DESC`, team, list[len(list)-1].ID, list[0].ID)
	for _, l := range found {
		w := &list[at[l.workflow]]
		w.LastRuns = append(w.LastRuns, l.run)
	}
	return err
}

const revision = `
	SELECT r.revision, r.created_by, u.name, r.created_at, r.updated_at, r.summary, r.closed, r.guest_id, r.guest_name, r.confirmed`

func scanRevision(row scanner, r *workflows.Revision, more ...any) error {
	var created, updated int64
	into := append([]any{&r.Number, &r.CreatedBy, &r.CreatedByName, &created, &updated, &r.Summary, &r.Closed, &r.Guest, &r.GuestName, &r.Confirmed}, more...)
	err := row.Scan(into...)
	r.CreatedAt, r.UpdatedAt = fromMicros(created), fromMicros(updated)
	return err
}

// Revisions lists a workflow's revisions, newest first.
func (db *DB) Revisions(ctx context.Context, team ids.Team, id ids.Workflow, before, limit int) ([]workflows.Revision, error) {
	return all(ctx, db, func(r *sql.Rows, rev *workflows.Revision) error { return scanRevision(r, rev) }, revision+`
		FROM workflow_revisions r
		JOIN workflows w ON w.id = r.workflow_id
		JOIN users u ON u.id = r.created_by
		WHERE w.team_id = $1 AND w.id = $2 AND r.revision < $3
		ORDER BY r.revision DESC
		LIMIT $4 + 0`, team, id, before, limit)
}

// Revision is one revision of a workflow with its definition.
func (db *DB) Revision(ctx context.Context, team ids.Team, id ids.Workflow, number int) (workflows.Revision, error) {
	var r workflows.Revision
	err := scanRevision(db.q.QueryRowContext(ctx, revision+`, r.definition
		FROM workflow_revisions r
		JOIN workflows w ON w.id = r.workflow_id
		JOIN users u ON u.id = r.created_by
		WHERE w.team_id = $1 AND w.id = $2 AND r.revision = $3`, team, id, number), &r, &r.Definition)
	return r, db.asFault(err, "revision")
}
