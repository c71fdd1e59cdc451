package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

var (
	_ billing.LedgerStore = (*DB)(nil)
	_ billing.History     = (*DB)(nil)
)

// Balance is what a team has this month.
func (db *DB) Balance(ctx context.Context, team ids.Team, now time.Time) (billing.Balance, error) {
	b, err := db.balanceRow(ctx, team, balanceOf)
	if err != nil || !b.current(now) {
		err = db.inTx(ctx, func(tx *DB) error {
			b, err = tx.lockBalance(ctx, team, now)
			return err
		})
	}
	return b.Balance, err
}

// teamBalance is a balance inside a transaction that may change it.
type teamBalance struct {
	billing.Balance
	team  ids.Team
	known bool            // has a row
	row   billing.Balance // as the database has it
}

func (p *teamBalance) current(now time.Time) bool {
	start, _ := credits.Period(now)
	return p.known && !p.Period.Before(start)
}

// balanceOf finds the balance b of a team t, if it has one. A row that may be missing cannot
// be locked: to lock one, an inner join takes its place.
const balanceOf = `teams t LEFT JOIN balances b ON b.team_id = t.id WHERE t.id = $1`

func (db *DB) balanceRow(ctx context.Context, team ids.Team, from string) (*teamBalance, error) {
	p := &teamBalance{team: team}
	var period, granted, spent, monthly, topUp, held, stored sql.NullInt64
	err := db.q.QueryRowContext(ctx, `
		SELECT t.plan, b.period, b.granted, b.spent, b.monthly, b.top_up, b.held, (SELECT `+storedBytes+` FROM storage s WHERE s.team_id = t.id), t.credits_wait_for <> ''
		FROM `+from, team).
		Scan((*string)(&p.Plan), &period, &granted, &spent, &monthly, &topUp, &held, &stored, &p.Unverified)
	if err != nil {
		return p, db.asFault(err, "team")
	}
	p.known = period.Valid
	p.Period, p.Granted, p.Spent = fromMicros(period.Int64), credits.Amount(granted.Int64), credits.Amount(spent.Int64)
	p.Credits = credits.Balance{Monthly: credits.Amount(monthly.Int64), TopUp: credits.Amount(topUp.Int64)}
	p.Held, p.Stored = credits.Amount(held.Int64), stored.Int64
	p.row = p.Balance
	return p, nil
}

// lockedRow reads a balance and keeps others from changing it until the transaction ends.
//
// Programs of earlier versions do not lock the row: they write what they have read under an
// advisory lock. So its names are locked as well. They can go when no such program can run
// beside this one.
func (db *DB) lockedRow(ctx context.Context, team ids.Team) (*teamBalance, error) {
	if err := db.lock(ctx, "purse "+string(team), "teamBalance "+string(team)); err != nil {
		return &teamBalance{}, err
	}
	p, err := db.balanceRow(ctx, team, `teams t JOIN balances b ON b.team_id = t.id WHERE t.id = $1 `+db.dialect.forUpdateOf("b"))
	if fault.Is(err, fault.KindNotFound) {
		return db.balanceRow(ctx, team, balanceOf)
	}
	return p, err
}

// lockBalance reads and locks a team's balance. In a new month it lets what was left expire
// and grants what the plan gives.
func (db *DB) lockBalance(ctx context.Context, team ids.Team, now time.Time) (*teamBalance, error) {
	p, err := db.lockedRow(ctx, team)
	if err != nil || p.current(now) || db.catalog.Off {
		return p, err
	}
	start, end := credits.Period(now)
	if p.known {
		if err := db.expire(ctx, p, start); err != nil {
			return p, err
		}
	}
	p.Period, p.Granted, p.Spent = start, 0, 0
	if p.Waiting() {
		return p, nil // the month begins when it has something
	}
	terms := db.catalog.TermsOf(p.Plan)
	return p, db.grantMonthly(ctx, p, terms.MonthlyCredits, "month", start.Format("2006-01"),
		fmt.Sprintf("monthly credits of the %s plan, until %s", terms.Name, end.Format("2 January 2006")), now)
}

func (db *DB) expire(ctx context.Context, p *teamBalance, at time.Time) error {
	rest, gone := p.Credits.Expire()
	p.Credits = rest
	if gone == 0 {
		return nil
	}
	_, err := db.appendEntry(ctx, p, billing.Entry{
		Type: billing.ExpiryEntry, Source: "expiry", SourceID: p.Period.Format("2006-01"), CreatedAt: at,
		Description: "monthly credits of " + p.Period.Format("January 2006") + " that were not used",
	}, credits.Split{Monthly: -gone})
	return err
}

