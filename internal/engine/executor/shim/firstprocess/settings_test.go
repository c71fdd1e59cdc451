package firstprocess

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// changes names what a process of this program is to change about itself; it says on its
// output whether that is noticed.
const changes = "MILLRACE_TEST_CHANGES"

func TestMain(m *testing.M) {
	if name := os.Getenv(changes); name != "" {
		runtime.LockOSThread()
		os.Exit(changeAndLook(name))
	}
	os.Exit(m.Run())
}

// The statuses of a process that has changed something.
const (
	noticed   = 0
	unnoticed = 1
	refused   = 2
)

// alter are what a command can do to the first process of its sandbox, which the next
// command would inherit or find.
var alter = map[string]func() error{
	"nothing":    func() error { return nil },
	"a limit":    func() error { return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 20, Max: 4096}) },
	"the cores":  func() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}) },
	"a priority": func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, 5+niceness()) },
	"the timers": func() error { return unix.Prctl(unix.PR_SET_TIMERSLACK, 12345, 0, 0, 0) },
	"scheduling": func() error {
		return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: int32(niceness())}, 0)
	},
	"the disk's": func() error {
		const ofProcess, idle = 1, 3 << 13
		_, _, err := unix.RawSyscall(unix.SYS_IOPRIO_SET, ofProcess, 0, idle)
		return errno(err)
	},
	"a thread's priority": func() error {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // it stays, with its own priority
			done <- unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 5+niceness())
			select {}
		}()
		return <-done
	},
	"shared memory": func() error {
		_, _, err := unix.RawSyscall(unix.SYS_SHMGET, 0, 4096, 0o600)
		return errno(err)
	},
	"semaphores": func() error {
		_, _, err := unix.RawSyscall(unix.SYS_SEMGET, 0, 1, 0o600)
		return errno(err)
	},
	"a queue": func() error {
		_, _, err := unix.RawSyscall(unix.SYS_MSGGET, 0, 0o600, 0)
		return errno(err)
	},
}

func errno(err syscall.Errno) error {
	if err != 0 {
		return err
	}
	return nil
}

func niceness() int {
	n, _ := unix.Getpriority(unix.PRIO_PROCESS, 0)
	return 20 - n // as the kernel counts it
}

// changeAndLook looks as a first process does between two commands.
func changeAndLook(name string) int {
	before := inheritedSettings()
	if hasSharedMemory() || threadsDiffer() || !slices.Equal(before, inheritedSettings()) {
		return refused
	}
	if err := alter[name](); err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		return refused
	}
	if hasSharedMemory() || threadsDiffer() || !slices.Equal(before, inheritedSettings()) {
		return noticed
	}
	return unnoticed
}

// The next command of a sandbox must not be able to tell that there was one before it.
func TestWhatACommandChangesIsNoticed(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root has queues of its own without a user's namespace")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name := range alter {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.Command(self)
			c.Env = []string{changes + "=" + name}
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWIPC}
			var said strings.Builder
			c.Stderr = &said
			_ = c.Run()
			want := noticed
			if name == "nothing" {
				want = unnoticed
			}
			if got := c.ProcessState.ExitCode(); got != want {
				t.Errorf("status %d, want %d: %s", got, want, said.String())
			}
		})
	}
}

func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	var sum syscall.Rusage
	for _, one := range []syscall.Rusage{
		{Utime: syscall.NsecToTimeval(7e8), Stime: syscall.NsecToTimeval(6e8), Maxrss: 10},
		{Utime: syscall.NsecToTimeval(9e8), Maxrss: 30},
		{Stime: syscall.NsecToTimeval(1e3), Maxrss: 20},
	} {
		addUsage(&sum, one)
	}
	if cpu := sum.Utime.Nano() + sum.Stime.Nano(); cpu != 22e8+1e3 || sum.Maxrss != 30 {
		t.Errorf("%d nanoseconds, %d", cpu, sum.Maxrss)
	}
}
