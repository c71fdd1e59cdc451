package store

import (
	"context"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/finding"
)

var _ finding.OwnerStore = (*DB)(nil)

var owners = map[finding.Kind]string{
	finding.Workflow: `SELECT team_id FROM workflows WHERE id = $1`,
	finding.Run:      `SELECT team_id FROM runs WHERE id = $1`,
	finding.Sweep:    `SELECT team_id FROM sweeps WHERE id = $1`,
	finding.Analysis: `SELECT team_id FROM analyses WHERE id = $1 AND team_id IS NOT NULL`, // without a team, a visitor's
	finding.File:     `SELECT team_id FROM files WHERE key = $1`,
}

// OwnerOf is the team that something belongs to.
func (db *DB) OwnerOf(ctx context.Context, kind finding.Kind, id string) (team ids.Team, err error) {
	err = db.q.QueryRowContext(ctx, owners[kind], id).Scan((*string)(&team))
	return team, db.asFault(err, string(kind))
}
