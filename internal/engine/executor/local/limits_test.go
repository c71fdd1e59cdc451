package local_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/local"
)

// hungry needs some 300 MB and keeps them.
const hungry = `x=$(head -c 300000000 /dev/zero | tr '\0' x); echo got it; sleep 600`

func ungrouped(t testing.TB, folder string) drivertest.Subject {
	t.Helper()
	return subject(t, local.Config{Folder: folder, Sandbox: local.None, VCPU: 200, NoGroup: true})
}

var makers = map[string]drivertest.Maker{"in a sandbox": boxed, "without a sandbox": bare, "without groups": ungrouped}

func TestATaskThatNeedsTooMuchMemoryIsToldApart(t *testing.T) {
	t.Parallel()
	for name, maker := range makers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := drivertest.NewFixture(t, maker)
			s := b.Spec(t, hungry)
			s.MemoryBytes = 64 << 20
			seen := b.Do(t, s)
			if seen.Reason != executor.OutOfMemory || seen.Exit.Code == 0 {
				t.Fatalf("%s: %+v", seen.Reason, seen.Exit)
			}
			if slices.Contains(seen.Exit.NotEnforced, "memory") {
				t.Errorf("not enforced: %v", seen.Exit.NotEnforced)
			}
			// The group served a task that ran out of memory; the next one is
			// not to blame for that.
			if seen := b.Do(t, b.Spec(t, "kill -9 $$")); seen.Reason != executor.Signaled {
				t.Errorf("then: %s", seen.Reason)
			}
		})
	}
}

// Files in memory are in the size of no process, so the meter has to look for
// them.
func TestFilesInMemoryCountAsMemory(t *testing.T) {
	t.Parallel()
	for name, maker := range makers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := drivertest.NewFixture(t, maker)
			s := b.Spec(t, fmt.Sprintf(`my ($name, @files) = ("m");
				for (1..300) { open(my $f, ">&=", syscall(%d, $name, 0)); syswrite($f, "x" x 1000000); push @files, $f }
				sleep 600`, unix.SYS_MEMFD_CREATE))
			s.Interpreter, s.MemoryBytes = "perl", 64<<20
			if seen := b.Do(t, s); seen.Reason != executor.OutOfMemory {
				t.Errorf("%s: %+v", seen.Reason, seen.Exit)
			}
		})
	}
}

func TestATaskCannotFillTheDisk(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"with one file":              "head -c 300000000 /dev/zero > big",
		"with many files":            "i=0; while :; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); done",
		"with temporary files":       "i=0; while :; do head -c 1000000 /dev/zero > $TMPDIR/f$i; i=$((i+1)); done",
		"with files of another name": "i=0; while :; do head -c 1000000 /dev/zero > f$i; ln f$i g$i; i=$((i+1)); done",
		"with files without a name":  "i=10; while [ $i -lt 200 ]; do eval \"exec $i>gone\"; rm gone; head -c 1000000 /dev/zero >&$i; i=$((i+1)); done; sleep 600",
		"beyond the longest path":    "name=$(printf %0200d 0); i=0; while [ $i -lt 40 ]; do mkdir $name; cd $name; i=$((i+1)); done; i=0; while :; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); done",
		"in a closed folder":         "mkdir closed; cd closed; chmod 000 .; i=0; while :; do head -c 1000000 /dev/zero > f$i || sleep 600; i=$((i+1)); done",
		"with empty files":           "i=0; while :; do : > f$i; i=$((i+1)); done",
		"with folders in folders":    "while :; do mkdir d; cd d; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name != "with one file" {
				t.Skip("fills a disk for each")
			}
			if name == "in a closed folder" && os.Getuid() != 0 {
				t.Skip("only root writes into it")
			}
			maker := boxed
			if name == "in a closed folder" { // where the task is root, too
				maker = bare
			}
			b := drivertest.NewFixture(t, maker)
			s := b.Spec(t, command)
			s.DiskBytes = 20 << 20
			h := b.Submit(t, s)
			if seen := b.End(t, h); seen.Reason != executor.OutOfDisk {
				t.Errorf("%s: %+v, %s", seen.Reason, seen.Exit, b.Log(t, h, 0))
			}
			if err := b.Release(t.Context(), executor.NoRun, h); err != nil {
				t.Errorf("its folder cannot be removed: %v", err)
			}
		})
	}
}

