package operate

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/quotas"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/store"
)

// newTeams stands for what new teams begin with.
const newTeams = "default"

// TeamSetQuota changes what a team may use.
type TeamSetQuota struct {
	installation.Settings `embed:""`
	Team                  string   `arg:"" help:"ID or name of the team, or default: what new teams begin with."`
	AllowExecutors        []string `name:"executors" help:"Executors that the team can use, by name and divided by commas; all: every one."`
	Account               *string  `help:"Slurm account of the team's jobs; none: that of the executor."`
	QOS                   *string  `name:"qos" help:"Slurm QOS of the team's jobs; none: that of the executor."`
	WCKey                 *string  `name:"wckey" help:"Slurm wckey of the team's jobs; none: no wckey."`
	StorageGB             *string  `name:"storage-gb" help:"GB that the team can keep; none: no limit."`
	MonthlyVCPUHours      *string  `name:"monthly-vcpu-hours" help:"vCPU hours of the team in a calendar month; none: no limit."`
	PerPersonVCPUHours    *string  `name:"per-person-vcpu-hours" help:"vCPU hours of each person in a calendar month; none: no limit."`
}

// none removes a limit or a name.
const none = "none"

func (c *TeamSetQuota) edit() (e quotas.Edit, err error) {
	if len(c.AllowExecutors) > 0 {
		names := c.AllowExecutors
		if len(names) == 1 && names[0] == "all" {
			names = nil
		}
		e.Executors = &names
	}
	e.Account, e.QOS, e.WCKey = nameOf(c.Account), nameOf(c.QOS), nameOf(c.WCKey)
	for _, l := range []struct {
		flag string
		text *string
		to   **quotas.Limit
		from func(float64) (quotas.Limit, error)
	}{
		{"--storage-gb", c.StorageGB, &e.Storage, quotas.FromGB},
		{"--monthly-vcpu-hours", c.MonthlyVCPUHours, &e.Team, quotas.FromHours},
		{"--per-person-vcpu-hours", c.PerPersonVCPUHours, &e.Person, quotas.FromHours},
	} {
		if l.text == nil {
			continue
		}
		limit := quotas.Unlimited
		if *l.text != none {
			n, err := strconv.ParseFloat(*l.text, 64)
			if err == nil {
				limit, err = l.from(n)
			}
			if err != nil {
				return e, fmt.Errorf("%s: %q is neither a number that is possible nor none", l.flag, *l.text)
			}
		}
		*l.to = &limit
	}
	return e, nil
}

func nameOf(text *string) *string {
	if text != nil && *text == none {
		return new(string)
	}
	return text
}

// Run changes what is named, and prints what the team may use after that.
func (c *TeamSetQuota) Run(w Console) error {
	e, err := c.edit()
	if err != nil {
		return err
	}
	return c.Beside(w.Ctx, func(db *store.DB) error {
		change := operator.TeamChange{Quotas: e}
		if c.Team == newTeams {
			ctx := w.Audited("operator.new_teams_set", audit.Installation, e.String())
			d, err := Service(db).ChangeNewTeams(ctx, change)
			if err == nil {
				err = printQuotas(w.Out, "new teams", d.Plan, d.Quotas)
			}
			return err
		}
		team, err := TeamNamed(w.Ctx, db, c.Team)
		if err != nil {
			return err
		}
		ctx := w.Audited("operator.quotas_set", string(team), e.String())
		t, err := Service(db).ChangeTeam(ctx, team, change)
		if err == nil {
			err = printQuotas(w.Out, string(t.ID), t.Plan, t.Quotas)
		}
		return err
	})
}

func printQuotas(out io.Writer, whose string, plan credits.Plan, q quotas.Quotas) error {
	all := quotas.Edit{
		Executors: &q.Executors, Account: &q.Slurm.Account, QOS: &q.Slurm.QOS, WCKey: &q.Slurm.WCKey, Storage: &q.Storage, Team: &q.Team, Person: &q.Person,
	}
	_, err := fmt.Fprintf(out, "%s: plan=%s %s\n", whose, plan, all)
	return err
}

// TeamNamed is the team with an id, or the only one with a name.
func TeamNamed(ctx context.Context, db *store.DB, text string) (ids.Team, error) {
	list, err := db.Teams(ctx)
	if err != nil {
		return "", err
	}
	var named []string
	for _, t := range list {
		if string(t.ID) == text {
			return t.ID, nil
		}
		if t.Name == text {
			named = append(named, string(t.ID))
		}
	}
	switch len(named) {
	case 0:
		return "", fmt.Errorf("there is no team with the id or the name %q; `millrace admin team list` lists all", text)
	case 1:
		return ids.Team(named[0]), nil
	}
	return "", fmt.Errorf("several teams are called %q; name one of them by its id: %s", text, strings.Join(named, ", "))
}
