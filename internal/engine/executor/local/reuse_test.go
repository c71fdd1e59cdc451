package local_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
)

// showSandbox is a command that names its sandbox.
const showSandbox = "readlink /proc/self/ns/pid"

// runIn runs a task to its end, and returns what it wrote, its sandbox, and
// whether that is still there. Another one is ready all the time, so that no new
// sandbox gets the name of one that has gone.
func (b *readyBench) runIn(t *testing.T, s executor.Spec) (log, sandbox string, kept bool) {
	t.Helper()
	b.awaitReady(t)
	s.Command += "\n" + showSandbox
	h := b.Submit(t, s)
	if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
		t.Fatalf("%s: %+v, log: %s", seen.Reason, seen.Exit, b.Log(t, h, 0))
	}
	lines := strings.SplitAfter(strings.TrimSuffix(b.Log(t, h, 0), "\n"), "\n")
	log, sandbox = strings.Join(lines[:len(lines)-1], ""), lines[len(lines)-1]
	return log, sandbox, b.isThere(t, sandbox)
}

// nameIn is the sandbox whose name a task has put into a file.
func (b *readyBench) nameIn(t *testing.T, s executor.Spec) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Work(), "name"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// isThere reports whether a sandbox is.
func (b *readyBench) isThere(t *testing.T, sandbox string) bool {
	for _, pid := range sandboxes(shimPID(t, b.Folder)) {
		for _, first := range sandboxes(pid) {
			if link, err := os.Readlink("/proc/" + first + "/ns/pid"); err == nil && link == sandbox {
				return true
			}
		}
	}
	return false
}

// What a task finds in any sandbox that is new.
const (
	lookAgain = "ls -A /work /tmp /run /dev/shm /inputs /environment /dev/pts; stat -c '%a %u %g' /run /dev/shm; set -- /proc/[0-9]*; echo $#; ulimit -a | cksum; nice; cat /proc/sysvipc/* | wc -l; " +
		`grep -E "Sig(Blk|Ign|Cgt|Pnd)|ShdPnd|Cpus_allowed:" /proc/self/status; cat /proc/self/timerslack_ns /proc/self/oom_score_adj; ` +
		`awk '{ print $5, $6, $9 }' /proc/self/mountinfo | sort; ls -l /proc/self/fd | wc -l; perl -e 'use Fcntl; print fcntl($_, F_GETFL, 0), "\n" for *STDIN, *STDOUT, *STDERR'`
)

func TestASandboxServesTheNextTaskOfItsRun(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
	asNew := probe(t, b.Fixture, b.Spec(t, lookAgain)) // of another run
	for name, command := range map[string]string{
		"nothing":                "",
		"files of its own":       "touch /work/a; mkdir -p /tmp/b/c; ln -s /usr /tmp/d; chmod 0 /tmp/b; chmod 711 /work",
		"files that it removes":  "touch /run/a /dev/shm/b; rm /run/a /dev/shm/b",
		"other times":            "touch -d 2001-01-01 /run /dev/shm",
		"processes":              "sleep 600 & (setsid sleep 600 &) ; nohup sleep 600 > /dev/null & disown -a",
		"many processes":         "for i in $(seq 40); do (setsid sh -c 'sleep 600 & wait' &); done",
		"stopped processes":      "(setsid sh -c 'kill -STOP $$' &); perl -e 'if (!fork) { $SIG{TERM} = $SIG{HUP} = \"IGNORE\"; exec \"sleep\", 600 }'",
		"children that fork on":  "(setsid sh -c 'while :; do sleep 0.001 & done' > /dev/null 2>&1 &)",
		"its own limits":         "ulimit -n 20; ulimit -s 1000; renice 5 -p $$ > /dev/null; umask 777",
		"settings of streams":    "perl -e 'use Fcntl; fcntl($_, F_SETFL, O_NONBLOCK | O_APPEND) or die $! for *STDIN, *STDOUT, *STDERR'",
		"memory that it returns": "perl -e '$i = shmget(0, 4096, 0600) // die $!; shmctl($i, 0, 0) or die $!'",
		"a command in a file":    "true " + strings.Repeat("#", 50_000) + "\n",
		"a socket that it binds": `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "/tmp/s", Listen => 1) or die $!; IO::Socket::UNIX->new(Local => "\0s", Listen => 1) or die $!'`,
		"signals for the first":  "for i in $(seq 64); do kill -$i 1 || true; done 2> /dev/null",
	} {
		t.Run(name, func(t *testing.T) {
			b.untilServedTwice(t, func() bool {
				_, sandbox, kept := b.runIn(t, b.next(t, command))
				got, next, _ := b.runIn(t, b.next(t, lookAgain))
				if got != asNew {
					t.Errorf("the next one finds\n%s\nbut in a new sandbox\n%s", got, asNew)
				}
				return kept && next == sandbox
			})
		})
	}
}

