package store

import (
	"context"
	"database/sql"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

var _ runs.SweepStore = (*DB)(nil)

// SubmitSweep accepts all the runs of a sweep, or none.
func (db *DB) SubmitSweep(ctx context.Context, s runs.Sweep, list []runs.Run, hold credits.Amount, record *access.IdempotencyRecord) error {
	audit.On(ctx, s.ID)
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.mayRun(ctx, list[0]); err != nil {
			return err
		}
		if err := tx.record(ctx, record, s.CreatedAt); err != nil {
			return err
		}
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO sweeps (id, team_id, workflow_id, workflow_name, name, note, varied, starter_type, starter_id, starter_name, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			s.ID, s.Team, s.Workflow, s.WorkflowName, s.Name, s.Note, tagsText(s.Varied), s.Starter.Type, s.Starter.ID, s.Starter.Name, micros(s.CreatedAt))
		if err != nil {
			return tx.asFault(err, "sweep")
		}
		if err := tx.noteInputs(ctx, list[0]); err != nil { // all have the same
			return err
		}
		for _, r := range list {
			if err := tx.acceptRun(ctx, r, hold); err != nil {
				return err
			}
		}
		return nil
	})
}

const sweepRow = `
	SELECT s.id, s.team_id, s.workflow_id, s.workflow_name, s.name, s.note, s.varied, s.starter_type, s.starter_id, s.starter_name, s.created_at,
	       (SELECT COUNT(*) FROM runs r WHERE r.sweep_id = s.id AND r.sweep_id <> '')
	FROM sweeps s `

func scanSweep(row scanner, s *runs.Sweep) error {
	var created int64
	err := row.Scan((*string)(&s.ID), (*string)(&s.Team), (*string)(&s.Workflow), &s.WorkflowName, &s.Name, &s.Note, (*tagList)(&s.Varied),
		&s.Starter.Type, &s.Starter.ID, &s.Starter.Name, &created, &s.Runs)
	s.CreatedAt = fromMicros(created)
	return err
}

// Sweep is one of a team.
func (db *DB) Sweep(ctx context.Context, team ids.Team, id ids.Sweep) (s runs.Sweep, err error) {
	err = scanSweep(db.q.QueryRowContext(ctx, sweepRow+`WHERE s.team_id = $1 AND s.id = $2`, team, id), &s)
	return s, db.asFault(err, "sweep")
}

// Sweeps lists a team's, newest first.
func (db *DB) Sweeps(ctx context.Context, team ids.Team, before ids.Sweep, limit int) ([]runs.Sweep, error) {
	before = orAfterAll(db, before)
	return all(ctx, db, func(r *sql.Rows, s *runs.Sweep) error { return scanSweep(r, s) },
		sweepRow+`WHERE s.team_id = $1 AND s.id < $2 ORDER BY s.id DESC LIMIT $3 + 0`, team, before, limit)
}

// RunsOfSweep are its runs with their parameters, oldest first.
func (db *DB) RunsOfSweep(ctx context.Context, team ids.Team, id ids.Sweep, limit int) ([]runs.Run, error) {
	return all(ctx, db, func(r *sql.Rows, v *runs.Run) error { return scanRun(r, v, &v.Parameters) },
		runRow+`, parameters FROM runs WHERE team_id = $1 AND sweep_id = $2 AND sweep_id <> '' ORDER BY id LIMIT $3 + 0`, team, id, limit)
}

// FilesAmong are those of the keys that are files of the team, by key.
func (db *DB) FilesAmong(ctx context.Context, team ids.Team, keys []string) (map[string]runs.GivenFile, error) {
	const some = 500 // in one statement
	found := map[string]runs.GivenFile{}
	for len(keys) > 0 {
		part := keys[:min(len(keys), some)]
		keys = keys[len(part):]
		list, err := all(ctx, db, func(r *sql.Rows, f *runs.GivenFile) error {
			return r.Scan(&f.Key, &f.Name, &f.Size, &f.SHA256, &f.Blob, &f.Folder, &f.Contents)
		}, `
			SELECT f.key, f.name, f.size, b.sha256, f.blob_key, b.data_key <> '', COALESCE(d.size, f.size)
			FROM files f JOIN blobs b ON b.key = f.blob_key LEFT JOIN blobs d ON d.key = b.data_key
			WHERE f.team_id = $1 AND f.key IN (`+placeholders(2, len(part))+`)`, append([]any{team}, anys(part)...)...)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			found[f.Key] = f
		}
	}
	return found, nil
}
