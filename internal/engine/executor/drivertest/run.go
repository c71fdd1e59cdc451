package drivertest

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/waittest"
)

// Run holds a driver to its promises.
func Run(t *testing.T, make Maker) {
	for name, promise := range map[string]func(*testing.T, *Fixture, Maker){
		"the status is the command's own":              statuses,
		"a signal is not taken for a status":           signals,
		"a task ends at its timeout":                   timeout,
		"a task cannot outlive its deadline":           deadline,
		"a stopped task gets TERM":                     stopped,
		"what ignores TERM gets KILL":                  ignoresTERM,
		"nothing outlives its task":                    processTree,
		"a hundred quick tasks all end":                hundredQuickTasks,
		"a second submission changes nothing":          submittedTwice,
		"another fence is refused":                     fenced,
		"the next driver adopts a running task":        adopted,
		"a driver lists what another has submitted":    submittedByAnother,
		"the next driver knows how a task ended":       remembered,
		"a task that leaves no record is lost":         lost,
		"the log can be read on while it grows":        logs,
		"an endless line is cut and marked":            longLine,
		"outputs are hashed":                           outputs,
		"a missing output is named":                    missing,
		"the environment reaches the command":          environment,
		"a secret is seen by its command alone":        secrets,
		"a running task cannot be released":            released,
		"stopping what is not there is no error":       stopNothing,
		"a task that has ended is not changed by it":   stopEnded,
		"a stop under another fence changes nothing":   stopUnderAnotherFence,
		"an order needs a permit":                      refusedWithoutPermit,
		"who has adopted a task alone orders about it": formerOwner,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			promise(t, NewFixture(t, make), make)
		})
	}
}

func statuses(t *testing.T, b *Fixture, _ Maker) {
	for command, want := range map[string]int{
		"true": 0, "exit 3 # dummy: exit=3": 3, "false # dummy: exit=1\necho not reached": 1,
		"false | true # dummy: exit=1": 1, "exit 75 # dummy: exit=75": 75,
	} {
		seen := b.Do(t, b.Spec(t, command))
		reason := executor.ExitedNonZero
		if want == 0 {
			reason = executor.ExitedZero
		}
		b.want(t, seen, reason)
		if seen.Exit.Code != want || seen.Exit.Fence != seen.Fence {
			t.Errorf("%q: status %d under fence %q, want %d under %q", command, seen.Exit.Code, seen.Exit.Fence, want, seen.Fence)
		}
	}
}

func signals(t *testing.T, b *Fixture, _ Maker) {
	seen := b.Do(t, b.Spec(t, "kill -9 $$ # dummy: signal=9"))
	b.want(t, seen, executor.Signaled)
	if seen.Exit.Signal != 9 || seen.Exit.Code != 137 || seen.Exit.OOM {
		t.Errorf("signal %d, status %d, oom %t", seen.Exit.Signal, seen.Exit.Code, seen.Exit.OOM)
	}
}

func timeout(t *testing.T, b *Fixture, _ Maker) {
	s := b.Spec(t, "sleep 600 # dummy: sleep=600s")
	s.Timeout = 300 * time.Millisecond
	b.want(t, b.Do(t, s), executor.TimedOut)
}

func deadline(t *testing.T, b *Fixture, _ Maker) {
	s := b.Spec(t, `trap '' TERM; while :; do sleep 0.02; done # dummy: sleep=600s ignoreterm`)
	s.Timeout = 300 * time.Millisecond
	seen := b.Do(t, s)
	b.want(t, seen, executor.TimedOut)
	if seen.Exit.Signal != 9 {
		t.Errorf("ended by signal %d", seen.Exit.Signal)
	}
}

const waitsForTERM = `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done # dummy: print=up sleep=600s`

func stopped(t *testing.T, b *Fixture, _ Maker) {
	h := b.Submit(t, b.Spec(t, waitsForTERM))
	b.AwaitLog(t, h, "up\n")
	b.stop(t, h, 30*time.Second)
	b.want(t, b.End(t, h), executor.Cancelled)
}

func ignoresTERM(t *testing.T, b *Fixture, _ Maker) {
	h := b.Submit(t, b.Spec(t, `trap '' TERM; echo up; while :; do sleep 0.02; done # dummy: print=up sleep=600s ignoreterm`))
	b.AwaitLog(t, h, "up\n")
	b.stop(t, h, 100*time.Millisecond)
	seen := b.End(t, h)
	b.want(t, seen, executor.Cancelled)
	if seen.Exit.Signal != 9 {
		t.Errorf("ended by signal %d", seen.Exit.Signal)
	}
}

