package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// long reports whether the long form of these tests is asked for: `make chaos`.
func long() bool { return os.Getenv("MILLRACE_TEST_CHAOS") != "" }

// pick is n, or in the short form less.
func pick(short, n int) int {
	if long() {
		return n
	}
	return short
}

// What the platform stands on goes away in the middle of runs: their tasks go
// on, none is interrupted, started again or stuck, none pays for it, and who
// asks is answered all the while.
func TestAClusterBearsWithWhatItStandsOn(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4)
	for _, away := range disturbed(8 * time.Second) {
		for _, test := range []disturbance{
			{"the database is away", func() { c.db.away(c.t, away) }},
			{"the database has no connection left", func() {
				c.sql("ALTER DATABASE " + c.name + " CONNECTION LIMIT 3")
				c.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + c.name + "' AND pid <> pg_backend_pid()")
				lasts(c.t, away, func() bool { return c.connectionLimit() == 3 })
				c.sql("ALTER DATABASE " + c.name + " CONNECTION LIMIT -1")
			}},
			{"the database hangs", func() { c.db.hang(c.t, away+4*time.Second) }},
			{"the object store is away", func() { c.objects.away(c.t, away) }},
			{"the object store hangs", func() { c.objects.hang(c.t, away) }},
		} {
			test.name += " for " + away.String()
			c.bears(t, test, 4*time.Second+away/2)
		}
	}
	for _, test := range []disturbance{
		{"the database starts anew", func() { c.db.restart(c.t) }},
		{"every connection is cut", func() {
			c.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + c.name + "' AND pid <> pg_backend_pid()")
		}},
	} {
		c.bears(t, test, 8*time.Second)
	}
}

// disturbed is how long disturbances last: in the short form one time, in the long form
// less than a lease, more than a lease, and more than tasks go on without a server.
func disturbed(short time.Duration) []time.Duration {
	if long() {
		return []time.Duration{20 * time.Second, 45 * time.Second, 75 * time.Second}
	}
	return []time.Duration{short}
}

func (c *cluster) connectionLimit() (n int) {
	c.t.Helper()
	if err := c.admin.QueryRow("SELECT datconnlimit FROM pg_database WHERE datname = $1", c.name).Scan(&n); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// The whole database server is restarted, which nothing else here could bear:
// so only where it is alone.
func TestAClusterBearsWithARestartOfItsDatabase(t *testing.T) {
	restart := os.Getenv("MILLRACE_TEST_POSTGRES_RESTART")
	if !long() || restart == "" {
		t.Skip("for `make chaos`")
	}
	c := startCluster(t, 4)
	c.bears(t, disturbance{"the database server is restarted", func() {
		if out, err := exec.Command(restart).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}}, 14*time.Second)
}

// A disturbance happens in the middle of runs.
type disturbance struct {
	name string
	do   func()
}

// bears checks that runs go through a disturbance, billed for at most a time. On
// a machine that is as busy as that of all tests, the time says nothing.
func (c *cluster) bears(t *testing.T, d disturbance, most time.Duration) {
	t.Run(d.name, func(t *testing.T) {
		c.t = t
		c.submit(pick(10, 30))
		stop := make(chan struct{})
		asking := c.ask(stop)
		d.do()
		close(stop)
		asking.Wait()
		c.finish(1)
		for _, id := range c.runs {
			if ms, _ := c.ended(id)["durationMs"].(float64); long() && ms > float64(most.Milliseconds()) {
				t.Errorf("%s is billed for %v ms", id, ms)
			}
		}
	})
}

// Processes are told to end or are killed, and come back: each task is adopted
// by its own machine, none runs again.
func TestAClusterAdoptsTheTasksOfAProcessThatComesBack(t *testing.T) {
	t.Parallel()
	c := startCluster(t, pick(12, 40))
	all := t
	for name, leave := range map[string]func(m *member){
		"SIGTERM and five seconds": func(m *member) {
			m.signal(syscall.SIGTERM)
			_ = m.cmd.Wait()
			lasts(c.t, 5*time.Second, func() bool { return stopped(m.cmd.Process.Pid) })
		},
		"SIGKILL": func(m *member) { m.kill() },
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			c.submit(pick(10, 30))
			for _, m := range c.members {
				leave(m)
				m.start(all)
			}
			c.finish(1)
		})
	}
}

// Processes are stopped for longer than their leases last, again and again: no
// run is lost or interrupted, and no task runs twice at once.
func TestAClusterBearsWithProcessesThatAreStopped(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4)
	stops, at := pick(1, 20), 0
	for at < stops {
		c.submit(pick(10, 20))
		// Two at a time; the first member answers what is asked at the end.
		var standing sync.WaitGroup
		for n, i := range rand.Perm(4)[:min(2, stops-at)] {
			at++
			length := []time.Duration{45 * time.Second, 75 * time.Second}[n]
			m := c.members[1+i]
			m.pause()
			standing.Go(func() {
				lasts(t, length, func() bool { return stopped(m.cmd.Process.Pid) })
				m.signal(syscall.SIGCONT)
			})
		}
		standing.Wait()
		c.finish(3)
	}
	c.nothingLeft()
}

// nothingLeft checks that no attempt's folder outlives its run.
func (c *cluster) nothingLeft() {
	for _, m := range c.members {
		folder := m.args[1]
		await(c.t, "the end of folders in "+folder, func() bool {
			left, _ := filepath.Glob(filepath.Join(folder, "attempts", "run_*"))
			return len(left) == 0
		})
	}
}
