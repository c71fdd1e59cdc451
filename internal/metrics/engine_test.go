package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/metrics"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/upkeep"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// told is what a registry says: values by name and labels, of histograms how many
// and their sum.
func told(t *testing.T, r *prometheus.Registry) map[string]string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "millrace_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			switch {
			case m.GetHistogram() != nil:
				all[name] = fmt.Sprintf("%d of %v", m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum())
			case m.GetCounter() != nil:
				all[name] = fmt.Sprint(m.GetCounter().GetValue())
			default:
				all[name] = fmt.Sprint(m.GetGauge().GetValue())
			}
		}
	}
	return all
}

func expect(t *testing.T, r *prometheus.Registry, want map[string]string) {
	t.Helper()
	got := told(t, r)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

// A run waits once, from when it was accepted until a worker takes it, and starts
// once, when its first command does.
func TestARunWaitsAndStartsOnce(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := metrics.NewEngine(r)
	expect(t, r, map[string]string{ // what has not happened is told, so that its rate is known
		"run_wait_seconds": "0 of 0", "tasks_total lost": "0", "tasks_total reused": "0", "runs_ended_total interrupted": "0", "engine_errors_total storage": "0",
	})
	ctx := t.Context()
	claim := func(id ids.Run, accepted time.Duration, losses int, started time.Time) {
		m.RunClaimed(ctx, runs.Run{ID: id, CreatedAt: noon.Add(-accepted), Losses: losses, StartedAt: started}, noon)
	}
	advance := func(id ids.Run, billed time.Time) { m.RunAdvanced(ctx, id, runs.Step{BilledSince: billed}, noon) }
	claim("a", 10*time.Second, 0, noon)
	advance("a", time.Time{}) // it is being prepared
	advance("a", noon.Add(3*time.Second))
	advance("a", noon.Add(9*time.Second))
	claim("lost before", time.Hour, 1, noon)
	claim("started long ago", time.Hour, 0, noon.Add(-time.Minute))
	claim("from a clock that is ahead", -time.Minute, 0, noon)
	advance("lost before", noon.Add(time.Second))
	advance("never claimed here", noon.Add(time.Second))
	expect(t, r, map[string]string{"run_wait_seconds": "2 of 10", "run_start_seconds": "1 of 3"})
	claim("ended at once", 0, 0, noon)
	began := func(after time.Duration) runs.Attempt {
		return runs.Attempt{State: runs.AttemptSucceeded, Placement: runs.Placement{BeganAt: noon.Add(after)}}
	}
	m.RunAdvanced(ctx, "ended at once", runs.Step{Attempts: []runs.Attempt{{State: runs.AttemptLost}, began(2 * time.Second), began(time.Second)}}, noon)
	expect(t, r, map[string]string{"run_wait_seconds": "3 of 10", "run_start_seconds": "2 of 4"})
	// What ended, was lost or went back before a command began never starts.
	for id, end := range map[ids.Run]func(ids.Run){
		"ends":     func(id ids.Run) { m.RunEnded(ctx, id, lifecycle.Cancelled, noon) },
		"lost":     func(id ids.Run) { m.RunLost(ctx, id, noon) },
		"requeued": func(id ids.Run) { m.RunRequeued(ctx, id, noon) },
	} {
		claim(id, 0, 0, noon)
		end(id)
		advance(id, noon.Add(time.Second))
	}
	m.RunTakenOver(ctx, runs.Run{}, noon)
	m.Trouble("database")
	expect(t, r, map[string]string{
		"run_start_seconds": "2 of 4", "runs_ended_total cancelled": "1", "lease_losses_total": "1", "run_requeues_total": "1", "run_takeovers_total": "1",
		"engine_errors_total database": "1", "engine_errors_total storage": "0",
	})
}

func TestTasksAreCountedWhenTheyEnd(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := metrics.NewEngine(r)
	m.RunAdvanced(t.Context(), "a", runs.Step{Attempts: []runs.Attempt{
		{State: runs.AttemptStarted},
		{State: runs.AttemptSucceeded},
		{State: runs.AttemptSucceeded, Reason: runs.ReusedReason},
		{State: runs.AttemptFailed, Reason: runs.ReusedReason},
		{State: runs.AttemptLost},
		{State: runs.AttemptCancelled},
	}}, noon)
	expect(t, r, map[string]string{
		"tasks_total succeeded": "1", "tasks_total reused": "1", "tasks_total failed": "1", "tasks_total lost": "1", "tasks_total cancelled": "1", "tasks_total started": "",
	})
}

// Teams are told in a bounded number of buckets, never by their names.
func TestQueuesAreToldInBuckets(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	var list []metrics.Queue
	for i := range 1000 {
		list = append(list, metrics.Queue{Team: ids.Team(fmt.Sprint("team_", i)), Queued: 2, Running: 1})
	}
	oldest, fails := noon.Add(-90*time.Second), error(nil)
	metrics.NewQueues(r, func() time.Time { return noon }, func(ctx context.Context) ([]metrics.Queue, time.Time, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("a scrape may wait for ever")
		}
		return list, oldest, fails
	})
	all := told(t, r)
	queued, running, rows := 0.0, 0.0, 0
	for name, value := range all {
		var n float64
		if _, err := fmt.Sscan(value, &n); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "runs_queued") {
			queued += n
			rows++
		}
		if strings.HasPrefix(name, "runs_running") {
			running += n
		}
		if strings.Contains(name, "team_") {
			t.Errorf("a team is named: %s", name)
		}
	}
	if queued != 2000 || running != 1000 || rows != 16 || all["runs_oldest_queued_seconds"] != "90" {
		t.Errorf("%v queued, %v running in %d buckets, the oldest since %s", queued, running, rows, all["runs_oldest_queued_seconds"])
	}
	list, oldest = nil, time.Time{}
	expect(t, r, map[string]string{"runs_queued 0": "0", "runs_oldest_queued_seconds": "0"})
	oldest = noon.Add(time.Minute) // of a server whose clock is ahead
	expect(t, r, map[string]string{"runs_oldest_queued_seconds": "0"})
	fails = errors.New("the database is away")
	if all := told(t, r); len(all) != 0 {
		t.Errorf("made up: %v", all)
	}
}

