package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

var _ billing.BudgetStore = (*DB)(nil)

// spender is whose credits are held, and for what.
type spender struct {
	team ids.Team
	id   string // of the hold
	user string // whose budget counts; empty: of nobody with an account
	tags []string

	most   credits.Amount // that may be held in all; 0: no limit
	guests bool           // may be a guest's

	vcpuSeconds int64 // that are held, too
}

// spenderOf is who pays for so many seconds of a run.
func spenderOf(r runs.Run, seconds int64) spender {
	s := spender{team: r.Team, id: string(r.ID), user: string(r.For), tags: r.Tags, most: r.MaxCredits, vcpuSeconds: seconds * int64(r.Size.VCPU)}
	if s.user == "" && r.Starter.Type == "user" {
		s.user = r.Starter.ID
	}
	return s
}

// budgetsOf are the budgets b that count what a spender is given: $2 is the
// team, $3 the month, $4 the person, $5 the tags. One for the month takes the
// place of one for every month.
const budgetsOf = `
	b.team_id = $2 AND (b.scope = 'team' OR b.scope = 'user' AND b.subject = $4 OR b.scope = 'tag' AND REPLACE($5, '"' || b.subject || '"', '') <> $5)
	AND (b.month = $3 OR b.month = '' AND NOT EXISTS (
		SELECT 1 FROM budgets o WHERE o.team_id = b.team_id AND o.scope = b.scope AND o.subject = b.subject AND o.month = $3))`

// beyondBudget finds a hard budget in which an amount, $1, does not fit.
const beyondBudget = `FROM budgets b WHERE b.hard AND CASE WHEN b.period = $3 THEN b.spent ELSE 0 END + b.held + $1 > b.amount AND ` + budgetsOf

func (s spender) budgetArgs(amount credits.Amount, now time.Time) []any {
	return []any{amount, s.team, billing.Month(now), s.user, tagsText(s.tags)}
}

// hasBudgets is whether a team has any, as part of a statement that holds or
// books its credits.
func hasBudgets(table string) string {
	return `EXISTS (SELECT 1 FROM budgets n WHERE n.team_id = ` + table + `.team_id)`
}

// refusal says why credits were not held.
func (db *DB) refusal(ctx context.Context, s spender, p *teamBalance, amount credits.Amount, now time.Time) error {
	var b budgetRow
	err := b.scan(db.q.QueryRowContext(ctx, `SELECT `+budgetColumns+` `+beyondBudget+` LIMIT 1`, s.budgetArgs(amount, now)...), billing.Month(now))
	if err == nil {
		if err := db.nameBudget(ctx, &b.Budget); err != nil {
			return err
		}
		return b.Exhausted()
	}
	if err = db.asFault(err, "budget"); !fault.Is(err, fault.KindNotFound) {
		return err
	}
	if p.Waiting() {
		return fault.Payment("%s", billing.VerifyFirst).WithCode("insufficient_credits")
	}
	return fault.Payment("the team has not enough credits left for this: buy a top-up, choose a smaller size, or wait for the next month").WithCode("insufficient_credits")
}

// withinOwnLimit refuses what goes beyond what a run may cost.
func (db *DB) withinOwnLimit(ctx context.Context, s spender, amount credits.Amount) error {
	if s.most == 0 {
		return nil
	}
	held, err := db.HeldFor(ctx, s.id)
	if err == nil && held+amount > s.most {
		return fault.Payment("the run may cost at most %s credits, and its next minute costs %s", s.most, amount).WithCode(billing.BudgetExhausted)
	}
	return err
}

// countHold counts a hold against the budgets of its spender. The team's balance
// is locked.
func (db *DB) countHold(ctx context.Context, s spender, amount credits.Amount, now time.Time) error {
	list, err := db.changeBudgets(ctx, `
		UPDATE budgets SET held = held + $1, spent = CASE WHEN period = $3 THEN spent ELSE 0 END,
			alerted = CASE WHEN period = $3 THEN alerted ELSE 0 END, period = $3
		WHERE id IN (SELECT b.id FROM budgets b WHERE `+budgetsOf+`)`, billing.Month(now), s.budgetArgs(amount, now)...)
	if err != nil {
		return err
	}
	rows := make([][]any, len(list))
	for i, b := range list {
		rows[i] = []any{b.id, s.id, amount}
	}
	err = db.insertRows(ctx, `INSERT INTO budget_holds (budget_id, hold_id, amount)`,
		`ON CONFLICT (budget_id, hold_id) DO UPDATE SET amount = budget_holds.amount + excluded.amount`, rows)
	if err != nil {
		return err
	}
	return db.alert(ctx, s.team, list, amount, now)
}