// Programs that reserve space get it all the same: their library writes.
func TestReservingSpaceFallsBackToWriting(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	if got := probe(t, b, b.Spec(t, "fallocate --posix --length 1MiB f && du -k f | cut -f1")); got != "1024\n" {
		t.Errorf("%q", got)
	}
}

// The kernel holds every process of a task to files no larger than its disk, and
// to twice its memory where no group does that.
func TestTaskInheritsLimitsOfFilesAndMemory(t *testing.T) {
	t.Parallel()
	if os.Getenv(lacksRight) != "" && mayRaiseLimits(t) {
		t.Fatal("it may raise limits")
	}
	const mb = 1 << 20
	for name, tt := range map[string]struct {
		config local.Config
		data   string
	}{
		"in a sandbox with groups":    {local.Config{}, "unlimited"},
		"in a sandbox without groups": {local.Config{NoGroup: true}, strconv.Itoa(264 * mb)},
		"without a sandbox":           {local.Config{NoGroup: true, Sandbox: local.None}, strconv.Itoa(264 * mb)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := drivertest.NewFixture(t, func(t testing.TB, folder string) drivertest.Subject {
				c := tt.config
				c.Folder, c.VCPU = folder, 200
				s := subject(t, c)
				needSandbox(t, s)
				return s
			})
			if caps, err := b.Capabilities(t.Context()); err != nil || !tt.config.NoGroup && slices.Contains(caps.NotEnforced, "memory") {
				t.Skip("no group holds memory here")
			}
			s := b.Spec(t, `awk '/Max (file|data) size/ { print $4, $5 }' /proc/self/limits`)
			s.DiskBytes, s.MemoryBytes = 10*mb, 100*mb
			want := fmt.Sprintf("%[1]d %[1]d\n%[2]s %[2]s\n", 10*mb, tt.data)
			if got := probe(t, b, s); got != want {
				t.Errorf("its limits are %q, want %q", got, want)
			}
		})
	}
}

// lacksRight is in the environment of this program where it must not have the right to
// raise limits, which root lacks in a container.
const lacksRight = "MILLRACE_TEST_LACKS_SYS_RESOURCE"

func mayRaiseLimits(t *testing.T) bool {
	t.Helper()
	var own [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &own[0]); err != nil {
		t.Fatal(err)
	}
	return own[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// Root that may not change the limits of other users' processes holds tasks to theirs.
func TestTaskInheritsLimitsFromRootWithoutSysResource(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give up the right before it starts a program")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run=^TestTaskInheritsLimitsOfFilesAndMemory$", "-test.v")
	c.Env = append(os.Environ(), lacksRight+"=1")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // until it ends with the goroutine, for it cannot get the right back
		err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_RESOURCE, 0, 0, 0)
		started <- errors.Join(err, c.Start())
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil || !strings.Contains(out.String(), "--- PASS: TestTaskInheritsLimitsOfFilesAndMemory/without_a_sandbox") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// A file with holes takes up nothing until it is kept.
func TestOutputsCountByTheirLength(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	s := b.Spec(t, "for i in 1 2 3; do truncate -s 10M f$i; done")
	s.Outputs = []executor.OutputPattern{{Port: "f", Path: "f*", Many: true}}
	s.DiskBytes = 20 << 20
	if seen := b.Do(t, s); seen.Reason != executor.OutOfDisk {
		t.Errorf("%s: %+v", seen.Reason, seen.Exit)
	}
}

func TestHashingEndsWithItsTask(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	long := b.Spec(t, "truncate -s 1T f; echo up")
	long.Outputs = []executor.OutputPattern{{Port: "f", Path: "f"}}
	late := long
	late.Key.Node, late.Fence = "late", "late"
	late.Dir = strings.Replace(long.Dir, ".node.", ".late.", 1)
	late.Timeout = 2 * time.Second
	if err := os.MkdirAll(late.Work(), 0o755); err != nil {
		t.Fatal(err)
	}
	stopped, timed := b.Submit(t, long), b.Submit(t, late)
	drivertest.Eventually(t, func() bool { return b.Log(t, stopped, 0) == "up\n" }, func() string { return "no log" })
	if err := b.Stop(t.Context(), executor.NoRun, stopped, 0); err != nil {
		t.Fatal(err)
	}
	if seen := b.End(t, stopped); seen.Reason != executor.Cancelled {
		t.Errorf("stopped: %s", seen.Reason)
	}
	if seen := b.End(t, timed); seen.Reason != executor.TimedOut {
		t.Errorf("out of time: %s", seen.Reason)
	}
}

// A command that writes without end is read on, and ends.
func TestFloodOfTextDoesNotHoldUpItsTask(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	s := b.Spec(t, "head -c 30000000 /dev/zero | tr '\\0' '\\n'; echo the end")
	s.LogBytes = 1 << 20
	h := b.Submit(t, s)
	if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
		t.Errorf("%s: %+v", seen.Reason, seen.Exit)
	}
	if end := b.Log(t, h, 30_000_000); end != "the end\n" {
		t.Errorf("it ends with %q", end)
	}
}

