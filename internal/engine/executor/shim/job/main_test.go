package job

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/waittest"
)

// submitted is an attempt that a cluster may start, which runs a shell script.
func submitted(t *testing.T, script string, change func(*Job, *Control)) Folder {
	t.Helper()
	f := Folder(filepath.Join(t.TempDir(), "attempt"))
	work := filepath.Join(string(f), shim.WorkFolder)
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	j := Job{Launch: shim.Launch{
		ID: "run_1.a.0.1", Fence: "fence", Folder: string(f), Dir: work, Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Grace: time.Minute,
	}}
	var c Control
	if change != nil {
		change(&j, &c)
	}
	if err := f.Create(j, c); err != nil {
		t.Fatal(err)
	}
	return f
}

// begin starts a job as a cluster does.
func begin(t *testing.T, f Folder) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := Command(shim.Self(self), f)
	c := exec.Command(argv[0], argv[1:]...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// end waits for a job, and returns its status and what it left.
func end(t *testing.T, f Folder, c *exec.Cmd) (int, State, string) {
	t.Helper()
	if err := c.Wait(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	s, err := f.State()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(shim.Folder(f).Log())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), s, string(log)
}

// awaitLog waits until a command has said something.
func awaitLog(t *testing.T, f Folder, words string) {
	t.Helper()
	if !waittest.Until(func() bool {
		text, _ := os.ReadFile(shim.Folder(f).Log())
		return strings.Contains(string(text), words)
	}) {
		t.Fatalf("it does not say %q", words)
	}
}

func TestHowAJobEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		change func(*Job, *Control)
		status int
		exit   shim.Exit
		log    string
	}{
		"well":            {"echo done", nil, 0, shim.Exit{}, "done\n"},
		"with a failure":  {"exit 3", nil, 3, shim.Exit{Code: 3}, ""},
		"by a signal":     {"kill -KILL $$", nil, 137, shim.Exit{Code: 137, Signal: 9}, ""},
		"it was stopped":  {"echo ran", func(_ *Job, c *Control) { c.Stop = true }, 143, shim.Exit{Code: 143, Stopped: true}, ""},
		"nobody wants it": {"echo ran", func(_ *Job, c *Control) { c.Until = time.Now().Add(-time.Second) }, 127, shim.Exit{Code: 127, Abandoned: true}, ""},
		"no such program": {"", func(j *Job, _ *Control) { j.Launch.Argv = []string{"no-such-program"} }, 127, shim.Exit{Code: 127, NoProgram: true, StartFailed: "executable file not found"}, ""},
		"too long":        {"exec sleep 1000", func(j *Job, _ *Control) { j.Launch.Timeout = time.Millisecond }, 143, shim.Exit{Code: 143, Signal: 15, TimedOut: true}, ""},
		"nobody comes":    {"exec sleep 1000", func(j *Job, _ *Control) { j.Launch.AbandonAfter = time.Minute + time.Millisecond }, 143, shim.Exit{Code: 143, Signal: 15, Abandoned: true}, ""},
		"without an output": {"true", func(j *Job, _ *Control) {
			j.Launch.Outputs = []shim.OutputPattern{{Port: "out", Path: "out"}}
		}, 0, shim.Exit{Missing: []string{"out"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := submitted(t, tt.script, tt.change)
			status, s, log := end(t, f, begin(t, f))
			e := s.Exit
			if e == nil || s.Fence != "fence" || e.Fence != "fence" {
				t.Fatalf("it left %+v", s)
			}
			if status != tt.status || e.Code != tt.exit.Code || e.Signal != tt.exit.Signal || e.Stopped != tt.exit.Stopped || e.Abandoned != tt.exit.Abandoned ||
				e.TimedOut != tt.exit.TimedOut || e.NoProgram != tt.exit.NoProgram || e.Preempted || !strings.Contains(e.StartFailed, tt.exit.StartFailed) ||
				strings.Join(e.Missing, " ") != strings.Join(tt.exit.Missing, " ") || log != tt.log {
				t.Errorf("status %d, %+v, log %q", status, e, log)
			}
		})
	}
}

