package local_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/local"
)

// probe runs a command in the sandbox and returns what it printed.
func probe(t *testing.T, b *drivertest.Fixture, s executor.Spec) string {
	t.Helper()
	h := b.Submit(t, s)
	seen := b.End(t, h)
	if seen.Reason != executor.ExitedZero {
		t.Fatalf("%s: %+v, log: %s", seen.Reason, seen.Exit, b.Log(t, h, 0))
	}
	return b.Log(t, h, 0)
}

func TestATaskCannotLeaveItsSandbox(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	other := b.Spec(t, "true")
	if err := os.WriteFile(filepath.Join(other.Work(), "secret"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for name, command := range map[string]string{
		"write to the programs":          "touch /usr/written",
		"make them writable":             "mount -o remount,rw,bind /usr && touch /usr/written",
		"make the root writable":         "mount -o remount,rw,bind / && touch /written",
		"mount anything":                 "mount -t tmpfs none /run",
		"gain capabilities in a new one": "unshare --user --map-root-user true",
		"read the passwords":             "cat /etc/shadow",
		"see the root's home":            "ls /root",
		"see the server's folder":        "ls " + b.Folder,
		"read another task's files":      "cat " + filepath.Join(other.Work(), "secret"),
		"see the server's process":       "ls /proc/" + strconv.Itoa(os.Getpid()) + "/exe",
		"reach a socket by its path":     "ls " + socket,
		"make a device":                  "mknod /tmp/null c 1 3",
		"write to the root":              "touch /written",
		"write to the devices":           "touch /dev/written",
		"change its own limits":          "ulimit -c unlimited",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := b.Submit(t, b.Spec(t, command))
			if seen := b.End(t, h); seen.Reason != executor.ExitedNonZero {
				t.Errorf("it could: %s, %s", seen.Reason, b.Log(t, h, 0))
			}
		})
	}
}

func TestATaskSeesOnlyWhatItNeeds(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	for name, tt := range map[string]struct{ command, want string }{
		"its folder is empty":         {"pwd; ls -A", "/work\n"},
		"nothing listens":             {"find / -path /usr -prune -o -path /proc -prune -o -type s -print", ""},
		"its places are fresh":        {"ls -A /run /var /home /tmp", "/home:\n\n/run:\n\n/tmp:\n\n/var:\ntmp\n"},
		"it has no capability":        {"grep -E 'Cap(Eff|Prm|Bnd|Amb)' /proc/self/status | grep -v 0000000000000000 || true", ""},
		"it can gain none":            {"grep NoNewPrivs /proc/self/status | tr -d '\\t '", "NoNewPrivs:1\n"},
		"it is a plain user":          {"id -un; id -u; id -G", "task\n1000\n1000\n"},
		"it is alone":                 {"set -- /proc/[0-9]*; echo $#", "2\n"},
		"it has only its environment": {"env | cut -d= -f1 | grep -vE '^(_|PWD|SHLVL)$' | sort | tr '\\n' ' '", "HOME PATH TMPDIR USER "},
		"its temporary files work":    {"mktemp > /dev/null; touch /tmp/x /run/x /dev/shm/x /var/tmp/y; echo ok", "ok\n"},
		"its devices work":            {"head -c 3 /dev/zero | wc -c; echo x > /dev/null; head -c 1 /dev/urandom > /dev/null; ls /dev", "3\ncore\nfd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n"},
		"a terminal can be had":       {`perl -e 'open(my $t, "+<", "/dev/ptmx") or die $!; print "open\n"'`, "open\n"},
		"its mounts are closed":       {mountsThatAre(`/nosuid/ ? "" : $5`), ""},
		"devices are only in /dev":    {mountsThatAre(`/nodev/ || $5 ~ "^/dev/[a-z]+$" || $5 == "/dev/pts" ? "" : $5`), ""},
		"little can be written":       {mountsThatAre(`$6 ~ /^rw/ && $5 !~ "^/(proc|dev/.*)$" ? $5 : ""`), "/run\n/tmp\n/work\n"},
		"its signals are its own":     {"cat /proc/self/status | grep -E 'Sig(Blk|Ign|Cgt)' | grep -v 0000000000000000 || true", ""},
		"usual programs work":         {"printf 'b\\na\\n' | sort | awk '{print NR $0}'", "1a\n2b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := probe(t, b, b.Spec(t, tt.command)); got != tt.want {
				t.Errorf("%s prints %q, want %q", tt.command, got, tt.want)
			}
		})
	}
}

