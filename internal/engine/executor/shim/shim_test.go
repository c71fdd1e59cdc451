package shim

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
)

// A command that floods its log is read to its end, and the beginning and the end of
// what it wrote are kept.
func TestLogOfAFloodKeepsItsBeginningAndItsEnd(t *testing.T) {
	t.Parallel()
	l := newLog(Folder(t.TempDir()), 1000, nil)
	in, err := l.stream(1)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for i := range 100 {
		text := strings.Repeat(fmt.Sprintf("%03d\n", i), 250)
		all.WriteString(text)
		if _, err := rawfile.WriteAll(in, []byte(text)); err != nil {
			t.Fatal(err)
		}
		for l.streams[0].read(l) {
		}
	}
	unix.Close(in)
	l.drain(time.Now().Add(time.Minute))
	l.close()
	if l.resume.IsZero() || l.out.Size() != int64(all.Len()) {
		t.Errorf("%d bytes of %d, read on at %s", l.out.Size(), all.Len(), l.resume)
	}
	for _, offset := range []int64{0, l.out.Size() - 100} {
		log, err := tasklog.Open(string(l.folder), offset, true)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(log)
		if err := errors.Join(err, log.Close()); err != nil || len(text) < 100 || log.Offset != offset || string(text) != all.String()[offset:offset+int64(len(text))] {
			t.Errorf("%d bytes from %d, %v", len(text), log.Offset, err)
		}
	}
}

func TestAnAbsenceIsCountedFromTheLookBefore(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Duration { return time.Duration(s) * time.Second }
	p := newServerPresence(10*time.Second, at(0))
	if p.stayedAway(at(9), 0) {
		t.Error("away too early")
	}
	if p.stayedAway(at(12), 1) { // seen at 12, so it came after 9
		t.Error("away although renewed")
	}
	if p.stayedAway(at(18), 1) || !p.stayedAway(at(19), 1) {
		t.Error("not away at 19")
	}
}

// TestAbsenceCountsSuspendedTime wakes a shim up after the server's time has run out. A
// server that was suspended with it has a moment to come back, and no more.
func TestAbsenceCountsSuspendedTime(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Duration { return time.Duration(s) * time.Second }
	for _, comes := range []bool{false, true} {
		p := newServerPresence(time.Minute, at(0))
		renewals := int64(0)
		for _, s := range []int{1, 1000, 1005, 1010, 1015, 1019} {
			if comes && s > 1010 {
				renewals = 1
			}
			if p.stayedAway(at(s), renewals) {
				t.Errorf("away at %d", s)
			}
		}
		if away := p.stayedAway(at(1020), renewals); away == comes {
			t.Errorf("away at 1020: %t, though a server came: %t", away, comes)
		}
	}
}

// A command that is stopped while what stands around it has not started it yet gets TERM
// when it is there, and not only KILL after its grace.
func TestCommandThatIsStoppedBeforeItBeginsGetsTERM(t *testing.T) {
	t.Parallel()
	c := exec.Command("sh", "-c", "read gate; sleep 1000; exit 3") // the shell stands for what is around a command
	gate, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	l := Launch{Folder: t.TempDir()}
	stopped, stands := newTask(l, newShim(func(Usage) {})), &command{tree: tree{top: c.Process.Pid, around: 1}}
	stopped.meter = newMeter(Folder(l.Folder), l)
	stopped.end(stands, &stopped.exit.Stopped, time.Hour)
	if stopped.terminated {
		t.Fatal("it has begun")
	}
	if _, err := gate.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	for !stopped.terminated {
		stopped.look(stands, time.Now(), nil)
	}
	if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != 3 {
		t.Errorf("%v", err)
	}
}