// escapingProcess is a process that forks away twice, ignores TERM and shows that it
// lives.
const escapingProcess = `( setsid bash -c 'trap "" TERM HUP; while :; do echo x >> beat; sleep 0.01; done' & )
while [ ! -e beat ]; do sleep 0.01; done
`

func processTree(t *testing.T, b *Fixture, _ Maker) {
	left := b.Spec(t, escapingProcess)
	b.want(t, b.Do(t, left), executor.ExitedZero)
	checkNoProcessIsLeft(t, b.WorkOf(t, left))

	s := b.Spec(t, escapingProcess+"echo up; sleep 600 # dummy: print=up sleep=600s")
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "up\n")
	b.stop(t, h, 50*time.Millisecond)
	b.want(t, b.End(t, h), executor.Cancelled)
	checkNoProcessIsLeft(t, b.WorkOf(t, s))
}

// checkNoProcessIsLeft fails when the file still grows, by many times the beat.
func checkNoProcessIsLeft(t *testing.T, work string) {
	t.Helper()
	size := func() int64 {
		info, err := os.Stat(filepath.Join(work, "beat"))
		if err != nil {
			return 0 // the dummy has no processes
		}
		return info.Size()
	}
	before := size()
	if !waittest.While(100*time.Millisecond, func() bool { return size() == before }) {
		t.Error("a process outlives its task")
	}
}

func hundredQuickTasks(t *testing.T, b *Fixture, _ Maker) {
	tasks := 100 // in a short test fewer
	if testing.Short() {
		tasks = 10
	}
	var handles []executor.Handle
	for range tasks {
		handles = append(handles, b.Submit(t, b.Spec(t, "true")))
	}
	for _, h := range handles {
		b.want(t, b.End(t, h), executor.ExitedZero)
		if err := b.Release(t.Context(), executor.NoRun, h); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := b.Snapshot(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("%d attempts are left, %v", len(left), err)
	}
}

func submittedTwice(t *testing.T, b *Fixture, _ Maker) {
	s := b.Spec(t, "echo ran; sleep 0.2 # dummy: print=ran sleep=200ms")
	first := b.Submit(t, s)
	if second := b.Submit(t, s); second != first {
		t.Errorf("a second handle: %v and %v", first, second)
	}
	b.want(t, b.End(t, first), executor.ExitedZero)
	if third := b.Submit(t, s); third != first {
		t.Errorf("a third handle: %v and %v", first, third)
	}
	b.want(t, b.End(t, first), executor.ExitedZero)
	if log := b.Log(t, first, 0); log != "ran\n" {
		t.Errorf("the log of one run is %q", log)
	}
}

func fenced(t *testing.T, b *Fixture, _ Maker) {
	s := b.Spec(t, "true")
	b.Do(t, s)
	s.Fence = "another"
	if _, err := b.Driver.Submit(t.Context(), executor.NoRun, s); !fault.Is(err, fault.KindConflict) {
		t.Errorf("another fence: %v", err)
	}
}

func adopted(t *testing.T, b *Fixture, make Maker) {
	s := b.Spec(t, "echo up; while [ ! -e go ]; do sleep 0.01; done; echo done > out; exit 4 # dummy: print=up await=go output:out=done exit=4")
	s.Outputs = []executor.OutputPattern{{Port: "out", Path: "out"}}
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "up\n")
	b.Leave()
	b.Subject = make(t, b.Folder)
	seen, ok := b.Find(t, h)
	if !ok || seen.Phase != executor.Running || seen.Handle != h || seen.Fence != s.Fence {
		t.Errorf("the next driver sees %+v", seen)
	}
	b.Submit(t, s) // as an engine does that is not sure
	b.LetGo(t, s)
	seen = b.End(t, h)
	b.want(t, seen, executor.ExitedNonZero)
	if seen.Exit.Code != 4 || len(seen.Exit.Outputs) != 1 {
		t.Errorf("the record is %+v", seen.Exit)
	}
	if log := b.Log(t, h, 0); log != "up\n" {
		t.Errorf("the log of one run is %q", log)
	}
}