// grantMonthly adds to the month's credits.
func (db *DB) grantMonthly(ctx context.Context, p *teamBalance, amount credits.Amount, source, id, why string, now time.Time) error {
	p.Granted += amount
	p.Credits.Monthly += amount
	_, err := db.appendEntry(ctx, p, billing.Entry{
		Type: billing.GrantEntry, Source: source, SourceID: id, Description: why, CreatedAt: now,
	}, credits.Split{Monthly: amount})
	return err
}

// appendEntry appends an entry and adds to the balance by how much p has changed. Booked is
// false, and nothing changes, when this source stands in the ledger already.
func (db *DB) appendEntry(ctx context.Context, p *teamBalance, e billing.Entry, parts credits.Split) (booked bool, err error) {
	n, err := db.changed(ctx, `
		INSERT INTO ledger (id, team_id, type, source, source_id, monthly, top_up, run_id, workflow_id,
			actor_type, actor_id, actor_name, quantity, unit, description, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
		ON CONFLICT (team_id, source, source_id) DO NOTHING`,
		ids.NewEntry(), p.team, e.Type, e.Source, e.SourceID, parts.Monthly, parts.TopUp, e.Run, e.Workflow,
		e.Actor.Type, e.Actor.ID, e.Actor.Name, quantity(e), e.Unit, e.Description, micros(e.CreatedAt))
	if err != nil || n == 0 {
		return false, err
	}
	_, err = db.changed(ctx, `
		INSERT INTO balances (team_id, period, granted, spent, monthly, top_up, held)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (team_id) DO UPDATE SET period = excluded.period, granted = balances.granted + excluded.granted, spent = balances.spent + excluded.spent,
			monthly = balances.monthly + excluded.monthly, top_up = balances.top_up + excluded.top_up, held = balances.held + excluded.held`,
		p.team, micros(p.Period), p.Granted-p.row.Granted, p.Spent-p.row.Spent,
		p.Credits.Monthly-p.row.Credits.Monthly, p.Credits.TopUp-p.row.Credits.TopUp, p.Held-p.row.Held)
	p.known, p.row = true, p.Balance
	return true, err
}

func quantity(e billing.Entry) any {
	if e.Unit == "" {
		return nil
	}
	return e.Quantity
}

// spend books a cost. What the balance does not have is given back by an
// adjustment, so that the balance never falls below zero.
func (db *DB) spend(ctx context.Context, p *teamBalance, e billing.Entry, cost credits.Amount) (booked bool, err error) {
	before := *p
	rest, split := p.Credits.Spend(cost)
	p.Credits, p.Spent = rest, p.Spent+cost-split.Short
	booked, err = db.appendEntry(ctx, p, e, credits.Split{Monthly: -split.Monthly, TopUp: -split.TopUp - split.Short})
	if err != nil || !booked {
		*p = before
		return false, err
	}
	return true, db.bookShortfall(ctx, p, e, split.Short)
}

// bookShortfall books what was short.
func (db *DB) bookShortfall(ctx context.Context, p *teamBalance, e billing.Entry, short credits.Amount) error {
	if short == 0 {
		return nil
	}
	e.Type, e.Source, e.Description = billing.AdjustmentEntry, "adjustment "+e.Source, "beyond the credits that were left: "+e.Description
	e.Quantity, e.Unit = 0, ""
	_, err := db.appendEntry(ctx, p, e, credits.Split{TopUp: short})
	return err
}

// Grant gives a team credits that do not expire, or takes some back; booked
// before, it changes nothing.
func (db *DB) Grant(ctx context.Context, e billing.Entry) error {
	return db.inTx(ctx, func(tx *DB) error {
		p, err := tx.lockBalance(ctx, e.Team, e.CreatedAt)
		if err != nil {
			return err
		}
		if e.Credits < 0 {
			return tx.takeBack(ctx, p, e, -e.Credits)
		}
		p.Credits.TopUp += e.Credits
		_, err = tx.appendEntry(ctx, p, e, credits.Split{TopUp: e.Credits})
		return err
	})
}

// takeBack books credits that leave, bought ones first.
func (db *DB) takeBack(ctx context.Context, p *teamBalance, e billing.Entry, amount credits.Amount) error {
	before := *p
	rest, split := p.Credits.TakeBack(amount)
	p.Credits = rest
	booked, err := db.appendEntry(ctx, p, e, credits.Split{Monthly: -split.Monthly, TopUp: -split.TopUp - split.Short})
	if err != nil || !booked {
		*p = before
		return err
	}
	return db.bookShortfall(ctx, p, e, split.Short)
}