func TestChoresAreCountedWhereTheyAreDone(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := metrics.NewUpkeep(r)
	done := upkeep.Record{Name: "sweep", SucceededAt: noon, Took: 3 * time.Second, Done: 7, Skipped: 1}
	m.Chore(done, false) // by another process
	expect(t, r, map[string]string{
		"chore_last_success_timestamp_seconds sweep": fmt.Sprint(float64(noon.Unix())), "chore_last_duration_seconds sweep": "3", "chore_last_done sweep": "7",
		"chore_last_skipped sweep": "1", "chore_done_total sweep": "0", "chore_failures_total sweep": "0", "upkeep_leader": "0",
	})
	m.Chore(done, true)
	m.Chore(done, true)
	failed := upkeep.Record{Name: "sweep", SucceededAt: noon, FailedAt: noon.Add(time.Hour), Done: 2}
	m.Chore(failed, false)
	m.Chore(failed, true)
	m.Chore(upkeep.Record{Name: "never", FailedAt: noon}, true)
	m.DoesChores(true)
	expect(t, r, map[string]string{
		"chore_done_total sweep": "16", "chore_failures_total sweep": "1", "chore_last_success_timestamp_seconds sweep": fmt.Sprint(float64(noon.Unix())),
		"chore_last_success_timestamp_seconds never": "", "chore_failures_total never": "1", "upkeep_leader": "1",
	})
	m.DoesChores(false)
	expect(t, r, map[string]string{"upkeep_leader": "0"})
}

func TestTheMachineIsLookedAtWhenItIsAsked(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	var pool metrics.Pool
	var disk metrics.Disk
	metrics.NewMachine(r, func() metrics.Pool { return pool }, func() metrics.Disk { return disk }, func() time.Duration { return -90 * time.Second })
	expect(t, r, map[string]string{"database_connections": "0", "disk_state": "0", "clock_offset_seconds": "-90"})
	pool, disk = metrics.Pool{Open: 8, InUse: 3, Waits: 5, Waited: 1500 * time.Millisecond}, metrics.Disk{Free: 1 << 30, FreeFiles: 9, State: 2}
	expect(t, r, map[string]string{
		"database_connections": "8", "database_connections_in_use": "3", "database_waits_total": "5", "database_wait_seconds_total": "1.5",
		"disk_free_bytes": "1.073741824e+09", "disk_free_files": "9", "disk_state": "2",
	})
}