// submittedByAnother checks that a driver which has just made a list, and is asked for a
// fresh one, lists what another driver on the folder has submitted meanwhile. Where one
// driver at a time has the folder, the other one leaves first.
func submittedByAnother(t *testing.T, b *Fixture, make Maker) {
	other := b
	if !b.Alone {
		other = &Fixture{Subject: make(t, b.Folder), Folder: b.Folder}
		if _, err := other.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	h := b.Submit(t, b.Spec(t, waitsForTERM))
	if b.Alone {
		b.Leave()
		b.Subject = make(t, b.Folder)
	}
	if err := other.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if seen, ok := other.Find(t, h); !ok || seen.Handle != h || seen.Phase.Final() {
		t.Errorf("the other driver sees %+v", seen)
	}
	b.stop(t, h, 0)
	b.want(t, b.End(t, h), executor.Cancelled)
}

// LetGo lets a task go on that waits for the file go.
func (b *Fixture) LetGo(t *testing.T, s executor.Spec) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.WorkOf(t, s), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func remembered(t *testing.T, b *Fixture, make Maker) {
	s := b.Spec(t, "exit 5 # dummy: exit=5")
	h := b.Submit(t, s)
	before := b.End(t, h)
	b.Leave()
	b.Subject = make(t, b.Folder)
	after := b.End(t, h)
	if diff := cmp.Diff(before.Exit, after.Exit); diff != "" || after.Reason != executor.ExitedNonZero {
		t.Errorf("another record, %s: %s", after.Reason, diff)
	}
}

func lost(t *testing.T, b *Fixture, make Maker) {
	s := b.Spec(t, "echo up; sleep 600 # dummy: print=up sleep=100ms lose")
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "up\n")
	b.Lose(t, s)
	seen := b.End(t, h)
	b.want(t, seen, executor.Lost)
	if seen.Phase != executor.Gone {
		t.Errorf("the phase is %s", seen.Phase)
	}
	b.Leave()
	b.Subject = make(t, b.Folder)
	b.want(t, b.End(t, h), executor.Lost)
	if log := b.Log(t, executor.Handle{Key: h.Key, Fence: h.Fence}, 0); log != "up\n" {
		t.Errorf("for a server that has not submitted it, the log is %q", log)
	}
}

func logs(t *testing.T, b *Fixture, _ Maker) {
	s := b.Spec(t, `echo one; while [ ! -e go ]; do sleep 0.01; done; echo two >&2 # dummy: print=one await=go print=two`)
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "one\n")
	if seen, _ := b.Find(t, h); seen.Phase != executor.Running {
		t.Errorf("%s while it is read", seen.Phase)
	}
	b.LetGo(t, s)
	b.want(t, b.End(t, h), executor.ExitedZero)
	if rest := b.Log(t, h, 4); rest != "two\n" {
		t.Errorf("from offset 4 on: %q", rest)
	}
	if rest := b.Log(t, h, 8); rest != "" {
		t.Errorf("from the end on: %q", rest)
	}
}

func longLine(t *testing.T, b *Fixture, _ Maker) {
	h := b.Submit(t, b.Spec(t, `head -c 1000000 /dev/zero | tr '\0' x; echo; echo after # dummy: longline=1000000 print=after`))
	seen := b.End(t, h)
	b.want(t, seen, executor.ExitedZero)
	log := b.Log(t, h, 0)
	if want := strings.Repeat("x", 32<<10) + " [line cut at 32 KB]\nafter\n"; log != want {
		t.Errorf("%d bytes, from %.20q to %q", len(log), log, log[max(0, len(log)-40):])
	}
	if seen.Exit.LogBytes != int64(len(log)) {
		t.Errorf("the record counts %d bytes of %d", seen.Exit.LogBytes, len(log))
	}
}

