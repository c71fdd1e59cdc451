package billing

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Grouping is what costs are summed up by.
type Grouping string

// The groupings.
const (
	ByTag      Grouping = "tag"
	ByWorkflow Grouping = "workflow"
	ByUser     Grouping = "user"
)

// Cost is what runs of one kind cost on one day.
type Cost struct {
	Date time.Time
	Key  string // empty: without a tag
	Name string
	Runs int
	Cost credits.Amount
}

// Group is what runs of one kind cost on each of some days.
type Group struct {
	By    Grouping
	Key   string // empty: without a tag, or all beyond the largest
	Name  string
	Runs  int
	Cost  credits.Amount
	Daily []credits.Amount
}

// CostStore sums up what runs cost.
type CostStore interface {
	// Costs are what runs cost since from. A run with several tags is in each of
	// them.
	Costs(ctx context.Context, team ids.Team, by Grouping, from time.Time) ([]Cost, error)
}

const maxGroups = 50

// Groups are what runs cost on each of the last days, today last, the costliest
// group first.
func (s *Service) Groups(ctx context.Context, caller access.Caller, by Grouping, first time.Time, days int) ([]Group, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	costs, err := s.costs.Costs(ctx, caller.Team, by, first)
	return grouped(costs, by, first, days), err
}

func grouped(costs []Cost, by Grouping, first time.Time, days int) []Group {
	at, list := map[string]int{}, []Group{}
	for _, c := range costs {
		i, known := at[c.Key]
		if !known {
			i = len(list)
			at[c.Key] = i
			list = append(list, Group{By: by, Key: c.Key, Name: c.Name, Daily: make([]credits.Amount, days)})
		}
		if day := int(c.Date.Sub(first).Hours() / 24); day >= 0 && day < days {
			list[i].add(c.Runs, c.Cost)
			list[i].Daily[day] += c.Cost
		}
	}
	slices.SortStableFunc(list, func(a, b Group) int { return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Key, b.Key)) })
	if len(list) <= maxGroups {
		return list
	}
	rest := Group{By: by, Name: "all others", Daily: make([]credits.Amount, days)}
	for _, g := range list[maxGroups:] {
		rest.add(g.Runs, g.Cost)
		for i, c := range g.Daily {
			rest.Daily[i] += c
		}
	}
	return append(list[:maxGroups], rest)
}

func (g *Group) add(runs int, cost credits.Amount) {
	g.Runs += runs
	g.Cost += cost
}
