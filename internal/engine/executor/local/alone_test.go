package local_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// runBench is a driver whose tasks belong to one run.
type runBench struct {
	*drivertest.Fixture
	run      ids.Run
	attempts int
}

func newRunBench(t *testing.T) *runBench {
	t.Helper()
	return &runBench{Fixture: drivertest.NewFixture(t, boxed), run: ids.NewRun()}
}

// next is another attempt of the run.
func (b *runBench) next(t *testing.T, command string) executor.Spec {
	t.Helper()
	b.attempts++
	s := b.Spec(t, command)
	s.Key = executor.Key{Run: b.run, Node: "n", Attempt: b.attempts}
	to := filepath.Join(b.Folder, s.Key.Folder())
	if err := os.Rename(s.Dir, to); err != nil {
		t.Fatal(err)
	}
	s.Dir = to
	return s
}

func (b *runBench) quick(t *testing.T) {
	t.Helper()
	if got := probe(t, b.Fixture, b.next(t, "echo done")); got != "done\n" {
		t.Errorf("a task says %q", got)
	}
}

// whole are the sandboxes that have their first process, and that process.
func (b *runBench) whole(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(b.Folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		h, lives, err := job.Folder(filepath.Join(b.Folder, e.Name())).Holder()
		if err != nil || !lives {
			continue
		}
		for _, pid := range sandboxes(strconv.Itoa(h.PID)) {
			if first := sandboxes(pid); len(first) == 1 {
				all[pid] = first[0]
			}
		}
	}
	return all
}

// sandboxes are the processes of bubblewrap that a shim has started.
func sandboxes(shim string) (pids []string) {
	lists, _ := filepath.Glob("/proc/" + shim + "/task/*/children")
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		pids = append(pids, strings.Fields(string(text))...)
	}
	return pids
}

func awaitGone(t *testing.T, pid string) {
	t.Helper()
	drivertest.Eventually(t, func() bool {
		_, err := os.Stat("/proc/" + pid)
		return os.IsNotExist(err)
	}, func() string { return "process " + pid + " is still there" })
}

// lookForTraces shows whatever a task could find of another one.
const lookForTraces = "ls -A /work /tmp /run /dev/shm /dev/pts; ls -A /inputs /environment 2> /dev/null || true; stat -c '%a %u %g' /run /dev/shm; " +
	"set -- /proc/[0-9]*; echo $#; ulimit -a | cksum; nice; cat /proc/sysvipc/* | wc -l; " +
	`grep -E "Sig(Blk|Ign|Cgt|Pnd)|ShdPnd|Cpus_allowed:" /proc/self/status; cat /proc/self/timerslack_ns /proc/self/oom_score_adj; ` +
	"cat /proc/net/unix /proc/net/ip6_flowlabel 2> /dev/null | wc -l; cat /proc/net/dev; " +
	`awk '{ print $5, $6, $9 }' /proc/self/mountinfo | sort; ls -l /proc/self/fd | wc -l; perl -e 'use Fcntl; print fcntl($_, F_GETFL, 0), "\n" for *STDIN, *STDOUT, *STDERR'`

