package local_test

import (
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
