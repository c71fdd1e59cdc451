package store

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
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
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		cpu, local, either := named(t, db, team, "cpu"), named(t, db, team, "local"), named(t, db, team, "")
		c := claim("h#cpu w", 10)
		c.Host, c.Executor = "h#cpu", "cpu"
		claimed, err := db.ClaimRuns(ctx, c, august, august.Add(time.Minute))
		if err != nil || len(claimed.Runs) != 2 || claimed.Runs[0].ID != cpu.ID || claimed.Runs[0].Executor != "cpu" || claimed.Runs[1].ID != either.ID {
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
		if taken := take("gpu"); len(taken) != 1 || taken[0].ID != either.ID {
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

func TestWhatIsKnownOfAnExecutor(t *testing.T) {
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
		w := runs.Worker{Owner: "h#cpu w", Host: "h#cpu", Size: r.Size, Executor: "cpu", Kind: "slurm", Scope: "slurm:/s", Place: 1, PricePercent: 150, NoImages: true, NoEnvironments: true}
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
	})
}
