package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// appendLogs adds text to a run's log, which its row has counted already, and
// notes which of it lies in objects. The text itself is never rewritten.
func (db *DB) appendLogs(ctx context.Context, r runs.Run, s runs.Step) error {
	rows := make([][]any, len(s.Logs))
	start := r.LogSize - s.LogSize()
	for i, p := range s.Logs {
		marks := ""
		if len(p.Marks) > 0 {
			text, err := json.Marshal(p.Marks)
			if err != nil {
				return err
			}
			marks = string(text)
		}
		text := p.Text
		if p.Object != "" {
			text = []byte{}
		}
		rows[i] = []any{r.ID, start, p.Node, p.Shard, p.Attempt, p.NodeStart, p.Size, p.Missing, text, p.Object, p.ObjectStart, marks}
		start += p.Size + p.Missing
	}
	err := db.insertRows(ctx, `
		INSERT INTO run_logs (run_id, start, node_id, shard, attempt, node_start, size, missing, text, object, object_start, marks)`, "", rows)
	if err != nil {
		return err
	}
	for _, m := range s.LogMoves {
		_, err := db.changed(ctx, `
			UPDATE run_logs SET text = $1, object = $2, object_start = node_start - $3
			WHERE run_id = $4 AND node_id = $5 AND shard = $6 AND node_start >= $3 AND node_start < $7 AND object = ''`,
			[]byte{}, m.Object, m.From, r.ID, m.Node, m.Shard, m.To)
		if err != nil {
			return err
		}
	}
	return nil
}

// logged is how far the logs of a run's attempts are kept.
func (db *DB) logged(ctx context.Context, id ids.Run) ([]runs.Logged, error) {
	return all(ctx, db, func(r *sql.Rows, l *runs.Logged) error {
		return r.Scan(&l.Node, &l.Shard, &l.Attempt, &l.Size, &l.End, &l.Inline, &l.Kept)
	}, `
		SELECT node_id, shard, attempt, MAX(node_start + size + missing) - MIN(node_start), MAX(node_start + size + missing), SUM(CASE WHEN object = '' AND missing = 0 THEN size ELSE 0 END), SUM(size)
		FROM run_logs WHERE run_id = $1 GROUP BY node_id, shard, attempt`, id)
}

// LogSize is how long the log of a whole run is.
func (db *DB) LogSize(ctx context.Context, team ids.Team, id ids.Run) (size int64, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT log_size FROM runs WHERE team_id = $1 AND id = $2`, team, id).Scan(&size)
	return size, db.asFault(err, "run")
}

// NodeLogSize is how long the log of one shard of a node is.
func (db *DB) NodeLogSize(ctx context.Context, team ids.Team, id ids.Run, node string, shard int) (size int64, err error) {
	err = db.q.QueryRowContext(ctx, `
		SELECT l.node_start + l.size + l.missing FROM run_logs l JOIN runs r ON r.id = l.run_id
		WHERE r.team_id = $1 AND l.run_id = $2 AND l.node_id = $3 AND l.shard = $4
		ORDER BY l.node_start DESC LIMIT 1`, team, id, node, shard).Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return size, err
}

const logPiece = `
	SELECT l.node_id, l.shard, l.attempt, l.start, l.node_start, l.size, l.missing, l.text, l.object, l.object_start, l.marks
	FROM run_logs l JOIN runs r ON r.id = l.run_id
	WHERE r.team_id = $1 AND l.run_id = $2 AND `

func scanLogPiece(r *sql.Rows, p *runs.LogPiece) error {
	var marks string
	err := r.Scan(&p.Node, &p.Shard, &p.Attempt, &p.Start, &p.NodeStart, &p.Size, &p.Missing, &p.Text, &p.Object, &p.ObjectStart, &marks)
	if err == nil && marks != "" {
		err = json.Unmarshal([]byte(marks), &p.Marks)
	}
	return err
}

// LogPieces are those that hold a stretch of the log of a whole run. The first is
// found by where it begins, so that the end of a long log costs no more than its
// beginning.
func (db *DB) LogPieces(ctx context.Context, team ids.Team, id ids.Run, from, to int64) ([]runs.LogPiece, error) {
	return all(ctx, db, scanLogPiece, logPiece+`l.start < $4 AND l.start + l.size + l.missing > $3
		AND l.start >= COALESCE((SELECT MAX(p.start) FROM run_logs p WHERE p.run_id = $2 AND p.start <= $3), 0)
		ORDER BY l.start`, team, id, from, to)
}

// NodeLogPieces are those that hold a stretch of the log of one shard of a
// node.
func (db *DB) NodeLogPieces(ctx context.Context, team ids.Team, id ids.Run, node string, shard int, from, to int64) ([]runs.LogPiece, error) {
	return all(ctx, db, scanLogPiece, logPiece+`l.node_id = $3 AND l.shard = $4 AND l.node_start < $6 AND l.node_start + l.size + l.missing > $5
		AND l.node_start >= COALESCE((SELECT MAX(p.node_start) FROM run_logs p WHERE p.run_id = $2 AND p.node_id = $3 AND p.shard = $4 AND p.node_start <= $5), 0)
		ORDER BY l.node_start`,
		team, id, node, shard, from, to)
}
