package store

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/runs/offers"
)

// named is a run that was given an executor.
func named(t *testing.T, db *DB, team ids.Team, executor string) runs.Run {
	t.Helper()
	r := newRun(team)
	r.Executor = executor
	if err := db.SubmitRun(t.Context(), r, 60*r.Price, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAWorkerTakesTheRunsOfItsExecutor(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		cpu, local, either := named(t, db, team, "cpu"), named(t, db, team, "local"), named(t, db, team, "")
		c := claim("h#cpu w", 10)
		c.Host, c.Executor = "h#cpu", "cpu"
		claimed, err := db.ClaimRuns(ctx, c, august, august.Add(time.Minute))
		if err != nil || len(claimed.Runs) != 2 || claimed.Runs[0].ID != cpu.ID || claimed.Runs[0].Executor != "cpu" || claimed.Runs[1].ID != either.ID || claimed.Runs[1].Executor != "cpu" {
			t.Fatalf("%+v, %v", claimed.Runs, err)
		}
		later := august.Add(time.Hour)
		take := func(executor string) []runs.Run {
			taken, err := db.TakeOver(ctx, runs.TakeOver{Owner: "x w", Host: "x", Executor: executor}, later, later.Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			return taken
		}
		if taken := take("gpu"); len(taken) != 0 {
			t.Errorf("a worker of another executor takes over %+v", taken)
		}
		if taken := take("cpu"); len(taken) != 2 {
			t.Errorf("a worker of the same takes over %+v", taken)
		}
		q, err := db.QueueState(ctx, team, []ids.Run{local.ID}, august)
		if err != nil || q.Ahead[local.ID] != 0 {
			t.Errorf("%d runs of other executors are before it, %v", q.Ahead[local.ID], err)
		}
	})
}

// An executor has another name now: its runs wait until it has been gone for
// long, and then others take them, queued or begun.
func TestTheRunsOfAnExecutorThatIsGone(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		begun := named(t, db, team, "local")
		c := claim("h w", 10)
		c.Executor = "local"
		if _, err := db.ClaimRuns(ctx, c, august, august.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		queued := named(t, db, team, "local")
		if err := db.ReportWorker(ctx, runs.Worker{Owner: "h w", Host: "h", Executor: "local"}, august.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := db.ForgetWorker(ctx, "h w"); err != nil {
			t.Fatal(err)
		}
		if list, err := db.Workers(ctx, august.Add(time.Minute)); err != nil || len(list) != 0 {
			t.Errorf("one that stopped is there: %+v, %v", list, err)
		}
		other := claim("x w", 10)
		other.Host, other.Executor, other.Orphans = "x", "slurm", true
		look := func(after time.Duration) (taken, claimed []runs.Run) {
			now := august.Add(after)
			taken, err := db.TakeOver(ctx, runs.TakeOver{Owner: "x w", Host: "x", Executor: "slurm", Orphans: other.Orphans, AbandonAfter: time.Minute}, now, now.Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			got, err := db.ClaimRuns(ctx, other, now, now.Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			return taken, got.Runs
		}
		if taken, claimed := look(admission.GoneAfter - time.Minute); len(taken)+len(claimed) != 0 {
			t.Errorf("while it may come back: %+v, %+v", taken, claimed)
		}
		if err := db.ReportWorker(ctx, runs.Worker{Owner: "h w2", Host: "h", Executor: "local"}, august.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if taken, claimed := look(time.Hour); len(taken)+len(claimed) != 0 {
			t.Errorf("while it is there: %+v, %+v", taken, claimed)
		}
		other.Orphans = false
		if taken, claimed := look(2 * time.Hour); len(taken)+len(claimed) != 0 {
			t.Errorf("by one that came just now: %+v, %+v", taken, claimed)
		}
		other.Orphans = true
		taken, claimed := look(2 * time.Hour)
		if len(taken) != 1 || taken[0].ID != begun.ID || taken[0].Executor != "local" {
			t.Errorf("taken over: %+v", taken)
		}
		if len(claimed) != 1 || claimed[0].ID != queued.ID || claimed[0].Executor != "slurm" {
			t.Errorf("claimed: %+v", claimed)
		}
	})
}

// The latest worker of a host and executor is kept as long as runs wait for it; what it
// came in place of, and what never worked, goes after an hour. Neither is listed as there.
func TestWorkersThatAreGoneAreKeptForAWeek(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		report := func(owner, host, executor string, vcpu int, ago time.Duration) {
			t.Helper()
			w := runs.Worker{Owner: owner, Host: host, Executor: executor, Size: credits.Size{VCPU: vcpu}}
			if err := db.ReportWorker(ctx, w, august.Add(-ago)); err != nil {
				t.Fatal(err)
			}
		}
		const day = 24 * time.Hour
		report("first", "pod", "local", 4, 3*day)
		report("second", "pod", "local", 8, 2*day)
		report("cluster", "pod", "slurm", 4, 3*day)
		report("never worked", "pod", "local", 0, day)
		report("restarted", "server", "local", 4, 10*time.Minute)
		report("here", "server", "local", 4, 0)
		report("week", "old pod", "local", 4, 7*day+time.Hour)
		report("older", "oldest pod", "local", 4, 8*day)
		if _, err := db.DeleteExpired(ctx, august); err != nil {
			t.Fatal(err)
		}
		left, err := all(ctx, db, func(r *sql.Rows, owner *string) error { return r.Scan(owner) }, `SELECT owner FROM workers ORDER BY owner`)
		if got := strings.Join(left, ", "); err != nil || got != "cluster, here, restarted, second, week" {
			t.Errorf("kept: %s, %v", got, err)
		}
		gone, err := db.GoneWorkers(ctx, august.Add(-offers.RememberedFor), august)
		if err != nil || len(gone) != 2 || gone[0].Owner != "second" || gone[1].Owner != "cluster" {
			t.Errorf("remembered: %+v, %v", gone, err)
		}
		shown, err := db.WorkersOfAll(ctx, august)
		if err != nil || len(shown) != 1 || shown[0].ID != "here" {
			t.Errorf("shown to the operator: %+v, %v", shown, err)
		}
		hosts, err := db.WorkerHosts(ctx, august)
		if err != nil || len(hosts) != 1 {
			t.Errorf("hosts: %v, %v", hosts, err)
		}
	})
}

func TestWhatIsKnownOfAnExecutor(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := named(t, db, team, "cpu")
		named(t, db, team, "local")
		c := claim("h#cpu w", 10)
		c.Executor = "cpu"
		if _, err := db.ClaimRuns(ctx, c, august, august.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		a := runs.Attempt{Node: "n", Number: 1, Fence: "f", State: runs.AttemptStarted, StartedAt: august, Placement: runs.Placement{BeganAt: august.Add(time.Minute)}}
		if err := db.Advance(ctx, r.ID, 1, runs.Step{Nodes: []runs.Node{{ID: "n", Name: "n", State: lifecycle.NodeRunning}}, Attempts: []runs.Attempt{a}}, august); err != nil {
			t.Fatal(err)
		}
		loads, err := db.ExecutorLoads(ctx, []string{"cpu", "local", "none"})
		if cpu := loads["cpu"]; err != nil || cpu.Used != r.Size || cpu.Queued != 0 || len(cpu.Waits) != 1 || cpu.Waits[0] != time.Minute {
			t.Errorf("%+v, %v", loads, err)
		}
		if local := loads["local"]; local.Used != (credits.Size{}) || local.Queued != 1 || len(local.Waits) != 0 {
			t.Errorf("%+v", local)
		}
		w := runs.Worker{Owner: "h#cpu w", Host: "h#cpu", Size: r.Size, Executor: "cpu", Kind: "slurm", Scope: "slurm:/s", Place: 1, PricePercent: 150, NoImages: true, NoEnvironments: true, Launches: "nextflow snakemake"}
		first := runs.Worker{Owner: "h w", Host: "h", Executor: "local", PricePercent: 100}
		for _, each := range []runs.Worker{w, first, w} {
			if err := db.ReportWorker(ctx, each, august); err != nil {
				t.Fatal(err)
			}
		}
		list, err := db.Workers(ctx, august)
		if err != nil || len(list) != 2 || list[0] != first || list[1] != w {
			t.Errorf("%+v, %v", list, err)
		}
		if err := db.DrainWorker(ctx, w.Owner, true); err != nil {
			t.Fatal(err)
		}
		if list, err = db.Workers(ctx, august); err != nil || len(list) != 2 || list[0].Draining || !list[1].Draining {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