// traces are commands that leave something where the next one could find it, or
// change what it could inherit.
func traces() map[string]string {
	xattr := `perl -e '($p, $n, $v) = ("/dev/shm", "user.left", "x"); syscall(` + strconv.Itoa(unix.SYS_SETXATTR) + `, $p, $n, $v, 1, 0) == 0 or $!{EOPNOTSUPP} && mkdir "/dev/shm/x" or die $!'`
	flags := `perl -e 'open(D, "<", "/run") or die $!; $f = pack("L", 0x40); ioctl(D, ` + strconv.Itoa(unix.FS_IOC_SETFLAGS) + `, $f) or $!{ENOTTY} && mkdir "/run/x" or die $!'`
	access := `perl -e '($p, $n) = ("/run", "system.posix_acl_default"); $v = pack("LSSlSSlSSl", 2, 1, 7, -1, 4, 5, -1, 32, 5, -1);` +
		` syscall(` + strconv.Itoa(unix.SYS_SETXATTR) + `, $p, $n, $v, length($v), 0) == 0 or $!{EOPNOTSUPP} && mkdir "/run/x" or die $!'`
	label := `perl -MSocket -e 'socket(my $s, AF_INET6, SOCK_DGRAM, 0) or do { mkdir "/run/x" or die $!; exit };` +
		` setsockopt($s, 41, 32, pack("x15CNCCSSSx4", 1, 77, 0, 255, 1, 60, 60)) or die $!'`
	queue := `perl -e '$n = "left"; syscall(` + strconv.Itoa(unix.SYS_MQ_OPEN) + `, $n, 0302, 0600, 0) >= 0 or die $!'` // O_EXCL
	// The kernel takes its time to notice that nobody has them any more.
	sockets := `perl -MSocket -e '
		sub give { my ($over, $what) = @_; my $byte = "x"; my $vector = pack("PQ", $byte, 1); my $rights = pack("Qiiix4", 20, SOL_SOCKET, 1, fileno($what));
			my $message = pack("QQPQPQQ", 0, 0, $vector, 1, $rights, 24, 0); syscall(` + strconv.Itoa(unix.SYS_SENDMSG) + `, fileno($over), $message, 0) == 1 or die $! }
		for my $i (1 .. 50) { socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die $!; socket(my $named, AF_UNIX, SOCK_STREAM, 0) or die $!;
			bind($named, pack_sockaddr_un("\0left$i")) or die $!; listen($named, 1) or die $!; give($a, $named); give($a, $a); give($b, $b) }'`
	return map[string]string{
		"nothing":                  "true",
		"files":                    "touch /work/a /run/a /dev/shm/.b; mkdir -p /tmp/b/c /run/millrace; ln -s /usr /tmp/d; touch /tmp/e; chmod 0 /tmp/e; chmod 711 /work",
		"other times":              "touch -d 2001-01-01 /run /dev/shm",
		"other modes":              "chmod 700 /run /dev/shm",
		"an attribute":             xattr,
		"an access list":           access,
		"a flag":                   flags,
		"processes":                "sleep 600 & (setsid sleep 600 &) ; nohup sleep 600 > /dev/null & disown -a",
		"many processes":           "for i in $(seq 40); do (setsid sh -c 'sleep 600 & wait' &); done",
		"stopped processes":        "(setsid sh -c 'kill -STOP $$' &); perl -e 'if (!fork) { $SIG{TERM} = $SIG{HUP} = \"IGNORE\"; exec \"sleep\", 600 }'",
		"children that fork on":    "(setsid sh -c 'while :; do sleep 0.001 & done' > /dev/null 2>&1 &)",
		"its own limits":           "ulimit -n 20; ulimit -s 1000; renice 5 -p $$ > /dev/null; umask 777",
		"settings of streams":      "perl -e 'use Fcntl; fcntl($_, F_SETFL, O_NONBLOCK | O_APPEND) or die $! for *STDIN, *STDOUT, *STDERR'",
		"shared memory":            "perl -e 'shmget(7, 4096, 01600) // die $!'",
		"semaphores":               "perl -e 'semget(7, 1, 01600) // die $!'",
		"a queue of System V":      "perl -e 'msgget(7, 01600) // die $!'",
		"a message queue":          queue,
		"a limit of the first":     "prlimit --pid 1 --nofile=20:20 --core=0:0 --stack=1000000:1000000",
		"priority of the first":    "renice 5 -p 1 > /dev/null",
		"that of the whole user":   "renice 3 -u 1000 > /dev/null",
		"its processors":           "[ $(nproc) -eq 1 ] || taskset -p 1 1 > /dev/null",
		"its scheduling":           "chrt --batch -p 0 1",
		"that of another thread":   "for i in $(ls /proc/1/task); do [ $i = 1 ] || renice 5 -p $i > /dev/null; done",
		"its priority for files":   "ionice -c 3 -p 1",
		"signals for the first":    "for i in $(seq 31) $(seq 35 64); do kill -$i 1 || true; done 2> /dev/null", // the others can end it, and the task
		"a very long command":      "true " + strings.Repeat("#", 100_000) + "\n",
		"something on the network": "echo x > /dev/udp/127.0.0.1/9",
		"a label of IPv6":          label,
		"a socket with a name":     `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "/tmp/s", Listen => 1) or die $!; IO::Socket::UNIX->new(Local => "\0s", Listen => 1) or die $!'`,
		"sockets in each other":    sockets,
	}
}

