package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/reported"
)

// launching is a run that a worker holds, whose step launches a pipeline.
func launching(t *testing.T, w *watched) reported.Launched {
	t.Helper()
	submit(t, w.db, w.caller.Team)
	claimed, err := w.db.ClaimRuns(t.Context(), claim("w", 1), august, august.Add(time.Hour))
	if err != nil || len(claimed.Runs) != 1 {
		t.Fatalf("%d claimed, %v", len(claimed.Runs), err)
	}
	r := claimed.Runs[0]
	return reported.Launched{Run: r.ID, Fence: r.Fence, Step: "pipeline", Attempt: 1, Engine: pipeline.Snakemake}
}

// processes are those of a run, in a line each.
func (w *watched) processes(t *testing.T, l reported.Launched) string {
	t.Helper()
	list, err := reported.Tasks{Store: w.db}.Processes(t.Context(), w.runOf(t, l.Run))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, n := range list {
		lines = append(lines, fmt.Sprint(n.LaunchedBy, " ", n.ID, " ", n.State, " ", n.ShardsDone, "/", *n.Shards, n.Follows))
	}
	return strings.Join(lines, "; ")
}

func (w *watched) takeLaunched(t *testing.T, l reported.Launched, places string, reports ...reported.Report) {
	t.Helper()
	for _, r := range reports {
		if _, err := w.db.TakeLaunched(t.Context(), l, r, places, w.now); err != nil {
			t.Fatal(err)
		}
	}
}

// What the pipeline of a step reports is shown beside the run's own steps, which it
// does not touch.
func TestALaunchedPipelineIsShownInItsRun(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx, w := t.Context(), newWatched(t, db)
		l := launching(t, w)
		before := w.runOf(t, l.Run)
		for range 2 { // whoever adopts the task finds what is there
			if places, shown, err := db.BeginLaunched(ctx, l, w.now); err != nil || !shown || places != "" {
				t.Fatal(places, shown, err)
			}
		}
		told := story()
		w.takeLaunched(t, l, "here", told[:8]...)
		if got := w.processes(t, l); !strings.HasPrefix(got, "pipeline pipeline.align running 2/3 []; pipeline pipeline.n_NFCORE_count__all") {
			t.Error(got)
		}
		if places, _, err := db.BeginLaunched(ctx, l, w.now); err != nil || places != "here" {
			t.Errorf("it is read from %q on, %v", places, err)
		}
		after := w.runOf(t, l.Run)
		if after.Status != lifecycle.Running || after.Kind != "" || after.Engine != "snakemake" || string(after.Definition) != string(before.Definition) ||
			after.TotalNodes != before.TotalNodes || after.DoneNodes != before.DoneNodes || after.Price != before.Price || after.Billed != before.Billed {
			t.Errorf("the run is %+v", after)
		}
		rec, err := db.RecordOf(ctx, l.Run)
		if err != nil || len(rec.Nodes) > 0 || len(rec.Attempts) > 0 {
			t.Errorf("its worker finds %+v, %v", rec, err)
		}
		// The general intake does not reach it, and nobody has its key.
		if _, err := w.Take(ctx, w.caller, l.Run, told[0]); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("a stranger reports to it: %v", err)
		}
		if _, err := w.Begin(ctx, w.caller, reported.New{Key: launchedKey(l.Run), Engine: "snakemake", Project: "x"}); err == nil {
			t.Error("its key is taken from a stranger")
		}
		// The end of the attempt ends what is open, whatever the file said.
		w.takeLaunched(t, l, "end", reported.Report{Finish: &reported.Finish{Status: lifecycle.Completed}})
		if got := w.processes(t, l); !strings.Contains(got, "align succeeded 2/3") || !strings.Contains(got, "plot skipped 0/0") {
			t.Error(got)
		}
		events, err := db.Events(ctx, w.caller.Team, l.Run, 0, 100)
		if err != nil || len(events) == 0 {
			t.Errorf("its events are %v, %v", events, err)
		}
		for i, e := range events {
			if e.Seq != int64(i+1) {
				t.Errorf("event %d has the number %d", i, e.Seq)
			}
		}
	})
}

