package shim

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/waittest"
)

// The test program is the shim, too.
func TestMain(m *testing.M) {
	switch {
	case IsShimCall(os.Args):
		syscall.Exit(Main(os.Args))
	case os.Getenv(takesMemory) != "":
		takeMemory()
	case os.Getenv(startsPrograms) != "":
		startPrograms()
	case os.Getenv(holds) != "":
		hold(os.Getenv(holds))
	}
	os.Exit(m.Run())
}

// reachShim is the link of a server to the shim of a folder.
func reachShim(t *testing.T, folder string) (*Link, map[string]Record) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link, list, err := Reach(t.Context(), folder, Self(self))
	if err != nil {
		t.Fatalf("%v; %s", err, LastStderr(folder))
	}
	records := map[string]Record{}
	for _, r := range list {
		records[r.ID] = r
	}
	t.Cleanup(func() {
		_ = link.Send(Order{Leave: true})
		link.Close()
	})
	return link, records
}

// hear waits for a report.
func hear(t *testing.T, l *Link, wanted func(Report) bool) Report {
	t.Helper()
	for {
		r, err := l.Next()
		if err != nil {
			t.Fatal(err)
		}
		if wanted(r) {
			return r
		}
	}
}

func hasEnded(id string) func(Report) bool {
	return func(r Report) bool { return r.Record != nil && r.Record.ID == id && r.Record.Exit != nil }
}

func send(t *testing.T, l *Link, orders ...Order) {
	t.Helper()
	for _, o := range orders {
		if err := l.Send(o); err != nil {
			t.Fatal(err)
		}
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

// An order that comes twice, too early or for nobody changes nothing.
func TestAShimDoesWhatItIsToldOnce(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), strings.Repeat("long/", 40)) // longer than the address of a socket
	link, records := reachShim(t, folder)
	if len(records) != 0 || !link.Current() {
		t.Errorf("a new one has %v, and is ours: %t", records, link.Current())
	}
	launch, open := gated(t, "a")
	other := launch
	other.Fence, other.Argv = "g", []string{"/bin/false"}
	send(t, link, Order{Start: &launch})
	process(t, launch)
	send(t, link, Order{Start: &launch}, Order{Start: &other}, Order{Release: "a"}, Order{Stop: &Stop{ID: "none"}}, Order{Renew: []string{"none"}}, Order{Release: "none"}, Order{})
	hear(t, link, func(r Report) bool { return r.Released == "none" })
	open()
	if r := hear(t, link, hasEnded("a")); r.Record.Fence != "f" || r.Record.Exit.Code != 3 || r.Record.Exit.LogBytes == 0 {
		t.Errorf("%+v", r.Record)
	}
	if kept, err := Records(folder); err != nil || len(kept) != 1 || kept[0].Exit == nil {
		t.Errorf("%+v, %v", kept, err)
	}
	send(t, link, Order{Release: "a"}, Order{Release: "a"})
	for range 2 {
		hear(t, link, func(r Report) bool { return r.Released == "a" })
	}
	if text, err := os.ReadFile(filepath.Join(folder, journalFile)); err != nil || len(bytes.TrimSpace(text)) != 0 {
		t.Errorf("of what was released there is %q, %v", text, err)
	}
}

// A server that goes leaves everything to the next one, which waits for its turn.
func TestTheNextServerIsToldEverything(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first, _ := reachShim(t, folder)
	ends, open := gated(t, "ends")
	runs, _ := gated(t, "runs")
	runs.Metadata = []byte(`{"slot":1}`)
	send(t, first, Order{Start: &ends}, Order{Start: &runs})
	process(t, runs)
	type reached struct {
		link    *Link
		records []Record
		err     error
	}
	next := make(chan reached)
	go func() {
		link, records, err := Reach(t.Context(), folder, Program{"/bin/false"}) // there is one
		next <- reached{link, records, err}
	}()
	open()
	hear(t, first, hasEnded("ends"))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := <-next
	if second.err != nil {
		t.Fatal(second.err)
	}
	link, records := second.link, map[string]Record{}
	defer link.Close()
	for _, r := range second.records {
		records[r.ID] = r
	}
	if e := records["ends"]; len(records) != 2 || e.Exit == nil || e.Exit.Code != 3 {
		t.Errorf("%+v", records)
	}
	if r := records["runs"]; r.Exit != nil || r.Lost || r.Stopping || string(r.Metadata) != `{"slot":1}` {
		t.Errorf("%+v", r)
	}
	send(t, link, Order{Stop: &Stop{ID: "runs", Grace: time.Minute}})
	if r := hear(t, link, hasEnded("runs")); !r.Record.Exit.Stopped || r.Record.Exit.Signal != int(unix.SIGTERM) {
		t.Errorf("%+v", r.Record.Exit)
	}
	send(t, link, Order{Leave: true})
}

