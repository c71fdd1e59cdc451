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

// finder are the runs of a test by names.
type finder struct {
	t    *testing.T
	db   *DB
	team ids.Team
	name map[ids.Run]string
}

func (f *finder) add(name string, change func(*runs.Run)) runs.Run {
	f.t.Helper()
	r := newRun(f.team)
	change(&r)
	if err := f.db.SubmitRun(f.t.Context(), r, 0, nil); err != nil {
		f.t.Fatal(err)
	}
	f.name[r.ID] = name
	return r
}

func (f *finder) index() {
	f.t.Helper()
	for more := true; more; {
		r, err := f.db.IndexRuns(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		more = r.More
	}
}

// found are the names of what a filter finds, newest first, read in pages.
func (f *finder) found(filter runs.Filter, page int) string {
	f.t.Helper()
	var names []string
	var before ids.Run
	for {
		list, err := f.db.Runs(f.t.Context(), f.team, filter, before, page)
		if err != nil {
			f.t.Fatalf("%q: %v", filter.Text, err)
		}
		for _, r := range list {
			names, before = append(names, f.name[r.ID]), r.ID
		}
		if len(list) < page {
			return strings.Join(names, " ")
		}
	}
}

// Whether the index has a run yet makes no difference to anybody.
func TestRunsAreFoundByTheirWords(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		other, _ := newTeam(t, db)
		f := &finder{t: t, db: db, team: team, name: map[ids.Run]string{}}
		trim := f.add("trim", func(r *runs.Run) { r.Name, r.Tags, r.WorkflowName = "Trim reads", []string{"pilot:2026"}, "RNA seq" })
		f.add("call", func(r *runs.Run) {
			r.Note, r.Parameters = "for Örjan", []byte(`{"genome":"GRCh38","quality":25.5,"deep":[{"x":"trimmed"}]}`)
		})
		f.add("odd", func(r *runs.Run) { r.Name = `it's "odd" \ & | ! * 基因` })
		(&finder{t: t, db: db, team: other, name: map[ids.Run]string{}}).add("strange", func(r *runs.Run) { r.Name = "Trim reads" })
		want := map[string]string{
			"trim": "call trim", "TRIM reads": "trim", "reads tri": "trim", "rim": "call trim", "im ead": "trim", "seq ilot": "trim", "rch3": "call", "m r": "", "pilot": "trim", "2026": "trim", "rna SEQ": "trim",
			"orjan": "call", "ÖRJAN": "call", "grch": "call", "genome grch38": "call", "25.5": "call", "#1": "trim", "#2": "call", "#02": "call", "#9": "",
			string(trim.ID): "trim", string(trim.ID[:30]): "trim", string(trim.ID[len(trim.ID)-8:]): "trim", "odd": "odd", "基": "odd", "因": "odd",
			`"odd"`: "odd", `odd"`: "odd", "odd'": "odd", `odd\`: "odd", "odd & it": "odd", "odd | x": "", "odd:*": "odd", "*": "", "!odd": "odd", "(odd": "odd", "^odd": "odd",
			"odd AND trim": "", "NOT odd": "", "odd NEAR it": "", "words : odd": "", "{": "", "_": "", "': DROP TABLE runs --": "",
			"\x00": "", "\xff": "", "\u202e": "", strings.Repeat("odd ", 2500): "odd", strings.Repeat("x", 10_000): "", strings.Repeat("'\"", 5000): "",
			"_" + string(other): "", "#": "",
		}
		check := func(when string) {
			t.Helper()
			for text, names := range want {
				if got := f.found(runs.Filter{Text: text}, 10); got != names {
					t.Errorf("%s: %.40q finds %q, want %q", when, text, got, names)
				}
			}
		}
		check("before they are indexed")
		f.index()
		check("indexed")
		if got := f.found(runs.Filter{Text: "trim", Tag: "pilot:2026"}, 10); got != "trim" {
			t.Errorf("with a tag: %q", got)
		}
	})
}

func TestWhatChangesIsFoundAnew(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		f := &finder{t: t, db: db, team: team, name: map[ids.Run]string{}}
		r := f.add("r", func(r *runs.Run) { r.Name = "before" })
		f.index()
		after := "after"
		if err := db.LabelRun(ctx, team, r.ID, runs.LabelEdit{Name: &after, Tags: []string{"pilot"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.CancelRun(ctx, team, r.ID, runs.Starter{Name: "Ada"}, time.Now()); err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"at once", "indexed"} {
			for text, want := range map[string]string{"before": "", "after": "r", "pilot": "r", "cancelled": "r"} {
				if got := f.found(runs.Filter{Text: text}, 10); got != want {
					t.Errorf("%s: %q finds %q", when, text, got)
				}
			}
			f.index()
		}
		if _, err := db.changed(ctx, `DELETE FROM runs WHERE id = $1`, r.ID); err != nil {
			t.Fatal(err)
		}
		if got := f.found(runs.Filter{Text: "after"}, 10); got != "" {
			t.Errorf("a run that is gone is found: %q", got)
		}
		left := `SELECT COUNT(*) FROM run_search`
		if db.dialect.name == sqliteDialect.name {
			left = `SELECT COUNT(*) FROM run_words WHERE run_words MATCH 'after'`
		}
		var n int
		if err := db.q.QueryRowContext(ctx, left).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows of the index are left, %v", n, err)
		}
	})
}

// Pages have no gap and no repeat, whatever part of the runs is indexed.
func TestWhatIsFoundComesInPages(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		f := &finder{t: t, db: db, team: team, name: map[ids.Run]string{}}
		var want []string
		for i := range 60 {
			f.add(fmt.Sprint(i), func(r *runs.Run) {
				if r.Name = "odd"; i%2 == 0 {
					r.Name = "even"
				}
			})
			if i%2 == 0 {
				want = append(want, fmt.Sprint(i))
			}
			if i == 40 {
				f.index()
			}
		}
		slices.Reverse(want)
		for _, page := range []int{1, 7, 100} {
			if got := f.found(runs.Filter{Text: "even", Status: lifecycle.Queued}, page); got != strings.Join(want, " ") {
				t.Errorf("in pages of %d: %s", page, got)
			}
		}
	})
}

// The words by which the index knows what is filtered by change nothing that is found.
func TestAFilterFindsTheSameWithTheIndex(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		f := &finder{t: t, db: db, team: team, name: map[ids.Run]string{}}
		var all []runs.Run
		for i := range 24 {
			r := f.add(fmt.Sprint(i), func(r *runs.Run) {
				r.Name, r.Workflow, r.Starter = fmt.Sprintf("Align sample%d", i), ids.Workflow(fmt.Sprintf("wf_%d", i%3)), runs.Starter{Type: "user", ID: fmt.Sprintf("user_%c", 'A'+i%2)}
				r.Tags = []string{[]string{"pilot", "pilot:2", "--", "a/b"}[i%4]}
			})
			if r.Status = lifecycle.Queued; i%5 == 0 {
				if _, err := db.CancelRun(t.Context(), team, r.ID, r.Starter, time.Now()); err != nil {
					t.Fatal(err)
				}
				r.Status = lifecycle.Cancelled
			} else if i%7 == 1 {
				if _, err := db.changed(t.Context(), `UPDATE runs SET status = 'completed' WHERE id = $1`, r.ID); err != nil {
					t.Fatal(err)
				}
				r.Status = lifecycle.Completed
			}
			all = append(all, r)
		}
		slices.Reverse(all)
		want := func(w runs.Filter) string {
			var names []string
			for _, r := range all {
				if (w.Status == "" || r.Status == w.Status) && (w.Workflow == "" || r.Workflow == w.Workflow) && (w.Starter == "" || r.Starter.ID == w.Starter) &&
					(w.Tag == "" || slices.Contains(r.Tags, w.Tag)) && strings.Contains(strings.ToLower(r.Name), w.Text) {
					names = append(names, f.name[r.ID])
				}
			}
			return strings.Join(names, " ")
		}
		for _, when := range []string{"before they are indexed", "indexed"} {
			for _, text := range []string{"align", "sample1", "ample23"} {
				for _, status := range []lifecycle.Status{"", lifecycle.Queued, lifecycle.Running, lifecycle.Completed, lifecycle.Cancelled} {
					for i, tag := range []string{"", "pilot", "pilot:2", "--", "a/b", "b", "nothing"} {
						w := runs.Filter{Text: text, Status: status, Tag: tag, Workflow: []ids.Workflow{"", "wf_0", "wf_9"}[i%3], Starter: []string{"", "user_A"}[i%2]}
						if got, want := f.found(w, 5), want(w); got != want {
							t.Errorf("%s: %+v finds %q, want %q", when, w, got, want)
						}
					}
				}
			}
			f.index()
		}
	})
}

// Of a time, the runs that were made then are found, to the microsecond, however few of
// the others are read.
func TestRunsOfATimeAreFound(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, owner := newTeam(t, db)
		const n = 1000
		fillWithRuns(t, db, team, owner, n, "completed")
		at := func(i int) time.Time { return filled.Add(time.Duration(i+1-n) * time.Minute) }
		var newest []string // of which 50 are asked for
		for i := n - 1; i >= 0; i-- {
			newest = append(newest, fmt.Sprintf("sample%d", i))
		}
		check := func(when string) {
			t.Helper()
			for _, w := range []struct {
				since, until time.Time
				want         []string // newest first
			}{
				{at(n - 10), time.Time{}, newest[:10]},
				{at(n - 10).Add(time.Microsecond), time.Time{}, newest[:9]},
				{time.Time{}, at(n - 10), newest[10:60]},
				{time.Time{}, at(n - 10).Add(time.Microsecond), newest[9:59]},
				{at(100), at(120), newest[n-120 : n-100]},
				{at(120), at(100), nil},
				{at(n), time.Time{}, nil},
				{time.Time{}, at(0), nil},
				{time.Unix(-1, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), newest[:50]},
			} {
				for _, text := range []string{"", "align"} {
					var got []string
					for _, r := range searched(t, db, team, runs.Filter{Text: text, Since: w.since, Until: w.until}, "") {
						name, _, _ := strings.Cut(r.Name, " ")
						got = append(got, name)
					}
					if !slices.Equal(got, w.want) {
						t.Errorf("%s, %q from %v to %v: %v, want %v", when, text, w.since, w.until, got, w.want)
					}
				}
			}
		}
		check("before they are indexed")
		(&finder{t: t, db: db}).index()
		check("indexed")
	})
}

// What is older than the runs that are read first is found by the index.
func TestARareWordIsFoundAmongManyQueuedRuns(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, owner := newTeam(t, db)
		f := &finder{t: t, db: db, team: team, name: map[ids.Run]string{}}
		f.add("needle", func(r *runs.Run) { r.Name, r.Workflow = "needle", "wf_needle" })
		fillWithRuns(t, db, team, owner, 2000, "queued")
		f.index()
		for _, status := range []lifecycle.Status{"", lifecycle.Queued} {
			if got := f.found(runs.Filter{Text: "eedle", Status: status}, 10); got != "needle" {
				t.Errorf("%q: %q", status, got)
			}
		}
	})
}

// An older server beside this one reads runs into the index with its own words.
func TestWhatAnOlderProgramIndexedIsIndexedAnew(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		f := &finder{t: t, db: db, team: team, name: map[ids.Run]string{}}
		r := f.add("r", func(r *runs.Run) { r.Name, r.Workflow = "needle", "wf_needle" })
		older := func() {
			t.Helper()
			err := db.inTx(ctx, func(tx *DB) error {
				return tx.dialect.runIndex.put(ctx, tx.q, []indexedRun{{r.ID, team, filterWord("", string(team)) + " older"}})
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.changed(ctx, `UPDATE runs SET search_due = FALSE WHERE id = $1`, r.ID); err != nil {
				t.Fatal(err)
			}
		}
		check := func(when string, filter runs.Filter) {
			t.Helper()
			for _, indexed := range []string{"before it is indexed anew", "indexed anew"} {
				if got := f.found(filter, 10); got != "r" {
					t.Errorf("%s, %s: %q", when, indexed, got)
				}
				f.index()
			}
			if got := f.found(runs.Filter{Text: "older"}, 10); got != "" {
				t.Errorf("%s: it is found by the words of the older program: %q", when, got)
			}
		}
		older()
		check("a new run", runs.Filter{Text: "eedle", Workflow: "wf_needle"})
		if done, err := db.IndexRuns(ctx); err != nil || done.Done != 0 {
			t.Errorf("again %d runs are indexed, %v", done.Done, err)
		}
		if db.dialect.name == sqliteDialect.name { // its file has one server
			return
		}
		if _, err := db.CancelRun(ctx, team, r.ID, runs.Starter{Name: "Ada"}, time.Now()); err != nil {
			t.Fatal(err)
		}
		older()
		check("a run that this program had indexed", runs.Filter{Text: "eedle", Status: lifecycle.Cancelled})
	})
}

// However many runs are not indexed yet, a search reads a part of them.
func TestASearchReadsTheNewestOfWhatIsNotIndexed(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, owner := newTeam(t, db)
		f := &finder{t: t, db: db, team: team, name: map[ids.Run]string{}}
		f.add("indexed", func(r *runs.Run) { r.Name, r.Workflow = "needle", "wf_a" })
		f.index()
		f.add("older", func(r *runs.Run) { r.Name, r.Workflow = "needle", "wf_b" })
		fillWithRuns(t, db, team, owner, mostUnindexed, "completed")
		if got := f.found(runs.Filter{Text: "needle"}, 10); got != "indexed" {
			t.Errorf("before all are indexed: %q", got)
		}
		if _, err := db.changed(t.Context(), `UPDATE runs SET `+nowIndexed+` WHERE name <> 'needle'`); err != nil { // all of which would take long
			t.Fatal(err)
		}
		f.index()
		if got := f.found(runs.Filter{Text: "needle"}, 10); got != "older indexed" {
			t.Errorf("indexed: %q", got)
		}
	})
}

// Statistics are taken once all runs are indexed, and not again and again while there are none.
func TestStatisticsAreTakenOfRunsThatThereAre(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		if db.dialect.name != postgresDialect.name {
			return
		}
		team, owner := newTeam(t, db)
		f := &finder{t: t, db: db, team: team, name: map[ids.Run]string{}}
		for _, n := range []int{0, 5 * indexBatch} {
			fillWithRuns(t, db, team, owner, n, "completed")
			f.index()
			var got int
			err := db.q.QueryRowContext(t.Context(), `SELECT CAST(SUM(reltuples) AS BIGINT) FROM pg_class WHERE relname IN ('runs', 'run_search') AND relkind = 'r'`).Scan(&got)
			if err != nil || n == 0 && got != -2 || n > 0 && got <= 0 { // each -1: there are none
				t.Errorf("%d runs: the statistics know %d rows, %v", n, got, err)
			}
		}
	})
}
