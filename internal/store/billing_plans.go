package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// SetPlan puts a team on another plan. What a larger plan grants beyond this
// month's credits is granted at once; a smaller one counts from the next month.
func (db *DB) SetPlan(ctx context.Context, team ids.Team, plan credits.Plan, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		p, err := tx.lockBalance(ctx, team, now)
		if err != nil {
			return err
		}
		if err := tx.mustTouchTeam(ctx, `UPDATE teams SET plan = $1 WHERE id = $2`, plan, team); err != nil {
			return err
		}
		if p.Plan = plan; p.Waiting() {
			return nil
		}
		terms, ok := tx.catalog.Terms(plan)
		if more := terms.MonthlyCredits - p.Granted; ok && more > 0 {
			return tx.grantMonthly(ctx, p, more, "plan", p.Period.Format("2006-01")+" "+string(plan),
				fmt.Sprintf("the rest of this month's credits of the %s plan", plan), now)
		}
		return nil
	})
}

// grantWithheld gives a team the monthly credits that were withheld.
func (db *DB) grantWithheld(ctx context.Context, team ids.Team, now time.Time) error {
	p, err := db.lockBalance(ctx, team, now)
	if err != nil {
		return err
	}
	if err := db.mustTouchTeam(ctx, `UPDATE teams SET credits_wait_for = '' WHERE id = $1`, team); err != nil {
		return err
	}
	p.Unverified = false
	terms, ok := db.catalog.Terms(p.Plan)
	if more := terms.MonthlyCredits - p.Granted; ok && more > 0 {
		return db.grantMonthly(ctx, p, more, "verified", p.Period.Format("2006-01"),
			fmt.Sprintf("monthly credits of the %s plan, since the email address is confirmed", p.Plan), now)
	}
	return nil
}

// planTold notes what a team's subscription stands for, unless it is older
// than what is known of it, and puts the team on the largest of its plans.
func (db *DB) applyPlanEvent(ctx context.Context, e billing.PaymentEvent, now time.Time) error {
	if _, ok := db.catalog.Terms(e.Plan); !ok {
		return nil // a product of the account that is no plan of ours
	}
	_, err := db.lockBalance(ctx, e.Team, now) // from here on, one at a time
	if fault.Is(err, fault.KindNotFound) {
		return nil // of another shop, or of a team that is gone
	}
	if err != nil {
		return err
	}
	known, err := db.subscriptions(ctx, e.Team)
	if err != nil {
		return err
	}
	for _, s := range known {
		if (s.ID == e.Subscription || s.ID == "") && !s.FollowedBy(e.SubscriptionState()) {
			return nil
		}
	}
	if err := db.noteSubscription(ctx, e); err != nil {
		return err
	}
	if known, err = db.subscriptions(ctx, e.Team); err != nil {
		return err
	}
	return db.SetPlan(ctx, e.Team, billing.PlanOf(known, db.catalog), now)
}

func (db *DB) subscriptions(ctx context.Context, team ids.Team) ([]billing.Subscription, error) {
	return all(ctx, db, func(r *sql.Rows, s *billing.Subscription) error {
		var eventAt int64
		err := r.Scan(&s.ID, &s.Plan, &s.State, &s.Before, &s.Began, &s.Ended, &eventAt)
		s.EventAt = fromMicros(eventAt)
		return err
	}, `SELECT id, plan, state, state_before, began, ended, told_at FROM team_subscriptions WHERE team_id = $1`, team)
}

// noteSubscription keeps an event as the newest of its subscription. It takes
// the place of one that came before each had a row.
func (db *DB) noteSubscription(ctx context.Context, e billing.PaymentEvent) error {
	if _, err := db.changed(ctx, `DELETE FROM team_subscriptions WHERE team_id = $1 AND id = ''`, e.Team); err != nil {
		return err
	}
	_, err := db.changed(ctx, `
		INSERT INTO team_subscriptions (team_id, id, plan, state, state_before, began, ended, told_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (team_id, id) DO UPDATE SET plan = excluded.plan, state = excluded.state, state_before = excluded.state_before,
			began = excluded.began, ended = excluded.ended, told_at = excluded.told_at`,
		e.Team, e.Subscription, e.Plan, e.State, e.Before, e.Began, e.Ended, micros(e.Created))
	return err
}

