package engine_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

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
