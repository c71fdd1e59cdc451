package shim

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// newShim is one that no server has reached yet.
func newShim(j *journal) *shim {
	return &shim{commands: commands{running: map[int]*command{}}, journal: j, records: map[string]*Record{}, running: map[string]*task{}, watched: map[string]*task{}}
}

// connect gives a shim a server, and returns the server's end.
func connect(t *testing.T, s *shim) net.Conn {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]net.Conn
	for i, fd := range ends {
		file := os.NewFile(uintptr(fd), "socket")
		conns[i], err = net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conns[i].Close() })
	}
	s.server = conns[0].(*net.UnixConn)
	return conns[1]
}

// next is the next report that a server gets.
func next(t *testing.T, server net.Conn) (r Report) {
	t.Helper()
	if err := server.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(server).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// touches is a command that leaves a trace.
func touches(t *testing.T) (l Launch, ran func() bool) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	return Launch{ID: "a", Fence: "f", Folder: t.TempDir(), Dir: "/", Argv: []string{"/bin/touch", trace}}, func() bool {
		_, err := os.Stat(trace)
		return err == nil
	}
}

// An attempt that is not in the journal would be unknown to the next shim.
func TestWhatCannotBeRecordedDoesNotRun(t *testing.T) {
	t.Parallel()
	full, err := unix.Open("/dev/full", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(full)
	s := newShim(&journal{fd: full, lines: map[string][]span{}})
	server := connect(t, s)
	launch, ran := touches(t)
	s.handle(Order{Start: &launch})
	r := next(t, server)
	if r.Record == nil || r.Record.Exit == nil || r.Record.Exit.Code != firstprocess.CannotStart || !strings.Contains(r.Record.Exit.StartFailed, "no space left") || !r.Record.Exit.NoSpace {
		t.Errorf("%+v", r.Record)
	}
	if s.busy() || ran() {
		t.Error("it runs")
	}
}

func TestAServerThatHasGoneHoldsNothingUp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), journalFile)
	j, _, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	s := newShim(j)
	connect(t, s).Close()
	r := &Record{ID: "a", Fence: "f"}
	s.records["a"] = r
	s.end(r, Exit{Code: 3})
	if s.server != nil {
		t.Error("a server that does not read is still there")
	}
	s.release("none") // without a server
	if known, err := replay(path); err != nil || known["a"] == nil || known["a"].Exit == nil || known["a"].Exit.Code != 3 {
		t.Errorf("the next server learns %+v, %v", known["a"], err)
	}
}

func TestACommandThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(*Launch)
		why    string
	}{
		"there is no such program": {func(l *Launch) { l.Argv[0] = "/nowhere/" + secret }, "no such file or directory"},
		"it is no program":         {func(l *Launch) { l.Argv[0] = plain }, "permission denied"},
		"there is no such folder":  {func(l *Launch) { l.Dir = "/nowhere" }, "no such file or directory"},
		"there is no command":      {func(l *Launch) { l.Argv = nil }, "there is nothing to run"},
		"an option has a NUL":      {func(l *Launch) { l.Sandbox = &Sandbox{Options: []string{"--dir", "a\x00b"}} }, "has a NUL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			launch, ran := touches(t)
			launch.Secrets = []string{secret}
			tt.change(&launch)
			exit := newTask(launch, newShim(nil)).execute()
			if exit.Code != firstprocess.CannotStart || !strings.Contains(exit.StartFailed, tt.why) || exit.End.IsZero() || ran() {
				t.Errorf("%+v", exit)
			}
			if strings.Contains(exit.StartFailed, secret) {
				t.Errorf("the reason has a secret in it: %s", exit.StartFailed)
			}
		})
	}
}

func TestWhatIsStoppedBeforeItStartsNeverRuns(t *testing.T) {
	t.Parallel()
	launch, ran := touches(t)
	task := newTask(launch, newShim(nil))
	task.stop(time.Minute)
	if exit := task.execute(); !exit.Stopped || exit.Code != 128+int(unix.SIGTERM) || exit.StartFailed != "" || ran() {
		t.Errorf("%+v", exit)
	}
}

