package slurm_test

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/slurm"
	"github.com/millrace/millrace/internal/waittest"
)

// Where the small shim was not built, the test program is its own.
func TestMain(m *testing.M) {
	if job.IsCall(os.Args) {
		syscall.Exit(job.Run(os.Args))
	}
	// Tests wait for the cluster, not for a processor.
	flag.Parse()
	if n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); err == nil && n < 8 {
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(m.Run())
}

// cluster is the folder of a real Slurm.
func cluster(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("MILLRACE_TEST_SLURM")
	if dir == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("MILLRACE_TEST_SLURM is not set: use `make test`")
		}
		t.Skip("MILLRACE_TEST_SLURM is not set: scripts/with-slurm starts a cluster")
	}
	return dir
}

func open(t testing.TB, c slurm.Config) *slurm.Driver {
	t.Helper()
	cluster(t)
	c.Key, c.Log, c.Now, c.Lag = make([]byte, 32), slog.New(slog.DiscardHandler), time.Now, 10*time.Second
	d, err := slurm.New(context.WithoutCancel(t.Context()), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// subject leaves nothing running when a test is over.
func subject(t testing.TB, c slurm.Config) drivertest.Subject {
	t.Helper()
	d, left := open(t, c), false
	t.Cleanup(func() {
		if left {
			return
		}
		ctx := context.Background()
		if !waittest.Until(func() bool {
			all, _ := d.Snapshot(ctx)
			running := 0
			for _, seen := range all {
				if !seen.Phase.Final() {
					running++
					_ = d.Stop(ctx, executor.NoRun, seen.Handle, 0)
				}
			}
			return running == 0
		}) {
			t.Error("tasks outlive the test")
		}
	})
	return drivertest.Subject{Driver: d, Lose: killJob, Leave: func() {
		left = true
		d.Close()
	}}
}

func maker(t testing.TB, folder string) drivertest.Subject {
	return subject(t, slurm.Config{Folder: folder})
}

// killJob kills the shim of an attempt, and everything below it.
func killJob(t *testing.T, s executor.Spec) {
	t.Helper()
	if err := syscall.Kill(shimOf(t, s), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// shimOf is the process that runs an attempt.
func shimOf(t *testing.T, s executor.Spec) int {
	t.Helper()
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range found {
		text, _ := os.ReadFile(file)
		if bytes.Contains(text, []byte("-run\x00"+s.Dir+"\x00")) {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			return pid
		}
	}
	t.Fatal("the job is not there")
	return 0
}

func TestSlurm(t *testing.T) {
	cluster(t)
	t.Run("beside each other", func(t *testing.T) {
		drivertest.Run(t, maker)
		drivertest.RunReal(t, maker)
		for name, promise := range map[string]func(*testing.T){
			"Slurm shows nobody what a task is given":                shownToNobody,
			"what no machine can serve is refused in words of Slurm": impossible,
			"a task finds the GPUs that Slurm gives it":              gpus,
			"a job of which nothing is left is cancelled":            orphan,
			"a task that Slurm starts twice runs once":               startedTwice,
			"a task that the site's limit ends has timed out":        siteLimit,
			"what Slurm never starts is given up":                    givenUp,
			"what Slurm cannot start for a while waits":              waitsForPartition,
			"a task is lost with its machine":                        lostNode,
			"nothing is lost while the shared folder hangs":          hangingFolder,
			"a task runs in the container of the site":               contained,
			"a task goes through a login node":                       loginNode,
			"billed times are never the job's word":                  billedTimes,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				promise(t)
			})
		}
	})
	t.Run("a killed controller loses nothing", killedController)
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return string(out)
}