// mountsThatAre prints what an expression of awk makes of each line of mounts.
func mountsThatAre(expression string) string {
	return "awk '{ x = " + expression + "; if (x != \"\") print x }' /proc/self/mountinfo | sort"
}

// Scripts write to these names, and a user of its own must be able to open them.
func TestATaskOpensItsStreamsByName(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	got := strings.Fields(probe(t, b, b.Spec(t, "echo out > /dev/stdout; echo errors > /dev/stderr; echo more > /proc/self/fd/2")))
	slices.Sort(got) // streams are read beside one another
	if !slices.Equal(got, []string{"errors", "more", "out"}) {
		t.Errorf("%q", got)
	}
}

func TestTheNetworkIsClosedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	s := b.Spec(t, "exec 3<>/dev/tcp/127.0.0.1/"+port)
	if seen := b.Do(t, s); seen.Reason != executor.ExitedNonZero {
		t.Errorf("reached the host: %s", seen.Reason)
	}
	s = b.Spec(t, s.Command)
	s.Network = true
	if seen := b.Do(t, s); seen.Reason != executor.ExitedZero {
		t.Errorf("with the network: %s", seen.Reason)
	}
}

func TestReadOnlyInputsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	stored := filepath.Join(filepath.Dir(b.Folder), "stored") // links lead to the same disk only
	if err := os.WriteFile(stored, []byte("original"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := b.Spec(t, "cd /inputs/0; cat a; chmod 666 a || true; echo changed > a || true; rm -f a || true; echo new > /work/out")
	s.Staged = true
	if err := os.MkdirAll(filepath.Join(s.Places().Inputs, "0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(stored, filepath.Join(s.Places().Inputs, "0", "a")); err != nil {
		t.Fatal(err)
	}
	if log := probe(t, b, s); !strings.HasPrefix(log, "original") {
		t.Errorf("the task read %q", log)
	}
	text, err := os.ReadFile(stored)
	info, serr := os.Stat(stored)
	if err != nil || serr != nil || string(text) != "original" || info.Mode().Perm() != 0o644 {
		t.Errorf("the stored file is %q, %v, %v", text, err, serr)
	}
}

func TestAnImageIsTheWholeRoot(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	s := b.Spec(t, "echo /*; echo done > out; read x < /etc/issue; echo $x")
	s.Interpreter, s.Root = "sh", smallRoot(t)
	s.Outputs = []executor.OutputPattern{{Port: "out", Path: "out"}}
	log := probe(t, b, s)
	if strings.Contains(log, "/usr") || !strings.Contains(log, "/work") || !strings.HasSuffix(log, "small\n") {
		t.Errorf("the task saw %q", log)
	}
}

func TestAnImageLooksNamesUpAsTheHostDoes(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Skip("this machine looks up no names")
	}
	b := drivertest.NewFixture(t, boxed)
	root := smallRoot(t)
	place(t, filepath.Join(root, "etc/resolv.conf"), "", 0o644)
	for _, network := range []bool{true, false} {
		s := b.Spec(t, "while read -r line; do echo \"$line\"; done < /etc/resolv.conf")
		s.Interpreter, s.Root, s.Network = "sh", root, network
		if got := probe(t, b, s); (strings.TrimSpace(got) != "") != (network && strings.TrimSpace(string(want)) != "") {
			t.Errorf("network %v: it reads %q", network, got)
		}
	}
}

func TestAnImageWithoutTheInterpreterSaysSo(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	s := b.Spec(t, "true")
	s.Root = smallRoot(t)
	if seen := b.Do(t, s); seen.Reason != executor.StartFailed || !strings.Contains(seen.Detail, "the image has no bash") {
		t.Errorf("%s: %q", seen.Reason, seen.Detail)
	}
}

// smallRoot is a root file system of a shell alone, in a folder that the
// task's user could not enter.
func smallRoot(t *testing.T) string {
	t.Helper()
	libraries, err := exec.Command("ldd", "/bin/sh").Output()
	if err != nil {
		t.Skip("ldd does not tell what a shell needs")
	}
	root := filepath.Join(t.TempDir(), "closed", "root")
	files := []string{"/bin/sh"}
	for word := range strings.FieldsSeq(string(libraries)) {
		if strings.HasPrefix(word, "/") {
			files = append(files, word)
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		place(t, filepath.Join(root, file), string(text), 0o755)
	}
	place(t, filepath.Join(root, "etc/issue"), "small\n", 0o644)
	if err := os.Chmod(filepath.Dir(root), 0o700); err != nil {
		t.Fatal(err)
	}
	return root
}

func place(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestOtherInterpretersReadTheirCommandFromAFile(t *testing.T) {
	t.Parallel()
	for name, maker := range map[string]drivertest.Maker{"in a sandbox": boxed, "without": bare} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := drivertest.NewFixture(t, maker)
			s := b.Spec(t, "print 6 * 7, \"\\n\";")
			s.Interpreter = "perl"
			if got := probe(t, b, s); got != "42\n" {
				t.Errorf("perl prints %q", got)
			}
			s = b.Spec(t, "#"+strings.Repeat("x", 200<<10)+"\necho long")
			if got := probe(t, b, s); got != "long\n" {
				t.Errorf("a long command prints %.100q", got)
			}
			s = b.Spec(t, "true")
			s.Interpreter = "no-such-program"
			if seen := b.Do(t, s); seen.Reason != executor.StartFailed || seen.Detail == "" {
				t.Errorf("a missing interpreter: %s, %q", seen.Reason, seen.Detail)
			}
		})
	}
}