func TestATaskFindsNothingOfTheOneBefore(t *testing.T) {
	t.Parallel()
	b := newRunBench(t)
	asFirst := probe(t, b.Fixture, b.Spec(t, lookForTraces)) // of another run
	for name, command := range traces() {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second one would trip over its own traces
				probe(t, b.Fixture, b.next(t, command))
			}
			if got := probe(t, b.Fixture, b.next(t, lookForTraces)); got != asFirst {
				t.Errorf("the next one finds\n%s\nbut the first of a run\n%s", got, asFirst)
			}
		})
	}
}

// namespaces are those that no two tasks share.
var namespaces = []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}

// The kernel gives the number of a namespace to another one once nobody holds it.
// So the test holds those of the first task while the second one runs.
func TestEachTaskHasASandboxOfItsOwn(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can hold the namespaces of a task")
	}
	b := newRunBench(t)
	s, h, pids := b.upAndWaiting(t)
	first := map[string]string{}
	for _, name := range namespaces {
		path := filepath.Join("/proc", pids[1], "ns", name)
		held, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		if first[name], err = os.Readlink(path); err != nil {
			t.Fatal(err)
		}
		if host, err := os.Readlink("/proc/self/ns/" + name); err != nil || host == first[name] {
			t.Errorf("the task is in the host's %s, %v", host, err)
		}
	}
	letGo(t, s)
	if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
		t.Fatalf("%s: %+v", seen.Reason, seen.Exit)
	}
	for _, name := range namespaces {
		if got := strings.TrimSpace(probe(t, b.Fixture, b.next(t, "readlink /proc/self/ns/"+name))); got == first[name] {
			t.Errorf("a second task is in %s", got)
		}
	}
}

func TestInputsAreForTheirTaskAlone(t *testing.T) {
	t.Parallel()
	b := newRunBench(t)
	staged := b.next(t, "cat /inputs/x; touch /inputs/y 2> /dev/null || echo closed; echo made > out")
	staged.Staged = true
	staged.Outputs = []executor.OutputPattern{{Port: "out", Path: "out"}}
	place(t, filepath.Join(staged.Places().Inputs, "x"), "mine\n", 0o644)
	if got := probe(t, b.Fixture, staged); got != "mine\nclosed\n" {
		t.Errorf("it finds %q", got)
	}
	look := "ls -A /work; ls -A /inputs 2> /dev/null || true; " + mountsThatAre(`$5 ~ "^/(tmp|work|inputs)" ? $5 : ""`)
	if got := probe(t, b.Fixture, b.next(t, look)); got != "/tmp\n/work\n" {
		t.Errorf("the next one finds %q", got)
	}
}

