package store

import (
	"context"
	"database/sql"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// LogTail is the newest part of the log of a whole run.
func (db *DB) LogTail(ctx context.Context, team ids.Team, id ids.Run, most int64) (runs.LogPage, error) {
	size, err := db.logSize(ctx, team, id)
	if err != nil {
		return runs.LogPage{}, err
	}
	return db.LogFrom(ctx, team, id, max(0, size-most), most)
}

func (db *DB) logSize(ctx context.Context, team ids.Team, id ids.Run) (size int64, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT log_size FROM runs WHERE team_id = $1 AND id = $2`, team, id).Scan(&size)
	return size, db.foreseen(err, "run")
}

type logRow struct {
	start int64
	text  []byte
}

// LogFrom is the log of a whole run from an offset on.
func (db *DB) LogFrom(ctx context.Context, team ids.Team, id ids.Run, offset, most int64) (runs.LogPage, error) {
	size, err := db.logSize(ctx, team, id)
	if err != nil {
		return runs.LogPage{}, err
	}
	rows, err := all(ctx, db, func(r *sql.Rows, l *logRow) error { return r.Scan(&l.start, &l.text) }, `
		SELECT start, text FROM run_logs
		WHERE run_id = $1 AND start + size > $2 AND start < $3
		ORDER BY start`, id, offset, offset+most)
	return pageOf(rows, offset, most, size), err
}

// NodeLog is the log of one shard of a node from an offset on.
func (db *DB) NodeLog(ctx context.Context, team ids.Team, id ids.Run, node string, shard int, offset, most int64) (runs.LogPage, error) {
	if _, err := db.logSize(ctx, team, id); err != nil {
		return runs.LogPage{}, err
	}
	var size int64
	err := db.q.QueryRowContext(ctx, `SELECT COALESCE(SUM(size), 0) FROM run_logs WHERE run_id = $1 AND node_id = $2 AND shard = $3`, id, node, shard).Scan(&size)
	if err != nil {
		return runs.LogPage{}, err
	}
	rows, err := all(ctx, db, func(r *sql.Rows, l *logRow) error { return r.Scan(&l.start, &l.text) }, `
		SELECT node_start, text FROM run_logs
		WHERE run_id = $1 AND node_id = $2 AND shard = $3 AND node_start + size > $4 AND node_start < $5
		ORDER BY node_start`, id, node, shard, offset, offset+most)
	return pageOf(rows, offset, most, size), err
}

// pageOf cuts what was asked for out of the pieces that hold it.
func pageOf(rows []logRow, offset, most, size int64) runs.LogPage {
	p := runs.LogPage{Offset: offset, Size: size, Text: []byte{}}
	for _, l := range rows {
		from, to := max(0, offset-l.start), min(int64(len(l.text)), offset+most-l.start)
		if from < to {
			p.Text = append(p.Text, l.text[from:to]...)
		}
	}
	return p
}
