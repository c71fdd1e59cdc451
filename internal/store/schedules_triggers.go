package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/schedules"
)

var _ schedules.TriggerStore = (*DB)(nil)

func triggerPlace(id ids.Trigger) string { return "triggers/" + string(id) }

// InsertTrigger adds a trigger to a workflow of its team.
func (db *DB) InsertTrigger(ctx context.Context, t schedules.Trigger, most int, r *access.IdempotencyRecord) error {
	audit.On(ctx, t.ID)
	given, err := json.Marshal(t.Given)
	if err != nil {
		return err
	}
	mapped := []byte{}
	if t.Map != nil {
		if mapped, err = json.Marshal(t.Map); err != nil {
			return err
		}
	}
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.record(ctx, r, t.CreatedAt); err != nil {
			return err
		}
		if err := tx.mayHaveMore(ctx, "triggers", t.Team, t.Workflow, most); err != nil {
			return err
		}
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO triggers (id, team_id, workflow_id, token_hash, token_hint, signed, sealed, action, given, mapped, created_by, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			t.ID, t.Team, t.Workflow, t.TokenHash, t.TokenHint, t.Signed, tx.sealer.seal(triggerPlace(t.ID), []byte(t.Secret)), t.Action,
			string(given), string(mapped), t.CreatedBy, micros(t.CreatedAt))
		if err != nil {
			return err
		}
		return tx.fitDefinitions(ctx, t.Team, int64(len(given)+len(mapped)))
	})
}

const triggerRow = `
	SELECT t.id, t.team_id, t.workflow_id, t.token_hash, t.token_hint, t.signed, t.sealed, t.action, t.given, t.mapped, t.created_by, u.name, t.created_at,
	       t.last_used_at, t.last_run_id
	FROM triggers t JOIN users u ON u.id = t.created_by `

func scanTrigger(row scanner, t *schedules.Trigger, sealed *[]byte) error {
	var given, mapped []byte
	var created int64
	var used sql.NullInt64
	err := row.Scan((*string)(&t.ID), (*string)(&t.Team), (*string)(&t.Workflow), &t.TokenHash, &t.TokenHint, &t.Signed, sealed, &t.Action, &given, &mapped,
		(*string)(&t.CreatedBy), &t.CreatedByName, &created, &used, (*string)(&t.LastRun))
	if err != nil {
		return err
	}
	t.CreatedAt, t.LastUsedAt = fromMicros(created), fromNull(used)
	if len(mapped) > 0 {
		if err := json.Unmarshal(mapped, &t.Map); err != nil {
			return err
		}
	}
	return json.Unmarshal(given, &t.Given)
}

func (db *DB) triggersWhere(ctx context.Context, where string, args ...any) ([]schedules.Trigger, error) {
	return all(ctx, db, func(r *sql.Rows, t *schedules.Trigger) error { return scanTrigger(r, t, new([]byte)) }, triggerRow+where, args...)
}

// Triggers are those of a workflow, newest first.
func (db *DB) Triggers(ctx context.Context, team ids.Team, workflow ids.Workflow) ([]schedules.Trigger, error) {
	return db.triggersWhere(ctx, `WHERE t.team_id = $1 AND t.workflow_id = $2 ORDER BY t.id DESC`, team, workflow)
}

// TriggersOfTeam are a team's before one of them, newest first.
func (db *DB) TriggersOfTeam(ctx context.Context, team ids.Team, before ids.Trigger, limit int) ([]schedules.Trigger, error) {
	before = orAfterAll(db, before)
	return db.triggersWhere(ctx, `WHERE t.team_id = $1 AND t.id < $2 ORDER BY t.id DESC LIMIT $3 + 0`, team, before, limit)
}

// Trigger is one of a workflow.
func (db *DB) Trigger(ctx context.Context, team ids.Team, workflow ids.Workflow, id ids.Trigger) (schedules.Trigger, error) {
	list, err := db.triggersWhere(ctx, `WHERE t.team_id = $1 AND t.workflow_id = $2 AND t.id = $3`, team, workflow, id)
	if err != nil || len(list) == 0 {
		return schedules.Trigger{}, orMissing(err, "trigger")
	}
	return list[0], nil
}

// TriggerByHash is the trigger of a token, with what its callers sign with.
func (db *DB) TriggerByHash(ctx context.Context, tokenHash string) (t schedules.Trigger, err error) {
	var sealed []byte
	err = scanTrigger(db.q.QueryRowContext(ctx, triggerRow+`WHERE t.token_hash = $1`, tokenHash), &t, &sealed)
	if err != nil {
		return t, db.asFault(err, "trigger")
	}
	secret, err := db.sealer.open(triggerPlace(t.ID), sealed)
	t.Secret = string(secret)
	return t, err
}

// DeleteTrigger ends a trigger.
func (db *DB) DeleteTrigger(ctx context.Context, team ids.Team, workflow ids.Workflow, id ids.Trigger) error {
	return db.deleteOfWorkflow(ctx, "triggers", triggerSize, team, workflow, string(id))
}
