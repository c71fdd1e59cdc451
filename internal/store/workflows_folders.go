package store

import (
	"context"
	"database/sql"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/workflows"
)

var (
	_ workflows.FolderStore     = (*DB)(nil)
	_ workflows.DefinitionStore = (*DB)(nil)
)

// MoveFolder puts workflows into other folders. Each is looked at once: a folder
// may go where another one was.
func (db *DB) MoveFolder(ctx context.Context, team ids.Team, from string, moved func(string) (string, bool, error)) (n int, err error) {
	audit.On(ctx, from)
	type placed struct{ id, folder string }
	err = db.inTx(ctx, func(tx *DB) error {
		n = 0
		if err := tx.lock(ctx, "folders of "+string(team)); err != nil {
			return err
		}
		list, err := all(ctx, tx, func(r *sql.Rows, w *placed) error { return r.Scan(&w.id, &w.folder) },
			`SELECT id, folder FROM workflows WHERE team_id = $1 AND folder <> '' ORDER BY id`, team)
		if err != nil {
			return err
		}
		for _, w := range list {
			place, inside, err := moved(w.folder)
			if err != nil {
				return err
			}
			if !inside {
				continue
			}
			done, err := tx.changed(ctx, `UPDATE workflows SET folder = $1, version = version + 1 WHERE team_id = $2 AND id = $3 AND folder = $4`, place, team, w.id, w.folder)
			if err != nil {
				return err
			}
			n += int(done)
		}
		if n == 0 {
			return fault.NotFound("no such folder")
		}
		return nil
	})
	return n, err
}

// EachDefinition gives a team's definitions one by one, the last changed first.
func (db *DB) EachDefinition(ctx context.Context, team ids.Team, largest, most int, give func(ids.Workflow, string, []byte) bool) error {
	rows, err := db.q.QueryContext(ctx, `
		SELECT w.id, w.name, r.definition FROM workflows w
		JOIN workflow_revisions r ON r.workflow_id = w.id AND r.revision = w.revision
		WHERE w.team_id = $1 AND w.node_count > 0 AND LENGTH(r.definition) <= $2
		ORDER BY w.updated_at DESC, w.id DESC LIMIT $3 + 0`, team, largest, most)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, name string
		var definition []byte
		if err := rows.Scan(&id, &name, &definition); err != nil {
			return err
		}
		if !give(ids.Workflow(id), name, definition) {
			return nil
		}
	}
	return rows.Err()
}
