package store

import (
	"context"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/crate"
)

// OriginOf is where a run of a team comes from.
func (db *DB) OriginOf(ctx context.Context, team ids.Team, id ids.Run) (o crate.Origin, err error) {
	err = db.q.QueryRowContext(ctx, `
		SELECT t.name, COALESCE(w.license, ''), COALESCE(p.engine_version, '')
		FROM runs r
		JOIN teams t ON t.id = r.team_id
		LEFT JOIN workflows w ON w.id = r.workflow_id AND w.team_id = r.team_id
		LEFT JOIN reported_runs p ON p.run_id = r.id
		WHERE r.team_id = $1 AND r.id = $2`, team, id).Scan(&o.Team, &o.License, &o.EngineVersion)
	return o, db.asFault(err, "run")
}
