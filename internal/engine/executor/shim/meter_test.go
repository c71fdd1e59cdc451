package shim

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// file is a file of a group, as the kernel shows it.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "group")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAGroupIsReadInBothVersions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1234567890\n": 1234567890, "usage_usec 1500\nuser_usec 1000\n": 1_500_000, "user_usec 7\nusage_usec 2\n": 2000, "": 0, "usage_usec\n": 0, "usage_usec x\n": 0, "1 2\n": 0,
	} {
		if got := groupCPU(file(t, text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	events := file(t, "low 1\noom 2\noom_kill 3\noom_group_kill 4\n")
	for key, want := range map[string]int64{"oom_kill": 3, "oom": 2, "kill": 0, "": 0} {
		if got := line(events, key); got != want {
			t.Errorf("%s: %d, want %d", key, got, want)
		}
	}
	if line("", "oom_kill") != 0 || line("/no/such/file", "oom_kill") != 0 || groupCPU("/no/such/file") != 0 {
		t.Error("what is not there has a number")
	}
}

// A group outlives its commands: only what happened since one began is its own.
func TestOnlyWhatHappenedSinceTheStartCounts(t *testing.T) {
	t.Parallel()
	group := Cgroup{Folder: "/group", OOM: file(t, "oom_kill 5\n"), CPU: file(t, "usage_usec 1000\n")}
	for name, tt := range map[string]struct {
		oom  string
		code int
		want bool
	}{
		"a kill of one before": {"oom_kill 5\n", 137, false},
		"a kill of its own":    {"oom_kill 6\n", 137, true},
		"it ended well":        {"oom_kill 6\n", 0, false}, // something below it was killed, and it coped
		"it is gone":           {"", 137, false},
	} {
		m := newMeter(Folder(t.TempDir()), Launch{Cgroup: group})
		m.launch.Cgroup.OOM, m.launch.Cgroup.CPU = file(t, tt.oom), file(t, "usage_usec 4000\n")
		m.peak = 100
		e := Exit{Code: tt.code, MaxRSS: 50, CPUTime: time.Microsecond}
		if m.finish(&e); e.OOM != tt.want || e.CPUTime != 3*time.Millisecond || e.MaxRSS != 100 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// A program that fails because its disk is full ends by itself.
func TestACommandThatFailsWithAFullDiskIsOutOfDisk(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		most int64
		code int
		want bool
	}{
		"it failed, and the disk is full":   {4 << 10, 1, true},
		"it failed, and there is room":      {1 << 30, 1, false},
		"it has made do with what it has":   {4 << 10, 0, false},
		"it failed, and nothing is bounded": {0, 1, false},
	} {
		f := Folder(t.TempDir())
		if err := os.Mkdir(f.path(WorkFolder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(f.path(WorkFolder), "a"), make([]byte, 64<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		e := Exit{Code: tt.code}
		if newMeter(f, Launch{Disk: tt.most}).finish(&e); e.OutOfDisk != tt.want {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// takesMemory has this program take up memory until its input ends.
const takesMemory = "MILLRACE_TEST_TAKES_MEMORY"

const taken = 32 << 20

func takeMemory() {
	held := bytes.Repeat([]byte("x"), taken)
	_, _ = os.Stdout.WriteString("up")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(int(held[0]))
}

// up starts a command, and returns once it has said something. It ends with the test.
func up(t *testing.T, c *exec.Cmd) (pid int) {
	t.Helper()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return c.Process.Pid
}

// The name of a process may look like the numbers that follow it.
func TestWhatAProcessUsesWhateverItIsCalled(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plain", "a) R 1 (b", "1 2 3 4 5 6 7", ")"} {
		program := filepath.Join(t.TempDir(), name)
		if err := os.Symlink(self, program); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(program)
		c.Env = []string{takesMemory + "=1"}
		if cpu, memory := processUsage(up(t, c)); memory < taken || memory > 32*taken || cpu > time.Hour {
			t.Errorf("%q uses %s and %d bytes", name, cpu, memory)
		}
	}
	if cpu, memory := processUsage(1 << 30); cpu != 0 || memory != 0 {
		t.Errorf("nobody uses %s and %d bytes", cpu, memory)
	}
}

// What all threads share is seen when the first of them has ended.
func TestWhatAProcessUsesWithoutItsFirstThread(t *testing.T) {
	t.Parallel()
	c := exec.Command("/proc/self/exe")
	c.Env, c.Dir = []string{holds + "=a process without its first thread"}, t.TempDir()
	pid := up(t, c)
	if _, memory := processUsage(pid); memory == 0 {
		t.Error("it has no memory")
	}
	if memory := proportional([]int{pid}, 0); memory == 0 {
		t.Error("it has no part of a memory")
	}
}

// Where no group holds the memory, files in memory count as well, each once.
func TestFilesInMemoryCount(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	fd, err := rawfile.Memory(make([]byte, size))
	if err != nil {
		t.Fatal(err)
	}
	held := os.NewFile(uintptr(fd), "memory")
	defer held.Close()
	c := exec.Command("sh", "-c", "exec 4<&3; echo up; read -r line")
	c.ExtraFiles = []*os.File{held} // which is its descriptor 3
	pid := up(t, c)
	got := inMemory([]int{pid})
	m := newMeter("", Launch{Memory: size - 1})
	m.tree = tree{top: pid}
	sampled, over := m.look(time.Now())
	m.launch.Memory = size << 4
	_, room := m.look(time.Now())
	if got != size {
		t.Errorf("%d bytes in memory, want %d", got, size)
	}
	if sampled == nil || sampled.Memory == 0 || !over || room {
		t.Errorf("%+v, over: %t, with room: %t", sampled, over, room)
	}
}

// A sample comes once a second, not with every look.
func TestSamplesAreFarBetween(t *testing.T) {
	t.Parallel()
	m := newMeter("", Launch{Cgroup: Cgroup{CPU: file(t, "5000\n"), Memory: file(t, "anon 4096\nfile 1\n"), MemoryKey: "anon"}})
	now := time.Now()
	first, over := m.look(now)
	if first == nil || first.CPU != 5*time.Microsecond || first.Memory != 4096 || over {
		t.Errorf("%+v, over: %t", first, over)
	}
	for after, want := range map[time.Duration]bool{sampleEvery - 1: false, sampleEvery: true} {
		m.sampled = now
		if got, _ := m.look(now.Add(after)); (got != nil) != want {
			t.Errorf("after %s: %+v", after, got)
		}
	}
	if m.peak != 4096 {
		t.Errorf("the most was %d", m.peak)
	}
}
