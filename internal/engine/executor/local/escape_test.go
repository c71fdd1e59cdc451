package local_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// hostileValues look like options, ends of texts, or shell.
var hostileValues = []string{
	"", " ", "--", "--bind", "-c", "--\n--bind\n/\n/", "x\x00--bind\x00/\x00/\x00--", "\x00", "$(id)", "`id`", "';id;'", "\"", "\\", "a=b",
	"\r\n", "\x1b[31m", "\u202e", "ünïcödé", strings.Repeat("é", 40_000), "\xff\xfe", "a\xc3", "%s%n", "../../../etc/passwd",
}

// What a command sees of a value is the value, byte for byte, or it is never
// started.
func FuzzValuesReachACommandAsTheyAre(f *testing.F) {
	for _, value := range hostileValues {
		f.Add(value)
	}
	b := drivertest.NewFixture(f, boxed)
	f.Fuzz(func(t *testing.T, value string) {
		s := b.Spec(t, `printf %s "$VALUE" | od -An -v -tx1`)
		s.Env = map[string]string{"VALUE": value}
		h, err := b.Driver.Submit(t.Context(), executor.NoRun, s)
		if fault.Is(err, fault.KindInvalid) {
			if !strings.Contains(value, "\x00") && strings.ToValidUTF8(value, "") == value && len(value) < 128<<10-len("VALUE=") {
				t.Fatalf("%q is refused: %v", value, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
			t.Fatalf("%.100q: %s, %s", value, seen.Reason, seen.Detail)
		}
		got, err := hex.DecodeString(strings.Join(strings.Fields(b.Log(t, h, 0)), ""))
		if err != nil || !bytes.Equal(got, []byte(value)) {
			t.Errorf("%.100q arrives as %.100q, %v", value, got, err)
		}
		if err := b.Release(t.Context(), executor.NoRun, h); err != nil {
			t.Fatal(err)
		}
	})
}

// The command, its interpreter and the names of variables are people's, too.
func TestNothingOfASpecBecomesAnOption(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	secret := filepath.Join(b.Folder, "secret")
	if err := os.WriteFile(secret, []byte("the server's own"), 0o644); err != nil {
		t.Fatal(err)
	}
	const inject = "x\x00--bind\x00/\x00/\x00--"
	read := "cat " + secret
	for name, change := range map[string]func(*executor.Spec){
		"a value":         func(s *executor.Spec) { s.Env = map[string]string{"ITEM": inject} },
		"a name":          func(s *executor.Spec) { s.Env = map[string]string{inject: "x"} },
		"a name of paths": func(s *executor.Spec) { s.Env = map[string]string{"PATH": "/usr/bin:/bin", "LD_PRELOAD": secret} },
		"the command":     func(s *executor.Spec) { s.Command = read + " #" + inject },
		"the interpreter": func(s *executor.Spec) { s.Interpreter = "--bind\x00/\x00/\x00sh" },
		"an option":       func(s *executor.Spec) { s.Interpreter = "--bind" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := b.Spec(t, read)
			change(&s)
			h, err := b.Driver.Submit(t.Context(), executor.NoRun, s)
			if err != nil {
				if !fault.Is(err, fault.KindInvalid) {
					t.Errorf("an error of ours: %v", err)
				}
				return
			}
			if seen := b.End(t, h); seen.Reason == executor.ExitedZero || strings.Contains(b.Log(t, h, 0), "the server's own") {
				t.Errorf("%s: %s", seen.Reason, b.Log(t, h, 0))
			}
		})
	}
}

func TestAValueTooLongForAVariableIsNamed(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	s := b.Spec(t, "true")
	s.Env = map[string]string{"PARAM_big": strings.Repeat("x", 200<<10)}
	if _, err := b.Driver.Submit(t.Context(), executor.NoRun, s); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "PARAM_big is 200 KB") {
		t.Errorf("%v", err)
	}
	s.Env = map[string]string{"PARAM_big": strings.Repeat("x", 128<<10-1-len("PARAM_big="))}
	s.Command = `echo ${#PARAM_big}`
	if got := probe(t, b, s); got != "131061\n" {
		t.Errorf("the longest one is %q", got)
	}
}

