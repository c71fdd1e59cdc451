package local_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// The variables by which the test program is told to be a server.
const (
	serverFolder  = "MILLRACE_TEST_SERVER_FOLDER"
	serverSandbox = "MILLRACE_TEST_SERVER_SANDBOX"
	serverSpec    = "MILLRACE_TEST_SERVER_SPEC"
)

// serve is a server that submits one attempt and then waits to be killed.
func serve(folder string) {
	d, err := local.New(context.Background(), local.Config{
		Folder: folder, Shim: os.Getenv(smallShim), Sandbox: local.Sandbox(os.Getenv(serverSandbox)), Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	var spec executor.Spec
	if err == nil {
		err = json.Unmarshal([]byte(os.Getenv(serverSpec)), &spec)
	}
	if err == nil {
		err = os.MkdirAll(spec.Work(), 0o700)
	}
	for range 2 { // so that the shim is ready for another of the same run
		if err == nil {
			err = quickTask(d, folder, spec)
		}
	}
	if err == nil {
		_, err = d.Submit(context.Background(), executor.NoRun, spec)
	}
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("submitted\n")
	select {}
}

func quickTask(d *local.Driver, folder string, s executor.Spec) error {
	s.Key.Attempt += 1000 + int(time.Now().UnixNano()%1_000_000)
	s.Dir, s.Command, s.Outputs = filepath.Join(folder, s.Key.Folder()), "true", nil
	if err := os.MkdirAll(s.Work(), 0o700); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	told := d.Watch(ctx)
	h, err := d.Submit(ctx, executor.NoRun, s)
	for seen := range told {
		if seen.Handle == h && seen.Phase.Final() {
			return errors.Join(err, d.Release(ctx, executor.NoRun, h))
		}
	}
	return errors.Join(err, ctx.Err())
}

func TestATaskOutlivesItsServer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		maker   drivertest.Maker
		sandbox local.Sandbox
	}{"in a sandbox": {boxed, local.Bubblewrap}, "without a sandbox": {bare, local.None}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := drivertest.NewFixture(t, tt.maker) // skips where there is no sandbox
			b.Leave()
			s := b.Spec(t, "echo up; while [ ! -e go ]; do sleep 0.01; done; echo $((1+1)) > out; exit 4")
			s.Outputs = []executor.OutputPattern{{Port: "out", Path: "out"}}
			killServer(t, b.Folder, tt.sandbox, s)

			b.Subject = tt.maker(t, b.Folder)
			h := executor.Handle{Driver: local.Name, Key: s.Key, Fence: s.Fence, ID: s.Key.Folder()}
			if seen, ok := b.Find(t, h); !ok || seen.Phase != executor.Running || seen.Fence != s.Fence {
				t.Fatalf("the next server sees %+v", seen)
			}
			b.Submit(t, s)
			if err := os.WriteFile(filepath.Join(s.Work(), "go"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			seen := b.End(t, h)
			if seen.Reason != executor.ExitedNonZero || seen.Exit.Code != 4 || len(seen.Exit.Outputs) != 1 {
				t.Errorf("%s: %+v", seen.Reason, seen.Exit)
			}
			if log := b.Log(t, h, 0); log != "up\n" {
				t.Errorf("the log of one run is %q", log)
			}
		})
	}
}

// A task that has ended may not have all of its files on the disk when the machine loses
// power. It is lost with the machine, even if its end is there.
func TestATaskFromBeforeTheMachineStartedIsLost(t *testing.T) {
	t.Parallel()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(claim []byte) []byte{
		"its claim is of an earlier time": func(claim []byte) []byte {
			return bytes.ReplaceAll(claim, bytes.TrimSpace(boot), []byte("an-earlier-one"))
		},
		"its claim did not reach the disk": func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := drivertest.NewFixture(t, bare)
			s := b.Spec(t, "true")
			h := b.Submit(t, s)
			if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
				t.Fatalf("it ends as %+v", seen)
			}
			b.Leave()
			claim := filepath.Join(s.Dir, "claim")
			text, err := os.ReadFile(claim)
			if err == nil {
				err = os.WriteFile(claim, change(text), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			b.Subject = bare(t, b.Folder)
			if seen := b.End(t, h); seen.Phase != executor.Gone || seen.Reason != executor.Lost {
				t.Errorf("after the machine was restarted it is %+v", seen)
			}
		})
	}
}

// A server that starts on a machine without room for another task can serve all the same:
// its tasks must be renewed, and its queue be filled.
func TestAServerStartsOnAFullMachine(t *testing.T) {
	t.Parallel()
	full := func(t testing.TB, folder string) drivertest.Subject {
		return subject(t, local.Config{Folder: folder, MemoryBytes: 1 << 30})
	}
	b := drivertest.NewFixture(t, full)
	s := b.Spec(t, "echo up; sleep 600")
	s.MemoryBytes = 1 << 30
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "up\n")
	b.Leave()
	b.Subject = full(t, b.Folder)
	if caps, err := b.Capabilities(t.Context()); err != nil || !caps.Ready {
		t.Errorf("%s, %v", caps.Problem, err)
	}
	if err := b.Stop(t.Context(), executor.NoRun, h, 0); err != nil {
		t.Fatal(err)
	}
	b.End(t, h)
}

// That the program beside tasks cannot be started is not a task's failure.
func TestATaskWhoseShimCannotBeStartedIsLost(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{"it is not there": "/no/such/shim", "it ends at once": "/bin/false"} {
		b := drivertest.NewFixture(t, func(t testing.TB, folder string) drivertest.Subject {
			return subject(t, local.Config{Folder: folder, Sandbox: local.None, Shim: program})
		})
		if seen := b.End(t, b.Submit(t, b.Spec(t, "true"))); seen.Phase != executor.Gone || seen.Reason != executor.NodeLost || seen.Detail == "" {
			t.Errorf("%s: %+v", name, seen)
		}
	}
}

