package tool_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/tool"
	"github.com/millrace/millrace/internal/waittest"
)

// The test program is its own shim where none is embedded.
func TestMain(m *testing.M) {
	if job.IsCall(os.Args) {
		syscall.Exit(job.Run(os.Args))
	}
	os.Exit(m.Run())
}

var limits = tool.Limits{CPU: 20 * time.Second, Time: time.Minute, Memory: 256 << 20, Disk: 1 << 20, Output: 1000}

func open(t *testing.T, change ...func(*local.Config, *tool.Limits)) *tool.Runner {
	t.Helper()
	c := local.Config{Folder: filepath.Join(t.TempDir(), "tools"), Log: slog.New(slog.DiscardHandler), Now: time.Now, VCPU: 2}
	l := limits
	for _, set := range change {
		set(&c, &l)
	}
	r := tool.New(c, l)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		// Nothing of a stranger's is left behind.
		if left, err := filepath.Glob(filepath.Join(c.Folder, "run_*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
	})
	return r
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run expects a status, and returns what was printed.
func run(t *testing.T, r *tool.Runner, want int, file string, argv ...string) string {
	t.Helper()
	out, said, status, err := r.Run(t.Context(), file, argv...)
	if err != nil || status != want {
		t.Fatalf("%v: status %d, want %d; printed %.200q, said %.200q; %v", argv, status, want, out, said, err)
	}
	return string(out) + said
}

func TestAProgramReadsItsFileAndPrints(t *testing.T) {
	t.Parallel()
	r, file := open(t), write(t, "hello\n")
	if got := run(t, r, 0, file, "cat", tool.File); got != "hello\n" {
		t.Errorf("it printed %q", got)
	}
	if got := run(t, r, 3, file, "sh", "-c", `echo "it's" "$1" >&2; exit 3`, "sh", "a 'b' $(c)"); got != "it's a 'b' $(c)\n" {
		t.Errorf("it said %q", got)
	}
	run(t, r, tool.NotFound, file, "no-such-program", tool.File)
}

func TestOnlyTheBeginningIsGivenBack(t *testing.T) {
	t.Parallel()
	r := open(t)
	if got := run(t, r, 0, write(t, strings.Repeat("x", 5000)), "cat", tool.File); len(got) != limits.Output {
		t.Errorf("%d bytes came back", len(got))
	}
}

func TestAProgramSeesNothingOfTheServer(t *testing.T) {
	t.Parallel()
	r, secret := open(t), write(t, "of the server")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, "a file")
	for name, script := range map[string]string{
		"a file of the server":  "read -r line <" + secret,
		"the passwords":         "read -r line </etc/shadow",
		"the network":           "exec 3<>/dev/tcp/127.0.0.1/" + port,
		"another process":       "/bin/true",
		"changing its input":    "echo x >" + filepath.Join("/inputs", "file"),
		"changing the programs": "echo x >/usr/bin/x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shell := "sh"
			if strings.Contains(script, "/dev/tcp") {
				shell = "bash"
			}
			if out, said, status, err := r.Run(t.Context(), file, shell, "-c", script+" && echo done"); err != nil || status == 0 || strings.Contains(string(out), "done") {
				t.Errorf("status %d, printed %q, said %q, %v", status, out, said, err)
			}
		})
	}
}

func TestWhatAProgramUsesIsBounded(t *testing.T) {
	t.Parallel()
	file := write(t, "a file")
	for name, tt := range map[string]struct {
		limit  func(*tool.Limits)
		script string
		status int
	}{
		"processor": {func(l *tool.Limits) { l.CPU = time.Second }, "while :; do :; done", tool.OutOfCPU},
		"time":      {func(l *tool.Limits) { l.Time = time.Second }, "exec sleep 1000", tool.TimedOut},
		"memory":    {func(l *tool.Limits) { l.Memory = 64 << 20 }, "exec tail /dev/zero", tool.OutOfMemory},
		"output":    {func(*tool.Limits) {}, "exec cat /dev/zero", tool.OutOfDisk},
		"errors":    {func(*tool.Limits) {}, "exec cat /dev/zero >&2", tool.OutOfDisk},
		"files":     {func(*tool.Limits) {}, "exec dd if=/dev/zero of=other", tool.OutOfDisk},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t, func(_ *local.Config, l *tool.Limits) { tt.limit(l) })
			_, said, status, err := r.Run(t.Context(), file, "sh", "-c", tt.script)
			// Where no control group holds the memory, a program may be refused it
			// before anybody has seen that it takes too much.
			refused := name == "memory" && status == 1 && strings.Contains(said, "memory exhausted")
			if err != nil || status != tt.status && !refused {
				t.Errorf("status %d, want %d; said %q; %v", status, tt.status, said, err)
			}
			run(t, r, 0, file, "true") // the next one fares well
		})
	}
}

// A program may replace what it printed by anything.
func TestALinkIsNotFollowed(t *testing.T) {
	t.Parallel()
	r, secret := open(t), write(t, "of the server")
	if got := run(t, r, 0, secret, "ln", "-sf", secret, "out"); got != "" {
		t.Errorf("it printed %q", got)
	}
	if got := run(t, r, 0, secret, "ln", "-sf", "/etc/hostname", "said"); got != "" {
		t.Errorf("it said %q", got)
	}
}

func TestAProgramEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	r := open(t)
	file := write(t, "a file")
	run(t, r, 0, file, "true")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, _, _, err := r.Run(ctx, file, "sleep", "1000"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWithoutAWorkingSandboxNothingRuns(t *testing.T) {
	t.Parallel()
	r := open(t, func(c *local.Config, _ *tool.Limits) { c.Program = "/bin/false" })
	_, _, _, err := r.Run(t.Context(), write(t, "a file"), "cat", tool.File)
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Kind != fault.KindUnavailable || e.Code != "no_sandbox" {
		t.Errorf("got %v", err)
	}
}

func TestWithoutASandboxWhereNoneIsWanted(t *testing.T) {
	t.Parallel()
	r := open(t, func(c *local.Config, l *tool.Limits) { c.Sandbox, l.CPU = local.None, time.Second })
	file := write(t, "hello")
	if got := run(t, r, 0, file, "cat", tool.File); got != "hello" {
		t.Errorf("it printed %q", got)
	}
	run(t, r, tool.OutOfCPU, file, "sh", "-c", "while :; do :; done")
}

func TestWhatAKilledServerLeftIsClearedAway(t *testing.T) {
	t.Parallel()
	folder, file := filepath.Join(t.TempDir(), "tools"), write(t, "a file")
	here := func(c *local.Config, _ *tool.Limits) { c.Folder = folder }
	first := open(t, here)
	run(t, first, 0, file, "true")
	ended := make(chan error, 1)
	go func() {
		_, _, _, err := first.Run(t.Context(), file, "sleep", "1000")
		ended <- err
	}()
	if !waittest.Until(func() bool {
		running, _ := filepath.Glob(filepath.Join(folder, "run_*", "work", "out"))
		return len(running) > 0
	}) {
		t.Fatal("it does not start")
	}
	if err := first.Close(); err != nil { // the program goes on, as after a kill
		t.Fatal(err)
	}
	if err := <-ended; !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("whoever waited was told %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(folder, "run_*")); err != nil || len(left) != 1 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	second := open(t, here)
	if err := second.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(folder, "run_*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