// What the kernel refuses a task, asked for in the plainest way.
func TestTheKernelRefusesWhatNoComputationNeeds(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	for name, tt := range map[string]struct {
		call string // of Perl's syscall
		want string // errno
	}{
		"keys":                     {call("SYS_keyctl", unix.SYS_KEYCTL, "0, -3, 0, 0, 0"), "EPERM"},
		"a new key":                {call("SYS_add_key", unix.SYS_ADD_KEY, "$text, $text, $text, 1, -3"), "EPERM"},
		"tracing":                  {call("SYS_ptrace", unix.SYS_PTRACE, "16, 1, 0, 0"), "EPERM"},
		"memory of others":         {call("SYS_process_vm_readv", unix.SYS_PROCESS_VM_READV, "1, 0, 0, 0, 0, 0"), "EPERM"},
		"programs of the kernel":   {call("SYS_bpf", unix.SYS_BPF, "0, 0, 0"), "EPERM"},
		"page faults":              {call("SYS_userfaultfd", unix.SYS_USERFAULTFD, "0"), "EPERM"},
		"counters":                 {call("SYS_perf_event_open", unix.SYS_PERF_EVENT_OPEN, "0, 0, -1, -1, 0"), "EPERM"},
		"a user namespace":         {call("SYS_unshare", unix.SYS_UNSHARE, "0x10000000"), "EPERM"},
		"a cloned one":             {call("SYS_clone", unix.SYS_CLONE, "0x10000011, 0, 0, 0, 0"), "EPERM"},
		"a thread's own files":     {call("SYS_clone", unix.SYS_CLONE, "0x10b00, 0, 0, 0, 0"), "EPERM"},
		"a thread's own folder":    {call("SYS_clone", unix.SYS_CLONE, "0x10d00, 0, 0, 0, 0"), "EPERM"},
		"both":                     {call("SYS_clone", unix.SYS_CLONE, "0x10900, 0, 0, 0, 0"), "EPERM"},
		"its own, while closing":   {call("SYS_close_range", unix.SYS_CLOSE_RANGE, "100, 200, 2"), "EPERM"},
		"closing what is shared":   {call("SYS_close_range", unix.SYS_CLOSE_RANGE, "100, 200, 0"), "0"},
		"another's namespace":      {call("SYS_setns", unix.SYS_SETNS, "0, 0"), "EPERM"},
		"a clone we cannot see":    {call("SYS_clone3", unix.SYS_CLONE3, "0, 0"), "ENOSYS"},
		"rings":                    {call("SYS_io_uring_setup", unix.SYS_IO_URING_SETUP, "1, 0"), "ENOSYS"},
		"a call of the future":     {call("future", 9999, "0"), "ENOSYS"},
		"a mount":                  {call("SYS_mount", unix.SYS_MOUNT, "$text, $text, $text, 0, 0"), "EPERM"},
		"a mount of the new kind":  {call("SYS_fsopen", unix.SYS_FSOPEN, "$text, 0"), "EPERM"},
		"a file by its handle":     {call("SYS_open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, "0, 0, 0"), "EPERM"},
		"a socket to the host":     {call("AF_VSOCK", unix.SYS_SOCKET, "40, 1, 0"), "EAFNOSUPPORT"},
		"a socket of ciphers":      {call("AF_ALG", unix.SYS_SOCKET, "38, 5, 0"), "EAFNOSUPPORT"},
		"a socket of packets":      {call("AF_PACKET", unix.SYS_SOCKET, "17, 3, 0"), "EAFNOSUPPORT"},
		"a socket of the firewall": {call("NETLINK_NETFILTER", unix.SYS_SOCKET, "16, 3, 12"), "EAFNOSUPPORT"},
		"an odd personality":       {call("SYS_personality", unix.SYS_PERSONALITY, "0x0400000"), "EPERM"},
		"typing for others":        {call("TIOCSTI", unix.SYS_IOCTL, "0, 0x5412, $text"), "EPERM"},
		"typing, written longer":   {call("TIOCSTI", unix.SYS_IOCTL, "0, 0xdeadbeef00005412, $text"), "EPERM"},
		"a socket, written longer": {call("AF_VSOCK", unix.SYS_SOCKET, "0x100000028, 1, 0"), "EAFNOSUPPORT"},
		"a clone, written longer":  {call("SYS_clone", unix.SYS_CLONE, "0x110000011, 0, 0, 0, 0"), "EPERM"},
		"reserved space":           {call("SYS_fallocate", unix.SYS_FALLOCATE, "fileno(F), 0, 0, 1048576"), "EOPNOTSUPP"},
		"space reserved by ioctl":  {call("FS_IOC_RESVSP", unix.SYS_IOCTL, "fileno(F), 0x40305828, $space"), "EOPNOTSUPP"},
		"by the one of 64 bits":    {call("FS_IOC_RESVSP64", unix.SYS_IOCTL, "fileno(F), 0x4030582a, $space"), "EOPNOTSUPP"},
		"space of zeros":           {call("FS_IOC_ZERO_RANGE", unix.SYS_IOCTL, "fileno(F), 0x40305839, $space"), "EOPNOTSUPP"},
		"space of an older XFS":    {call("XFS_IOC_ALLOCSP", unix.SYS_IOCTL, "fileno(F), 0x4030580a, $space"), "EOPNOTSUPP"},
		"by its one of 64 bits":    {call("XFS_IOC_ALLOCSP64", unix.SYS_IOCTL, "fileno(F), 0x40305824, $space"), "EOPNOTSUPP"},
		"space by large extents":   {call("FS_IOC_FSSETXATTR", unix.SYS_IOCTL, "fileno(F), 0x401c5820, $space"), "EOPNOTSUPP"},
		"a call of another kind":   {call("x32", 0x40000000+unix.SYS_GETPPID, ""), "ENOSYS"},
		"a usual socket":           {call("AF_INET", unix.SYS_SOCKET, "2, 1, 0"), "0"},
		"one for interfaces":       {call("NETLINK_ROUTE", unix.SYS_SOCKET, "16, 3, 0"), "0"},
		"a question":               {call("SYS_getppid", unix.SYS_GETPPID, ""), "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := b.Spec(t, tt.call)
			s.Interpreter = "perl"
			if got := probe(t, b, s); got != tt.want {
				t.Errorf("%s: %q, want %q", tt.call, got, tt.want)
			}
		})
	}
}

// call is a Perl program that makes a system call and prints the name of its
// error.
func call(what string, number int, arguments string) string {
	if arguments != "" {
		arguments = ", " + arguments
	}
	return "# " + what + "\nuse Errno; my $text = 'tmpfs'; open(F, '>', 'file'); my $space = pack('s2x4q2l6', 0, 0, 0, 1048576, 0, 0, 0, 0, 0, 0); my $r = syscall(" + strconv.Itoa(number) + arguments + ");" +
		` if ($r >= 0) { print "0" } else { for (reverse sort keys %!) { if ($!{$_}) { print $_; last } } }`
}

func TestTheFirstProcessOfASandboxIsOutOfReach(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	for name, command := range map[string]string{
		"its descriptors": "ls /proc/1/fd/",
		"its environment": "cat /proc/1/environ",
		"its memory":      "head -c 1 /proc/1/mem",
		"its program":     "readlink /proc/1/exe",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := b.Submit(t, b.Spec(t, command))
			if seen := b.End(t, h); seen.Reason != executor.ExitedNonZero {
				t.Errorf("%s: %q", seen.Reason, b.Log(t, h, 0))
			}
		})
	}
	if got := probe(t, b, b.Spec(t, "trap '' TERM; kill -TERM 1; kill -TERM 0; echo alive")); got != "alive\n" {
		t.Errorf("after its signals: %q", got)
	}
	if got := probe(t, b, b.Spec(t, "(sleep 0.01 & ); setsid true & wait; echo reaped")); got != "reaped\n" {
		t.Errorf("with orphans: %q", got)
	}
}