func outputs(t *testing.T, b *Fixture, _ Maker) {
	s := b.Spec(t, `printf hello > a.txt; mkdir p; printf 1 > p/1.png; printf 2 > p/2.png; printf no > p/3.txt
# dummy: output:a.txt=hello output:p/1.png=1 output:p/2.png=2 output:p/3.txt=no`)
	s.Outputs = []executor.OutputPattern{
		{Port: "text", Path: "a.txt"},
		{Port: "plots", Path: "p/*.png", Many: true},
		{Port: "maybe", Path: "nothing.txt", Optional: true},
		{Port: "many", Path: "q/*", Many: true, Optional: true},
	}
	seen := b.Do(t, s)
	b.want(t, seen, executor.ExitedZero)
	want := []executor.Output{
		{Port: "text", Path: "a.txt", Size: 5, SHA256: sum("hello")},
		{Port: "plots", Path: "p/1.png", Size: 1, SHA256: sum("1")},
		{Port: "plots", Path: "p/2.png", Size: 1, SHA256: sum("2")},
	}
	if diff := cmp.Diff(want, seen.Exit.Outputs); diff != "" {
		t.Error(diff)
	}
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

func missing(t *testing.T, b *Fixture, _ Maker) {
	s := b.Spec(t, "printf x > there # dummy: output:there=x")
	s.Outputs = []executor.OutputPattern{
		{Port: "there", Path: "there"}, {Port: "one", Path: "never.txt"}, {Port: "several", Path: "*.png", Many: true},
	}
	seen := b.Do(t, s)
	b.want(t, seen, executor.OutputMissing)
	if diff := cmp.Diff([]string{"one", "several"}, seen.Exit.Missing); diff != "" || len(seen.Exit.Outputs) != 1 {
		t.Errorf("%+v: %s", seen.Exit.Outputs, diff)
	}
}

func environment(t *testing.T, b *Fixture, _ Maker) {
	s := b.Spec(t, `echo "$GREETING" # dummy: printenv=GREETING`)
	s.Env = map[string]string{"GREETING": "it's \"$HOME\"\tand\nmore"}
	h := b.Submit(t, s)
	b.want(t, b.End(t, h), executor.ExitedZero)
	if log := b.Log(t, h, 0); log != s.Env["GREETING"]+"\n" {
		t.Errorf("the command saw %q", log)
	}
}

func released(t *testing.T, b *Fixture, _ Maker) {
	s := b.Spec(t, waitsForTERM)
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "up\n")
	if err := b.Release(t.Context(), executor.NoRun, h); !fault.Is(err, fault.KindConflict) {
		t.Errorf("released while it runs: %v", err)
	}
	b.stop(t, h, 0)
	b.End(t, h)
	for range 2 {
		if err := b.Release(t.Context(), executor.NoRun, h); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	if _, ok := b.Find(t, h); ok {
		t.Error("a released attempt is listed")
	}
	if _, err := b.Logs(t.Context(), h, 0); !fault.Is(err, fault.KindNotFound) {
		t.Errorf("the log of nothing: %v", err)
	}
}

func stopNothing(t *testing.T, b *Fixture, _ Maker) {
	b.stop(t, executor.Handle{Key: executor.Key{Run: "run_0", Node: "n", Attempt: 1}}, time.Second)
}

// stopUnderAnotherFence checks that whoever means an earlier attempt with the same key
// cannot end or release this one.
func stopUnderAnotherFence(t *testing.T, b *Fixture, _ Maker) {
	s := b.Spec(t, waitsForTERM)
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "up\n")
	stale := h
	stale.Fence = "0-earlier"
	b.stop(t, stale, 0)
	if err := b.Release(t.Context(), executor.NoRun, stale); err != nil {
		t.Error(err)
	}
	if seen, ok := b.Find(t, h); !ok || seen.Reason != executor.Executing {
		t.Errorf("after a stop that was meant for another: %+v", seen)
	}
	b.stop(t, h, 0)
	b.want(t, b.End(t, h), executor.Cancelled)
}

func stopEnded(t *testing.T, b *Fixture, _ Maker) {
	s := b.Spec(t, "true")
	h := b.Submit(t, s)
	b.End(t, h)
	b.stop(t, h, time.Second)
	b.want(t, b.End(t, h), executor.ExitedZero)
	if _, err := os.Stat(filepath.Join(s.Dir, "stop")); !os.IsNotExist(err) && err != fs.ErrNotExist {
		t.Error("a task that has ended was stopped")
	}
}

func (b *Fixture) stop(t *testing.T, h executor.Handle, grace time.Duration) {
	t.Helper()
	if err := b.Stop(t.Context(), executor.NoRun, h, grace); err != nil {
		t.Fatal(err)
	}
}

// AwaitLog waits until a log says exactly this.
func (b *Fixture) AwaitLog(t *testing.T, h executor.Handle, want string) {
	t.Helper()
	Eventually(t, func() bool { return b.Log(t, h, 0) == want }, func() string {
		seen, _ := b.Find(t, h)
		return "the log is " + b.Log(t, h, 0) + " and the task " + string(seen.Reason) + " " + seen.Detail
	})
}
