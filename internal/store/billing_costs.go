package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/ids"
)

var _ billing.CostStore = (*DB)(nil)

// costKeys are what costs are summed up by, and what people call it. Runs that
// started by themselves are those of the person in whose name they did.
var costKeys = map[billing.Grouping]struct{ key, name string }{
	billing.ByTag:      {`COALESCE(r.tags, k.tags, '[]')`, `''`},
	billing.ByWorkflow: {`l.workflow_id`, `COALESCE((SELECT w.name FROM workflows w WHERE w.id = l.workflow_id), r.workflow_name, 'a workflow that is gone')`},
	billing.ByUser:     {`COALESCE(NULLIF(COALESCE(r.for_user, k.for_user), ''), l.actor_id)`, `COALESCE((SELECT u.name FROM users u WHERE u.id = COALESCE(NULLIF(COALESCE(r.for_user, k.for_user), ''), l.actor_id)), l.actor_name)`},
}

// Costs are what a team's runs cost since from, by day.
func (db *DB) Costs(ctx context.Context, team ids.Team, by billing.Grouping, from time.Time) ([]billing.Cost, error) {
	k := costKeys[by]
	costs, err := all(ctx, db, func(r *sql.Rows, c *billing.Cost) error {
		var day int64
		err := r.Scan(&day, &c.Key, &c.Name, &c.Cost, &c.Runs)
		c.Date = fromMicros(day * dayMicros)
		return err
	}, `
		SELECT day, key, MAX(name), SUM(cost), COUNT(*) FROM (
			SELECT l.created_at / 86400000000 AS day, `+k.key+` AS key, `+k.name+` AS name, -(l.monthly + l.top_up) AS cost
			FROM ledger l LEFT JOIN runs r ON r.id = l.run_id LEFT JOIN deleted_runs k ON k.run_id = l.run_id
			WHERE l.team_id = $1 AND l.created_at >= $2 AND l.type = 'run') AS costs
		GROUP BY day, key ORDER BY day, key`, team, micros(from))
	if err != nil || by != billing.ByTag {
		return costs, err
	}
	return byTag(costs)
}

// byTag makes one cost for each tag of one for a list of tags.
func byTag(costs []billing.Cost) (list []billing.Cost, err error) {
	for _, c := range costs {
		var names tagList
		if err := names.Scan(c.Key); err != nil {
			return nil, err
		}
		if len(names) == 0 {
			names = tagList{""}
		}
		for _, name := range names {
			c.Key, c.Name = name, name
			if name == "" {
				c.Name = "without a tag"
			}
			list = append(list, c)
		}
	}
	return list, nil
}
