package shim

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestLinesAreCutTheSameHoweverTheyArrive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for _, length := range rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 80, maxLine - 1, maxLine, maxLine + 1, 3 * maxLine}), 0, 6).Draw(t, "lines") {
			text = append(append(text, bytes.Repeat([]byte("x"), length)...), '\n')
		}
		text = append(text, bytes.Repeat([]byte("y"), rapid.IntRange(0, 2*maxLine).Draw(t, "rest"))...)
		var pieces cutter
		var got []byte
		for rest := text; len(rest) > 0; {
			n := min(len(rest), rapid.IntRange(1, 50_000).Draw(t, "piece"))
			got = append(got, pieces.cut(rest[:n])...)
			rest = rest[n:]
		}
		if !bytes.Equal(got, wanted(text)) {
			t.Fatalf("%d bytes of %d", len(got), len(text))
		}
	})
}

// wanted cuts in the plainest way.
func wanted(text []byte) []byte {
	var want []byte
	for line := range strings.Lines(string(text)) {
		if body := strings.TrimSuffix(line, "\n"); len(body) > maxLine {
			line = body[:maxLine] + lineCut
		}
		want = append(want, line...)
	}
	return want
}

func TestALogHasAnEnd(t *testing.T) {
	t.Parallel()
	l := newLog(Folder(t.TempDir()), 100)
	in, err := l.stream(1)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := writeAll(in, []byte(strings.Repeat("z", 999)+"\n")); err != nil {
			t.Fatal(err)
		}
		for l.streams[0].read(l) {
		}
	}
	unix.Close(in)
	l.close(time.Now().Add(time.Minute))
	text, err := os.ReadFile(l.folder.Log())
	if err != nil || string(text) != strings.Repeat("z", 100)+logCut || l.size != int64(len(text)) {
		t.Errorf("%d bytes, %v: %q", l.size, err, text)
	}
}

func TestARecordIsThereWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	f := Folder(t.TempDir())
	if _, err := f.Exit(); !os.IsNotExist(err) {
		t.Errorf("before: %v", err)
	}
	if err := f.Record(Exit{Fence: "f", Code: 3}); err != nil {
		t.Fatal(err)
	}
	if e, err := f.Exit(); err != nil || e.Fence != "f" || e.Code != 3 {
		t.Errorf("after: %+v, %v", e, err)
	}
	if names, _ := filepath.Glob(f.path(".*")); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestALockIsSeenButNotDisturbed(t *testing.T) {
	t.Parallel()
	f := Folder(t.TempDir())
	if f.Held() {
		t.Error("held before it was taken")
	}
	lock, err := f.take()
	if err != nil {
		t.Fatal(err)
	}
	if !f.Held() {
		t.Error("not held")
	}
	if _, err := f.take(); err == nil {
		t.Error("taken twice")
	}
	free := make(chan struct{})
	go func() {
		f.Await()
		close(free)
	}()
	unix.Close(lock)
	<-free
	if f.Held() {
		t.Error("still held")
	}
}

func TestAnAbsenceIsCountedFromTheLookBefore(t *testing.T) {
	t.Parallel()
	f := Folder(t.TempDir())
	start := time.Now()
	p := newPresence(f, 10*time.Second)
	p.looked, p.since = start, start
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	if p.away(at(9)) {
		t.Error("away too early")
	}
	if err := f.Renew(at(9)); err != nil {
		t.Fatal(err)
	}
	if p.away(at(12)) { // seen at 12, so it came after 9
		t.Error("away although renewed")
	}
	if p.away(at(18)) || !p.away(at(19)) {
		t.Error("not away at 19")
	}
}

// A server that goes down may have started a shim that has not come to life
// when the next server looks.
func TestALateShimDoesNotBeginWithWhatWasWithdrawn(t *testing.T) {
	f := Folder(t.TempDir())
	mark := filepath.Join(string(f), "ran")
	if err := errors.Join(os.Mkdir(filepath.Join(string(f), WorkFolder), 0o700),
		f.Prepare(Launch{Fence: "f", Argv: []string{"/usr/bin/touch", mark}, Dir: "/"})); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !f.Withdraw() {
			t.Error("it cannot be withdrawn")
		}
	}
	if got := Main([]string{"shim", string(f)}); got != Doubled {
		t.Errorf("the late shim ends with %d", got)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command ran")
	}
	if err := f.Reopen(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.path(startFile), []byte("1 f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f.Withdraw() {
		t.Error("what has begun was withdrawn")
	}
}
