package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// Executors counts the tasks of each executor of this process.
type Executors struct {
	tasks *prometheus.CounterVec
	wait  *prometheus.HistogramVec
}

// NewExecutors registers the metrics of executors.
func NewExecutors(r prometheus.Registerer) *Executors {
	m := &Executors{
		tasks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_executor_tasks_total", Help: "Tasks that ended, by executor and outcome: succeeded, failed, lost, cancelled.",
		}, []string{"executor", "outcome"}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "millrace_executor_wait_seconds", Help: "How long tasks that ended had waited for a place, by executor.", Buckets: longBuckets,
		}, []string{"executor"}),
	}
	r.MustRegister(m.tasks, m.wait)
	return m
}

// Executor counts the tasks of one of them.
type Executor struct {
	name string
	all  *Executors
}

// Of is one by its name.
func (m *Executors) Of(name string) *Executor { return &Executor{name, m} }

// RunAdvanced takes in the tasks that have ended.
func (e *Executor) RunAdvanced(_ context.Context, _ ids.Run, s runs.Step, _ time.Time) {
	for _, a := range s.Attempts {
		if a.State == runs.AttemptStarted || a.Reused() {
			continue
		}
		e.all.tasks.WithLabelValues(e.name, string(a.State)).Inc()
		if waited, known := a.Queued(); known {
			e.all.wait.WithLabelValues(e.name).Observe(waited.Seconds())
		}
	}
}

// What becomes of whole runs is counted for all executors together.

func (*Executor) RunClaimed(context.Context, runs.Run, time.Time)                {}
func (*Executor) RunTakenOver(context.Context, runs.Run, time.Time)              {}
func (*Executor) RunRequeued(context.Context, ids.Run, time.Time)                {}
func (*Executor) RunEnded(context.Context, ids.Run, lifecycle.Status, time.Time) {}
func (*Executor) RunLost(context.Context, ids.Run, time.Time)                    {}