// countCost counts what a hold came to, against the budgets that it was counted
// against.
func (db *DB) countCost(ctx context.Context, team ids.Team, hold string, cost credits.Amount, now time.Time) error {
	list, err := db.changeBudgets(ctx, `
		UPDATE budgets SET held = held - (SELECT h.amount FROM budget_holds h WHERE h.budget_id = budgets.id AND h.hold_id = $2),
			spent = CASE WHEN period = $3 THEN spent ELSE 0 END + CASE WHEN month = '' OR month = $3 THEN CAST($1 AS BIGINT) ELSE 0 END,
			alerted = CASE WHEN period = $3 THEN alerted ELSE 0 END, period = $3
		WHERE id IN (SELECT h.budget_id FROM budget_holds h WHERE h.hold_id = $2)`, billing.Month(now), cost, hold, billing.Month(now))
	if err != nil {
		return err
	}
	if _, err := db.changed(ctx, `DELETE FROM budget_holds WHERE hold_id = $1`, hold); err != nil {
		return err
	}
	return db.alert(ctx, team, list, 0, now)
}

// countStorage counts what storage cost against the budgets of the whole team.
func (db *DB) countStorage(ctx context.Context, team ids.Team, cost credits.Amount, now time.Time) error {
	s := spender{team: team}
	list, err := db.changeBudgets(ctx, `
		UPDATE budgets SET spent = CASE WHEN period = $3 THEN spent ELSE 0 END + $1, alerted = CASE WHEN period = $3 THEN alerted ELSE 0 END, period = $3
		WHERE id IN (SELECT b.id FROM budgets b WHERE `+budgetsOf+`)`, billing.Month(now), s.budgetArgs(cost, now)...)
	if err != nil {
		return err
	}
	return db.alert(ctx, team, list, 0, now)
}

// budgetRow is a budget with what only the database knows of it.
type budgetRow struct {
	billing.Budget
	id      string
	alerted int
}

const budgetColumns = `id, scope, subject, month, amount, alert_at, hard, period, spent, held, alerted`

func (b *budgetRow) scan(row scanner, month string, more ...any) error {
	var at, period string
	err := row.Scan(append([]any{&b.id, (*string)(&b.Scope), &b.Subject, &b.Month, &b.Limit, &at, &b.Hard, &period, &b.Spent, &b.Held, &b.alerted}, more...)...)
	if err != nil {
		return err
	}
	if period != month {
		b.Spent, b.alerted = 0, 0
	}
	return json.Unmarshal([]byte(at), &b.AlertAt)
}

func (db *DB) changeBudgets(ctx context.Context, update, month string, args ...any) ([]budgetRow, error) {
	return all(ctx, db, func(r *sql.Rows, b *budgetRow) error { return b.scan(r, month) }, update+` RETURNING `+budgetColumns, args...)
}

// alert tells owners and admins, and the person whose budget it is, of budgets
// that have come to a percent at which they want to know. Next is what will be
// held next, if anything.
func (db *DB) alert(ctx context.Context, team ids.Team, list []budgetRow, next credits.Amount, now time.Time) error {
	for _, b := range list {
		percent := b.Crossed(next)
		if percent <= b.alerted {
			continue
		}
		if _, err := db.changed(ctx, `UPDATE budgets SET alerted = $1 WHERE id = $2`, percent, b.id); err != nil {
			return err
		}
		if err := db.nameBudget(ctx, &b.Budget); err != nil {
			return err
		}
		if err := db.notifyOfBudget(ctx, team, b.Budget, percent, now); err != nil {
			return err
		}
	}
	return nil
}

// nameBudget adds the name of the person whose budget it is.
func (db *DB) nameBudget(ctx context.Context, b *billing.Budget) error {
	if b.Scope != billing.UserBudget {
		return nil
	}
	return db.q.QueryRowContext(ctx, `SELECT COALESCE(MAX(name), '') FROM users WHERE id = $1`, b.Subject).Scan(&b.Name)
}

// Budgets are a team's: its own, then those of people, then those of tags.
func (db *DB) Budgets(ctx context.Context, team ids.Team, now time.Time) ([]billing.Budget, error) {
	return all(ctx, db, func(r *sql.Rows, b *billing.Budget) error {
		var row budgetRow
		var name string
		err := row.scan(r, billing.Month(now), &name)
		*b = row.Budget
		b.Name = name
		return err
	}, `SELECT `+budgetColumnsOf("b")+`, COALESCE(u.name, '')
		FROM budgets b LEFT JOIN users u ON b.scope = 'user' AND u.id = b.subject
		WHERE b.team_id = $1
		ORDER BY CASE b.scope WHEN 'team' THEN 0 WHEN 'user' THEN 1 ELSE 2 END, b.subject, b.month`, team)
}

func budgetColumnsOf(table string) string {
	return table + "." + strings.ReplaceAll(budgetColumns, ", ", ", "+table+".")
}