// What a shim that was killed has started is gone, and nobody says that it had succeeded.
func TestWhatAKilledShimRanIsLost(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first, _ := reachShim(t, folder)
	launch, _ := gated(t, "a")
	send(t, first, Order{Start: &launch})
	command := process(t, launch)
	text, err := os.ReadFile(filepath.Join(folder, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid == os.Getpid() {
		t.Fatalf("the lock says %q, %v", text, err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for r, err := first.Next(); err == nil; r, err = first.Next() {
		if r.Record != nil {
			t.Errorf("it says %+v", r.Record)
		}
	}
	next, records := reachShim(t, folder)
	if r := records["a"]; !r.Lost || r.Exit != nil || r.Fence != "f" {
		t.Errorf("%+v", records)
	}
	if !waittest.Until(func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(command) + "/stat")
		_, state, _ := strings.Cut(string(stat), ") ")
		return err != nil || strings.HasPrefix(state, "Z") // nobody may have waited for it yet
	}) {
		t.Error("the command lives")
	}
	send(t, next, Order{Start: &launch}, Order{Release: "a"}) // it is not begun again
	hear(t, next, func(r Report) bool { return r.Released == "a" })
	if kept, err := Records(folder); err != nil || len(kept) != 0 {
		t.Errorf("%+v, %v", kept, err)
	}
}

// A server that speaks nonsense is hung up on, and nothing else happens.
func TestNonsenseEndsTheLinkAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	launch, open := gated(t, "a")
	for i, nonsense := range []string{"nonsense\n", "{\"start\":7}\n", "[]\n"} {
		link, records := reachShim(t, folder)
		if len(records) != min(i, 1) {
			t.Errorf("%+v", records)
		}
		send(t, link, Order{Start: &launch})
		process(t, launch)
		if _, err := link.conn.Write([]byte(nonsense)); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := link.Next(); err != nil {
				break
			}
		}
	}
	link, _ := reachShim(t, folder)
	open()
	hear(t, link, hasEnded("a"))
}

func TestAShimThatCannotStartLeavesItsWords(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if got := LastStderr(folder); got != "" {
		t.Errorf("before there is one: %q", got)
	}
	if err := spawn(folder, Program{"/bin/sh"}); err != nil { // which knows no such option
		t.Fatal(err)
	}
	if !waittest.Until(func() bool { return LastStderr(folder) != "" }) {
		t.Error("it said nothing")
	}
	if err := spawn(folder, Program{"/no/such/shim"}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(folder, stderrFile), bytes.Repeat([]byte("x"), 5000), 0o600); err != nil || len(LastStderr(folder)) != 2000 {
		t.Errorf("%d bytes, %v", len(LastStderr(folder)), err)
	}
}

// TestOrdersUnderAnOlderRunFenceAreIgnored checks that the next server learns which fence
// counts, and that an order without one, as an earlier release gives, counts.
func TestOrdersUnderAnOlderRunFenceAreIgnored(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	link, _ := reachShim(t, folder)
	l, open := gated(t, "a")
	send(t, link, Order{RunFence: 1, Start: &l})
	process(t, l)
	send(t, link, Order{RunFence: 2, Renew: []string{"a"}}, Order{RunFence: 1, Stop: &Stop{ID: "a"}})
	link.Close()
	next, records := reachShim(t, folder)
	if r := records["a"]; r.RunFence != 2 || r.Stopping {
		t.Errorf("the next server hears %+v", r)
	}
	open()
	if r := hear(t, next, hasEnded("a")); r.Record.Exit.Stopped || r.Record.Exit.Code != 3 {
		t.Errorf("it ended as %+v", r.Record.Exit)
	}
	l, _ = gated(t, "b")
	send(t, next, Order{RunFence: 2, Start: &l})
	process(t, l)
	send(t, next, Order{Stop: &Stop{ID: "b"}})
	if r := hear(t, next, hasEnded("b")); !r.Record.Exit.Stopped {
		t.Errorf("it ended as %+v", r.Record.Exit)
	}
}
