package metrics_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/internal/metrics"
	"github.com/millrace/millrace/internal/runs"
)

func TestTasksAreCountedByExecutor(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := metrics.NewExecutors(r)
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	waited := runs.Attempt{State: runs.AttemptSucceeded, StartedAt: noon, Placement: runs.Placement{BeganAt: noon.Add(7 * time.Second)}}
	m.Of("cpu").RunAdvanced(t.Context(), "run", runs.Step{Attempts: []runs.Attempt{
		{State: runs.AttemptStarted}, waited, {State: runs.AttemptSucceeded, Reason: runs.ReusedReason},
	}}, noon)
	m.Of("local").RunAdvanced(t.Context(), "run", runs.Step{Attempts: []runs.Attempt{{State: runs.AttemptFailed}}}, noon)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, f := range families {
		for _, s := range f.GetMetric() {
			text := f.GetName()
			for _, l := range s.GetLabel() {
				text += " " + l.GetValue()
			}
			seen = append(seen, fmt.Sprint(text, " ", s.GetCounter().GetValue(), " ", s.GetHistogram().GetSampleSum()))
		}
	}
	slices.Sort(seen)
	want := []string{"millrace_executor_tasks_total cpu succeeded 1 0", "millrace_executor_tasks_total local failed 1 0", "millrace_executor_wait_seconds cpu 0 7"}
	if !slices.Equal(seen, want) {
		t.Errorf("%q", seen)
	}
}