// Hold sets credits aside. The check and the hold are one statement, so two
// can never both have the last credits.
func (db *DB) Hold(ctx context.Context, team ids.Team, id string, amount credits.Amount, now time.Time) error {
	return db.holdFor(ctx, spender{team: team, id: id, guests: true}, amount, now)
}

// holdFor is Hold for somebody whose budgets count. A team without budgets pays
// no statement for those that have some.
func (db *DB) holdFor(ctx context.Context, s spender, amount credits.Amount, now time.Time) error {
	if db.catalog.Off {
		amount = 0
	}
	return db.inTx(ctx, func(tx *DB) error {
		p, err := tx.lockBalance(ctx, s.team, now)
		if err != nil {
			return err
		}
		if s.guests {
			if err := tx.withinInvite(ctx, s.id, amount, now); err != nil {
				return err
			}
		}
		if err := tx.withinOwnLimit(ctx, s, amount); err != nil {
			return err
		}
		if !tx.catalog.Off {
			if err := tx.holdCredits(ctx, s, p, amount, now); err != nil {
				return err
			}
		}
		if err := tx.holdVCPU(ctx, s, now); err != nil {
			return err
		}
		return tx.growHold(ctx, s, amount, now)
	})
}

// holdCredits sets credits aside in a balance that is locked.
func (db *DB) holdCredits(ctx context.Context, s spender, p *teamBalance, amount credits.Amount, now time.Time) error {
	var budgeted bool
	err := db.q.QueryRowContext(ctx, `
		UPDATE balances SET held = held + $1
		WHERE team_id = $2 AND monthly + top_up - held >= $1 AND NOT EXISTS (SELECT 1 `+beyondBudget+`)
		RETURNING `+hasBudgets("balances"), s.budgetArgs(amount, now)...).Scan(&budgeted)
	if errors.Is(err, sql.ErrNoRows) {
		return db.refusal(ctx, s, p, amount, now)
	}
	if err != nil || !budgeted {
		return err
	}
	return db.countHold(ctx, s, amount, now)
}

func (db *DB) growHold(ctx context.Context, s spender, amount credits.Amount, now time.Time) error {
	_, err := db.changed(ctx, `
		INSERT INTO holds (id, team_id, amount, created_at, vcpu_seconds, user_id) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (id) DO UPDATE SET amount = holds.amount + excluded.amount, vcpu_seconds = holds.vcpu_seconds + excluded.vcpu_seconds`,
		s.id, s.team, amount, micros(now), s.vcpuSeconds, s.user)
	return err
}

// HoldForRun sets more of the credits and of the vCPU hours aside, for so many seconds of
// a run that a worker still holds.
func (db *DB) HoldForRun(ctx context.Context, id ids.Run, fence, seconds int64, now time.Time) error {
	return db.fenced(ctx, id, fence, func(tx *DB, r runs.Run) error {
		s := spenderOf(r, seconds)
		s.guests = r.Starter.Type == "guest"
		return tx.holdFor(ctx, s, r.Price*credits.Amount(seconds), now)
	})
}

// HeldFor is what is held for something; nothing is no error.
func (db *DB) HeldFor(ctx context.Context, id string) (held credits.Amount, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT COALESCE(SUM(amount), 0) FROM holds WHERE id = $1`, id).Scan(&held)
	return held, err
}

// HeldSeconds is for how many seconds of a run is held.
func (db *DB) HeldSeconds(ctx context.Context, id ids.Run) (seconds int64, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT COALESCE(MAX(h.vcpu_seconds / r.vcpu), 0) FROM holds h JOIN runs r ON r.id = h.id WHERE h.id = $1`, id).Scan(&seconds)
	return seconds, err
}