// A further attempt of the step begins with an empty picture; a worker that has lost
// the run changes nothing, and of two steps one is shown.
func TestTheNewestAttemptOfALaunchIsShown(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx, w := t.Context(), newWatched(t, db)
		l := launching(t, w)
		if _, _, err := db.BeginLaunched(ctx, l, w.now); err != nil {
			t.Fatal(err)
		}
		w.takeLaunched(t, l, "end", story()...)
		other := l
		other.Step = "other"
		if _, shown, err := db.BeginLaunched(ctx, other, w.now); err != nil || shown {
			t.Errorf("a second step is shown: %v", err)
		}
		again := l
		again.Attempt = 2
		if places, shown, err := db.BeginLaunched(ctx, again, w.now); err != nil || !shown || places != "" {
			t.Fatal(places, shown, err)
		}
		if got := w.processes(t, l); got != "" {
			t.Errorf("of the first attempt there is %s", got)
		}
		w.takeLaunched(t, again, "", task(1, 1, 1, "align", reported.Running))
		if _, err := db.changed(ctx, `UPDATE runs SET seq = $1 WHERE id = $2`, maxLaunchedEvents+1, l.Run); err != nil {
			t.Fatal(err)
		}
		w.takeLaunched(t, again, "", task(2, 1, 1, "align", reported.Failed), task(3, 1, 1, "align", reported.Running))
		if r := w.runOf(t, l.Run); r.Seq != maxLaunchedEvents+1 {
			t.Errorf("there is an event more than the most: %d", r.Seq)
		}
		if got := w.processes(t, l); got != "pipeline pipeline.align running 0/1 []" {
			t.Error(got)
		}
		lost := again
		lost.Fence++
		if _, _, err := db.BeginLaunched(ctx, lost, w.now); !errors.Is(err, runs.ErrFenced) {
			t.Errorf("who has lost it begins: %v", err)
		}
		if _, err := db.TakeLaunched(ctx, lost, reported.Report{}, "", w.now); !errors.Is(err, runs.ErrFenced) {
			t.Errorf("who has lost it reports: %v", err)
		}
		// What runs when the run ends does not run for ever.
		if err := db.EndRun(ctx, l.Run, l.Fence, runs.Ending{Status: lifecycle.Cancelled}, w.now); err != nil {
			t.Fatal(err)
		}
		if got := w.processes(t, l); got != "pipeline pipeline.align cancelled 0/1 []" {
			t.Error(got)
		}
	})
}

