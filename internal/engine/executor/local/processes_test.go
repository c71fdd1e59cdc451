package local_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/waittest"
)

// processes is a driver whose attempts are processes of their own.
func processes(t testing.TB, c local.Config) drivertest.Subject {
	t.Helper()
	c.Log, c.Shim = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), os.Getenv(smallShim)
	if c.Now == nil {
		c.Now = time.Now
	}
	d, err := local.OpenProcesses(context.WithoutCancel(t.Context()), c)
	if err != nil {
		t.Fatal(err)
	}
	left := false
	t.Cleanup(func() {
		if !left {
			endProcesses(t, d)
		}
	})
	return drivertest.Subject{Driver: d, Alone: true, Lose: killJob, Leave: func() {
		left = true
		d.Close()
	}}
}

// endProcesses leaves nothing running when a test is over.
func endProcesses(t testing.TB, d *local.Processes) {
	ctx := context.Background()
	if !waittest.Until(func() bool {
		all, _ := d.Snapshot(ctx)
		left := 0
		for _, seen := range all {
			if !seen.Phase.Final() {
				left++
				_ = d.Stop(ctx, executor.NoRun, seen.Handle, 0)
			}
		}
		return left == 0
	}) {
		t.Error("tasks outlive the test")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// killJob ends the process of a task in a way that it cannot notice.
func killJob(t *testing.T, s executor.Spec) {
	t.Helper()
	h, _, err := job.Folder(s.Dir).Holder()
	if err == nil {
		err = h.Signal(9)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func boxedProcesses(t testing.TB, folder string) drivertest.Subject {
	t.Helper()
	s := processes(t, local.Config{Folder: folder, VCPU: 200})
	needSandbox(t, s)
	return s
}

func bareProcesses(t testing.TB, folder string) drivertest.Subject {
	t.Helper()
	return processes(t, local.Config{Folder: folder, Sandbox: local.None, VCPU: 200})
}

func TestProcessesAreADriver(t *testing.T) {
	t.Parallel()
	t.Run("in a sandbox", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, boxedProcesses)
		drivertest.RunReal(t, boxedProcesses)
	})
	t.Run("without a sandbox", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, bareProcesses)
	})
}
