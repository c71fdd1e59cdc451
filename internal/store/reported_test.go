package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/reported"
)

// watched is a room of reported runs at a time that the test sets.
type watched struct {
	*reported.Service
	db     *DB
	caller access.Caller
	now    time.Time
	keys   int
}

func (w *watched) Changed(ids.Run) {}
func (w *watched) Ended(ids.Run)   {}

func newWatched(t *testing.T, db *DB) *watched {
	t.Helper()
	team, owner := newTeam(t, db)
	w := &watched{db: db, now: august, caller: access.Caller{User: owner, Name: "Ada", Team: team, Role: access.Member, Scopes: access.ScopeSet{access.ScopeReport}}}
	w.Service = reported.NewService(db, w, func() time.Time { return w.now })
	return w
}

func (w *watched) begin(t *testing.T) ids.Run {
	t.Helper()
	w.keys++
	b, err := w.Begin(t.Context(), w.caller, reported.New{Key: fmt.Sprint("k", w.keys), Engine: "snakemake", Project: "rna", Details: map[string]string{"commandLine": "snakemake -c 4"}})
	if err != nil || !b.Created {
		t.Fatal(b, err)
	}
	return b.Run
}

func (w *watched) take(t *testing.T, id ids.Run, r reported.Report) reported.Taken {
	t.Helper()
	taken, err := w.Take(t.Context(), w.caller, id, r)
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// runOf is a run as people see it.
func (w *watched) runOf(t *testing.T, id ids.Run) runs.Run {
	t.Helper()
	r, err := w.db.Run(t.Context(), w.caller.Team, id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// seen is all that people see of a run at the end, without when.
func (w *watched) seen(t *testing.T, id ids.Run) string {
	t.Helper()
	r := w.runOf(t, id)
	nodes, err := w.db.NodesOf(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintln(&b, r.Status, r.ErrorCode, r.ErrorMessage, r.Progress, r.DoneNodes, r.TotalNodes, r.CreditsUsed, string(r.Definition))
	service := runs.NewService(runs.Options{Store: w.db, Details: w.db, Shards: w.db, Reported: reported.Tasks{Store: w.db}, Objects: everyObject{}, Verifier: runs.NewVerifier(everyObject{}, w.db), Now: func() time.Time { return w.now }})
	reader := w.caller
	reader.Scopes = nil
	for _, n := range nodes {
		fmt.Fprintln(&b, n.ID, n.Name, n.State, n.Attempt, n.Cached, *n.Shards, n.ShardsDone, n.ShardsFailed, n.PeakMemory, n.CPU)
		for after := ""; ; {
			list, next, err := service.Shards(t.Context(), reader, id, runs.ShardPage{Node: n.ID, After: after, Limit: 2})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list {
				fmt.Fprint(&b, " ", s.Index, s.Item, s.State, s.Cached)
				for _, a := range s.Attempts {
					row, attempts, err := w.db.ReportedTask(t.Context(), w.caller.Team, id, s.Index, a.Number)
					if err != nil || attempts != len(s.Attempts) {
						t.Fatal(attempts, err)
					}
					code := -1
					if a.ExitCode != nil {
						code = *a.ExitCode
					}
					fmt.Fprint(&b, " ", a.Number, a.State, code, a.Message, a.StartedAt, a.EndedAt, row.Script, row.Details.WorkDir)
				}
				fmt.Fprintln(&b)
			}
			if after = next; next == "" {
				break
			}
		}
	}
	return b.String()
}

func code(n int) *int { return &n }

// task is an event about a task as the general intake makes it.
func task(seq int64, number, attempt int, node string, state reported.State, more ...func(*reported.Task)) reported.Report {
	t := reported.Task{ID: fmt.Sprintf("%d.%d", number, attempt), Chain: fmt.Sprint(number), Node: node, Number: number, Attempt: attempt, State: state, Version: seq}
	for _, change := range more {
		change(&t)
	}
	return reported.Report{Seq: seq, Tasks: []reported.Task{t}}
}

// story is a run with a retry, a failure that is ignored, a cached task and a step
// that never had anything to do.
func story() []reported.Report {
	expected := 3
	begin := func(t *reported.Task) { t.Script, t.Name, t.StartedAt = "bwa "+t.Chain, "sample="+t.Chain, august }
	end := func(t *reported.Task) { t.EndedAt, t.Peak, t.ExitCode = august.Add(time.Minute), 1<<20, code(0) }
	return []reported.Report{
		{
			Seq: 1, Nodes: []reported.NodeReport{{Name: "align", Expected: &expected, Ordered: true}, {Name: "NFCORE:count (all)", Ordered: true}, {Name: "plot", Ordered: true}},
			Edges: [][2]string{{"align", "NFCORE:count (all)"}, {"NFCORE:count (all)", "plot"}, {"plot", "align"}},
		},
		task(2, 1, 1, "align", reported.Queued), task(3, 1, 1, "align", reported.Running, begin), task(4, 2, 1, "align", reported.Running, begin),
		task(5, 1, 1, "align", reported.Failed, func(t *reported.Task) {
			t.ExitCode, t.WillRetry, t.Message = code(137), true, "killed"
		}),
		task(6, 1, 2, "align", reported.Running, begin), task(7, 2, 1, "align", reported.Succeeded, end), task(8, 1, 2, "align", reported.Succeeded, end),
		task(9, 3, 1, "align", reported.Failed, func(t *reported.Task) { t.Ignored, t.ExitCode = true, code(1) }),
		task(10, 4, 1, "NFCORE:count (all)", reported.Cached), task(11, 5, 1, "extra", reported.Running, begin), task(12, 5, 1, "extra", reported.Succeeded, end),
		{Seq: 13, Finish: &reported.Finish{Status: lifecycle.Completed}},
	}
}

// However the reports of a run arrive, its picture at the end is the same.
func TestReportsInAnyOrderGiveTheSamePicture(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		w := newWatched(t, db)
		tell := func(list []reported.Report) string {
			w.now = august
			id := w.begin(t)
			for _, r := range list {
				w.now = w.now.Add(time.Second)
				w.take(t, id, r)
			}
			return w.seen(t, id)
		}
		want := tell(story())
		if !strings.HasPrefix(want, "completed  the run has completed 100 4 4 0 ") {
			t.Error(want)
		}
		var doubled []reported.Report
		for _, r := range story() {
			doubled = append(doubled, r, r)
		}
		if diff := cmp.Diff(want, tell(append(doubled, story()...))); diff != "" {
			t.Error("doubled:", diff)
		}
		for seed := range uint64(8) {
			mixed := story()
			rand.New(rand.NewPCG(seed, 1)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			if diff := cmp.Diff(want, tell(mixed)); diff != "" {
				t.Fatal("in another order, seed ", seed, ":", diff)
			}
		}
		backwards := story()
		slices.Reverse(backwards)
		if diff := cmp.Diff(want, tell(backwards)); diff != "" {
			t.Error("backwards:", diff)
		}
	})
}

// The log of a run is what was sent, once; its events have no gaps.
func TestReportedEventsAndLogsComeOnce(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		w := newWatched(t, db)
		id := w.begin(t)
		log := func(seq int64, text string) reported.Report {
			return reported.Report{Seq: seq, Log: []reported.LogText{{Seq: seq, Text: text}}}
		}
		for _, r := range []reported.Report{log(1, "one"), log(1, "one"), log(2, "two\n"), log(1, "one"), task(3, 1, 1, "a", reported.Failed), task(3, 1, 1, "a", reported.Failed), log(4, "three")} {
			w.take(t, id, r)
		}
		pieces, err := db.LogPieces(t.Context(), w.caller.Team, id, 0, 1000)
		var text string
		for _, p := range pieces {
			text += string(p.Text)
		}
		if err != nil || text != "one\ntwo\nthree\n" {
			t.Errorf("%q %v", text, err)
		}
		w.take(t, id, reported.Report{Seq: 5, Finish: &reported.Finish{Status: lifecycle.Failed}})
		events, err := db.Events(t.Context(), w.caller.Team, id, 0, 100)
		var types []string
		for i, e := range events {
			if e.Seq != int64(i+1) {
				t.Errorf("event %d has the number %d", i+1, e.Seq)
			}
			types = append(types, string(e.Type))
		}
		if diff := cmp.Diff([]string{"run.started", "node.failed", "run.failed"}, types); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if r := w.runOf(t, id); r.ErrorMessage != "Task a failed" || r.ErrorCode != lifecycle.NodeFailedCode {
			t.Error(r.ErrorCode, r.ErrorMessage)
		}
	})
}

// Ten minutes of silence are said, a day of it is the end for good, and whoever
// comes back later is heard politely and in vain.
func TestSilenceEndsAReportedRun(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		w := newWatched(t, db)
		service := runs.NewService(runs.Options{Store: db, Details: db, Shards: db, Reported: reported.Tasks{Store: db}, Logs: db, Now: func() time.Time { return w.now }})
		reader := w.caller
		reader.Scopes = nil
		waits := func(id ids.Run) string {
			list, _, err := service.Runs(t.Context(), reader, runs.Filter{}, "", 50)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list {
				if r.ID == id && r.Waiting != nil {
					return string(r.Waiting.Reason)
				}
			}
			return ""
		}
		first, second := w.begin(t), w.begin(t)
		w.take(t, first, task(1, 1, 1, "a", reported.Running))
		w.now = august.Add(10*time.Minute - time.Second)
		if got := waits(first); got != "" {
			t.Error(got)
		}
		w.now = august.Add(10 * time.Minute)
		if got := waits(first); got != "silent" {
			t.Errorf("%q", got)
		}
		w.take(t, second, reported.Report{Seq: 1})
		if got := waits(second); got != "" {
			t.Error("a sign of life changed nothing:", got)
		}
		w.now = august.Add(24 * time.Hour)
		ended, err := db.InterruptSilent(t.Context(), w.now)
		if err != nil || !slices.Equal(ended, []ids.Run{first}) {
			t.Fatal(ended, err)
		}
		r := w.runOf(t, first)
		if r.Status != lifecycle.Interrupted || r.ErrorCode != lifecycle.Silent || r.Took(w.now) > time.Second {
			t.Error(r.Status, r.ErrorCode, r.Took(w.now))
		}
		if nodes, err := db.NodesOf(t.Context(), first); err != nil || nodes[0].State != lifecycle.NodeCancelled {
			t.Error(nodes, err)
		}
		if got := w.take(t, first, task(2, 1, 1, "a", reported.Succeeded)); !got.Dropped || got.Status != lifecycle.Interrupted {
			t.Errorf("%+v", got)
		}
		// The same where the report comes before anybody has looked.
		w.now = w.now.Add(24 * time.Hour)
		if got := w.take(t, second, task(2, 1, 1, "a", reported.Running)); !got.Dropped || got.Status != lifecycle.Interrupted {
			t.Errorf("%+v", got)
		}
		if ended, err := db.InterruptSilent(t.Context(), w.now); err != nil || len(ended) > 0 {
			t.Error(ended, err)
		}
	})
}