// untilServedTwice tries until a sandbox has served two tasks. On a busy machine
// the second can come when the sandbox has gone.
func (b *readyBench) untilServedTwice(t *testing.T, try func() bool) {
	t.Helper()
	for range 10 {
		if try() {
			return
		}
	}
	t.Error("no sandbox served the next task")
}

func TestASandboxInWhichSomethingIsLeftServesNobodyElse(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
	asNew := probe(t, b.Fixture, b.Spec(t, lookAgain)) // of another run
	xattr := `perl -e '($p, $n, $v) = ("/dev/shm", "user.left", "x"); syscall(` + strconv.Itoa(unix.SYS_SETXATTR) + `, $p, $n, $v, 1, 0) == 0 or $!{EOPNOTSUPP} && mkdir "/dev/shm/x" or die $!'`
	flags := `perl -e 'open(D, "<", "/run") or die $!; $f = pack("L", 0x40); ioctl(D, ` + strconv.Itoa(unix.FS_IOC_SETFLAGS) + `, $f) or $!{ENOTTY} && mkdir "/run/x" or die $!'`
	access := `perl -e '($p, $n) = ("/run", "system.posix_acl_default"); $v = pack("LSSlSSlSSl", 2, 1, 7, -1, 4, 5, -1, 32, 5, -1);` +
		` syscall(` + strconv.Itoa(unix.SYS_SETXATTR) + `, $p, $n, $v, length($v), 0) == 0 or $!{EOPNOTSUPP} && mkdir "/run/x" or die $!'`
	label := `perl -MSocket -e 'socket(my $s, AF_INET6, SOCK_DGRAM, 0) or do { mkdir "/run/x" or die $!; exit };` +
		` setsockopt($s, 41, 32, pack("x15CNCCSSSx4", 1, 77, 0, 255, 1, 60, 60)) or die $!'`
	queue := `perl -e '$n = "left"; syscall(` + strconv.Itoa(unix.SYS_MQ_OPEN) + `, $n, 0102, 0600, 0) >= 0 or die $!'`
	for name, command := range map[string]string{
		"a file in /run":           "touch /run/a",
		"a hidden file":            "touch /dev/shm/.a",
		"a folder":                 "mkdir /run/millrace",
		"another mode":             "chmod 700 /dev/shm",
		"an attribute":             xattr,
		"an access list":           access,
		"a label of IPv6":          label,
		"a flag":                   flags,
		"shared memory":            "perl -e 'shmget(0, 4096, 0600) // die $!'",
		"semaphores":               "perl -e 'semget(0, 1, 0600) // die $!'",
		"a queue of System V":      "perl -e 'msgget(0, 0600) // die $!'",
		"a message queue":          queue,
		"a limit of the first":     "prlimit --pid 1 --nofile=20:20",
		"a hard limit":             "prlimit --pid 1 --core=0:0 --stack=1000000:1000000",
		"priority of the first":    "renice 5 -p 1 > /dev/null",
		"that of the whole user":   "renice 3 -u 1000 > /dev/null",
		"its processors":           "if [ $(nproc) -gt 1 ]; then taskset -p 1 1 > /dev/null; else touch /run/a; fi",
		"its scheduling":           "chrt --batch -p 0 1",
		"that of another thread":   "for i in $(ls /proc/1/task); do [ $i = 1 ] || renice 5 -p $i > /dev/null; done",
		"its priority for files":   "ionice -c 3 -p 1",
		"a very long command":      "true " + strings.Repeat("#", 100_000) + "\n",
		"something on the network": "echo x > /dev/udp/127.0.0.1/9",
	} {
		t.Run(name, func(t *testing.T) {
			_, sandbox, kept := b.runIn(t, b.next(t, command))
			if kept {
				t.Fatal("its sandbox is still there")
			}
			if got, next, _ := b.runIn(t, b.next(t, lookAgain)); next == sandbox || got != asNew {
				t.Errorf("the next one, in %s after %s, finds\n%s\nbut in a new sandbox\n%s", next, sandbox, got, asNew)
			}
		})
	}
}

// Sockets that were sent through each other are nobody's, and the kernel takes
// its time to notice.
func TestSocketsThatHoldEachOtherAreNotFoundByTheNextTask(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
	leave := `perl -MSocket -e '
		sub give { my ($over, $what) = @_; my $byte = "x"; my $vector = pack("PQ", $byte, 1); my $rights = pack("Qiiix4", 20, SOL_SOCKET, 1, fileno($what));
			my $message = pack("QQPQPQQ", 0, 0, $vector, 1, $rights, 24, 0); syscall(` + strconv.Itoa(unix.SYS_SENDMSG) + `, fileno($over), $message, 0) == 1 or die $! }
		for my $i (1 .. 50) { socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die $!; socket(my $named, AF_UNIX, SOCK_STREAM, 0) or die $!;
			bind($named, pack_sockaddr_un("\0left$i")) or die $!; listen($named, 1) or die $!; give($a, $named); give($a, $a); give($b, $b) }
		print "sent\n"'`
	if got, _, _ := b.runIn(t, b.next(t, leave)); got != "sent\n" {
		t.Fatalf("it says %q", got)
	}
	if got, _, _ := b.runIn(t, b.next(t, "grep -c left /proc/net/unix || true")); got != "0\n" {
		t.Errorf("the next one finds %q", got)
	}
}