func TestTheEnvironmentIsForTheCommandAlone(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	const secret = "b6a1f0-for-the-command-alone"
	s := b.Spec(t, "echo up; sleep 600")
	s.Env = map[string]string{"SECRET": secret}
	h := b.Submit(t, s)
	drivertest.Eventually(t, func() bool { return b.Log(t, h, 0) == "up\n" }, func() string { return "no log" })
	pid := strconv.Itoa(holderOf(t, s.Dir).PID)
	for _, p := range append([]string{pid}, childrenOf(t, pid)...) {
		for _, file := range []string{"environ", "cmdline"} {
			if text, err := os.ReadFile("/proc/" + p + "/" + file); err != nil || strings.Contains(string(text), secret) {
				t.Errorf("/proc/%s/%s has it: %v", p, file, err)
			}
		}
	}
}

func childrenOf(t *testing.T, pid string) []string {
	t.Helper()
	lists, _ := filepath.Glob("/proc/" + pid + "/task/*/children")
	var pids []string
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		pids = append(pids, strings.Fields(string(text))...)
	}
	if len(pids) != 1 {
		t.Fatalf("the shim has the children %v", pids)
	}
	return pids
}

func TestWithoutAWorkingSandboxNothingStarts(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{"it is missing": "/nowhere/bwrap", "it is broken": "/bin/false", "it does nothing": "/bin/true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := drivertest.NewFixture(t, func(t testing.TB, folder string) drivertest.Subject {
				return subject(t, local.Config{Folder: folder, Program: program})
			})
			caps, err := b.Capabilities(t.Context())
			if err != nil || caps.Ready || !strings.Contains(caps.Problem, "--sandbox none") {
				t.Errorf("%v, %+v", err, caps)
			}
			s := b.Spec(t, "true")
			if _, err := b.Driver.Submit(t.Context(), executor.NoRun, s); !fault.Is(err, fault.KindUnavailable) {
				t.Errorf("submitted: %v", err)
			}
			if seen, _ := b.Snapshot(t.Context()); len(seen) > 0 {
				t.Errorf("something ran: %+v", seen)
			}
		})
	}
}

