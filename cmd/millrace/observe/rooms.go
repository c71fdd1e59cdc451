package observe

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/internal/collab"
)

// CountRooms measures the editor.
func CountRooms(r *prometheus.Registry, e *collab.Server) {
	for _, m := range []struct {
		name, help string
		value      func(collab.Measure) int64
	}{
		{"millrace_editor_rooms", "Editor rooms in memory.", func(m collab.Measure) int64 { return m.Rooms }},
		{"millrace_editor_connections", "Open editor sockets.", func(m collab.Measure) int64 { return m.Conns }},
	} {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: m.name, Help: m.help}, func() float64 { return float64(m.value(e.Measure())) }))
	}
	for _, m := range []struct {
		name, help string
		value      func(collab.Measure) int64
	}{
		{"millrace_editor_updates_total", "Edits that were stored.", func(m collab.Measure) int64 { return m.Stored }},
		{"millrace_editor_refused_total", "Edits of people who only read.", func(m collab.Measure) int64 { return m.Refused }},
		{"millrace_editor_slow_total", "Sockets closed because they did not keep up.", func(m collab.Measure) int64 { return m.Slow }},
	} {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: m.name, Help: m.help}, func() float64 { return float64(m.value(e.Measure())) }))
	}
}