func TestASandboxOfATaskThatMattersServesNobodyElse(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
	for name, change := range map[string]func(*executor.Spec){
		"with a secret": func(s *executor.Spec) {
			s.Env, s.Secrets = map[string]string{"KEY": "of the team"}, []string{"of the team"}
		},
		"with a short one": func(s *executor.Spec) { s.Secrets = []string{"1234"} }, // too short to be masked
		"with the network": func(s *executor.Spec) { s.Network = true },
	} {
		t.Run(name, func(t *testing.T) {
			_, waits, _ := b.runIn(t, b.next(t, ""))
			s := b.next(t, "")
			change(&s)
			if _, sandbox, kept := b.runIn(t, s); kept || sandbox == waits {
				t.Errorf("it was in %s, after %s, and that is still there: %v", sandbox, waits, kept)
			}
		})
	}
	t.Run("that fails", func(t *testing.T) {
		b.awaitReady(t)
		h := b.Submit(t, b.next(t, showSandbox+"; exit 3"))
		if seen := b.End(t, h); seen.Reason != executor.ExitedNonZero || b.isThere(t, strings.TrimSpace(b.Log(t, h, 0))) {
			t.Errorf("%s, and its sandbox is still there: %v", seen.Reason, b.isThere(t, strings.TrimSpace(b.Log(t, h, 0))))
		}
	})
	t.Run("that is stopped", func(t *testing.T) {
		b.awaitReady(t)
		s := b.next(t, "trap 'exit 0' TERM; "+showSandbox+" > name; echo up; sleep 600 & wait")
		h := b.Submit(t, s)
		b.AwaitLog(t, h, "up\n")
		if err := b.Stop(t.Context(), h, time.Minute); err != nil {
			t.Fatal(err)
		}
		if seen := b.End(t, h); !seen.Exit.Stopped || b.isThere(t, b.nameIn(t, s)) {
			t.Errorf("%+v, and its sandbox is still there: %v", seen.Exit, b.isThere(t, b.nameIn(t, s)))
		}
	})
}

func TestASandboxServesNoOtherRun(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
	_, sandbox, kept := b.runIn(t, b.next(t, ""))
	b.run = ids.NewRun()
	if got := strings.TrimSpace(probe(t, b.Fixture, b.next(t, showSandbox))); !kept || got == sandbox {
		t.Errorf("a task of another run is in %s, after %s", got, sandbox)
	}
}

func TestATaskFindsItsOwnFoldersInASandboxThatServedOthers(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
	b.untilServedTwice(t, func() bool {
		staged := b.next(t, "cat /inputs/x; touch /inputs/y 2> /dev/null || echo closed; echo made > out")
		staged.Staged = true
		staged.Outputs = []executor.OutputPattern{{Port: "out", Path: "out"}}
		if err := os.MkdirAll(staged.Places().Inputs, 0o755); err != nil {
			t.Fatal(err)
		}
		place(t, filepath.Join(staged.Places().Inputs, "x"), "mine\n", 0o644)
		log, first, _ := b.runIn(t, staged)
		if log != "mine\nclosed\n" {
			t.Errorf("it finds %q", log)
		}
		log, second, _ := b.runIn(t, b.next(t, "ls -A /inputs /work"))
		if log != "/inputs:\n\n/work:\n" {
			t.Errorf("the next one finds %q", log)
		}
		return second == first
	})
}

