package oneshot_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/oneshot"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/waittest"
)

// The test program is its own shim where none is embedded.
func TestMain(m *testing.M) {
	if job.IsCall(os.Args) {
		syscall.Exit(job.Run(os.Args))
	}
	waittest.Main(m)
}

// config is of a runner without a sandbox, which none of these promises needs. A pattern
// would find other folders by the name of this one, or none.
func config(t *testing.T) local.Config {
	t.Helper()
	return local.Config{
		Folder: filepath.Join(t.TempDir(), "tools [1]*"), Log: slog.New(slog.DiscardHandler), Now: time.Now, Sandbox: local.None, NoGroup: true, VCPU: 4,
	}
}

func open(t *testing.T, c local.Config) *oneshot.Runner {
	t.Helper()
	r := oneshot.New(c)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func left(t *testing.T, c local.Config) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(c.Folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "run_") {
			names = append(names, e.Name())
		}
	}
	return names
}

// script runs a shell script.
func script(text string) oneshot.Command {
	return oneshot.Command{Prepare: func(s *executor.Spec, _ executor.Places) error {
		s.Command, s.Timeout = text, time.Minute // nothing outlives a test that fails for long
		return nil
	}}
}

func ignore(executor.Spec, executor.Status) error { return nil }

func TestACommandFindsWhatWasPreparedForIt(t *testing.T) {
	t.Parallel()
	c := config(t)
	r := open(t, c)
	var log string
	command := oneshot.Command{
		Prepare: func(s *executor.Spec, seen executor.Places) error {
			s.Command = `cat "` + seen.Inputs + `/file" > made; echo said; exit 3`
			return os.WriteFile(filepath.Join(s.Places().Inputs, "file"), []byte("text"), 0o600)
		},
		Log: func(r io.Reader) {
			text, err := io.ReadAll(r)
			if err != nil || !strings.HasPrefix(string(text), log) {
				t.Errorf("after %q the log is %q, %v", log, text, err)
			}
			log = string(text)
		},
	}
	var made []byte
	err := r.Run(t.Context(), command, func(s executor.Spec, end executor.Status) (err error) {
		if end.Phase != executor.Ended || end.Reason != executor.ExitedNonZero || end.Exit.Code != 3 {
			t.Errorf("%+v", end)
		}
		made, err = os.ReadFile(filepath.Join(s.Work(), "made"))
		return err
	})
	if err != nil || string(made) != "text" || log != "said\n" {
		t.Errorf("made %q, said %q, %v", made, log, err)
	}
	if left := left(t, c); len(left) != 0 {
		t.Errorf("%q are left", left)
	}
}

// Whatever fails, the caller hears why, and nothing is left.
func TestWhatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	c := config(t)
	r := open(t, c)
	wrong := errors.New("that went wrong")
	for name, run := range map[string]func() error{
		"preparing": func() error {
			return r.Run(t.Context(), oneshot.Command{Prepare: func(s *executor.Spec, _ executor.Places) error {
				if _, err := os.Stat(s.Places().Inputs); err != nil {
					t.Errorf("it was not prepared: %v", err)
				}
				return wrong
			}}, ignore)
		},
		"what its end means": func() error {
			return r.Run(t.Context(), script("true"), func(executor.Spec, executor.Status) error { return wrong })
		},
	} {
		if err := run(); !errors.Is(err, wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := r.Run(t.Context(), script("a\x00b"), func(executor.Spec, executor.Status) error {
		t.Error("what cannot be submitted has ended")
		return nil
	})
	if !fault.Is(err, fault.KindInvalid) {
		t.Errorf("what cannot be submitted: %v", err)
	}
	if left := left(t, c); len(left) != 0 {
		t.Errorf("%q are left", left)
	}
}

// lives reports whether a process is there and no zombie.
func lives(t *testing.T, pid int) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(after, "Z")
}

// saysPID is a command that says which process it is and does not want to end.
func saysPID(pid chan<- int) oneshot.Command {
	var once sync.Once
	command := script(`trap '' TERM; echo $$; while :; do sleep 1; done`)
	command.Log = func(r io.Reader) {
		text, _ := io.ReadAll(r)
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			once.Do(func() { pid <- n })
		}
	}
	return command
}

func TestACommandEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	c := config(t)
	r := open(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pid, ended := make(chan int, 1), make(chan error, 1)
	go func() {
		ended <- r.Run(ctx, saysPID(pid), func(executor.Spec, executor.Status) error {
			t.Error("it counts as having ended")
			return nil
		})
	}()
	process := <-pid
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if lives(t, process) || len(left(t, c)) != 0 {
		t.Errorf("it lives: %t, left: %q", lives(t, process), left(t, c))
	}
}

// A server that goes leaves its commands to the next one, which ends them.
func TestWhatAServerLeavesTheNextOneEnds(t *testing.T) {
	t.Parallel()
	c := config(t)
	first := oneshot.New(c)
	pid, ended := make(chan int, 1), make(chan error, 1)
	go func() { ended <- first.Run(t.Context(), saysPID(pid), ignore) }()
	process := <-pid
	for range 2 {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-ended; !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("of one whose server goes: %v", err)
	}
	if err := first.Run(t.Context(), script("true"), ignore); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("after that: %v", err)
	}
	if len(left(t, c)) != 1 {
		t.Fatalf("%q are left", left(t, c))
	}
	next := open(t, c)
	if err := next.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lives(t, process) || len(left(t, c)) != 0 {
		t.Errorf("it lives: %t, left: %q", lives(t, process), left(t, c))
	}
	if err := next.Run(t.Context(), script("true"), ignore); err != nil {
		t.Error(err)
	}
}

func TestNothingBeginsBeforeItIsNeeded(t *testing.T) {
	t.Parallel()
	c := config(t)
	r := open(t, c)
	if err := r.Recover(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.Folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a driver has begun: %v", err)
	}
}

// What a driver lacked may be there the next time.
func TestADriverThatCouldNotStartIsTriedAgain(t *testing.T) {
	t.Parallel()
	c := config(t)
	r := open(t, c)
	if err := os.WriteFile(c.Folder, nil, 0o600); err != nil { // where its folder is to be
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Run(t.Context(), script("true"), ignore); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%v", err)
		}
	}
	if err := os.Remove(c.Folder); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context(), script("true"), ignore); err != nil {
		t.Error(err)
	}
	// Without a sandbox nothing of a stranger's runs, and the operator is told why.
	c = config(t)
	c.Sandbox, c.Program = local.Bubblewrap, "/no/such/bwrap"
	err := open(t, c).Run(t.Context(), script("true"), ignore)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != "no_sandbox" || !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("without a sandbox: %v", err)
	}
	if len(left(t, c)) != 0 {
		t.Errorf("%q are left", left(t, c))
	}
}

func TestManyCommandsShareADriver(t *testing.T) {
	t.Parallel()
	c := config(t)
	r := open(t, c)
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			err := r.Run(t.Context(), script("exit "+strconv.Itoa(i)), func(_ executor.Spec, end executor.Status) error {
				if end.Exit == nil || end.Exit.Code != i {
					t.Errorf("%d: %+v", i, end)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
	if len(left(t, c)) != 0 {
		t.Errorf("%q are left", left(t, c))
	}
}