func TestASandboxThatFailsIsQuoted(t *testing.T) {
	t.Parallel()
	task := newTask(Launch{Folder: t.TempDir()}, newShim(nil))
	c := &command{order: -1}
	task.notStarted(c)
	if want := "the sandbox could not be set up: it gave no reason"; task.exit.StartFailed != want {
		t.Error(task.exit.StartFailed)
	}
	if err := os.WriteFile(task.folder.Log(), []byte("bwrap: no room\nand more"), 0o600); err != nil {
		t.Fatal(err)
	}
	task.notStarted(c)
	if want := "the sandbox could not be set up: bwrap: no room"; task.exit.StartFailed != want || task.exit.NoProgram {
		t.Errorf("%+v", task.exit)
	}
	var err error
	if c.order, err = rawfile.Memory([]byte{firstprocess.NoProgram, 'n', 'o', 'n', 'e'}); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(c.order)
	if task.notStarted(c); task.exit.StartFailed != "none" || !task.exit.NoProgram {
		t.Errorf("%+v", task.exit)
	}
}

func TestAJournalThatCannotBeUsedIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	if _, _, err := openJournal(filepath.Join(t.TempDir(), "none", journalFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
	if _, _, err := openJournal(t.TempDir()); err == nil {
		t.Error("a folder is read as a journal")
	}
	path := filepath.Join(t.TempDir(), journalFile)
	j, _, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.write(Record{ID: "a", Fence: "f"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".new", 0o700); err != nil { // where it would be written anew
		t.Fatal(err)
	}
	if err := j.rewrite(map[string]*Record{}); err == nil {
		t.Error("it was written into a folder")
	}
	if err := j.write(Record{ID: "b", Fence: "f"}); err != nil {
		t.Errorf("after a failed rewriting: %v", err)
	}
	if known, err := replay(path); err != nil || known["a"] == nil || known["b"] == nil {
		t.Errorf("%v, %v", known, err)
	}
}

func TestALogThatCannotBeKeptIsReadAllTheSame(t *testing.T) {
	t.Parallel()
	l := newLog(Folder(filepath.Join(t.TempDir(), "none")), 0, nil)
	defer l.close()
	in, err := l.stream(1)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 { // more than a pipe holds
		if _, err := rawfile.WriteAll(in, make([]byte, 4<<10)); err != nil {
			t.Fatal(err)
		}
		l.streams[0].read(l)
	}
	unix.Close(in)
	l.drain(time.Now().Add(time.Minute))
	if l.streams[0].fd >= 0 || l.out.Size() != 0 {
		t.Errorf("%d bytes are kept, descriptor %d", l.out.Size(), l.streams[0].fd)
	}
}

func TestAFolderHasOneShim(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), lockFile)
	if err := lock(path); err != nil {
		t.Fatal(err)
	}
	if err := lock(path); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("a second one: %v", err)
	}
	if err := lock(filepath.Join(path, "none")); err == nil {
		t.Error("a file is taken for a folder")
	}
}

func TestArgumentsThatMakeNoSenseStartNothing(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"shim", "shim -serve", "shim -serve a b", "shim -reap 1 2", "shim -none x", "shim __millrace-shim"} {
		if got := Main(strings.Fields(args)); got != BadArguments {
			t.Errorf("%s: %d", args, got)
		}
	}
	if got := Main([]string{"millrace", shimArgument, VersionFlag}); got != Version {
		t.Errorf("the version is %d", got)
	}
}

// A server goes on with a shim that an earlier one has started, as long as that
// understands its orders.
func TestWhichShimsAServerGivesItsTasks(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]bool{0: false, 108: false, 109: true, Version: true, Version + 1: false} {
		if got := isCurrent(version); got != want {
			t.Errorf("%d: %t", version, got)
		}
	}
}

// A command that could not be put into its groups is known, since nothing else holds it.
func TestACommandOutsideItsGroupsSaysSo(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]string{"there": filepath.Join(t.TempDir(), "tasks"), "gone": filepath.Join(t.TempDir(), "none", "tasks")} {
		if name == "there" {
			if err := os.WriteFile(list, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		launch, ran := touches(t)
		launch.Cgroup = Cgroup{Threads: []string{list}}
		exit := newTask(launch, newShim(nil)).execute()
		if outside := len(exit.NotEnforced) > 0; exit.Code != 0 || !ran() || outside != (name == "gone") {
			t.Errorf("%s: %+v", name, exit)
		}
	}
}