// Whatever way the next one ends: only a first process that lives on has counted
// by task all the time.
func TestWhatATaskUsedIsNotOnTheBillOfTheNext(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
	burn := `perl -e '$x = "x" x 100_000_000; while ((times)[0] < 0.5) { $i++ for 1..100_000 }'`
	for name, command := range map[string]string{
		"ends well":          "true",
		"fails":              "exit 3",
		"leaves something":   "perl -e 'shmget(0, 4096, 0600) // die $!'",
		"has a long command": "true" + strings.Repeat(" #", 100_000),
		"is stopped":         "trap '' TERM; echo up; sleep 600",
		"is killed":          "kill -9 $$",
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "ends well" {
				t.Skip("burns a second of CPU for each")
			}
			b.untilServedTwice(t, func() bool {
				first := b.next(t, showSandbox+" > name\n"+burn+" & wait; "+burn+" &\nwait")
				if large := b.End(t, b.Submit(t, first)).Exit; large.CPUTime < time.Second || large.MaxRSS < 100_000_000 {
					t.Errorf("the first used %s and %d bytes", large.CPUTime, large.MaxRSS)
				}
				second := b.next(t, showSandbox+" > name\n"+command)
				h := b.Submit(t, second)
				if strings.Contains(command, "up") {
					b.AwaitLog(t, h, "up\n")
					b.stopWhenMetered(t, h)
				}
				if small := b.End(t, h).Exit; small.CPUTime > time.Second/2 || small.MaxRSS > 50_000_000 {
					t.Errorf("the next one used %s and %d bytes", small.CPUTime, small.MaxRSS)
				}
				return b.nameIn(t, first) == b.nameIn(t, second)
			})
		})
	}
}

// stopWhenMetered stops a task that does nothing, once it is known what it uses.
func (b *readyBench) stopWhenMetered(t *testing.T, h executor.Handle) {
	t.Helper()
	var used executor.Usage
	drivertest.Eventually(t, func() bool {
		used, _ = b.Driver.(executor.Meter).Usage(t.Context(), h)
		return !used.At.IsZero()
	}, func() string { return "nothing is known about what it uses" })
	if used.CPU > time.Second/2 {
		t.Errorf("while it runs it has used %s", used.CPU)
	}
	if err := b.Stop(t.Context(), h, 0); err != nil {
		t.Fatal(err)
	}
}

// What was killed with all that waits for it is billed as it was last seen.
func TestATaskThatIsKilledPaysForItsTime(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
	h := b.Submit(t, b.next(t, `trap '' TERM; perl -e '$SIG{TERM} = "IGNORE"; while ((times)[0] < 0.6) { $i++ for 1..100_000 } sleep 600'`))
	drivertest.Eventually(t, func() bool {
		used, err := b.Driver.(executor.Meter).Usage(t.Context(), h)
		return err == nil && used.CPU >= time.Second/2
	}, func() string { return "nothing is known about what it uses" })
	if err := b.Stop(t.Context(), h, 0); err != nil {
		t.Fatal(err)
	}
	if e := b.End(t, h).Exit; e.CPUTime < time.Second/2 {
		t.Errorf("it has used %s", e.CPUTime)
	}
}

// How a task ended is said on a socket that it must not have.
func TestATaskCannotSpeakForTheFirstProcess(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
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
	b := newReadyBench(t)
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
	b := newReadyBench(t)
	b.awaitReady(t)
	h := b.Submit(t, b.next(t, "echo up; sleep 600"))
	b.AwaitLog(t, h, "up\n")
	for _, pid := range sandboxes(shimPID(t, b.Folder)) {
		for _, first := range sandboxes(pid) {
			if len(sandboxes(first)) > 0 {
				kill(t, first)
			}
		}
	}
	if seen := b.End(t, h); seen.Reason != executor.Signaled || seen.Exit.StartFailed != "" {
		t.Errorf("%+v", seen)
	}
	b.quick(t)
}

// A shim goes on when its server is gone. What its tasks leave is for nobody.
func TestASandboxThatItsServerDoesNotKnowGoes(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
	s := b.next(t, showSandbox+" > name; echo up; while [ ! -e go ]; do sleep 0.01; done")
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "up\n")
	sandbox := b.nameIn(t, s)
	b.Leave()
	b.Subject = boxed(t, b.Folder)
	if !b.isThere(t, sandbox) {
		t.Fatal("the task did not go on")
	}
	if err := os.WriteFile(filepath.Join(s.Work(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
		t.Errorf("the task that went on: %+v", seen)
	}
	drivertest.Eventually(t, func() bool { return !b.isThere(t, sandbox) }, func() string { return "its sandbox is still there" })
	if err := b.Release(context.WithoutCancel(t.Context()), h); err != nil {
		t.Error(err)
	}
}

// Every task finds its own folder, environment and log, however many sandboxes
// serve them at the same time, and whatever some of them leave.
func TestManyTasksInFewSandboxes(t *testing.T) {
	t.Parallel()
	b := newReadyBench(t)
	const tasks = 120
	left := []string{"", "", "sleep 600 & ", "touch /dev/shm/$ITEM; ", "perl -e 'shmget(0, 4096, 0600) // die $!'; "}
	handles := make([]executor.Handle, tasks)
	end := func(i int) {
		h, want := handles[i], "item-"+strconv.Itoa(i)+"\n"
		if seen := b.End(t, h); seen.Reason != executor.ExitedZero || b.Log(t, h, 0) != want {
			t.Errorf("task %d: %s, %q", i, seen.Reason, b.Log(t, h, 0))
		}
		if err := b.Release(t.Context(), h); err != nil {
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
