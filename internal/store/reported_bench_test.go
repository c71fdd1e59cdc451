package store_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/reported"
	"github.com/millrace/millrace/internal/store/storetest"
)

type nobody struct{}

func (nobody) Changed(ids.Run) {}
func (nobody) Ended(ids.Run)   {}

// BenchmarkLargestReportedRun reports as many tasks as a run may have, a hundred at
// a time as Nextflow does, each when it starts and when it ends. It says how long
// reports take at the beginning and at the end:
//
//	go test ./internal/store -run - -bench LargestReportedRun -benchtime 1x
//
// MILLRACE_BENCH_URL names a PostgreSQL database in place of SQLite.
func BenchmarkLargestReportedRun(b *testing.B) {
	const batch, steps = 100, 40
	for b.Loop() {
		url := os.Getenv("MILLRACE_BENCH_URL")
		if url == "" {
			url = storetest.SQLite(b)
		}
		db := storetest.Open(b, url)
		service := reported.NewService(db, nobody{}, time.Now)
		ada := storetest.Owner(b, db, "Ada")
		begun, err := service.Begin(b.Context(), ada, reported.New{Key: "k", Engine: "nextflow", Project: "large"})
		if err != nil {
			b.Fatal(err)
		}
		var took []time.Duration
		for first := 0; first < reported.MaxTasks; first += batch {
			began := time.Now()
			for _, state := range []reported.State{reported.Running, reported.Succeeded} {
				var r reported.Report
				for n := first; n < first+batch; n++ {
					version := int64(1)
					if state == reported.Succeeded {
						version = 2
					}
					name := fmt.Sprintf("STEP_%d (sample %d)", n%steps, n)
					r.Tasks = append(r.Tasks, reported.Task{
						ID: fmt.Sprint(n), Chain: name, Node: fmt.Sprintf("STEP_%d", n%steps), Number: n, Attempt: 1, State: state, Version: version, Name: name,
						Script: "bwa mem ref.fa sample.fq", Details: reported.Details{WorkDir: "/scratch/work/ab/0123456789"},
					})
				}
				if _, err := service.Take(b.Context(), ada, begun.Run, r); err != nil {
					b.Fatal(err)
				}
			}
			took = append(took, time.Since(began)/2)
		}
		part := len(took) / 10
		b.ReportMetric(mean(took[:part]), "ms/first-reports")
		b.ReportMetric(mean(took[len(took)-part:]), "ms/last-reports")
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		b.ReportMetric(float64(memory.HeapAlloc>>20), "MB/heap")
	}
}

func mean(list []time.Duration) float64 {
	var sum time.Duration
	for _, d := range list {
		sum += d
	}
	return float64(sum.Microseconds()) / 1000 / float64(len(list))
}
