package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type budgetsCommand struct {
	List   budgetsList   `cmd:"" default:"withargs" aliases:"ls" help:"List budgets and what is spent."`
	Set    budgetsSet    `cmd:"" help:"Create or change a budget."`
	Remove budgetsRemove `cmd:"" aliases:"rm" help:"Remove a budget."`
}

type budgetsList struct {
	session.Flags `embed:""`
}

// Run shows what is left of each.
func (c *budgetsList) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.ListBudgetsWithResponse(s.Ctx, nil)
	if err != nil {
		return s.Explain(err)
	}
	return emitBudgets(s, r.JSON200.Data)
}

func emitBudgets(s *session.Session, list []api.Budget) error {
	return s.Emit(list, func() {
		rows := [][]string{{"OF", "MONTH", "LIMIT", "SPENT", "HELD", "LEFT", "FORECAST", "HARD"}}
		for _, b := range list {
			month, hard := "every", "no"
			if b.Month != nil {
				month = *b.Month
			}
			if b.Hard {
				hard = "yes"
			}
			rows = append(rows, []string{
				budgetName(b), month, screen.Amount(b.Limit), screen.Amount(b.Spent), screen.Amount(b.Held), screen.Amount(b.Remaining), screen.Amount(b.Forecast), hard,
			})
		}
		s.Table(rows)
	})
}

func budgetName(b api.Budget) string {
	switch {
	case b.Name != nil:
		return screen.Clean(*b.Name)
	case b.Subject != nil:
		return string(b.Scope) + " " + screen.Clean(*b.Subject)
	}
	return "the team"
}

// oneBudget names a budget.
type oneBudget struct {
	session.Flags `embed:""`
	Of            string `arg:"" help:"team, user:ID or tag:NAME."`
	Month         string `env:"-" placeholder:"YYYY-MM" help:"One month only. Default: every month."`
}

// key is the scope and the subject that the argument names.
func (c *oneBudget) key() (scope api.BudgetScope, subject string, err error) {
	kind, subject, _ := strings.Cut(c.Of, ":")
	scope = api.BudgetScope(kind)
	if !scope.Valid() || (subject == "") != (kind == "team") {
		return "", "", errors.New("name the budget as team, user:ID or tag:NAME")
	}
	return scope, subject, nil
}

// others are the team's budgets as they are set, without this one.
func (c *oneBudget) others(s *session.Session) (list []api.NewBudget, found bool, err error) {
	scope, subject, err := c.key()
	if err != nil {
		return nil, false, err
	}
	r, err := s.API.ListBudgetsWithResponse(s.Ctx, nil)
	if err != nil {
		return nil, false, s.Explain(err)
	}
	list = []api.NewBudget{}
	for _, b := range r.JSON200.Data {
		if b.Scope == scope && orEmpty(b.Subject) == subject && orEmpty(b.Month) == c.Month {
			found = true
			continue
		}
		list = append(list, api.NewBudget{Scope: b.Scope, Subject: b.Subject, Month: b.Month, Limit: b.Limit, AlertAt: &b.AlertAt, Hard: &b.Hard})
	}
	return list, found, nil
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

type budgetsSet struct {
	oneBudget
	Limit float64 `arg:"" help:"Credits per month."`
	Hard  bool    `env:"-" help:"Interrupt runs and refuse new ones when the budget is spent."`
	Alert []int   `env:"-" placeholder:"PERCENT" help:"Notify owners and admins at this percentage; repeatable. Default: 50, 80 and 100."`
}

// Run changes the one budget and leaves the others.
func (c *budgetsSet) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	list, _, err := c.others(s)
	if err != nil {
		return err
	}
	scope, subject, _ := c.key()
	one := api.NewBudget{Scope: scope, Limit: c.Limit, Hard: &c.Hard}
	if len(c.Alert) > 0 {
		one.AlertAt = &c.Alert
	}
	if subject != "" {
		one.Subject = &subject
	}
	if c.Month != "" {
		one.Month = &c.Month
	}
	return putBudgets(s, append(list, one))
}

type budgetsRemove struct{ oneBudget }

// Run removes the one budget and leaves the others.
func (c *budgetsRemove) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	list, found, err := c.others(s)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("there is no budget for %s", c.Of)
	}
	return putBudgets(s, list)
}

func putBudgets(s *session.Session, list []api.NewBudget) error {
	r, err := s.API.SetBudgetsWithResponse(s.Ctx, nil, api.SetBudgets{Budgets: list})
	if err != nil {
		return s.Explain(err)
	}
	return emitBudgets(s, r.JSON200.Data)
}

type usageCommand struct {
	session.Flags `embed:""`
	By            []string `env:"-" default:"workflow" enum:"tag,workflow,user" help:"Group by ${enum}."`
	Days          int      `env:"-" default:"30" help:"7, 30, 90 or 180."`
	CSV           bool     `env:"-" name:"csv" help:"Print daily costs of each group as CSV."`
}

// Run shows the costliest first.
func (c *usageCommand) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	by, days := strings.Join(c.By, ","), api.GetDashboardUsageParamsDays(c.Days)
	r, err := s.API.GetDashboardUsageWithResponse(s.Ctx, &api.GetDashboardUsageParams{By: &by, Days: &days})
	if err != nil {
		return s.Explain(err)
	}
	usage := r.JSON200.Data
	if c.CSV {
		return writeUsage(s, usage)
	}
	return s.Emit(usage, func() {
		rows := [][]string{{"BY", "NAME", "RUNS", "CREDITS"}}
		for _, g := range usage.Groups {
			rows = append(rows, []string{string(g.By), screen.Clean(g.Name), strconv.Itoa(g.Runs), screen.Amount(g.Credits)})
		}
		s.Table(rows)
		s.Note("%s credits in %d days, storage included.", screen.Amount(usage.TotalCredits), usage.Days)
	})
}

// writeUsage has a line for each day on which something was spent. A cell that a
// spreadsheet would take for a formula gets a quote before it.
func writeUsage(s *session.Session, usage api.DashboardUsage) error {
	out := csv.NewWriter(s.Out)
	lines := [][]string{{"date", "by", "key", "name", "credits"}}
	for _, g := range usage.Groups {
		for i, spent := range g.Series {
			if spent == 0 {
				continue
			}
			line := []string{usage.Series[i].Date, string(g.By), orEmpty(g.Key), g.Name, strconv.FormatFloat(spent, 'f', -1, 64)}
			for j, cell := range line {
				if cell != "" && slices.Contains([]byte("=+-@\t\r"), cell[0]) {
					line[j] = "'" + cell
				}
			}
			lines = append(lines, line)
		}
	}
	return out.WriteAll(lines)
}