// killServer runs a server until its attempt prints something, and then kills
// it.
func killServer(t *testing.T, folder string, sandbox local.Sandbox, s executor.Spec) {
	t.Helper()
	spec, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(self)
	server.Env = append(os.Environ(), serverFolder+"="+folder, serverSandbox+"="+string(sandbox), serverSpec+"="+string(spec))
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait() //nolint:errcheck // it is killed
	defer server.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "submitted\n" {
		t.Fatalf("the server says %q, %v", line, err)
	}
	drivertest.Eventually(t, func() bool {
		text, _ := os.ReadFile(shim.Folder(s.Dir).Log())
		return string(text) == "up\n"
	}, func() string { return "the task does not start" })
}

func TestAnAttemptThatNeverStartedIsSubmittedAgain(t *testing.T) {
	t.Parallel()
	narrow := func(t testing.TB, folder string) drivertest.Subject {
		return subject(t, local.Config{Folder: folder, Sandbox: local.None, VCPU: 1})
	}
	b := drivertest.NewFixture(t, narrow)
	first, second := b.Spec(t, "echo up; sleep 600"), b.Spec(t, "exit 3")
	first.VCPU, second.VCPU = 1, 1
	running, waiting := b.Submit(t, first), b.Submit(t, second)
	b.AwaitLog(t, running, "up\n")
	b.Leave()
	b.Subject = narrow(t, b.Folder)
	if seen, ok := b.Find(t, waiting); ok {
		t.Fatalf("%s, %s", seen.Phase, seen.Reason)
	}
	if err := os.MkdirAll(second.Work(), 0o700); err != nil { // what was prepared is gone
		t.Fatal(err)
	}
	b.Submit(t, second)
	b.Await(t, waiting, func(s executor.Status) bool { return s.Reason == executor.Queued }) // the adopted one takes its room
	if err := b.Stop(t.Context(), executor.NoRun, running, 0); err != nil {
		t.Fatal(err)
	}
	if seen := b.End(t, waiting); seen.Exit == nil || seen.Exit.Code != 3 {
		t.Errorf("%s: %+v", seen.Reason, seen.Exit)
	}
}

// What a server ordered before it died is done before the next one is told
// what there is, so that nothing is started twice.
func TestAnOrderOfADeadServerIsObeyedFirst(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, bare)
	for range 20 {
		s := b.Spec(t, "echo ran; exit 3")
		h := b.Submit(t, s)
		b.Leave()
		b.Subject = bare(t, b.Folder)
		if seen, ok := b.Find(t, h); !ok || seen.Phase == executor.Gone {
			t.Fatalf("the next server sees %+v", seen)
		}
		if seen := b.End(t, h); seen.Exit == nil || seen.Exit.Code != 3 {
			t.Fatalf("%s: %+v", seen.Reason, seen.Exit)
		}
	}
}

// A task whose process is paused holds up nobody, and is found again.
func TestAPausedTaskIsAdopted(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, bare)
	s := b.Spec(t, "echo ran; while [ ! -e go ]; do sleep 0.01; done")
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "ran\n")
	b.Leave()
	signalShim(t, s, syscall.SIGSTOP)
	b.Subject = bare(t, b.Folder)
	if seen, ok := b.Find(t, h); !ok || seen.Reason != executor.Executing {
		t.Errorf("the next server sees %+v", seen)
	}
	signalShim(t, s, syscall.SIGCONT)
	b.LetGo(t, s)
	if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
		t.Errorf("the task ended as %s", seen.Reason)
	}
}

// oldShim is in the environment of a test program that serves as the shim of an earlier
// release: it holds its lock, and has a task.
const oldShim = "MILLRACE_TEST_OLD_SHIM"

func serveOld(lock string) {
	file, err := os.Create(lock)
	if err == nil {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		_, err = fmt.Fprintln(file, os.Getpid())
	}
	task := exec.Command("sleep", "1000")
	if err == nil {
		err = task.Start()
	}
	if err != nil {
		os.Exit(1)
	}
	fmt.Println(task.Process.Pid)
	select {}
}

// The shim of an earlier release, which served all tasks, is ended with them. Its tasks
// are not there any more, and can be submitted again.
func TestAShimOfAnEarlierReleaseIsEnded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(folder, ".shim"), 0o700), os.MkdirAll(filepath.Join(folder, "run_old.n.0.1", "work"), 0o700)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	old := exec.Command(self)
	old.Env = append(os.Environ(), oldShim+"="+filepath.Join(folder, ".shim", "lock"))
	out, err := old.StdoutPipe()
	if err == nil {
		err = old.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer old.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if sizes, err := (local.LeftBehind{Folder: t.TempDir()}).Freeze(t.Context()); err != nil || len(sizes) > 0 {
		t.Errorf("of another folder: %v, %v", sizes, err)
	}
	d := bare(t, folder)
	if err := old.Wait(); err == nil {
		t.Error("it ended by itself")
	}
	awaitGone(t, strings.TrimSpace(line))
	if all, err := d.Snapshot(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("%v are there, %v", all, err)
	}
	for _, name := range []string{".shim", "run_old.n.0.1"} {
		if _, err := os.Stat(filepath.Join(folder, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Servers before this one kept empty folders for later attempts.
func TestAServerThatStartsRemovesFoldersOfNobody(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, kept := range map[string]bool{".spare-1/work": false, "run_prepared.n.1/work": false, "lost+found": true, ".other": true} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := os.Stat(filepath.Join(folder, name)); (err == nil) != kept {
				t.Errorf("%s: %v", name, err)
			}
		}()
	}
	bare(t, folder)
}