// SampleStorage notes, once an hour, what every team keeps.
func (db *DB) SampleStorage(ctx context.Context, now time.Time) (n int, err error) {
	hour := micros(now.UTC().Truncate(time.Hour))
	teams, err := all(ctx, db, func(r *sql.Rows, s *storedTeam) error { return r.Scan(&s.team, &s.plan, &s.bytes) }, `
		SELECT t.id, t.plan, `+storedBytes+`
		FROM storage s JOIN teams t ON t.id = s.team_id
		WHERE `+storedBytes+` > 0 AND NOT EXISTS (SELECT 1 FROM storage_hours h WHERE h.team_id = t.id AND h.hour = $1)`, hour)
	if err != nil {
		return 0, err
	}
	for _, t := range teams {
		terms := db.catalog.TermsOf(t.plan)
		_, err := db.changed(ctx, `
			INSERT INTO storage_hours (team_id, hour, bytes, metered) VALUES ($1, $2, $3, $4)
			ON CONFLICT (team_id, hour) DO NOTHING`, t.team, hour, t.bytes, terms.StorageMetered)
		if err != nil && !db.dialect.isOrphan(err) && !fault.Is(err, fault.KindNotFound) { // it was erased meanwhile
			return n, err
		}
		n++
	}
	return n, nil
}

type storedTeam struct {
	team  ids.Team
	plan  credits.Plan
	bytes int64
}

// ChargeStorage books the storage of every day that is over. The samples go in
// the transaction that books them, so that no hour is charged twice.
func (db *DB) ChargeStorage(ctx context.Context, now time.Time) (n int, err error) {
	today := now.UTC().Truncate(24 * time.Hour)
	type teamDay struct {
		team ids.Team
		day  int64
	}
	due, err := all(ctx, db, func(r *sql.Rows, d *teamDay) error { return r.Scan(&d.team, &d.day) }, `
		SELECT DISTINCT team_id, hour / 86400000000 AS day FROM storage_hours WHERE hour < $1 ORDER BY day`, micros(today))
	if err != nil {
		return 0, err
	}
	for _, d := range due {
		err := db.inTx(ctx, func(tx *DB) error { return tx.chargeDay(ctx, d.team, fromMicros(d.day*dayMicros), now) })
		if err != nil && !fault.Is(err, fault.KindNotFound) { // it was erased meanwhile
			return n, err
		}
		n++
	}
	return n, nil
}

func (db *DB) chargeDay(ctx context.Context, team ids.Team, day, now time.Time) error {
	p, err := db.lockBalance(ctx, team, now)
	if err != nil {
		return err
	}
	samples, err := all(ctx, db, func(r *sql.Rows, n *int64) error { return r.Scan(n) }, `
		DELETE FROM storage_hours WHERE team_id = $1 AND hour >= $2 AND hour < $3
		RETURNING CASE WHEN metered THEN bytes ELSE 0 END`, team, micros(day), micros(day)+dayMicros)
	if err != nil || len(samples) == 0 { // another server has charged it
		return err
	}
	var carry credits.Carry
	err = db.q.QueryRowContext(ctx, `SELECT COALESCE(MAX(carry), 0) FROM storage_carry WHERE team_id = $1`, team).Scan(&carry)
	if err != nil {
		return err
	}
	cost, carry := db.catalog.Rates.StorageDay(day, samples, carry)
	_, err = db.changed(ctx, `
		INSERT INTO storage_carry (team_id, carry) VALUES ($1, $2)
		ON CONFLICT (team_id) DO UPDATE SET carry = excluded.carry`, team, carry)
	if err != nil || cost == 0 {
		return err
	}
	before := p.Spent
	if _, err := db.spend(ctx, p, storageEntry(day, samples, now), cost); err != nil {
		return err
	}
	return db.countStorage(ctx, team, p.Spent-before, now)
}

func storageEntry(day time.Time, samples []int64, now time.Time) billing.Entry {
	var byteHours float64
	for _, n := range samples {
		byteHours += float64(n)
	}
	return billing.Entry{
		Type: billing.StorageEntry, Source: "storage", SourceID: day.Format(time.DateOnly), CreatedAt: now,
		Quantity: byteHours / float64(credits.GB), Unit: "GB-hours", Description: "storage on " + day.Format("2 January 2006"),
	}
}
