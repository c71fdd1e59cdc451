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
	away := time.Duration(pick(8, 20)) * time.Second
	for _, test := range []disturbance{
		{"the database is away", func() { c.db.pull(true); pause(away); c.db.pull(false) }},
		{"the database starts anew", func() { c.db.pull(true); pause(400 * time.Millisecond); c.db.pull(false) }},
		{"every connection is cut", func() {
			c.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + c.name + "' AND pid <> pg_backend_pid()")
		}},
		{"the database has no connection left", func() {
			c.sql("ALTER DATABASE " + c.name + " CONNECTION LIMIT 3")
			c.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + c.name + "' AND pid <> pg_backend_pid()")
			pause(away)
			c.sql("ALTER DATABASE " + c.name + " CONNECTION LIMIT -1")
		}},
		{"the database hangs", func() { c.db.hang(away + 4*time.Second) }},
		{"the object store is away", func() { c.objects.pull(true); pause(away); c.objects.pull(false) }},
		{"the object store hangs", func() { c.objects.hang(away) }},
	} {
		c.bears(t, test, 4*time.Second+away/2)
	}
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

// pause lets time pass in which something is broken: there is nothing to wait
// for.
func pause(d time.Duration) { <-time.After(d) }

// Processes are told to end or are killed, and come back: each task is adopted
// by its own machine, none runs again.
func TestAClusterAdoptsTheTasksOfAProcessThatComesBack(t *testing.T) {
	t.Parallel()
	c := startCluster(t, pick(12, 40))
	all := t
	for name, leave := range map[string]func(m *member){
		"SIGTERM and five seconds": func(m *member) { m.signal(syscall.SIGTERM); _ = m.cmd.Wait(); pause(5 * time.Second) },
		"SIGKILL":                  func(m *member) { m.kill() },
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
		var stopped sync.WaitGroup
		for _, i := range rand.Perm(4)[:min(2, stops-at)] {
			at++
			stopped.Go(func() {
				m := c.members[1+i]
				m.signal(syscall.SIGSTOP)
				pause(45 * time.Second)
				m.signal(syscall.SIGCONT)
			})
			pause(time.Second)
		}
		stopped.Wait()
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