// Whoever started the server may have left it a descriptor, and one of a
// folder is a way out of the sandbox.
func TestADescriptorOfTheServerStaysWithIt(t *testing.T) {
	t.Parallel()
	root, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(root) })
	for name, maker := range map[string]drivertest.Maker{"in a sandbox": boxed, "without": bare, "without groups": ungrouped} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := drivertest.NewFixture(t, maker)
			if got := probe(t, b, b.Spec(t, "readlink /proc/self/fd/"+strconv.Itoa(root)+" || echo closed")); got != "closed\n" {
				t.Errorf("the task has %q", got)
			}
		})
	}
}

// A task that ends the first process of its sandbox has started, however soon
// it does: what never started costs nothing.
func TestATaskThatEndsItsSandboxHasStarted(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	for _, signal := range []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGSYS, unix.SIGKILL, unix.SIGSTOP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			number := strconv.Itoa(int(signal))
			// As sigqueue does, which looks like a fault to the Go runtime.
			s := b.Spec(t, `syscall(`+strconv.Itoa(unix.SYS_RT_SIGQUEUEINFO)+`, 1, `+number+`, pack("i6x104", `+number+`, 0, -1)) for 1..100; exit 3`)
			s.Interpreter = "perl"
			h := b.Submit(t, s)
			if seen := b.End(t, h); seen.Reason != executor.ExitedNonZero {
				t.Errorf("%s: %s", seen.Reason, seen.Detail)
			}
		})
	}
}

func TestATaskHasABoundedNumberOfProcesses(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, func(t testing.TB, folder string) drivertest.Subject {
		s := subject(t, local.Config{Folder: folder, VCPU: 200, NoGroup: true})
		needSandbox(t, s)
		return s
	})
	if got := probe(t, b, b.Spec(t, "ulimit -Hu")); got != strconv.Itoa(shim.MaxProcesses)+"\n" {
		t.Errorf("it may have %q", got)
	}
}
