package metrics

import (
	"context"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// Engine counts what becomes of runs in this process.
type Engine struct {
	wait, start                      prometheus.Histogram
	tasks, ended, errors             *prometheus.CounterVec
	leaseLosses, takeovers, requeues prometheus.Counter

	mu      sync.Mutex
	claimed map[ids.Run]time.Time // of which no command has started yet
}

// Waiting takes from milliseconds to hours.
var longBuckets = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}

// NewEngine registers the metrics of the engine.
func NewEngine(r prometheus.Registerer) *Engine {
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: longBuckets})
	}
	vec := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Engine{
		wait:        histogram("millrace_run_wait_seconds", "How long runs waited in the queue until a worker took them for the first time."),
		start:       histogram("millrace_run_start_seconds", "How long it took from there until the first command of a run started."),
		tasks:       vec("millrace_tasks_total", "Tasks that ended, by outcome: succeeded, reused, failed, lost, cancelled.", "outcome"),
		ended:       vec("millrace_runs_ended_total", "Runs that ended, by status.", "status"),
		errors:      vec("millrace_engine_errors_total", "Calls to a part of the platform (database, storage) that failed while runs were executed, and were tried again.", "part"),
		leaseLosses: counter("millrace_lease_losses_total", "Runs that this worker held and found taken by another."),
		takeovers:   counter("millrace_run_takeovers_total", "Runs that this worker took over from one that was gone."),
		requeues:    counter("millrace_run_requeues_total", "Runs that went back to the queue because their tasks were lost."),
		claimed:     map[ids.Run]time.Time{},
	}
	r.MustRegister(m.wait, m.start, m.tasks, m.ended, m.errors, m.leaseLosses, m.takeovers, m.requeues)
	for _, part := range []string{"database", "storage"} {
		m.errors.WithLabelValues(part)
	}
	for _, outcome := range []string{"succeeded", "reused", "failed", "lost", "cancelled"} {
		m.tasks.WithLabelValues(outcome)
	}
	for _, status := range []lifecycle.Status{lifecycle.Completed, lifecycle.Failed, lifecycle.Cancelled, lifecycle.Interrupted} {
		m.ended.WithLabelValues(string(status))
	}
	return m
}

// RunClaimed takes in that a worker has taken a run from the queue.
func (m *Engine) RunClaimed(_ context.Context, r runs.Run, now time.Time) {
	if r.Losses == 0 && !r.StartedAt.Before(now.Add(-time.Second)) {
		m.wait.Observe(max(0, now.Sub(r.CreatedAt).Seconds()))
		m.mu.Lock()
		m.claimed[r.ID] = now
		m.mu.Unlock()
	}
}

// RunTakenOver takes in that a worker goes on with another's run.
func (m *Engine) RunTakenOver(context.Context, runs.Run, time.Time) { m.takeovers.Inc() }

// RunAdvanced takes in what has happened to a run.
func (m *Engine) RunAdvanced(_ context.Context, id ids.Run, s runs.Step, _ time.Time) {
	for _, a := range s.Attempts {
		switch {
		case a.State == runs.AttemptStarted:
		case a.State == runs.AttemptSucceeded && a.Reason == "reused":
			m.tasks.WithLabelValues("reused").Inc()
		default:
			m.tasks.WithLabelValues(string(a.State)).Inc()
		}
	}
	began := firstStart(s)
	if began.IsZero() {
		return
	}
	if at, waited := m.forget(id); waited {
		m.start.Observe(max(0, began.Sub(at).Seconds()))
	}
}

// firstStart is when the first command of a run started, as far as a step tells; zero
// before. A short run may have ended with the step that tells of it.
func firstStart(s runs.Step) time.Time {
	first := s.BilledSince
	for _, a := range s.Attempts {
		if !a.BeganAt.IsZero() && (first.IsZero() || a.BeganAt.Before(first)) {
			first = a.BeganAt
		}
	}
	return first
}

func (m *Engine) forget(id ids.Run) (at time.Time, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, known = m.claimed[id]
	delete(m.claimed, id)
	return at, known
}

// RunEnded takes in how a run ended.
func (m *Engine) RunEnded(_ context.Context, id ids.Run, status lifecycle.Status, _ time.Time) {
	m.forget(id)
	m.ended.WithLabelValues(string(status)).Inc()
}

// RunRequeued takes in that a run went back to the queue.
func (m *Engine) RunRequeued(_ context.Context, id ids.Run, _ time.Time) {
	m.forget(id)
	m.requeues.Inc()
}

// RunLost takes in that another worker has a run of ours.
func (m *Engine) RunLost(_ context.Context, id ids.Run, _ time.Time) {
	m.forget(id)
	m.leaseLosses.Inc()
}

// Trouble takes in that a part of the platform failed.
func (m *Engine) Trouble(part string) { m.errors.WithLabelValues(part).Inc() }

// Queue is how many runs a team has waiting and running.
type Queue struct {
	Team            ids.Team
	Queued, Running int
}

// teamBuckets bounds how many series teams can make.
const teamBuckets = 16

// queues asks the database for the queue when it is looked at.
type queues struct {
	read                    func(context.Context) ([]Queue, time.Time, error)
	now                     func() time.Time
	queued, running, oldest *prometheus.Desc
}

// NewQueues registers the metrics of the queue. They are those of the whole
// installation, whichever process is asked.
func NewQueues(r prometheus.Registerer, now func() time.Time, read func(context.Context) (list []Queue, oldest time.Time, err error)) {
	by := []string{"team_bucket"}
	r.MustRegister(&queues{
		read: read, now: now,
		queued:  prometheus.NewDesc("millrace_runs_queued", "Runs that wait, by bucket of teams.", by, nil),
		running: prometheus.NewDesc("millrace_runs_running", "Runs that run, by bucket of teams.", by, nil),
		oldest:  prometheus.NewDesc("millrace_runs_oldest_queued_seconds", "How long the run that waits longest has waited.", nil, nil),
	})
}

func (q *queues) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(q, ch) }

func (q *queues) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	list, oldest, err := q.read(ctx)
	if err != nil { // the rest is told all the same
		return
	}
	var queued, running [teamBuckets]int
	for _, t := range list {
		h := fnv.New32a()
		h.Write([]byte(t.Team))
		b := h.Sum32() % teamBuckets
		queued[b] += t.Queued
		running[b] += t.Running
	}
	for b := range teamBuckets {
		label := strconv.Itoa(b)
		ch <- prometheus.MustNewConstMetric(q.queued, prometheus.GaugeValue, float64(queued[b]), label)
		ch <- prometheus.MustNewConstMetric(q.running, prometheus.GaugeValue, float64(running[b]), label)
	}
	age := 0.0
	if !oldest.IsZero() {
		age = max(0, q.now().Sub(oldest).Seconds())
	}
	ch <- prometheus.MustNewConstMetric(q.oldest, prometheus.GaugeValue, age)
}
