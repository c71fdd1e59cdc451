package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// belongings is a table with rows of teams.
type belongings struct {
	table string
	key   string // its columns
	of    string // which rows are the team's
	kind  string // under which they are counted; empty: they are not
}

const (
	ofTeam     = `team_id = $1`
	ofRun      = `run_id IN (SELECT id FROM runs WHERE team_id = $1)`
	ofWorkflow = `workflow_id IN (SELECT id FROM workflows WHERE team_id = $1)`
)

// everything of a team, what hangs on something else first. A test holds the
// list against the schema.
var everything = []belongings{
	{"answers", "scope, key", `scope LIKE '% ' || $1 || ' %'`, ""},
	{"outbox", "id", ofTeam, ""},
	{"access_tokens", "id", ofTeam, ""},
	{"secrets", "team_id, name", ofTeam, "secrets"},
	{"audit", "chain, seq", `chain = $1`, "audit"},
	{"audit_chains", "chain", `chain = $1`, ""},
	{"connections", "id", ofTeam, "connections"},
	{"environments", "team_id, key", ofTeam, ""},
	{"attempt_logs", "attempt_id, start", `attempt_id IN (SELECT id FROM attempts WHERE ` + ofRun + `)`, ""},
	{"attempts", "id", ofRun, ""},
	{"run_events", "run_id, seq", ofRun, ""},
	{"run_logs", "run_id, start", ofRun, ""},
	{"run_attempts", "run_id, node_id, shard, attempt", ofRun, ""},
	{"kept_files", "run_id, node_id, shard, attempt, n", ofRun, ""},
	{"kept_attempts", "run_id, node_id, shard, attempt", ofTeam, ""},
	{"run_nodes", "run_id, node_id", ofRun, ""},
	{"run_addresses", "run_id, url", ofRun, ""},
	{"output_copies", "run_id", ofRun, ""},
	{"learnt_hashes", "team_id, endpoint, url, etag", ofTeam, ""},
	{"reported_tasks", "run_id, id", ofRun, ""},
	{"reported_nodes", "run_id, node_id", ofRun, ""},
	{"reported_runs", "run_id", ofTeam, "reportedRuns"},
	{"reported_projects", "team_id, engine, project", ofTeam, ""},
	{"run_search", "run_id", ofRun, ""},
	{"result_links", "id", ofTeam, "resultLinks"},
	{"runs", "id", ofTeam, "runs"},
	{"sweeps", "id", ofTeam, ""},
	{"run_numbers", "workflow_id", ofTeam, ""},
	{"team_usage", "team_id", ofTeam, ""},
	{"team_retention", "team_id", ofTeam, ""},
	{"retention_progress", "team_id, kind", ofTeam, ""},
	{"files", "key", ofTeam, "files"},
	{"blobs", "key", ofTeam, ""},
	{"doomed_blobs", "key", `key LIKE 'teams/' || $1 || '/%'`, ""},
	{"reservations", "key", ofTeam, ""},
	{"large_uploads", "id", ofTeam, ""},
	{"storage", "team_id", ofTeam, ""},
	{"team_quotas", "team_id", ofTeam, ""},
	{"vcpu_use", "team_id, user_id", ofTeam, ""},
	{"storage_hours", "team_id, hour", ofTeam, ""},
	{"storage_carry", "team_id", ofTeam, ""},
	{"document_updates", "workflow_id, seq", ofWorkflow, ""},
	{"document_snapshots", "workflow_id", ofWorkflow, ""},
	{"documents", "workflow_id", ofWorkflow, ""},
	{"guests", "id", `invite_id IN (SELECT id FROM share_invites WHERE team_id = $1)`, "guests"},
	{"share_invites", "id", ofTeam, "invites"},
	{"schedule_firings", "schedule_id, due_at", `schedule_id IN (SELECT id FROM schedules WHERE team_id = $1)`, ""},
	{"webhook_deliveries", "id", ofTeam, ""},
	{"webhooks", "id", ofTeam, "webhooks"},
	{"notifications", "id", ofTeam, "notifications"},
	{"saved_filters", "id", ofTeam, "filters"},
	{"favorite_runs", "run_id, user_id", ofTeam, ""},
	{"favorite_workflows", "workflow_id, user_id", ofTeam, ""},
	{"schedules", "id", ofTeam, "schedules"},
	{"triggers", "id", ofTeam, "triggers"},
	{"workflow_sources", "workflow_id", ofWorkflow, ""},
	{"followed_repositories", "workflow_id", ofWorkflow, ""},
	{"workflow_inputs", "workflow_id, key", ofTeam, ""},
	{"workflow_revisions", "workflow_id, revision", ofWorkflow, "revisions"},
	{"workflows", "id", ofTeam, "workflows"},
	{"analyses", "id", ofTeam, "analyses"},
	{"readings", "id", ofTeam, ""},
	{"chat_use", "team_id, day", ofTeam, ""},
	{"failed_pdfs", "day, who", `who = $1`, ""},
	{"deleted_runs", "run_id", ofTeam, ""},
	{"ledger", "id", ofTeam, "usage"},
	{"budget_holds", "budget_id, hold_id", `budget_id IN (SELECT id FROM budgets WHERE team_id = $1)`, ""},
	{"budgets", "id", ofTeam, "budgets"},
	{"holds", "id", ofTeam, ""},
	{"balances", "team_id", ofTeam, ""},
	{"team_subscriptions", "team_id, id", ofTeam, ""},
	{"invitations", "id", ofTeam, "invitations"},
	{"group_mapping", "group_name, team_id", ofTeam, ""},
	{"mapped_members", "team_id, user_id", ofTeam, ""},
	{"memberships", "team_id, user_id", ofTeam, "members"},
	{"users", "id", `service_of = $1`, ""}, // service accounts; people stay
}

