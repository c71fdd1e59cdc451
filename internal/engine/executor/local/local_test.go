package local_test

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/sizetest"
	"github.com/millrace/millrace/internal/waittest"
)

// smallShim names a small shim to test with.
const smallShim = "MILLRACE_TEST_SHIM"

// Without one the test program is its own shim. It leaves the short way, since the race
// detector would hold up every task for a second.
func TestMain(m *testing.M) {
	if job.IsCall(os.Args) {
		syscall.Exit(job.Run(os.Args))
	}
	if lock := os.Getenv(oldShim); lock != "" {
		serveOld(lock)
	}
	if folder := os.Getenv(serverFolder); folder != "" {
		serve(folder)
	}
	waittest.Main(m)
}

func open(t testing.TB, c local.Config) *local.Driver {
	t.Helper()
	c.Shim = cmp.Or(c.Shim, os.Getenv(smallShim))
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	d, err := local.New(context.WithoutCancel(t.Context()), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// endAll leaves nothing running when a test is over.
func endAll(t testing.TB, d *local.Driver) {
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

func subject(t testing.TB, c local.Config) drivertest.Subject {
	t.Helper()
	d, left := open(t, c), false
	t.Cleanup(func() {
		if !left {
			endAll(t, d)
		}
	})
	return drivertest.Subject{Driver: d, Alone: true, Lose: killShim, Leave: func() {
		left = true
		d.Close()
	}}
}

// killShim ends the process of a task in a way that it cannot notice.
func killShim(t *testing.T, s executor.Spec) {
	t.Helper()
	signalShim(t, s, syscall.SIGKILL)
}

func signalShim(t *testing.T, s executor.Spec, sig syscall.Signal) {
	t.Helper()
	if err := holderOf(t, s.Dir).Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// holderOf is the process of a task, once there is one.
func holderOf(t *testing.T, dir string) (h job.Holder) {
	t.Helper()
	drivertest.Eventually(t, func() bool {
		found, lives, err := job.Folder(dir).Holder()
		h = found
		return err == nil && lives
	}, func() string { return "the task has no process" })
	return h
}

func boxed(t testing.TB, folder string) drivertest.Subject {
	t.Helper()
	s := subject(t, local.Config{Folder: folder, VCPU: 200})
	needSandbox(t, s)
	return s
}

func bare(t testing.TB, folder string) drivertest.Subject {
	t.Helper()
	return subject(t, local.Config{Folder: folder, Sandbox: local.None, VCPU: 200})
}

// needSandbox skips loudly on a developer's machine, and fails where it must
// not be missing.
func needSandbox(t testing.TB, d executor.Driver) {
	t.Helper()
	caps, err := d.Capabilities(t.Context())
	switch {
	case err != nil:
		t.Fatal(err)
	case !caps.Ready && os.Getenv("CI") != "":
		t.Fatal(caps.Problem)
	case !caps.Ready:
		t.Skip(caps.Problem)
	}
}

func TestTheLocalDriverIsADriver(t *testing.T) {
	t.Parallel()
	t.Run("in a sandbox", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, boxed)
		drivertest.RunReal(t, boxed)
	})
	if testing.Short() {
		t.Log("without a sandbox and without groups it is not held to them in a short test")
		return
	}
	t.Run("without a sandbox", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, bare)
	})
	if !sizetest.All() {
		t.Log("without groups it is tested in make test-all")
		return
	}
	t.Run("without groups", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, ungrouped)
	})
}
