package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// nextRunNumber counts a run of a workflow. The row is ours until the
// transaction ends, and what is taken back leaves no gap. Told is whether the
// team has webhooks.
func (db *DB) nextRunNumber(ctx context.Context, team ids.Team, workflow ids.Workflow) (n int64, notify bool, err error) {
	err = db.q.QueryRowContext(ctx, `
		INSERT INTO run_numbers (workflow_id, team_id, newest) VALUES ($1, $2, 1)
		ON CONFLICT (workflow_id) DO UPDATE SET newest = run_numbers.newest + 1
		RETURNING newest, `+hasWebhooks("run_numbers"), workflow, team).Scan(&n, &notify)
	return n, notify, err
}

// tagsText is how tags are kept. They have no quotation marks in them, so that
// one is found as a text in quotation marks.
func tagsText(list []string) string {
	if len(list) == 0 {
		return "[]"
	}
	return `["` + strings.Join(list, `","`) + `"]`
}

// tagList reads them.
type tagList []string

// Scan is for database/sql.
func (l *tagList) Scan(src any) error {
	*l = tagList{}
	switch text := src.(type) {
	case string:
		return json.Unmarshal([]byte(text), l)
	case []byte:
		return json.Unmarshal(text, l)
	}
	return fmt.Errorf("tags are %T", src)
}

// clockDifference is more than lies between the time in a run's id and when it was
// made, which one process reads while it accepts the run. So of a time that is asked
// for only the ids around it are read.
const clockDifference = time.Hour

// Runs lists a team's runs, newest first.
func (db *DB) Runs(ctx context.Context, team ids.Team, f runs.Filter, before ids.Run, limit int) ([]runs.Run, error) {
	if end := ids.FirstRun(f.Until.Add(clockDifference)); !f.Until.IsZero() && (before == "" || end < before) {
		before = end
	}
	before = orAfterAll(db, before)
	where := `
		team_id = $1 AND id < $2 AND id >= $11 AND ($3 = '' OR status = $3) AND ($4 = '' OR workflow_id = $4) AND created_at >= $5
		AND created_at < $6 AND ($7 = '' OR starter_id = $7) AND ($8 = '' OR REPLACE(tags, $8, '') <> tags)`
	switch f.Status { // of few, by an index of theirs
	case lifecycle.Queued:
		where += ` AND status = 'queued'`
	case lifecycle.Running:
		where += ` AND id IN (SELECT g.id FROM runs g WHERE g.status = 'running')`
	}
	if where += ` AND $10 = ''`; f.FavoriteOf != "" {
		where = strings.TrimSuffix(where, `$10 = ''`) + `id IN (SELECT m.run_id FROM favorite_runs m WHERE m.user_id = $10)`
	}
	tag := ""
	if f.Tag != "" {
		tag = `"` + f.Tag + `"`
	}
	args := []any{
		team, before, string(f.Status), string(f.Workflow), max(0, f.Since.UnixMicro()), beforeOrEver(f.Until), f.Starter, tag, limit, string(f.FavoriteOf),
		ids.FirstRun(f.Since.Add(-clockDifference)),
	}
	if f.Text != "" {
		return db.searchRuns(ctx, team, f, where, args)
	}
	return all(ctx, db, func(r *sql.Rows, v *runs.Run) error { return scanRun(r, v) }, runRow+` FROM runs WHERE `+where+`
		ORDER BY id DESC
		LIMIT $9 + 0`, args...)
}

func beforeOrEver(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return t.UnixMicro()
}

// LabelRun changes what a run is called.
func (db *DB) LabelRun(ctx context.Context, team ids.Team, id ids.Run, e runs.LabelEdit) error {
	var tags *string
	if e.Tags != nil {
		text := tagsText(e.Tags)
		tags = &text
	}
	n, err := db.changed(ctx, `
		UPDATE runs SET name = COALESCE($1, name), note = COALESCE($2, note), tags = COALESCE($3, tags), search_due = TRUE
		WHERE team_id = $4 AND id = $5`, e.Name, e.Note, tags, team, id)
	if err == nil && n == 0 {
		return fault.NotFound("no such run")
	}
	return err
}
