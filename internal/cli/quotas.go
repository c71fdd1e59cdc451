package cli

import (
	"math"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type quotasCommand struct {
	session.Flags `embed:""`
}

// Run shows what the team may use, and what it and the caller have used.
func (c *quotasCommand) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.GetQuotasWithResponse(s.Ctx, nil)
	if err != nil {
		return s.Explain(err)
	}
	q := r.JSON200.Data
	return s.Emit(q, func() {
		executors, storage := "all", screen.Size(q.StorageBytes)+", no limit"
		if q.Executors != nil {
			executors = screen.Clean(strings.Join(*q.Executors, ", "))
		}
		if q.StorageGb != nil {
			storage = screen.Size(q.StorageBytes) + " of " + screen.Amount(*q.StorageGb) + " GB"
		}
		s.Facts(
			"team", hoursOf(q.Team, q.MonthlyVcpuHours), "you", hoursOf(q.Own, q.PerPersonVcpuHours),
			"renews", q.RenewsAt.UTC().Format(time.DateOnly), "storage", storage, "executors", executors,
		)
		if q.People != nil && len(*q.People) > 0 {
			showPeople(s, *q.People)
		}
	})
}

func showPeople(s *session.Session, people []api.PersonVcpuUse) {
	rows := [][]string{{"PERSON", "VCPU HOURS"}}
	for _, p := range people {
		name := "a former member"
		switch {
		case p.Name != nil:
			name = screen.Clean(*p.Name)
		case p.ID == nil:
			name = "guests"
		}
		rows = append(rows, []string{name, hoursText(p.UsedVcpuHours + p.HeldVcpuHours)})
	}
	s.Say("")
	s.Table(rows)
}

// hoursOf is what was used or is held, of what may be used.
func hoursOf(use api.VcpuUse, limit *float64) string {
	used := hoursText(use.UsedVcpuHours + use.HeldVcpuHours)
	if limit == nil {
		return used + " vCPU hours this month, no limit"
	}
	return used + " of " + hoursText(*limit) + " vCPU hours this month"
}

func hoursText(n float64) string { return screen.Amount(math.Round(n*100) / 100) }