func TestATaskEndsWhenItsServerStaysAway(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a lease to end")
	}
	t.Parallel()
	for name, maker := range makers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := drivertest.NewFixture(t, maker)
			left, other := b.Spec(t, "trap '' TERM; while :; do sleep 0.02; done"), b.Spec(t, "sleep 600")
			left.AbandonAfter, other.AbandonAfter = 2*time.Second, time.Hour
			began := time.Now()
			gone, here := b.Submit(t, left), b.Submit(t, other)
			seen := b.End(t, gone)
			if seen.Reason != executor.Abandoned {
				t.Fatalf("ended as %s", seen.Reason)
			}
			if took := seen.Exit.End.Sub(began); took < time.Second {
				t.Errorf("it took %s", took)
			}
			if seen, _ := b.Find(t, here); seen.Phase != executor.Running {
				t.Errorf("the one that may wait longer is %s, %s", seen.Phase, seen.Reason)
			}
		})
	}
}

func TestTasksWaitUntilTheMachineHasRoom(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, func(t testing.TB, folder string) drivertest.Subject {
		return subject(t, local.Config{Folder: folder, Sandbox: local.None, VCPU: 2, MemoryBytes: 1 << 30})
	})
	submit := func(vcpu float64, memory int64) executor.Handle {
		s := b.Spec(t, "sleep 600")
		s.VCPU, s.MemoryBytes = vcpu, memory
		return b.Submit(t, s)
	}
	is := func(h executor.Handle, phase executor.Phase, reason executor.Reason) {
		t.Helper()
		b.Await(t, h, func(s executor.Status) bool { return s.Phase == phase && s.Reason == reason })
	}
	end := func(h executor.Handle) {
		t.Helper()
		if err := b.Stop(t.Context(), executor.NoRun, h, 0); err != nil {
			t.Fatal(err)
		}
		b.End(t, h)
	}
	started := func(h executor.Handle) {
		t.Helper()
		b.Await(t, h, func(s executor.Status) bool { return s.Phase == executor.Running })
	}
	const some = 128 << 20
	first, second := submit(1, some), submit(1, some)
	third, huge, last := submit(1, some), submit(99, 1<<40), submit(1, some)
	is(first, executor.Running, executor.Executing)
	is(second, executor.Running, executor.Executing)
	is(third, executor.Pending, executor.Queued)
	end(first)
	started(third)
	end(second)
	is(huge, executor.Pending, executor.Queued)
	is(last, executor.Pending, executor.Queued) // there is room, but it is not its turn
	end(third)
	started(huge)
	is(last, executor.Pending, executor.Queued) // the huge one runs alone
	end(last)
	is(last, executor.Ended, executor.Cancelled)
	end(huge)
}

func TestAGPUThatIsNotThereIsNoCapacity(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, bare)
	s := b.Spec(t, "true")
	s.GPU = 1000
	if _, err := b.Driver.Submit(t.Context(), executor.NoRun, s); !fault.Is(err, fault.KindConflict) {
		t.Errorf("submitted: %v", err)
	}
}

func TestWhatARunningTaskUsesIsSampled(t *testing.T) {
	t.Parallel()
	for name, maker := range makers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := drivertest.NewFixture(t, maker)
			h := b.Submit(t, b.Spec(t, "while :; do :; done"))
			var u executor.Usage
			drivertest.Eventually(t, func() bool {
				u, _ = b.Driver.(executor.Meter).Usage(t.Context(), h)
				return u.CPU > 0 && u.Memory > 0
			}, func() string {
				seen, _ := b.Find(t, h)
				return fmt.Sprintf("%+v of %+v", u, seen)
			})
			if u.Memory > 200<<20 {
				t.Errorf("a loop uses %d bytes", u.Memory)
			}
		})
	}
}

