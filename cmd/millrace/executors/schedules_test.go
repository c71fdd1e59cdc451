package executors

import (
	"log/slog"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/live"
	"github.com/millrace/millrace/internal/runs/offers"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
)

// A schedule starts its run at its time although no worker that serves it is there, and
// was not for days: the run waits, and the schedule is not paused.
func TestScheduleFiresWhileNoWorkerIsThere(t *testing.T) {
	t.Parallel()
	catalog := credits.DefaultCatalog()
	catalog.Plans[0].MaxVCPU, catalog.Plans[0].MaxRAMGB = 0, 0 // GPUs, too
	worker := runs.Worker{Owner: "w", Host: "h", Executor: "gpus", Kind: "slurm", Size: credits.Size{VCPU: 4, RAMGB: 16, GPU: 1}}
	for name, tt := range map[string]struct {
		ago     time.Duration // since the worker last reported; 0: there never was one
		problem string        // of the one that is there in its place
		profile string
	}{
		"there never was one":          {0, "", ""},
		"it stopped a moment ago":      {2 * time.Minute, "", credits.GPUProfile},
		"it was there three hours ago": {3 * time.Hour, "", credits.GPUProfile},
		"it was there for six days":    {6 * 24 * time.Hour, "", credits.GPUProfile},
		"its cluster is away":          {3 * time.Hour, "Slurm does not answer", credits.GPUProfile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				ctx, now := t.Context(), time.Now()
				clock := func() time.Time { return now }
				report := func(w runs.Worker, at time.Time) {
					if err := db.ReportWorker(ctx, w, at); err != nil {
						t.Fatal(err)
					}
				}
				if tt.ago > 0 {
					report(worker, now.Add(-tt.ago))
					report(runs.Worker{Owner: "o", Host: "o", Executor: "cpus", Kind: "local", Size: credits.Size{VCPU: 4, RAMGB: 16}}, now.Add(time.Minute))
				}
				if tt.problem != "" {
					report(runs.Worker{Owner: "w2", Host: "h", Executor: "gpus", Kind: "slurm", Problem: tt.problem}, now.Add(time.Minute))
				}
				if _, err := db.DeleteExpired(ctx, now); err != nil {
					t.Fatal(err)
				}
				workers := &Workers{DB: db, Feed: live.NewFeed(nil, nil, nil)}
				service := runs.NewService(runs.Options{
					Store: db, Details: db, Shards: db, Logs: db, Submit: db, Known: db, Engine: workers, Catalog: catalog, Now: clock,
				})
				owner := storetest.Owner(t, db, "ada")
				w, err := workflows.NewService(db.WorkflowStores(), clock).Create(ctx, owner, workflows.New{Name: "w", Definition: []byte(`{"nodes":[{"id":"a","command":"true"}]}`)})
				if err != nil {
					t.Fatal(err)
				}
				every := "* * * * *"
				s, err := schedules.NewService(db, db, service, clock).Create(ctx, owner, w.ID, schedules.Edit{Cron: &every, Given: &schedules.Given{Profile: tt.profile}})
				if err != nil {
					t.Fatal(err)
				}
				now = now.Add(time.Minute)
				runner := &schedules.Runner{Store: db, Runs: service, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: clock}
				if err := runner.Round(ctx); err != nil {
					t.Fatal(err)
				}
				if s, err = db.Schedule(ctx, owner.Team, w.ID, s.ID); err != nil || s.Paused != nil || len(s.Firings) != 1 || s.Firings[0].Outcome != schedules.Started {
					t.Fatalf("%+v, %+v, %v", s.Paused, s.Firings, err)
				}
				list, _, err := service.Runs(ctx, owner, runs.Filter{}, "", 10)
				if err != nil || len(list) != 1 || list[0].Status != lifecycle.Queued || list[0].Waiting == nil || list[0].Waiting.Reason != offers.WaitsForExecutor {
					t.Errorf("%+v, %v", list, err)
				}
			})
		})
	}
}