func TestATaskOfARootServerHasAUserOfItsOwn(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("the server is a plain user, and its tasks are the same one")
	}
	b := drivertest.NewFixture(t, boxed)
	first, second := b.Spec(t, "touch made; sleep 600"), b.Spec(t, "touch made; sleep 600")
	b.Submit(t, first)
	b.Submit(t, second)
	owner := func(s executor.Spec) (user uint32) {
		drivertest.Eventually(t, func() bool {
			var made syscall.Stat_t
			err := syscall.Stat(filepath.Join(s.Work(), "made"), &made)
			user = made.Uid
			return err == nil
		}, func() string { return "the task makes no file" })
		return user
	}
	if one, other := owner(first), owner(second); one < 1_900_000_000 || other < 1_900_000_000 || one == other {
		t.Errorf("the users are %d and %d", one, other)
	}
}

func TestAPathMayBeginInTheWorkingFolder(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	s := b.Spec(t, "ignored")
	s.Interpreter, s.Env = "own", map[string]string{"PATH": "bin:/usr/bin:/bin"}
	if err := os.Mkdir(filepath.Join(s.Work(), "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(s.Work(), "bin", "own"), "#!/bin/sh\necho found\n", 0o755)
	if got := probe(t, b, s); got != "found\n" {
		t.Errorf("it says %q", got)
	}
}

// Values of a path decide whether the host's program is the one of the sandbox.
func TestAProgramThatTheSandboxDoesNotShowIsLookedForByItsShell(t *testing.T) {
	t.Parallel()
	b := drivertest.NewFixture(t, boxed)
	dir := t.TempDir()
	text, err := os.ReadFile("/usr/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(dir, "hidden"), string(text), 0o755)
	place(t, filepath.Join(dir, "true"), string(text), 0o755)
	s := b.Spec(t, "hidden")
	s.Env = map[string]string{"PATH": dir + ":/usr/bin"}
	if seen := b.Do(t, s); seen.Exit == nil || seen.Exit.Code != 127 || seen.Reason != executor.ExitedNonZero {
		t.Errorf("a program of the host: %+v", seen)
	}
	s = b.Spec(t, "true")
	s.Env = map[string]string{"PATH": dir + ":/usr/bin"}
	if seen := b.Do(t, s); seen.Reason != executor.ExitedZero {
		t.Errorf("a program that both have: %+v", seen)
	}
}

// An image that nobody used goes, and may come again in the same place.
func TestAnImageThatCameAgainIsSeenAsItIs(t *testing.T) {
	t.Parallel()
	b := newRunBench(t)
	root, again := smallRoot(t), smallRoot(t)
	place(t, filepath.Join(again, "etc", "issue"), "again\n", 0o644)
	see := func(run ids.Run) string {
		t.Helper()
		b.run = run
		s := b.next(t, "read x < /etc/issue; echo $x")
		s.Interpreter, s.Root = "sh", root
		return probe(t, b.Fixture, s)
	}
	run := ids.NewRun()
	if got := see(run); got != "small\n" {
		t.Fatalf("the image says %q", got)
	}
	if err := os.Rename(root, root+"-old"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(root + "-old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(again, root); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]ids.Run{"the same run": run, "another run": ids.NewRun()} {
		if got := see(run); got != "again\n" {
			t.Errorf("in %s it says %q", name, got)
		}
	}
}
