package store

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/freshtest"
)

// Whoever starts runs at the same time, and however many are refused, the
// numbers are 1, 2, 3.
func TestTheRunsOfAWorkflowAreNumberedWithoutGaps(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		const each = 20
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range each {
					r := newRun(team)
					hold := 60 * r.Price
					if i%2 == 1 {
						hold = 1 << 50 // more than any team has
					}
					if err := db.SubmitRun(t.Context(), r, hold, nil); (err == nil) != (i%2 == 0) {
						t.Errorf("submission %d: %v", i, err)
					}
				}
			})
		}
		wg.Wait()
		list, err := db.Runs(t.Context(), team, runs.Filter{}, "", 1000)
		if err != nil || len(list) != 4*each/2 {
			t.Fatalf("%d runs, %v", len(list), err)
		}
		seen := map[int64]bool{}
		for _, r := range list {
			seen[r.Number] = true
		}
		for n := int64(1); n <= int64(len(list)); n++ {
			if !seen[n] {
				t.Errorf("no run has the number %d", n)
			}
		}
	})
}

// Runs that were there before are numbered by age, each workflow for itself.
func TestEarlierRunsGetTheirNumbers(t *testing.T) {
	t.Parallel()
	urls := []string{filepath.Join(t.TempDir(), "m.db")}
	if os.Getenv("MILLRACE_TEST_POSTGRES") != "" {
		urls = append(urls, freshtest.Empty(t))
	}
	for _, url := range urls {
		pool, err := migrationPool(url)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		p, err := migrations(pool, dialectFor(url))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.UpTo(t.Context(), 17); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(`INSERT INTO teams (id, name, plan, created_at) VALUES ('t', 'T', 'free', 1)`); err != nil {
			t.Fatal(err)
		}
		for _, run := range [][2]string{{"run_3", "wf_a"}, {"run_1", "wf_a"}, {"run_2", "wf_b"}} {
			_, err := pool.Exec(`
				INSERT INTO runs (id, team_id, workflow_id, workflow_name, workflow_revision, definition, parameters, inputs, vcpu, ram_gb, gpu, price,
					starter_type, starter_id, starter_name, status, total_nodes, seq, created_at)
				VALUES ($1, 't', $2, 'W', 1, '{}', '{}', '{}', 2, 8, 0, 1, 'user', 'u', 'Ada', 'completed', 0, 1, 1)`, run[0], run[1])
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[ids.Run]int64{"run_1": 1, "run_3": 2, "run_2": 1} {
			var n int64
			if err := pool.QueryRow(`SELECT number FROM runs WHERE id = $1`, id).Scan(&n); err != nil || n != want {
				t.Errorf("%s: %s has the number %d, %v", dialectFor(url).name, id, n, err)
			}
		}
		var newest int64
		if err := pool.QueryRow(`SELECT newest FROM run_numbers WHERE workflow_id = 'wf_a'`).Scan(&newest); err != nil || newest != 2 {
			t.Errorf("%s: the newest is %d, %v", dialectFor(url).name, newest, err)
		}
	}
}