// The tasks of an earlier attempt are deleted some at a time, and whoever is interrupted
// in between goes on where it was.
func TestALargeEarlierAttemptIsDeletedInParts(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx, w := t.Context(), newWatched(t, db)
		l := launching(t, w)
		if _, _, err := db.BeginLaunched(ctx, l, w.now); err != nil {
			t.Fatal(err)
		}
		w.takeLaunched(t, l, "end", task(1, 1, 1, "align", reported.Running))
		const tasks = 2*launchedAtOnce + 1
		_, err := db.changed(ctx, `
			WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
			INSERT INTO reported_tasks (run_id, id, node_id, chain, number, shard, attempt, newest, kind, state, will_retry, ignored, version, name, peak, cpu_micros, details, script, message)
			SELECT run_id, id || '-' || i, node_id, chain, i, i, attempt, newest, kind, state, will_retry, ignored, version, name, peak, cpu_micros, details, script, message
			FROM n CROSS JOIN reported_tasks WHERE run_id = $2`, tasks, l.Run)
		if err != nil {
			t.Fatal(err)
		}
		left := func() (n int) {
			t.Helper()
			if err := db.q.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM reported_tasks WHERE run_id = $1`, l.Run).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		l.Attempt = 2
		interrupted, cancel := context.WithCancel(ctx)
		defer cancel()
		deletes := 0
		db.statement = func(statement string) {
			if strings.HasPrefix(statement, "DELETE FROM reported_tasks") {
				if deletes++; deletes == 2 {
					cancel()
				}
			}
		}
		if _, _, err := db.BeginLaunched(interrupted, l, w.now); err == nil || left() != tasks-launchedAtOnce {
			t.Fatalf("interrupted, it leaves %d tasks, %v", left(), err)
		}
		if places, shown, err := db.BeginLaunched(ctx, l, w.now); err != nil || !shown || places != "" || left() != 0 || deletes != 4 {
			t.Errorf("%q, %v, %v; %d tasks are left after %d deletions", places, shown, err, left(), deletes)
		}
		if got := w.processes(t, l); got != "" {
			t.Errorf("of the first attempt there is %s", got)
		}
	})
}

// Whatever the files of a stranger's pipeline hold can be stored: an error here would
// be tried again for ever, and the run would never end.
func TestHostileTextsOfALaunchAreStored(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx, w := t.Context(), newWatched(t, db)
		l := launching(t, w)
		if _, _, err := db.BeginLaunched(ctx, l, w.now); err != nil {
			t.Fatal(err)
		}
		low, high := -1<<31, 1<<31-1
		for i, text := range []string{"", "\x00", "a\x00b\xff\xfe", "\xed\xa0\x80", "'; DROP TABLE runs; --", "../../x\r\n", "<img src=x>", strings.Repeat("\x00ü", 100_000), "\u202e"} {
			r := reported.Report{
				Nodes: []reported.NodeReport{{Name: text, Expected: &high, Ordered: true}}, Edges: [][2]string{{text, "b"}, {"b", text}, {text, text}},
				Tasks: []reported.Task{{
					ID: fmt.Sprint(i), Chain: text, Node: text, Number: reported.Unnumbered, Attempt: high, State: reported.Failed, Version: int64(i), Name: text, ExitCode: &low, Message: text, Script: text,
					StartedAt: time.UnixMilli(-1 << 60), EndedAt: time.UnixMilli(1 << 60), Peak: -5, CPU: -5,
					Details: reported.Details{WorkDir: text, Container: text, Host: text, NativeID: text, Queue: text},
				}},
				Progress: &reported.Progress{Done: 1<<63 - 1, Total: 1},
			}
			r.Clean(w.now)
			if _, err := db.TakeLaunched(ctx, l, r, `{"header":"`+fmt.Sprint(i)+`"}`, w.now); err != nil {
				t.Errorf("%.20q: %v", text, err)
			}
		}
		if got := w.processes(t, l); strings.ContainsAny(got, "\x00\n\r") {
			t.Errorf("%q", got)
		}
	})
}

// What is reported of runs is counted, whether the whole run is reported or a pipeline
// of one of its steps, and no more when it is gone.
func TestReportedRunsAreCounted(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx, w := t.Context(), newWatched(t, db)
		team := w.caller.Team
		last := counted(t, db, team)
		check := func(when string, more int) {
			t.Helper()
			got := counted(t, db, team)
			if want := definitionsIn(t, db, team); got != want || more*int(got-last) <= 0 {
				t.Errorf("%s: %d bytes are counted after %d, and there are %d", when, got, last, want)
			}
			last = got
		}
		id := w.begin(t)
		check("a reported run", 1)
		for _, r := range story() {
			w.take(t, id, r)
		}
		check("what is reported of it", 1)
		if !w.runOf(t, id).Status.Terminal() {
			t.Fatal("it has not ended")
		}
		must(t, second(db.DeleteRun(ctx, team, id, w.now)))
		check("without it", -1)
		l := launching(t, w)
		check("a run", 1)
		must(t, third(db.BeginLaunched(ctx, l, w.now)))
		check("that launches a pipeline", 1)
		w.takeLaunched(t, l, "here", story()...)
		check("what that reports", 1)
		l.Attempt++
		must(t, third(db.BeginLaunched(ctx, l, w.now)))
		check("another attempt", -1)
	})
}

// A team whose storage is full begins no reported runs, and keeps no more texts of those
// that it has begun.
func TestReportsKeepNoTextsWithoutRoom(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx, w := t.Context(), newWatched(t, db)
		id := w.begin(t)
		must(t, second(db.changed(ctx, `UPDATE storage SET bytes = $1, definitions = $2 WHERE team_id = $3`, int64(1)<<50, credits.DefinitionAllowance, w.caller.Team)))
		for _, r := range story() {
			w.take(t, id, r)
		}
		about, err := db.ReportedRun(ctx, w.caller.Team, id)
		if err != nil || about.TeamTexts > 1000 || !strings.Contains(about.LeftOut, "storage") {
			t.Errorf("%d bytes of texts, %q, %v", about.TeamTexts, about.LeftOut, err)
		}
		if r := w.runOf(t, id); r.Status != lifecycle.Completed {
			t.Errorf("it is %s", r.Status)
		}
		if _, err := w.Begin(ctx, w.caller, reported.New{Key: "another", Engine: "snakemake", Project: "rna"}); !fault.Is(err, fault.KindPayment) {
			t.Errorf("another one: %v", err)
		}
	})
}