// SetBudgets replaces a team's budgets and counts anew what was spent, while
// nobody spends. One that was there has spent no less than it had: runs may have
// been deleted before anything was kept of them.
func (db *DB) SetBudgets(ctx context.Context, team ids.Team, list []billing.Budget, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.mustBeOpen(ctx, team); err != nil {
			return err
		}
		if _, err := tx.lockBalance(ctx, team, now); err != nil {
			return err
		}
		before, err := tx.Budgets(ctx, team, now)
		if err != nil {
			return err
		}
		if _, err := tx.changed(ctx, `DELETE FROM budget_holds WHERE budget_id IN (SELECT id FROM budgets WHERE team_id = $1)`, team); err != nil {
			return err
		}
		if _, err := tx.changed(ctx, `DELETE FROM budgets WHERE team_id = $1`, team); err != nil {
			return err
		}
		for _, b := range list {
			b.Spent = 0
			for _, o := range before {
				if o.Scope == b.Scope && o.Subject == b.Subject && o.Month == b.Month {
					b.Spent = o.Spent
				}
			}
			if err := tx.insertBudget(ctx, team, b, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// insertBudget adds a budget with what was spent, which is at least what it says,
// and is held. What it has passed
// already is told to nobody: whoever sets it sees it.
func (db *DB) insertBudget(ctx context.Context, team ids.Team, b billing.Budget, now time.Time) error {
	at, err := json.Marshal(append([]int{}, b.AlertAt...))
	if err != nil {
		return err
	}
	id := ids.NewBudget()
	_, err = db.changed(ctx, `
		INSERT INTO budgets (id, team_id, scope, subject, month, amount, alert_at, hard, period, spent, held, alerted)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, 0)`,
		id, team, b.Scope, b.Subject, b.Month, b.Limit, string(at), b.Hard, billing.Month(now))
	if err != nil || b.Month != "" && b.Month != billing.Month(now) {
		return err
	}
	spent, err := db.spentOf(ctx, team, b, now)
	if err != nil {
		return err
	}
	b.Spent = max(b.Spent, spent)
	if b.Held, err = db.holdsOf(ctx, team, id, b); err != nil {
		return err
	}
	_, err = db.changed(ctx, `UPDATE budgets SET spent = $1, held = $2, alerted = $3 WHERE id = $4`, b.Spent, b.Held, b.Crossed(0), id)
	return err
}

// ofBudget picks the runs r that a budget counts; $2 is its subject.
var ofBudget = map[billing.BudgetScope]string{
	billing.TeamBudget: `$2 = ''`,
	billing.UserBudget: `r.for_user = $2 OR r.for_user = '' AND r.starter_type = 'user' AND r.starter_id = $2`,
	billing.TagBudget:  `REPLACE(r.tags, '"' || CAST($2 AS TEXT) || '"', '') <> r.tags`,
}

// ofDeleted picks what the ledger l says of runs that were deleted; k is what is
// kept of them, $2 the subject.
var ofDeleted = map[billing.BudgetScope]string{
	billing.TeamBudget: `FALSE`, // it counts everything
	billing.UserBudget: `k.for_user = $2 OR COALESCE(k.for_user, '') = '' AND l.actor_type = 'user' AND l.actor_id = $2`,
	billing.TagBudget:  `REPLACE(k.tags, '"' || CAST($2 AS TEXT) || '"', '') <> k.tags`,
}

// spentOf is what the ledger says was spent in this month.
func (db *DB) spentOf(ctx context.Context, team ids.Team, b billing.Budget, now time.Time) (spent credits.Amount, err error) {
	start, _ := credits.Period(now)
	err = db.q.QueryRowContext(ctx, `
		SELECT COALESCE(-SUM(l.monthly + l.top_up), 0) FROM ledger l LEFT JOIN runs r ON r.id = l.run_id LEFT JOIN deleted_runs k ON k.run_id = l.run_id
		WHERE l.team_id = $1 AND l.created_at >= $3 AND (l.type IN ('run', 'storage') OR l.source IN ('adjustment run', 'adjustment storage'))
			AND (`+ofBudget[b.Scope]+` OR r.id IS NULL AND (`+ofDeleted[b.Scope]+`))`,
		team, b.Subject, micros(start)).Scan(&spent)
	return spent, err
}

// holdsOf counts what is held against a new budget.
func (db *DB) holdsOf(ctx context.Context, team ids.Team, id string, b billing.Budget) (held credits.Amount, err error) {
	_, err = db.changed(ctx, `
		INSERT INTO budget_holds (budget_id, hold_id, amount)
		SELECT CAST($3 AS TEXT), h.id, h.amount FROM holds h LEFT JOIN runs r ON r.id = h.id
		WHERE h.team_id = $1 AND (`+ofBudget[b.Scope]+`)`, team, b.Subject, id)
	if err != nil {
		return 0, err
	}
	err = db.q.QueryRowContext(ctx, `SELECT COALESCE(SUM(amount), 0) FROM budget_holds WHERE budget_id = $1`, id).Scan(&held)
	return held, err
}

// NotMembers are those of the people who are not in the team.
func (db *DB) NotMembers(ctx context.Context, team ids.Team, list []string) (unknown []string, err error) {
	in := map[string]bool{}
	err = inChunks(list, func(some []string) error {
		found, err := all(ctx, db, func(r *sql.Rows, id *string) error { return r.Scan(id) },
			`SELECT user_id FROM memberships WHERE team_id = $1 AND user_id IN (`+placeholders(2, len(some))+`)`, append([]any{team}, anys(some)...)...)
		for _, id := range found {
			in[id] = true
		}
		return err
	})
	for _, id := range list {
		if !in[id] {
			unknown = append(unknown, id)
		}
	}
	return unknown, err
}