// No worker takes a reported run, it holds no capacity and no credits, and
// cancelling marks it at once.
func TestWorkersLeaveReportedRunsAlone(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		w := newWatched(t, db)
		id := w.begin(t)
		w.take(t, id, task(1, 1, 1, "a", reported.Running))
		w.now = w.now.Add(time.Hour)
		claimed, err := db.ClaimRuns(t.Context(), claim("w1", 10), w.now, w.now.Add(time.Minute))
		if err != nil || len(claimed.Runs) > 0 {
			t.Fatal(claimed, err)
		}
		mine := submit(t, db, w.caller.Team)
		if claimed, err = db.ClaimRuns(t.Context(), claim("w1", 10), w.now, w.now.Add(time.Minute)); err != nil || len(claimed.Runs) != 1 || claimed.Runs[0].ID != mine.ID {
			t.Fatal(claimed, err)
		}
		taken, err := db.TakeOver(t.Context(), runs.TakeOver{Owner: "here w2", Host: "here", Started: true, Held: map[ids.Run]bool{mine.ID: true}}, w.now.Add(time.Hour), w.now.Add(2*time.Hour))
		if err != nil || len(taken) > 0 {
			t.Fatal(taken, err)
		}
		if _, err := db.SeizeRun(t.Context(), id, "operator", w.now, w.now); !fault.Is(err, fault.KindNotFound) {
			t.Error(err)
		}
		status, err := db.CancelRun(t.Context(), w.caller.Team, id, runs.Starter{Name: "Ada"}, w.now)
		if err != nil || status != lifecycle.Cancelled {
			t.Fatal(status, err)
		}
		if got := w.take(t, id, task(2, 1, 1, "a", reported.Succeeded)); !got.Dropped {
			t.Errorf("%+v", got)
		}
		if r := w.runOf(t, id); r.Took(w.now) != time.Hour || r.CreditsUsed != 0 {
			t.Error(r.Took(w.now), r.CreditsUsed)
		}
		if _, err := db.CancelRun(t.Context(), w.caller.Team, mine.ID, runs.Starter{Name: "Ada"}, w.now); err != nil {
			t.Fatal(err)
		}
		var entries int
		if err := db.q.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM ledger WHERE run_id = $1`, id).Scan(&entries); err != nil || entries > 0 {
			t.Error(entries, err)
		}
	})
}

// A team that reports ever new projects has a thousand workflows of them, and one
// for all others; one that begins too many runs at once waits.
func TestReportedProjectsAndBeginningsAreBounded(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		w := newWatched(t, db)
		w.begin(t)
		for i := range 10 {
			err := db.inTx(t.Context(), func(tx *DB) error {
				_, err := tx.q.ExecContext(t.Context(), `
					INSERT INTO reported_projects (team_id, engine, project, workflow_id)
					SELECT team_id, engine, project || $1, workflow_id FROM reported_projects WHERE team_id = $2`, fmt.Sprint("-", i), w.caller.Team)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		beginWith := func(engine, project string) (reported.Begun, error) {
			w.keys++
			return w.Begin(t.Context(), w.caller, reported.New{Key: fmt.Sprint("k", w.keys), Engine: engine, Project: project})
		}
		begin := func(project string) (reported.Begun, error) { return beginWith("snakemake", project) }
		first, err := begin("new")
		second, again := begin("newer")
		if err != nil || again != nil || first.Workflow != second.Workflow {
			t.Error(first, err, second, again)
		}
		for _, project := range []string{"newest", otherProjects} {
			if made, err := beginWith("madeup", project); err != nil || made.Workflow != first.Workflow {
				t.Errorf("%s of another engine is in %s, %v", project, made.Workflow, err)
			}
		}
		if r := w.runOf(t, first.Run); r.WorkflowName != otherProjects {
			t.Error(r.WorkflowName)
		}
		for err == nil && w.keys <= reported.MaxPerMinute {
			_, err = begin("rna")
		}
		if !fault.Is(err, fault.KindLimited) || w.keys != reported.MaxPerMinute+1 {
			t.Error(w.keys, err)
		}
		w.now = w.now.Add(time.Minute)
		if _, err := begin("rna"); err != nil {
			t.Error(err)
		}
	})
}