func TestTheLogKnowsItsStreams(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, bare)
	h := b.Submit(t, b.Spec(t, "echo out; sleep 0.3; echo err >&2"))
	b.End(t, h)
	marks, err := b.Driver.(executor.Meter).Marks(t.Context(), h, 0)
	if err != nil || len(marks) != 2 || marks[0].Stderr || !marks[1].Stderr || marks[1].Offset != 4 || marks[0].At.After(marks[1].At) {
		t.Errorf("%v, %+v", err, marks)
	}
	later, err := b.Driver.(executor.Meter).Marks(t.Context(), h, 5)
	if err != nil || len(later) != 1 || later[0] != marks[1] {
		t.Errorf("%v, %+v", err, later)
	}
}

func TestAMachineThatGoesDownTakesItsTasksBack(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	s := b.Spec(t, "sleep 600")
	h := b.Submit(t, s)
	drivertest.Eventually(t, func() bool { // a shim that measures listens as well
		_, err := b.Driver.(executor.Meter).Usage(t.Context(), h)
		return err == nil
	}, func() string { return "no usage" })
	signalShim(t, s, syscall.SIGTERM)
	if seen := b.End(t, h); seen.Reason != executor.Preempted {
		t.Errorf("ended as %s", seen.Reason)
	}
}

func TestAnOutputCannotBeSomebodyElsesFile(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, bare)
	s := b.Spec(t, `ln -s /etc/passwd outside; mkfifo pipe; mkdir folder; echo x > real; ln -s real inside`)
	for _, name := range []string{"outside", "pipe", "folder", "inside"} {
		s.Outputs = append(s.Outputs, executor.OutputPattern{Port: name, Path: name})
	}
	seen := b.Do(t, s)
	if got := strings.Join(seen.Exit.Missing, " "); got != "outside pipe folder" || len(seen.Exit.Outputs) != 1 {
		t.Errorf("missing %s, found %+v", got, seen.Exit.Outputs)
	}
}

func TestAFolderThatATaskHasClosedIsReleased(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	s := b.Spec(t, "mkdir -p a/b; touch a/b/c; chmod 0 a/b a")
	h := b.Submit(t, s)
	b.End(t, h)
	if err := b.Release(t.Context(), executor.NoRun, h); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
}

// A stop may come just while an attempt gets its place.
func TestAStopIsNeverLost(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, func(t testing.TB, folder string) drivertest.Subject {
		return subject(t, local.Config{Folder: folder, Sandbox: local.None, VCPU: 1})
	})
	tries := 30
	if testing.Short() {
		tries = 5
	}
	for i := range tries {
		first, second := b.Submit(t, b.Spec(t, "true")), b.Submit(t, b.Spec(t, "sleep 600"))
		for range i * 1000 { // a moment longer each time
			if seen, _ := b.Find(t, first); seen.Phase.Final() {
				break
			}
		}
		if err := b.Stop(t.Context(), executor.NoRun, second, 0); err != nil {
			t.Fatal(err)
		}
		if seen := b.End(t, second); seen.Reason != executor.Cancelled {
			t.Fatalf("ended as %s", seen.Reason)
		}
	}
}

// TestQueuedAttemptWithoutAPermitDoesNotStart checks that the permit counts when the
// attempt would start, not when it is submitted.
func TestQueuedAttemptWithoutAPermitDoesNotStart(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, func(t testing.TB, folder string) drivertest.Subject {
		return subject(t, local.Config{Folder: folder, Sandbox: local.None, VCPU: 1})
	})
	first := b.Submit(t, b.Spec(t, "sleep 600"))
	var lease drivertest.Lease
	queued, err := b.Driver.Submit(t.Context(), &lease, b.Spec(t, "echo started"))
	if err != nil {
		t.Fatal(err)
	}
	lease.RunOut()
	if err := b.Stop(t.Context(), executor.NoRun, first, 0); err != nil {
		t.Fatal(err)
	}
	if seen := b.End(t, queued); seen.Reason != executor.NeverStarted {
		t.Errorf("ended as %s", seen.Reason)
	}
	if seen := b.Do(t, b.Spec(t, "true")); seen.Reason != executor.ExitedZero {
		t.Errorf("the next one ended as %s", seen.Reason)
	}
}