// Every task finds its own folder, environment and log, whatever the others leave.
func TestManyTasksAtOnceAreApart(t *testing.T) {
	t.Parallel()
	b := newRunBench(t)
	const tasks = 120
	left := []string{"", "", "sleep 600 & ", "touch /dev/shm/$ITEM; ", "perl -e 'shmget(0, 4096, 0600) // die $!'; "}
	handles := make([]executor.Handle, tasks)
	end := func(i int) {
		h, want := handles[i], "item-"+strconv.Itoa(i)+"\n"
		if seen := b.End(t, h); seen.Reason != executor.ExitedZero || b.Log(t, h, 0) != want {
			t.Errorf("task %d: %s, %q", i, seen.Reason, b.Log(t, h, 0))
		}
		if err := b.Release(t.Context(), executor.NoRun, h); err != nil {
			t.Error(err)
		}
	}
	const together = 6
	for i := range tasks + together {
		if i >= together {
			end(i - together)
		}
		if i < tasks {
			s := b.next(t, left[i%len(left)]+"ls /work /tmp /run /dev/shm | grep -vE '^(/|$)' | grep -v \"^$ITEM$\" || true; touch /tmp/x /work/$ITEM; echo $ITEM")
			s.Env = map[string]string{"ITEM": "item-" + strconv.Itoa(i)}
			handles[i] = b.Submit(t, s)
		}
	}
}

// What was killed with all that waits for it is billed as it was last seen.
func TestATaskThatIsKilledPaysForItsTime(t *testing.T) {
	t.Parallel()
	b := newRunBench(t)
	h := b.Submit(t, b.next(t, `trap '' TERM; perl -e '$SIG{TERM} = "IGNORE"; while ((times)[0] < 0.6) { $i++ for 1..100_000 } sleep 600'`))
	drivertest.Eventually(t, func() bool {
		used, err := b.Driver.(executor.Meter).Usage(t.Context(), h)
		return err == nil && used.CPU >= time.Second/2
	}, func() string { return "nothing is known about what it uses" })
	if err := b.Stop(t.Context(), executor.NoRun, h, 0); err != nil {
		t.Fatal(err)
	}
	if e := b.End(t, h).Exit; e.CPUTime < time.Second/2 {
		t.Errorf("it has used %s", e.CPUTime)
	}
}

// How a task ended is said on a socket that it must not have.
func TestATaskCannotSpeakForTheFirstProcess(t *testing.T) {
	t.Parallel()
	b := newRunBench(t)
	for name, command := range map[string]string{
		"it inherits nothing":      `for fd in /proc/self/fd/*; do readlink $fd; done | grep -cvE '^(pipe:|/dev/null|/proc/)' || true`,
		"it cannot write":          `perl -e 'for (3 .. 1000) { open(my $f, ">&=", $_) and syswrite($f, "e" x 17) and print "written to $_\n" } print "0\n"'`,
		"it cannot open another's": `for fd in 3 4 5 6 7; do for how in '<' '>'; do eval "exec 9$how /proc/1/fd/$fd" && echo "open $fd"; done; done 2> /dev/null; echo 0`,
		"it cannot take another's": call("SYS_pidfd_getfd", unix.SYS_PIDFD_GETFD, "1, 7, 0"),
	} {
		t.Run(name, func(t *testing.T) {
			s, want := b.next(t, command), "0\n"
			if strings.HasPrefix(command, "#") {
				s.Interpreter, want = "perl", "EPERM"
			}
			if got := probe(t, b.Fixture, s); got != want {
				t.Errorf("%q", got)
			}
		})
	}
}

// What the next task would inherit of the first process and nobody compares.
func TestATaskCannotChangeWhatTheKernelShowsOfTheFirstProcess(t *testing.T) {
	t.Parallel()
	b := newRunBench(t)
	for _, file := range []string{"oom_score_adj", "oom_adj", "timerslack_ns", "autogroup", "coredump_filter", "comm", "task/1/comm", "clear_refs", "sched", "loginuid", "setgroups", "uid_map", "attr/current"} {
		t.Run(file, func(t *testing.T) {
			if got := probe(t, b.Fixture, b.next(t, "(echo 5 > /proc/1/"+file+") 2> /dev/null || echo refused")); got != "refused\n" {
				t.Errorf("it says %q", got)
			}
		})
	}
	t.Run("nor a setting of the kernel", func(t *testing.T) {
		open := "find /proc/sys -type f -writable ! -name ns_last_pid 2> /dev/null || true; (echo 99 > /proc/sys/kernel/ns_last_pid) 2> /dev/null || echo refused"
		if got := probe(t, b.Fixture, b.next(t, open)); got != "refused\n" {
			t.Errorf("it can write %q", got)
		}
	})
	b.quick(t)
}

