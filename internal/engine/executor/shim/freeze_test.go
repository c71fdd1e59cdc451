package shim

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/clock/uptime"
	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	"github.com/millrace/millrace/internal/waittest"
)

// script is an attempt that runs a script in its working folder.
func script(t *testing.T, id, text string) Launch {
	t.Helper()
	folder := Folder(t.TempDir())
	for _, name := range []string{WorkFolder, TempFolder} {
		if err := os.Mkdir(folder.path(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return Launch{
		ID: id, Fence: "f", Folder: string(folder), Dir: folder.path(WorkFolder), Disk: 1 << 30,
		Argv: []string{"/bin/sh", "-c", text}, Env: []string{"PATH=/usr/bin:/bin"},
	}
}

// running is which processes of a command are not stopped.
func running(pid int) (pids []int) {
	for _, pid := range processes.Tree(pid) {
		if !processes.Stopped(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A frozen command does not run, whatever it starts meanwhile, and goes on when it is
// thawed.
func TestAFrozenCommandStandsStill(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	for name, text := range map[string]string{
		"forks":  `echo $$; while [ ! -e ` + gate + ` ]; do (true & (true & true)); done; exit 5`,
		"sleeps": `echo $$; while [ ! -e ` + gate + ` ]; do sleep 0.01; done; exit 5`,
	} {
		a := begin(t, script(t, name, text))
		pid := process(t, a.Launch)
		for range 3 { // a second order while it stands still changes nothing
			a.freeze(t, pid)
			if left := running(pid); len(left) > 0 {
				t.Errorf("%s: %v run", name, left)
			}
		}
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		a.tell(t, thaw)
		if e := a.end(t); e.Code != 5 || len(e.Suspended) == 0 {
			t.Errorf("%s: %+v", name, e)
		}
		if err := os.Remove(gate); err != nil {
			t.Fatal(err)
		}
	}
}

// startsPrograms is in the environment of a test program that starts one program after
// the other.
const startsPrograms = "MILLRACE_TEST_STARTS_PROGRAMS"

func startPrograms() {
	fmt.Println(os.Getpid())
	for exec.Command("/bin/true").Run() == nil {
	}
	os.Exit(1)
}

// A process that is in the middle of starting a program, which a shell and programs
// with several threads do by vfork, stands still as well.
func TestFrozenCommandsStartNoPrograms(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shell := script(t, "shell", `echo $$; while /bin/true; do :; done`)
	program := script(t, "program", "exec "+self)
	program.Env = append(program.Env, startsPrograms+"=1")
	for _, l := range []Launch{shell, program} {
		a := begin(t, l)
		pid := process(t, l)
		for range 25 {
			a.freeze(t, pid)
			if left := running(pid); len(left) > 0 {
				t.Fatalf("%v of %s run", left, l.ID)
			}
			a.thaw(t, pid)
		}
		a.tell(t, stop)
		if e := a.end(t); !e.Stopped {
			t.Errorf("%s: %+v", l.ID, e)
		}
	}
}

// The time in which a command is frozen is known while it is, and when it has ended. It
// does not count against the time that the command may take.
func TestFrozenTimeIsSuspended(t *testing.T) {
	t.Parallel()
	l, open := gated(t, "a")
	a := begin(t, l)
	pid := process(t, l)
	before := time.Now().Round(0)
	a.freeze(t, pid)
	a.freeze(t, pid) // once more
	first := a.hear(t, func(w word) bool { return w.Usage != nil && len(w.Usage.Suspended) == 1 }).Usage
	if s := first.Suspended[0]; s.From.Before(before) || !s.To.Equal(first.At) {
		t.Errorf("frozen after %s: %+v", before, first)
	}
	second := a.hear(t, func(w word) bool { return w.Usage != nil }).Usage
	if s := second.Suspended[0]; !s.From.Equal(first.Suspended[0].From) || !s.To.Equal(second.At) || !s.To.After(first.At) {
		t.Errorf("after %+v: %+v", first, second)
	}
	a.tell(t, thaw)
	open()
	e := a.end(t)
	if e.Code != 3 || len(e.Suspended) == 0 {
		t.Fatalf("%+v", e)
	}
	if s := e.Suspended[0]; !s.From.Equal(first.Suspended[0].From) || s.To.Before(second.At) || s.To.After(e.End) {
		t.Errorf("after %+v: %+v", second, e)
	}
}

// The time in which a command was frozen does not count against its time limit while its
// outputs are collected either.
func TestTimeoutDoesNotCountStandstills(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stood    time.Duration
		frozen   bool // it still is
		timedOut bool
	}{
		"it never stood still":        {0, false, true},
		"it stood still for a moment": {time.Minute, false, true},
		"it stood still for long":     {50 * time.Minute, false, false},
		"it is frozen":                {0, true, false},
	} {
		task := newTask(Launch{Folder: t.TempDir(), Timeout: 30 * time.Minute}, newShim(func(Usage) {}))
		task.meter = newMeter(task.folder, task.launch)
		task.exit.Start, task.began = time.Now().Add(-time.Hour), uptime.Read()-time.Hour
		task.meter.still.freeze(task.exit.Start)
		if !tt.frozen {
			task.meter.still.thaw(task.exit.Start.Add(tt.stood))
		}
		if err := task.collecting(); (err != nil) != tt.timedOut || task.exit.TimedOut != tt.timedOut {
			t.Errorf("%s: %v, %t", name, err, task.exit.TimedOut)
		}
	}
}

// A command that has not begun is frozen when it has.
func TestACommandIsFrozenWhenItBegins(t *testing.T) {
	t.Parallel()
	l := script(t, "early", "echo $$; exec sleep 1000")
	l.Grace = time.Hour
	s := newShim(func(Usage) {})
	s.frozen.Store(true)
	task := newTask(l, s)
	task.meter = newMeter(task.folder, l)
	c := exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	task.followFreeze(&command{tree: tree{top: c.Process.Pid}})
	if !waittest.Until(func() bool { return len(running(c.Process.Pid)) == 0 }) {
		t.Error("it runs")
	}
}

// A command that is evicted ends although it is frozen, says why, and leaves no files.
func TestEvictedCommandLeavesNoFiles(t *testing.T) {
	t.Parallel()
	large := script(t, "large", `trap '' TERM; head -c 3000000 /dev/zero > file; mkdir closed; touch closed/x ../tmp/x; chmod 0 closed; echo $$; while :; do sleep 0.01; done`)
	before := large.Before()
	a := begin(t, large)
	pid := process(t, large)
	given := Folder(large.Folder).path(InputFolder)
	if err := errors.Join(os.Mkdir(given, 0o755), os.WriteFile(given+"/copied", make([]byte, 5000000), 0o644), os.Link(Folder(large.Folder).path(WorkFolder)+"/file", given+"/linked")); err != nil {
		t.Fatal(err)
	}
	a.freeze(t, pid)
	if s := before.Size("large", Folder(large.Folder), a.process.Pid); s.ID != "large" || s.Bytes < 8000000 || s.Bytes > 9000000 {
		t.Errorf("it takes up %+v", s)
	}
	a.tell(t, evict)
	if e := a.end(t); !e.Evicted || e.Stopped || e.NoSpace {
		t.Errorf("%+v", e)
	}
	for _, name := range []string{WorkFolder, TempFolder, InputFolder} {
		if _, err := os.Lstat(Folder(large.Folder).path(name)); !os.IsNotExist(err) {
			t.Errorf("its %s: %v", name, err)
		}
	}
	if _, err := os.Stat(Folder(large.Folder).Log()); err != nil {
		t.Errorf("its log: %v", err)
	}
}

// What a command has stopped itself stays as it is when the command is thawed.
func TestThawedCommandKeepsWhatItStopped(t *testing.T) {
	t.Parallel()
	l := script(t, "a", `sleep 1000 > /dev/null 2>&1 & kill -STOP $!; echo $!; trap 'exit 4' TERM; wait`)
	l.Grace = 1 << 40
	a := begin(t, l)
	pid := process(t, l)
	if !waittest.Until(func() bool { return processes.Stopped(pid) }) {
		t.Fatal("it is not stopped")
	}
	shell := processes.Children(a.process.Pid)
	if len(shell) != 1 {
		t.Fatalf("it has the processes %v", shell)
	}
	a.freeze(t, shell[0])
	a.thaw(t, shell[0])
	if !processes.Stopped(pid) {
		t.Error("what it has stopped itself goes on")
	}
	a.tell(t, stop)
	if e := a.end(t); !e.Stopped || e.Code != 4 {
		t.Errorf("%+v", e)
	}
}

// Where there is a control group of version 2, the kernel freezes it as a whole.
func TestCommandIsFrozenByItsGroup(t *testing.T) {
	t.Parallel()
	group := unifiedGroup(t)
	l := script(t, "a", `echo $$; while :; do (true & (true & true)); done`)
	l.Cgroup.Folder = group
	a := begin(t, l)
	process(t, l)
	a.tell(t, freeze)
	if !waittest.Until(func() bool { return line(filepath.Join(group, "cgroup.events"), "frozen") == 1 }) {
		t.Error("the group is not frozen")
	}
	a.tell(t, evict)
	if e := a.end(t); !e.Evicted {
		t.Errorf("%+v", e)
	}
	if line(filepath.Join(group, "cgroup.events"), "frozen") != 0 {
		t.Error("the next command in the group would be frozen")
	}
}

// unifiedGroup is an empty control group of version 2.
func unifiedGroup(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for mount := range strings.Lines(string(mounts)) {
		if f := strings.Fields(mount); len(f) > 2 && f[2] == "cgroup2" {
			group := filepath.Join(f[1], "millrace-test-"+strconv.Itoa(os.Getpid()))
			if err := unix.Mkdir(group, 0o755); err != nil {
				t.Skip("no group can be made: ", err)
			}
			t.Cleanup(func() {
				if !waittest.Until(func() bool { return unix.Rmdir(group) == nil }) {
					t.Error("the group cannot be removed")
				}
			})
			if _, err := os.Stat(filepath.Join(group, "cgroup.freeze")); err != nil {
				t.Skip("groups cannot be frozen: ", err)
			}
			return group
		}
	}
	t.Skip("there are no control groups of version 2")
	return ""
}

// A command that fails while the file system is full did not fail by itself. One
// that fails long after, or does not fail, did.
func TestFailureOnFullFileSystemIsNotTheCommands(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		exit Exit
		ago  time.Duration // since the file system was full; 0: it never was
		want bool
	}{
		"it fails":                     {Exit{Code: 1}, time.Second, true},
		"an output is missing":         {Exit{Missing: []string{"o"}}, time.Second, true},
		"it fails long after":          {Exit{Code: 1}, time.Hour, false},
		"it succeeds":                  {Exit{}, time.Second, false},
		"it used too much itself":      {Exit{Code: 137, OutOfDisk: true}, time.Second, false},
		"it needed too much memory":    {Exit{Code: 137, OOM: true}, time.Second, false},
		"it was stopped":               {Exit{Code: 143, Stopped: true}, time.Second, false},
		"it has no program to run":     {Exit{Code: 127, StartFailed: "no such program"}, time.Second, false},
		"the disk was never that full": {Exit{Code: 1}, 0, false},
	} {
		l := script(t, "a", "")
		task := newTask(l, newShim(func(Usage) {}))
		task.meter, task.exit = newMeter(task.folder, l), tt.exit
		task.exit.End = time.Now()
		if tt.ago > 0 {
			at := task.exit.End.Add(-tt.ago)
			task.shim.fullAt.Store(&at)
		}
		if task.noteNoSpace(); task.exit.NoSpace != tt.want {
			t.Errorf("%s: %t", name, task.exit.NoSpace)
		}
	}
}

// A command that fills the file system and fails before the watch has seen that: the
// machine failed, not the command.
func TestFailureIsNotTheCommandsWhereItFillsTheDiskAtOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=17m"); err != nil {
		t.Skip("a file system of its own needs root: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	l := script(t, "a", "head -c 2000000 /dev/zero > file; exit 1")
	if err := unix.Mkdir(filepath.Join(folder, WorkFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	l.Folder, l.Dir = folder, filepath.Join(folder, WorkFolder)
	if e := begin(t, l).end(t); !e.NoSpace {
		t.Errorf("%+v", e)
	}
}

// A command that ends by itself when it is to be evicted has no files left, so it must
// not pass for one that has succeeded.
func TestCommandThatEndsWhenItIsEvictedIsEvicted(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"echo made > file", "exit 1"} {
		l := script(t, endsByItself, text)
		l.Outputs = []OutputPattern{{Port: "o", Path: "file"}}
		if e := begin(t, l).end(t); !e.Evicted || len(e.Outputs) > 0 || e.NoSpace {
			t.Errorf("%s: %+v", text, e)
		}
		if _, err := os.Lstat(l.Dir); !os.IsNotExist(err) {
			t.Errorf("%s: its files: %v", text, err)
		}
	}
}
