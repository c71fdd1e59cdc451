package failures_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/failures"
)

// Three may limit the time of a task, and each is named when it did.
func TestATimeoutNamesWhoseLimitItWas(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		own, plan, took time.Duration
		code            lifecycle.ErrorCode
		says            string
	}{
		"the step's":                       {time.Minute, time.Hour, time.Minute, lifecycle.NodeTimeout, "Step a took longer than its 1m0s"},
		"the plan's, without one":          {0, time.Hour, time.Hour, lifecycle.PlanTimeLimit, "the run took longer than the 1h0m0s that the team's plan allows"},
		"the plan's, before the step's":    {2 * time.Hour, time.Hour, time.Hour, lifecycle.PlanTimeLimit, "the run took longer than the 1h0m0s that the team's plan allows"},
		"the cluster's, where nobody else": {0, 0, time.Hour, lifecycle.NodeTimeout, "Step a took too long: its partition ends"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := failures.Explain(failures.Attempt{
				Node: &graph.Node{ID: "a", Timeout: tt.own}, TimeLimit: tt.plan, Took: tt.took,
				Status: executor.Status{Reason: executor.TimedOut, Detail: "its partition ends"},
			})
			if f.Code != tt.code || f.Message != tt.says {
				t.Errorf("%s: %s", f.Code, f.Message)
			}
		})
	}
}

func TestEvictedTaskFailsForTheDisk(t *testing.T) {
	t.Parallel()
	a := failures.Attempt{Node: &graph.Node{ID: "a"}, Status: executor.Status{Reason: executor.Evicted}}
	if f := failures.Explain(a); f.Code != lifecycle.DiskFull || f.Why != graph.OnError || !strings.Contains(f.Message, "--min-free-disk") {
		t.Errorf("%+v", f)
	}
	a.Status.Reason = executor.OutOfDisk
	if f := failures.Explain(a); f.Code != lifecycle.DiskFull || !strings.Contains(f.Message, "--task-disk") {
		t.Errorf("%+v", f)
	}
}