// A cluster may start a job twice, or one that was never submitted whole.
func TestAJobRunsOnce(t *testing.T) {
	t.Parallel()
	f := submitted(t, "echo ran; cat fifo > /dev/null", nil)
	fifo := filepath.Join(string(f), shim.WorkFolder, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	first := begin(t, f)
	awaitLog(t, f, "ran")
	if status, _, _ := end(t, f, begin(t, f)); status != shim.AlreadyRunning {
		t.Errorf("the second one ended with %d", status)
	}
	if err := os.WriteFile(fifo, nil, 0); err != nil { // lets the first one go on
		t.Fatal(err)
	}
	if status, s, log := end(t, f, first); status != 0 || s.Exit == nil || log != "ran\n" {
		t.Errorf("the first one ended with %d: %+v, log %q", status, s, log)
	}
	if status, _, log := end(t, f, begin(t, f)); status != shim.AlreadyRunning || log != "ran\n" {
		t.Errorf("once it has ended: %d, %q", status, log)
	}
	withdrawn := submitted(t, "echo ran", nil)
	if ours, err := withdrawn.Withdraw(); err != nil || !ours {
		t.Fatal(ours, err)
	}
	if status, s, log := end(t, withdrawn, begin(t, withdrawn)); status != shim.AlreadyRunning || s.Exit != nil || log != "" {
		t.Errorf("one that was withdrawn: %d, %+v, %q", status, s, log)
	}
	torn := submitted(t, "echo ran", nil)
	if err := os.WriteFile(filepath.Join(string(torn), jobFile), []byte(`{"launch":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := end(t, torn, begin(t, torn)); status != shim.BadArguments || torn.Begun() {
		t.Errorf("a torn one: %d, claimed: %t", status, torn.Begun())
	}
}

// The server's signal is a stop, with the grace that the attempt has; the cluster's own is
// the machine that it takes back, unless the server has asked for it.
func TestAJobHeedsSignals(t *testing.T) {
	t.Parallel()
	const script = `exec 2> /dev/null; trap 'echo heard; exit 4' TERM; echo up; while :; do sleep 0.01; done`
	for name, tt := range map[string]struct {
		signal             syscall.Signal
		stop               bool
		stopped, preempted bool
	}{
		"the server's":                 {unix.SIGUSR1, false, true, false},
		"the cluster's":                {unix.SIGTERM, false, false, true},
		"a terminal's":                 {unix.SIGHUP, false, false, true},
		"the cluster's for the server": {unix.SIGTERM, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := submitted(t, script, nil)
			c := begin(t, f)
			awaitLog(t, f, "up")
			if tt.stop {
				if err := f.WriteControl(Control{Stop: true, Grace: time.Minute}); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			status, s, log := end(t, f, c)
			if s.Exit == nil || status != 4 || s.Exit.Stopped != tt.stopped || s.Exit.Preempted != tt.preempted || log != "up\nheard\n" {
				t.Errorf("status %d, %+v, log %q", status, s.Exit, log)
			}
		})
	}
}

// A job with secrets asks for them with a key of its own. What it is given reaches the
// command, and neither its log nor any file of the folder.
func TestAJobIsHandedItsSecrets(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	f := submitted(t, `[ "$TOKEN" = correct-horse-battery ] && echo "it is $TOKEN"`, func(j *Job, _ *Control) { j.Sealed = []byte("x") })
	c := begin(t, f)
	var asked State
	if !waittest.Until(func() bool {
		asked, _ = f.State()
		return len(asked.Key) > 0
	}) {
		t.Fatal("it does not ask")
	}
	sealed, err := Seal(asked.Key, "fence", Secrets{Env: []string{"TOKEN=" + secret}, Values: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteControl(Control{Secrets: sealed}); err != nil {
		t.Fatal(err)
	}
	status, s, log := end(t, f, c)
	if status != 0 || s.Exit == nil || len(s.Key) != 0 || log != "it is ***\n" {
		t.Errorf("status %d, %+v, log %q", status, s, log)
	}
	out, err := exec.Command("grep", "-rl", secret, string(f)).Output()
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		if filepath.Base(lines.Text()) != jobFile { // the script of this test is in it
			t.Errorf("the secret is in %s", lines.Text())
		}
	}
	if _, isExit := errors.AsType[*exec.ExitError](err); err != nil && !isExit {
		t.Error(err)
	}
}
