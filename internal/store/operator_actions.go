package store

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/runs"
)

var _ operator.Changes = (*DB)(nil)

// GrantTo gives a team credits that do not expire, or takes some back.
func (db *DB) GrantTo(ctx context.Context, g operator.Grant, now time.Time) error {
	e := billing.Entry{
		Team: g.Team, Type: billing.GrantEntry, Source: "admin", SourceID: ids.NewEntry(), Credits: g.Credits, Description: g.Reason, CreatedAt: now,
	}
	if g.Credits < 0 {
		e.Type = billing.AdjustmentEntry
	}
	return db.ofTeam(ctx, g.Team, func(tx *DB) error {
		if err := tx.record(ctx, g.Once, now); err != nil {
			return err
		}
		return tx.Grant(ctx, e)
	})
}

// PutOnPlan puts a team on another plan.
func (db *DB) PutOnPlan(ctx context.Context, team ids.Team, plan credits.Plan, now time.Time) error {
	return db.ofTeam(ctx, team, func(tx *DB) error { return tx.SetPlan(ctx, team, plan, now) })
}

// SuspendTeam has a team start no runs, or lifts that.
func (db *DB) SuspendTeam(ctx context.Context, team ids.Team, yes bool, now time.Time) error {
	var at time.Time
	if yes {
		at = now
	}
	return db.ofTeam(ctx, team, func(tx *DB) error {
		_, err := tx.changed(ctx, `UPDATE teams SET suspended_at = $1 WHERE id = $2`, microsOrNull(at), team)
		return err
	})
}

// ofTeam does something to a team, which is there and stays, and has it on record
// in the team's log.
func (db *DB) ofTeam(ctx context.Context, team ids.Team, fn func(*DB) error) error {
	return db.inTx(ctx, func(tx *DB) error {
		err := tx.mustBeOpen(ctx, team)
		if fault.Is(err, fault.KindForbidden) {
			return fault.NotFound("there is no such team")
		}
		if err != nil {
			return err
		}
		inTeam(ctx, team)
		return fn(tx)
	})
}

// DrainWorker has a worker take no more runs until its process ends, or lifts
// that.
func (db *DB) DrainWorker(ctx context.Context, worker string, yes bool) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `UPDATE workers SET draining = $1 WHERE owner = $2`, yes, worker)
		if err == nil && n == 0 {
			err = fault.NotFound("there is no such worker")
		}
		return err
	})
}

// CancelAnyRun ends a run of any team.
func (db *DB) CancelAnyRun(ctx context.Context, id ids.Run, now time.Time) (lifecycle.Status, error) {
	r, err := db.OpenRun(ctx, id)
	if err != nil {
		return "", err
	}
	inTeam(ctx, r.Team)
	return db.CancelRun(ctx, r.Team, id, runs.Starter{Type: "operator", Name: "the operator"}, now)
}

// LeaveMail leaves a mail for the sender.
func (db *DB) LeaveMail(ctx context.Context, m mails.Message, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error { return tx.insertMail(ctx, m, now) })
}
