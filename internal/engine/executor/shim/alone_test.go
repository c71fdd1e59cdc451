package shim

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/waittest"
)

// carriesOut is in the environment of a test program that carries an attempt out.
const carriesOut = "MILLRACE_TEST_CARRIES_OUT"

// The test program is the shim, too.
func TestMain(m *testing.M) {
	switch {
	case IsShimCall(os.Args):
		syscall.Exit(Main(os.Args))
	case os.Getenv(carriesOut) != "":
		carryOut()
	case os.Getenv(takesMemory) != "":
		takeMemory()
	case os.Getenv(startsPrograms) != "":
		startPrograms()
	case os.Getenv(holds) != "":
		hold(os.Getenv(holds))
	}
	os.Exit(m.Run())
}

// The signals by which the process of an attempt is told what to do.
const (
	stop   = unix.SIGUSR1
	freeze = unix.Signal(35)
	thaw   = unix.Signal(36)
	evict  = unix.Signal(37)
)

// endsByItself is the id of an attempt that is evicted and not stopped.
const endsByItself = "ends by itself"

// word is what the process of an attempt says.
type word struct {
	Usage *Usage
	Exit  *Exit
}

// carryOut carries the attempt out that comes on the standard input.
func carryOut() {
	runtime.LockOSThread()
	var l Launch
	if json.NewDecoder(os.Stdin).Decode(&l) != nil {
		os.Exit(BadArguments)
	}
	if self, err := os.Executable(); err != nil || Self(self).Limit(&l) != nil {
		os.Exit(Failed)
	}
	words := json.NewEncoder(os.Stdout)
	a := NewAlone(l, func(u Usage) { _ = words.Encode(word{Usage: &u}) })
	a.task.evicted.Store(l.ID == endsByItself)
	told := make(chan os.Signal, 8)
	signal.Notify(told, stop, freeze, thaw, evict)
	go func() {
		for s := range told {
			switch s {
			case stop:
				a.Stop(l.Grace)
			case freeze:
				a.Freeze()
			case thaw:
				a.Thaw()
			case evict:
				a.Evict()
			}
		}
	}()
	_ = words.Encode(word{}) // it listens
	exit := a.Run()
	_ = words.Encode(word{Exit: &exit})
	os.Exit(Done)
}

// alone is an attempt with a process of its own.
type alone struct {
	Launch
	process *os.Process
	words   *json.Decoder
}

// begin starts an attempt.
func begin(t *testing.T, l Launch) *alone {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env, c.Stdin = append(os.Environ(), carriesOut+"=1"), bytes.NewReader(text)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	a := &alone{l, c.Process, json.NewDecoder(out)}
	a.hear(t, func(word) bool { return true })
	return a
}

// hear waits for a word.
func (a *alone) hear(t *testing.T, wanted func(word) bool) word {
	t.Helper()
	for {
		var w word
		if err := a.words.Decode(&w); err != nil {
			t.Fatal(err)
		}
		if wanted(w) {
			return w
		}
	}
}

// end waits for the end of the attempt.
func (a *alone) end(t *testing.T) Exit {
	t.Helper()
	return *a.hear(t, func(w word) bool { return w.Exit != nil }).Exit
}

func (a *alone) tell(t *testing.T, signals ...unix.Signal) {
	t.Helper()
	for _, s := range signals {
		if err := a.process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
}

// freeze freezes the command that begins with a process, and returns when it stands still.
func (a *alone) freeze(t *testing.T, pid int) {
	t.Helper()
	still := 0
	if !waittest.Until(func() bool {
		if still++; len(running(pid)) > 0 {
			still = 0         // a process that was not seen may have started another
			a.tell(t, freeze) // again, as the server does: a thaw from before may be heard after it
		}
		return still == 3
	}) {
		t.Fatal("it is not frozen")
	}
}

// thaw thaws the command that begins with a process, and returns when it goes on: until
// then it would seem to be frozen again.
func (a *alone) thaw(t *testing.T, pid int) {
	t.Helper()
	a.tell(t, thaw)
	if !waittest.Until(func() bool { return len(running(pid)) > 0 }) {
		t.Fatal("it is not thawed")
	}
}

// gated is an attempt that says which process it is and waits until open is called.
func gated(t *testing.T, id string) (l Launch, open func()) {
	t.Helper()
	folder := t.TempDir()
	gate := filepath.Join(folder, "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	l = Launch{ID: id, Fence: "f", Folder: folder, Dir: "/", Argv: []string{"/bin/sh", "-c", "echo $$; read -r line < " + gate + "; exit 3"}, Env: []string{"PATH=/usr/bin:/bin"}}
	return l, func() {
		if err := os.WriteFile(gate, []byte("\n"), 0); err != nil {
			t.Error(err)
		}
	}
}

// process waits until an attempt has said which process it is.
func process(t *testing.T, l Launch) (pid int) {
	t.Helper()
	if !waittest.Until(func() bool {
		text, _ := os.ReadFile(Folder(l.Folder).Log())
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		pid = n
		return err == nil && bytes.HasSuffix(text, []byte("\n"))
	}) {
		t.Fatal("it does not begin")
	}
	return pid
}