func TestATaskThatEndsTheFirstProcessHasFailed(t *testing.T) {
	t.Parallel()
	b := newRunBench(t)
	h := b.Submit(t, b.next(t, "echo up; sleep 600"))
	b.AwaitLog(t, h, "up\n")
	for _, first := range b.whole(t) {
		if len(sandboxes(first)) > 0 {
			kill(t, first)
		}
	}
	if seen := b.End(t, h); seen.Reason != executor.Signaled || seen.Exit.StartFailed != "" {
		t.Errorf("%+v", seen)
	}
	b.quick(t)
}

// kill ends a process, if it is still there.
func kill(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(number, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	drivertest.Eventually(t, func() bool {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || strings.Contains(string(text), ") Z ")
	}, func() string { return "it does not die" })
}

// upAndWaiting is a task that waits for a file, and what its sandbox is made of.
func (b *runBench) upAndWaiting(t *testing.T) (s executor.Spec, h executor.Handle, pids []string) {
	t.Helper()
	s = b.next(t, "echo up; while [ ! -e go ]; do sleep 0.01; done")
	h = b.Submit(t, s)
	b.AwaitLog(t, h, "up\n")
	for pid, first := range b.whole(t) {
		if len(sandboxes(first)) > 0 {
			pids = append(pids, pid, first)
		}
	}
	if len(pids) != 2 {
		t.Fatalf("its sandbox is %v", pids)
	}
	return s, h, pids
}

func letGo(t *testing.T, s executor.Spec) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Work(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNothingOfASandboxIsLeftBehind(t *testing.T) {
	t.Parallel()
	t.Run("by a shim that is killed", func(t *testing.T) {
		t.Parallel()
		b := newRunBench(t)
		s, _, pids := b.upAndWaiting(t)
		b.Lose(t, s)
		for _, pid := range pids {
			awaitGone(t, pid)
		}
		b.quick(t)
	})
	t.Run("by a server that closes", func(t *testing.T) {
		t.Parallel()
		b := newRunBench(t)
		b.quick(t)
		b.Leave()
		name := fnv.New32a()
		_, _ = name.Write([]byte(b.Folder))
		for _, depth := range []string{"*", "*/*", "*/*/*"} {
			if left, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/%s/millrace-%08x", depth, name.Sum32())); len(left) > 0 {
				t.Errorf("groups are left: %v", left)
			}
		}
	})
	t.Run("by a task that outlives its server", func(t *testing.T) {
		t.Parallel()
		b := newRunBench(t)
		s, h, pids := b.upAndWaiting(t)
		b.Leave()
		b.Subject = boxed(t, b.Folder)
		for _, pid := range pids {
			if _, err := os.Stat("/proc/" + pid); err != nil {
				t.Errorf("the task did not go on: %v", err)
			}
		}
		letGo(t, s)
		if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
			t.Errorf("the task that went on: %+v", seen)
		}
		for _, pid := range pids {
			awaitGone(t, pid)
		}
		if err := b.Release(context.WithoutCancel(t.Context()), executor.NoRun, h); err != nil {
			t.Error(err)
		}
	})
	t.Run("by a server that is killed", func(t *testing.T) {
		t.Parallel()
		b := newRunBench(t)
		b.Leave()
		s := b.next(t, "echo up; while [ ! -e go ]; do sleep 0.01; done")
		killServer(t, b.Folder, local.Bubblewrap, s)
		drivertest.Eventually(t, func() bool { return len(b.whole(t)) == 1 }, func() string { return "there are more sandboxes than the task's own" })
		b.Subject = boxed(t, b.Folder)
		letGo(t, s)
		h := executor.Handle{Driver: local.Name, Key: s.Key, Fence: s.Fence, ID: s.Key.Folder()}
		if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
			t.Errorf("the task that went on: %+v", seen)
		}
	})
}
