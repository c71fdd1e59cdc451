// Package metrics counts for Prometheus what the parts of the service tell of
// themselves. Labels have few values, whatever users do.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/internal/upkeep"
)

// Upkeep counts chores.
type Upkeep struct {
	last, took, size, skipped *prometheus.GaugeVec
	done, failures            *prometheus.CounterVec
	does                      prometheus.Gauge
}

var _ upkeep.Metrics = (*Upkeep)(nil)

// NewUpkeep registers the metrics of chores.
func NewUpkeep(r prometheus.Registerer) *Upkeep {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"chore"})
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"chore"})
	}
	m := &Upkeep{
		last:     gauge("millrace_chore_last_success_timestamp_seconds", "When a chore was last done, by whichever process."),
		took:     gauge("millrace_chore_last_duration_seconds", "How long a chore took the last time."),
		size:     gauge("millrace_chore_last_done", "How many rows or files a chore dealt with the last time."),
		skipped:  gauge("millrace_chore_last_skipped", "What a chore had to leave out the last time, such as a file that cannot be read."),
		done:     counter("millrace_chore_done_total", "Rows or files that a chore dealt with in this process."),
		failures: counter("millrace_chore_failures_total", "How often a chore failed in this process."),
		does:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "millrace_upkeep_leader", Help: "1 in the one process that does the chores of the database and the object store."}),
	}
	r.MustRegister(m.last, m.took, m.size, m.skipped, m.done, m.failures, m.does)
	return m
}

// Chore takes in how a chore went.
func (m *Upkeep) Chore(c upkeep.Record, here bool) {
	if !c.SucceededAt.IsZero() {
		m.last.WithLabelValues(c.Name).Set(seconds(c.SucceededAt))
	}
	if failures := m.failures.WithLabelValues(c.Name); here && !c.FailedAt.IsZero() {
		failures.Inc()
	}
	m.took.WithLabelValues(c.Name).Set(c.Took.Seconds())
	m.size.WithLabelValues(c.Name).Set(float64(c.Done))
	m.skipped.WithLabelValues(c.Name).Set(float64(c.Skipped))
	if done := m.done.WithLabelValues(c.Name); here {
		done.Add(float64(c.Done))
	}
}

// DoesChores takes in whether this process is the one.
func (m *Upkeep) DoesChores(yes bool) {
	if yes {
		m.does.Set(1)
		return
	}
	m.does.Set(0)
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
