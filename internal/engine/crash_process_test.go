package engine_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// lifeVariable is set in a process that a run is to take down: what takes it down, the
// database and the folder of the attempts.
const lifeVariable = "MILLRACE_TEST_LIFE"

// A run takes its process down twice, by the memory that it takes to stage its inputs or
// to store its outputs. The third process interrupts it.
func TestRunThatKillsTwoProcessesIsNotLoadedAgain(t *testing.T) {
	if life := os.Getenv(lifeVariable); life != "" {
		what, rest, _ := strings.Cut(life, "\n")
		url, dir, _ := strings.Cut(rest, "\n")
		oneLife(t, what, url, dir)
		return
	}
	t.Parallel()
	for _, what := range []string{"stage", "store"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url, dir := storetest.SQLite(t), t.TempDir()
			for life := 1; life <= 3; life++ {
				c := exec.Command(os.Args[0], "-test.run=^TestRunThatKillsTwoProcessesIsNotLoadedAgain$")
				c.Env = append(os.Environ(), lifeVariable+"="+strings.Join([]string{what, url, dir}, "\n"))
				out, err := c.CombinedOutput()
				status, _ := c.ProcessState.Sys().(syscall.WaitStatus)
				if killed := status.Signaled() && status.Signal() == syscall.SIGKILL; killed != (life < 3) || !killed && err != nil {
					t.Fatalf("process %d: %v\n%s", life, err, out)
				}
			}
		})
	}
}

// oneLife runs an engine. The first one submits the run, and the third one sees its end.
func oneLife(t *testing.T, what, url, dir string) {
	s := newHarness(t, url)
	s.dir = dir
	known := filepath.Join(dir, "run")
	text, err := os.ReadFile(known)
	if err == nil {
		team, run, _ := strings.Cut(string(text), " ")
		s.team = ids.Team(team)
		s.arm(what)
		s.open("next")
		var r runs.Run
		if !waittest.Until(func() bool { // nobody tells of an end that precedes the engine
			if r, err = s.db.Run(t.Context(), s.team, ids.Run(run)); err != nil {
				t.Error(err)
			}
			return r.Status.Terminal()
		}) || r.Status != lifecycle.Interrupted || r.ErrorCode != lifecycle.WorkerLost {
			t.Errorf("%s %s: %s", r.Status, r.ErrorCode, r.ErrorMessage)
		}
		return
	}
	id := s.submit(`{"nodes":[{"id":"deadly","command":"# dummy: output:o=1","outputs":{"o":{"path":"o"}}}]}`, `{}`)
	if err := os.WriteFile(known, []byte(string(s.team)+" "+string(id)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.arm(what)
	s.open("first")
	s.await(id, terminal)
}

// arm has an operation for the step take memory until the run is marked for it, and
// take the process down then.
func (s *harness) arm(what string) {
	d := deadly{what, filepath.Join(s.dir, ".suspects", "*")}
	s.files = func(f executor.Files) executor.Files { return deadlyFiles{f, d} }
	s.store = func(o engine.Objects) engine.Objects { return deadlyObjects{o, d} }
}

type deadly struct{ what, marks string }

func (d deadly) take(what, key string) {
	if what != d.what || !strings.Contains(key, "deadly.") {
		return
	}
	taken := make([]byte, 512<<20)
	waittest.Until(func() bool {
		marks, _ := filepath.Glob(d.marks)
		return len(marks) > 0
	})
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	runtime.KeepAlive(taken)
}

type deadlyFiles struct {
	executor.Files
	deadly
}

func (f deadlyFiles) Stage(ctx context.Context, s executor.Spec, fetch executor.Fetch) error {
	f.take("stage", s.Key.Folder())
	return f.Files.Stage(ctx, s, fetch)
}

type deadlyObjects struct {
	engine.Objects
	deadly
}

func (o deadlyObjects) Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (files.Blob, error) {
	o.take("store", key)
	return o.Objects.Put(ctx, key, contentType, r, size)
}

// Two runs stage the inputs of their tasks when one of them takes the process down, twice.
// The other one goes on.
func TestRunBesideOneThatKillsProcessesGoesOn(t *testing.T) {
	if life := os.Getenv(lifeVariable); life != "" {
		number, rest, _ := strings.Cut(life, "\n")
		url, dir, _ := strings.Cut(rest, "\n")
		oneLifeOfTwo(t, number, url, dir)
		return
	}
	t.Parallel()
	url, dir := storetest.SQLite(t), t.TempDir()
	for life := 1; life <= 3; life++ {
		c := exec.Command(os.Args[0], "-test.run=^TestRunBesideOneThatKillsProcessesGoesOn$")
		c.Env = append(os.Environ(), lifeVariable+"="+strings.Join([]string{strconv.Itoa(life), url, dir}, "\n"))
		if out, err := c.CombinedOutput(); (err != nil) != (life < 3) {
			t.Fatalf("process %d: %v\n%s", life, err, out)
		}
	}
}

func oneLifeOfTwo(t *testing.T, life, url, dir string) {
	s := newHarness(t, url)
	s.dir = dir
	s.files = func(f executor.Files) executor.Files { return &filesOfTwo{Files: f, last: life == "3", dir: dir} }
	known := filepath.Join(dir, "runs")
	if life == "1" {
		honest := s.submit(`{"nodes":[{"id":"honest","command":"true"}]}`, `{}`)
		deadly := s.submit(`{"nodes":[{"id":"deadly","command":"true"}]}`, `{}`)
		if err := os.WriteFile(known, []byte(strings.Join([]string{string(s.team), string(honest), string(deadly)}, " ")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(known)
	if err != nil {
		t.Fatal(err)
	}
	of := strings.Fields(string(text))
	s.team = ids.Team(of[0])
	s.open("life " + life)
	if r := s.await(ids.Run(of[2]), terminal); r.Status != lifecycle.Interrupted {
		t.Errorf("the one is %s: %s", r.Status, r.ErrorMessage)
	}
	if r := s.await(ids.Run(of[1]), terminal); r.Status != lifecycle.Completed {
		t.Errorf("the other is %s: %s", r.Status, r.ErrorMessage)
	}
}

// filesOfTwo has the steps of two runs staged at the same time, if that is possible. The
// deadly one then takes memory until both are marked, and takes the process down.
type filesOfTwo struct {
	executor.Files
	last    bool // nothing takes this process down
	dir     string
	staging atomic.Bool // the honest one
}

func (f *filesOfTwo) Stage(ctx context.Context, s executor.Spec, fetch executor.Fetch) error {
	marked := func() int {
		marks, _ := filepath.Glob(filepath.Join(f.dir, ".suspects", "*"))
		return len(marks)
	}
	switch {
	case f.last:
	case s.Key.Node == "honest":
		f.staging.Store(true)
		waittest.While(4*time.Second, func() bool { return true })
		f.staging.Store(false)
	default:
		waittest.While(2*time.Second, func() bool { return !f.staging.Load() })
		taken := make([]byte, 512<<20)
		waittest.Until(func() bool { return marked() == 2 || marked() == 1 && !f.staging.Load() })
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		runtime.KeepAlive(taken)
	}
	return f.Files.Stage(ctx, s, fetch)
}
