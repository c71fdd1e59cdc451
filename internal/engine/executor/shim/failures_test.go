package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// touches is a command that leaves a trace.
func touches(t *testing.T) (l Launch, ran func() bool) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	return Launch{ID: "a", Fence: "f", Folder: t.TempDir(), Dir: "/", Argv: []string{"/bin/touch", trace}}, func() bool {
		_, err := os.Stat(trace)
		return err == nil
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
			exit := newTask(launch, newShim(func(Usage) {})).execute()
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
	task := newTask(launch, newShim(func(Usage) {}))
	task.stop(time.Minute)
	if exit := task.execute(); !exit.Stopped || exit.Code != 128+int(unix.SIGTERM) || exit.StartFailed != "" || ran() {
		t.Errorf("%+v", exit)
	}
}

func TestASandboxThatFailsIsQuoted(t *testing.T) {
	t.Parallel()
	task := newTask(Launch{Folder: t.TempDir()}, newShim(func(Usage) {}))
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

func TestArgumentsThatMakeNoSenseStartNothing(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"shim", "shim -serve", "shim -serve a b", "shim -reap 1 2 true", "shim -none x", "shim __millrace-shim"} {
		if got := Main(strings.Fields(args)); got != BadArguments {
			t.Errorf("%s: %d", args, got)
		}
	}
	if got := Main([]string{"millrace", shimArgument, VersionFlag}); got != Version {
		t.Errorf("the version is %d", got)
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
		exit := begin(t, launch).end(t)
		if outside := len(exit.NotEnforced) > 0; exit.Code != 0 || !ran() || outside != (name == "gone") {
			t.Errorf("%s: %+v", name, exit)
		}
	}
}