// SettleHold ends a hold and books what it came to. Called again, it changes
// nothing.
func (db *DB) SettleHold(ctx context.Context, id string, e billing.Entry, cost credits.Amount) error {
	return db.inTx(ctx, func(tx *DB) error {
		p, err := tx.lockBalance(ctx, e.Team, e.CreatedAt)
		if err != nil {
			return err
		}
		var held credits.Amount
		var budgeted bool
		var vcpuHeld int64
		var user string
		err = tx.q.QueryRowContext(ctx, `DELETE FROM holds WHERE id = $1 AND team_id = $2 RETURNING amount, vcpu_seconds, user_id, `+hasBudgets("holds"), id, e.Team).
			Scan(&held, &vcpuHeld, &user, &budgeted)
		if err = tx.asFault(err, "hold"); fault.Is(err, fault.KindNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := tx.settleVCPU(ctx, e.Team, user, vcpuHeld, e.VCPUSeconds, e.CreatedAt); err != nil {
			return err
		}
		before := p.Spent
		if err := tx.settle(ctx, p, e, held, cost); err != nil || !budgeted {
			return err
		}
		return tx.countCost(ctx, e.Team, id, p.Spent-before, e.CreatedAt)
	})
}

// settle releases what was held and books what it came to.
func (db *DB) settle(ctx context.Context, p *teamBalance, e billing.Entry, held, cost credits.Amount) error {
	p.Held -= held
	if cost > 0 || db.catalog.Off {
		booked, err := db.spend(ctx, p, e, cost)
		if err != nil || booked {
			return err // the balance is written with the entry
		}
	}
	_, err := db.changed(ctx, `UPDATE balances SET held = held - $1 WHERE team_id = $2`, held, e.Team)
	p.row.Held = p.Held
	return err
}

// Entries lists a team's ledger, newest first.
func (db *DB) Entries(ctx context.Context, team ids.Team, before string, limit int) ([]billing.Entry, error) {
	return db.entriesWhere(ctx, `TRUE`, team, before, limit)
}

// RunEntries are those of Entries that are about runs.
func (db *DB) RunEntries(ctx context.Context, team ids.Team, before string, limit int) ([]billing.Entry, error) {
	return db.entriesWhere(ctx, `type = 'run'`, team, before, limit)
}

func (db *DB) entriesWhere(ctx context.Context, which string, team ids.Team, before string, limit int) ([]billing.Entry, error) {
	before = orAfterAll(db, before)
	return all(ctx, db, func(r *sql.Rows, e *billing.Entry) error {
		var created int64
		var q sql.NullFloat64
		err := r.Scan(&e.ID, &e.Type, &e.Source, &e.SourceID, &e.Credits, &e.Run, &e.Workflow,
			&e.Actor.Type, &e.Actor.ID, &e.Actor.Name, &q, &e.Unit, &e.Description, &created)
		e.Team, e.Quantity, e.CreatedAt = team, q.Float64, fromMicros(created)
		return err
	}, `
		SELECT id, type, source, source_id, monthly + top_up, run_id, workflow_id,
		       actor_type, actor_id, actor_name, quantity, unit, description, created_at
		FROM ledger
		WHERE team_id = $1 AND id < $2 AND `+which+`
		ORDER BY id DESC
		LIMIT $3 + 0`, team, before, limit)
}

// Typical is what the newest runs of a workflow took, of those that were
// billed.
func (db *DB) Typical(ctx context.Context, team ids.Team, id ids.Workflow) (t billing.Typical, known bool, err error) {
	seconds, err := all(ctx, db, func(r *sql.Rows, s *float64) error { return r.Scan(s) }, `
		SELECT quantity FROM ledger
		WHERE team_id = $1 AND workflow_id = $2 AND type = 'run' AND quantity IS NOT NULL
		ORDER BY id DESC
		LIMIT 100`, team, id)
	if err != nil || len(seconds) == 0 {
		return t, false, err
	}
	slices.Sort(seconds)
	at := func(percent int) int64 { return int64(seconds[(len(seconds)-1)*percent/100]) }
	return billing.Typical{P50Seconds: at(50), P90Seconds: at(90)}, true, nil
}

const dayMicros = int64(24 * time.Hour / time.Microsecond)

// Days sums up what a team used since from, by day and kind.
func (db *DB) Days(ctx context.Context, team ids.Team, from time.Time) ([]billing.Day, error) {
	type sum struct {
		day, count int64
		kind       billing.EntryType
		used       credits.Amount
	}
	sums, err := all(ctx, db, func(r *sql.Rows, s *sum) error { return r.Scan(&s.day, &s.kind, &s.used, &s.count) }, `
		SELECT created_at / 86400000000, type, -SUM(monthly + top_up), COUNT(*)
		FROM ledger
		WHERE team_id = $1 AND created_at >= $2 AND type IN ('run', 'storage')
		GROUP BY 1, 2
		ORDER BY 1`, team, micros(from))
	if err != nil {
		return nil, err
	}
	var days []billing.Day
	for _, s := range sums {
		date := fromMicros(s.day * dayMicros)
		if len(days) == 0 || !days[len(days)-1].Date.Equal(date) {
			days = append(days, billing.Day{Date: date})
		}
		d := &days[len(days)-1]
		if s.kind == billing.RunEntry {
			d.Compute, d.Runs = s.used, int(s.count)
		} else {
			d.Storage = s.used
		}
	}
	return days, nil
}
