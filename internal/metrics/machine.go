package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Pool is how the connections to the database are used.
type Pool struct {
	Open, InUse int
	Waits       int64
	Waited      time.Duration
}

// Disk is what the file system of the data folder has left. State is 0 where
// there is enough, 1 where nothing new starts, 2 where tasks are ended.
type Disk struct {
	Free, FreeFiles int64
	State           int
}

// NewMachine registers the metrics of what this process has. Offset is how far the
// machine's clock is ahead of the database's.
func NewMachine(r prometheus.Registerer, pool func() Pool, disk func() Disk, offset func() time.Duration) {
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	counter := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
	}
	gauge("millrace_database_connections", "Open connections to the database.", func() float64 { return float64(pool().Open) })
	gauge("millrace_database_connections_in_use", "Connections that are in use.", func() float64 { return float64(pool().InUse) })
	counter("millrace_database_waits_total", "How often somebody waited for a connection.", func() float64 { return float64(pool().Waits) })
	counter("millrace_database_wait_seconds_total", "How long they waited in all.", func() float64 { return pool().Waited.Seconds() })
	gauge("millrace_clock_offset_seconds", "How far the clock of this machine is ahead of the database's; negative: behind. Beyond 60 either way the process takes no runs.", func() float64 { return offset().Seconds() })
	gauge("millrace_disk_free_bytes", "Free space where the data folder is.", func() float64 { return float64(disk().Free) })
	gauge("millrace_disk_free_files", "Free inodes where the data folder is.", func() float64 { return float64(disk().FreeFiles) })
	gauge("millrace_disk_state", "0: enough; 1: below --min-free-disk, nothing new starts; 2: below half of it, tasks are ended.", func() float64 { return float64(disk().State) })
}
