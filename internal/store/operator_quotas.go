package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/quotas"
	"github.com/millrace/millrace/internal/operator"
)

// ChangeTeam changes a team's plan and its quotas.
func (db *DB) ChangeTeam(ctx context.Context, team ids.Team, c operator.TeamChange, now time.Time) (t operator.Team, err error) {
	err = db.ofTeam(ctx, team, func(tx *DB) error {
		if c.Plan != nil {
			if err := tx.SetPlan(ctx, team, *c.Plan, now); err != nil {
				return err
			}
		}
		if err := tx.editQuotas(ctx, team, c.Quotas); err != nil {
			return err
		}
		if err := tx.recountHeld(ctx, team, now); err != nil {
			return err
		}
		list, err := tx.teamsWhere(ctx, `t.id = $1`, team, 1, now)
		if err == nil && len(list) == 0 {
			err = fault.NotFound("there is no such team")
		}
		if err == nil {
			t = list[0]
		}
		return err
	})
	return t, err
}

// recountHeld counts anew what is held for a team's runs: while several versions of the
// program work side by side, an older one ends holds without counting them.
func (db *DB) recountHeld(ctx context.Context, team ids.Team, now time.Time) error {
	if _, err := db.lockBalance(ctx, team, now); err != nil {
		return err
	}
	_, err := db.changed(ctx, `
		UPDATE vcpu_use SET held = (SELECT COALESCE(CAST(SUM(h.vcpu_seconds) AS BIGINT), 0) FROM holds h WHERE h.team_id = vcpu_use.team_id AND h.user_id = vcpu_use.user_id)
		WHERE team_id = $1`, team)
	return err
}

// NewTeams is what new teams begin with.
func (db *DB) NewTeams(ctx context.Context) (d operator.NewTeams, err error) {
	err = scanQuotas(db.q.QueryRowContext(ctx, `SELECT `+quotaColumns+`, q.plan FROM team_quotas q WHERE q.team_id = $1`, newTeams), &d.Quotas, (*string)(&d.Plan))
	if errors.Is(err, sql.ErrNoRows) {
		return operator.NewTeams{Quotas: quotas.None()}, nil
	}
	return d, err
}

// ChangeNewTeams changes what new teams begin with.
func (db *DB) ChangeNewTeams(ctx context.Context, c operator.TeamChange) error {
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.editQuotas(ctx, newTeams, c.Quotas); err != nil || c.Plan == nil {
			return err
		}
		_, err := tx.changed(ctx, `UPDATE team_quotas SET plan = $1 WHERE team_id = $2`, *c.Plan, newTeams)
		return err
	})
}