// loose are those of them whose rows the database does not tie to the team.
var loose = []string{"audit", "audit_chains", "answers", "outbox", "doomed_blobs", "failed_pdfs", "team_quotas"}

// eraseBatch is how many rows go in one transaction: others wait meanwhile.
const eraseBatch = 500

// EraseRows removes everything that is the team's, and then the team itself.
func (db *DB) EraseRows(ctx context.Context, team ids.Team) error {
	if err := db.inTx(ctx, func(tx *DB) error { return tx.keepInvoices(ctx, team) }); err != nil {
		return err
	}
	for _, b := range everything {
		for more := true; more; {
			n, err := db.eraseSome(ctx, b, team)
			if err != nil {
				return fmt.Errorf("erase from %s: %w", b.table, err)
			}
			more = n == eraseBatch
		}
	}
	return db.eraseTeam(ctx, team)
}

// AttemptPrefixes are where objects of the team's attempts lie.
func (db *DB) AttemptPrefixes(ctx context.Context, team ids.Team) ([]string, error) {
	return all(ctx, db, func(r *sql.Rows, prefix *string) error {
		err := r.Scan(prefix)
		*prefix = attempts.ObjectPrefix(*prefix)
		return err
	}, `SELECT id FROM attempts WHERE `+ofRun, team)
}

// eraseSome removes a batch, and counts it in the same transaction.
func (db *DB) eraseSome(ctx context.Context, b belongings, team ids.Team) (n int64, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		n, err = tx.changed(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE (%[2]s) IN (SELECT %[2]s FROM %[1]s WHERE %[3]s LIMIT %[4]d)`,
			b.table, b.key, b.of, eraseBatch), team)
		if err != nil || n == 0 || b.kind == "" {
			return err
		}
		return tx.countErased(ctx, team, b.kind, int(n))
	})
	return n, err
}

func (db *DB) countErased(ctx context.Context, team ids.Team, kind string, n int) error {
	e, err := db.erasure(ctx, `team_id = $1 `+db.dialect.forUpdate, team)
	if err != nil {
		return err
	}
	e.Counts[kind] += n
	text, err := json.Marshal(e.Counts)
	if err != nil {
		return err
	}
	_, err = db.changed(ctx, `UPDATE erasures SET counts = $1 WHERE team_id = $2`, string(text), team)
	return err
}

// keepInvoices keeps what the law wants of them, and nothing that shows whose
// they were.
func (db *DB) keepInvoices(ctx context.Context, team ids.Team) error {
	_, err := db.changed(ctx, `
		INSERT INTO kept_invoices (id, number, status, amount, currency, description, created_at, paid_at)
		SELECT id, number, status, amount, currency, description, created_at, paid_at FROM invoices WHERE team_id = $1`, team)
	if err != nil {
		return err
	}
	for _, table := range []string{"invoices", "orders"} {
		if _, err := db.changed(ctx, `DELETE FROM `+table+` WHERE team_id = $1`, team); err != nil {
			return err
		}
	}
	return nil
}

// eraseTeam removes the team itself, with what was written in the last moment.
// From then on nothing can be written for it.
func (db *DB) eraseTeam(ctx context.Context, team ids.Team) error {
	return db.inTx(ctx, func(tx *DB) error {
		var id string
		err := tx.asFault(tx.q.QueryRowContext(ctx, `SELECT id FROM teams WHERE id = $1 `+tx.dialect.forUpdate, team).Scan(&id), "team")
		if fault.Is(err, fault.KindNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		var open int
		err = tx.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM runs WHERE team_id = $1 AND status IN ('queued', 'running')`, team).Scan(&open)
		if err != nil {
			return err
		}
		if open > 0 {
			return fault.Conflict("the team has runs that have not ended")
		}
		if err := tx.keepInvoices(ctx, team); err != nil {
			return err
		}
		// A paper that everybody may read stays; who asked for it first does not.
		if _, err := tx.changed(ctx, `UPDATE readings SET charged_to = '' WHERE charged_to = $1`, string(team)); err != nil {
			return err
		}
		// What refers to the team goes with it. These do not.
		for _, b := range everything {
			if !slices.Contains(loose, b.table) {
				continue
			}
			if _, err := tx.changed(ctx, `DELETE FROM `+b.table+` WHERE `+b.of, team); err != nil {
				return err
			}
		}
		_, err = tx.changed(ctx, `DELETE FROM teams WHERE id = $1`, team)
		return err
	})
}

// Scrub rewrites the embedded database, because a deleted row stays readable in
// its free pages and in the write-ahead log, and its words in the index of runs.
// PostgreSQL does so by itself.
func (db *DB) Scrub(ctx context.Context) error {
	if db.writer == nil {
		return nil
	}
	return db.writer.exclusive(ctx, func(q querier) error {
		// The copy it makes on the way may be too large for the memory.
		if _, err := q.ExecContext(ctx, `PRAGMA temp_store = FILE`); err != nil {
			return err
		}
		_, err := q.ExecContext(ctx, `INSERT INTO run_words (run_words) VALUES ('optimize')`)
		if err == nil {
			_, err = q.ExecContext(ctx, `VACUUM`)
		}
		_, back := q.ExecContext(context.WithoutCancel(ctx), `PRAGMA temp_store = MEMORY`)
		if err = errors.Join(err, back); err != nil {
			return err
		}
		var busy, frames, done int
		if err := q.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &done); err != nil {
			return err
		}
		if busy != 0 {
			return errors.New("somebody reads an old state of the database: its write-ahead log cannot be emptied now")
		}
		return nil
	})
}
