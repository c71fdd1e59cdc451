package operator

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/quotas"
)

// UsageRow is what the attempts of a person's runs in a team took of an executor that
// ended in a month: what a cluster accounts for.
type UsageRow struct {
	Team       ids.Team
	TeamName   string
	Person     ids.User // empty: guests
	PersonName string
	Executor   string
	Attempts   int
	CPU        time.Duration // CPUs that were given, times how long
	Elapsed    time.Duration
}

// MonthlyUsage knows what attempts took.
type MonthlyUsage interface {
	UsageBetween(ctx context.Context, from, to time.Time) ([]UsageRow, error)
}

// Usage is what was used in a month such as 2026-11, in UTC.
func (s *Service) Usage(ctx context.Context, month string) ([]UsageRow, error) {
	from, err := time.Parse("2006-01", month)
	if err != nil {
		return nil, wrong("month", "must be a month such as 2026-11")
	}
	return s.Keeping.UsageBetween(ctx, from, from.AddDate(0, 1, 0))
}

// UsageColumns are the columns of a table of usage.
var UsageColumns = []string{"team", "team_name", "person", "person_name", "executor", "attempts", "vcpu_hours", "cpu_seconds", "elapsed_seconds"}

// Cells are the row in the order of UsageColumns.
func (r UsageRow) Cells() []string {
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
	return []string{
		string(r.Team), r.TeamName, string(r.Person), r.PersonName, r.Executor, strconv.Itoa(r.Attempts),
		strconv.FormatFloat(r.CPU.Seconds()/quotas.Hour, 'f', 6, 64), seconds(r.CPU), seconds(r.Elapsed),
	}
}

// WriteUsage writes rows as CSV. What people have typed passes inert.
func WriteUsage(w io.Writer, rows []UsageRow, inert func(string) string) error {
	out := csv.NewWriter(w)
	if err := out.Write(UsageColumns); err != nil {
		return err
	}
	for _, r := range rows {
		r.TeamName, r.PersonName = inert(r.TeamName), inert(r.PersonName)
		if err := out.Write(r.Cells()); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
