package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/operator"
)

// UsageBetween is what attempts that ended in a time took, by team, person and executor.
func (db *DB) UsageBetween(ctx context.Context, from, to time.Time) ([]operator.UsageRow, error) {
	return all(ctx, db, func(r *sql.Rows, u *operator.UsageRow) error {
		var cpu, elapsed int64
		err := r.Scan((*string)(&u.Team), &u.TeamName, (*string)(&u.Person), &u.PersonName, &u.Executor, &u.Attempts, &cpu, &elapsed)
		u.CPU, u.Elapsed = time.Duration(cpu)*time.Microsecond, time.Duration(elapsed)*time.Microsecond
		return err
	}, `
		SELECT s.team_id, t.name, s.person, COALESCE(p.name, ''), s.executor, s.attempts, s.cpu, s.elapsed
		FROM (
			SELECT r.team_id, r.person, r.executor, COUNT(*) AS attempts,
				CAST(SUM((a.ended_at - a.began_at) * a.cpus) AS BIGINT) AS cpu, CAST(SUM(a.ended_at - a.began_at) AS BIGINT) AS elapsed
			FROM (
				SELECT id, team_id, executor, CASE WHEN for_user <> '' THEN for_user WHEN starter_type = 'user' THEN starter_id ELSE '' END AS person
				FROM runs WHERE created_at < $2 AND (finished_at IS NULL OR finished_at >= $1)
			) r JOIN run_attempts a ON a.run_id = r.id
			WHERE a.ended_at >= $1 AND a.ended_at < $2 AND a.began_at IS NOT NULL AND a.began_at <= a.ended_at AND a.cpus > 0
			GROUP BY r.team_id, r.person, r.executor
		) s JOIN teams t ON t.id = s.team_id LEFT JOIN users p ON p.id = s.person
		ORDER BY s.team_id, s.person, s.executor`, micros(from), micros(to))
}
