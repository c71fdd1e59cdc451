package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

const (
	manyRuns = 200_000
	day      = 24 * time.Hour
)

// filled is when the newest of them was made; each is a minute older than the next, and
// all are newer than what a test makes besides.
var filled = time.Now().Add(manyRuns * time.Minute)

// BenchmarkSearchAmongManyRuns prints how long searches take among 200,000 runs of one
// team, beside the plain filter, which no search can be faster than. They take turns, so
// that what else the machine does falls on both. It is the part search of bench/run.
func BenchmarkSearchAmongManyRuns(b *testing.B) {
	for name, fresh := range map[string]func(testing.TB) string{"sqlite": databases.SQLite, "postgres": databases.Postgres} {
		b.Run(name, func(b *testing.B) {
			db := openLedger(b, fresh(b))
			team, owner := newTeam(b, db)
			if db.dialect.name == postgresDialect.name { // which would take statistics by and by
				for _, table := range []string{"runs", "run_search"} {
					if _, err := db.changed(b.Context(), `ALTER TABLE `+table+` SET (autovacuum_enabled = off)`); err != nil {
						b.Fatal(err)
					}
				}
			}
			fillWithRuns(b, db, team, owner, manyRuns, "completed")
			for more := true; more; {
				done, err := db.IndexRuns(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				more = done.More
			}
			for b.Loop() {
				printSearches(b, db, team)
			}
		})
	}
}

// printSearches measures searches by words that many, some, and no runs have, alone
// and with each filter.
func printSearches(t testing.TB, db *DB, team ids.Team) {
	t.Helper()
	failed := runs.Filter{Status: lifecycle.Failed}
	for _, f := range []runs.Filter{
		{Text: "sample12345"},
		{Text: "ample123"},
		{Text: "liver"},
		{Text: "s"},
		{Text: "sa"},
		{Text: "liver batch17"},
		{Text: "align failed"},
		{Text: "cohort7 liver sample1"},
		{Text: "nothinglikeit"},
		{Text: "liver nothinglikeit"},
		{Text: "sample1"},
		{Text: "align", Status: lifecycle.Failed},
		{Text: "align", Status: lifecycle.Queued},
		{Text: "align", Status: lifecycle.Interrupted},
		{Text: "liver", Tag: "batch17"},
		{Text: "align", Tag: "batch17"},
		{Text: "align", Tag: "nothing"},
		{Text: "liver", Workflow: "wf_5"},
		{Text: "align", Workflow: "wf_nothing"},
		{Text: "sample1", Workflow: "wf_5"},
		{Text: "align", Starter: "user_nobody"},
		{Text: "cohort0", Status: lifecycle.Completed}, // each of which has failed
		{Since: filled.Add(-day)},
		{Text: "align", Since: filled.Add(-day), Starter: "user_nobody"},
		{Text: "liver", Since: filled.Add(-100 * day), Until: filled.Add(-99 * day)},
		{Text: "sample1 liver", Since: filled.Add(-100 * day), Until: filled.Add(-99 * day)},
		{Text: "heart", Until: filled.Add(-100 * day)},
	} {
		for page := 1; page <= 2; page++ {
			var search, floor []time.Duration
			before, found := ids.Run(""), 0
			if page == 2 {
				list := searched(t, db, team, f, "")
				if len(list) < 50 {
					break
				}
				before = list[49].ID
			}
			for range 15 {
				began := time.Now()
				found = len(searched(t, db, team, f, before))
				search = append(search, time.Since(began))
				began = time.Now()
				searched(t, db, team, failed, before)
				floor = append(floor, time.Since(began))
			}
			slices.Sort(search)
			slices.Sort(floor)
			fmt.Printf("%-50s %2d found: median %8s, worst %8s; plain filter %8s; ratio %.2f\n", filterText(f, page), found, search[7].Round(10*time.Microsecond),
				search[14].Round(10*time.Microsecond), floor[7].Round(10*time.Microsecond), float64(search[7])/float64(floor[7]))
		}
	}
}

func searched(t testing.TB, db *DB, team ids.Team, f runs.Filter, before ids.Run) []runs.Run {
	t.Helper()
	list, err := db.Runs(t.Context(), team, f, before, 50)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func filterText(f runs.Filter, page int) string {
	return strings.TrimSpace(fmt.Sprintf("%q %s %s %s %s %s page %d", f.Text, f.Status, f.Tag, f.Workflow, f.Starter, daysText(f), page))
}

func daysText(f runs.Filter) string {
	if f.Since.IsZero() && f.Until.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s to %s", f.Since.Format("Jan 2"), f.Until.Format("Jan 2"))
}

// runMadeAt is an id of that time.
func runMadeAt(at time.Time) ids.Run {
	first, made := string(ids.FirstRun(at)), string(ids.NewRun())
	return ids.Run(first[:len("run_")+13] + made[len("run_")+13:])
}

// fillWithRuns gives a team many runs in a state; each tenth has failed.
func fillWithRuns(t testing.TB, db *DB, team ids.Team, owner ids.User, n int, state string) {
	t.Helper()
	tissues := []string{"liver", "heart", "brain", "lung", "skin"}
	for first := 0; first < n; first += 1000 {
		rows := make([][]any, 0, 1000)
		for i := first; i < first+1000; i++ {
			status := state
			if i%10 == 0 {
				status = "failed"
			}
			made := filled.Add(time.Duration(i+1-n) * time.Minute)
			rows = append(rows, []any{
				runMadeAt(made), team, fmt.Sprintf("wf_%d", i%50), "Trim and align", 1, "{}", fmt.Sprintf(`{"cohort":"cohort%d"}`, i%20), "{}", 2, 8, 0, 1,
				"user", owner, "Ada", status, 1, 1, 1, micros(made), micros(made) + 1, i, fmt.Sprintf("sample%d %s", i, tissues[i%len(tissues)]), fmt.Sprintf(`["batch%d"]`, i%100),
			})
		}
		err := db.inTx(t.Context(), func(tx *DB) error {
			return tx.insertRows(t.Context(), `INSERT INTO runs (id, team_id, workflow_id, workflow_name, workflow_revision, definition, parameters, inputs,
				vcpu, ram_gb, gpu, price, starter_type, starter_id, starter_name, status, total_nodes, seq, claimed_at, created_at, finished_at, number, name, tags)`, "", rows)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
