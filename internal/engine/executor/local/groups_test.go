package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor"
)

const mountinfo = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
31 22 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 22 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`

func TestAProcessFindsItsOwnGroups(t *testing.T) {
	t.Parallel()
	v1, v2 := ownGroups("4:memory:/docker/abc/inner\n2:cpu,cpuacct:/\n1:name=systemd:/x\n0::/user.slice/me\n", mountinfo)
	for controller, want := range map[string]string{
		"memory": "/sys/fs/cgroup/memory/inner", "cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct", "pids": "",
	} {
		if v1[controller] != want {
			t.Errorf("%s is at %q, want %q", controller, v1[controller], want)
		}
	}
	if v2 != "/sys/fs/cgroup/unified/user.slice/me" {
		t.Errorf("version 2 is at %q", v2)
	}
}

func TestVersion2GroupsGetTheirLimits(t *testing.T) {
	t.Parallel()
	own := t.TempDir()
	g := &groups{v2: enableV2(filepath.Join(own, serverLeaf), "millrace-1")}
	if g.v2 != filepath.Join(own, "millrace-1") {
		t.Fatalf("the folder is %q", g.v2)
	}
	c, not := g.slot(7, executor.Spec{VCPU: 1.5, MemoryBytes: 64 << 20})
	if len(not) > 0 || c.Folder != filepath.Join(g.v2, "slot-7") {
		t.Errorf("%+v, not enforced %v", c, not)
	}
	for file, want := range map[string]string{
		"memory.max": "67108864", "memory.swap.max": "0", "cpu.max": "150000 100000", "pids.max": "4096",
	} {
		if text, err := os.ReadFile(filepath.Join(c.Folder, file)); err != nil || string(text) != want {
			t.Errorf("%s is %q, %v; want %q", file, text, err, want)
		}
	}
	if _, not := g.slot(7, executor.Spec{}); len(not) > 0 {
		t.Errorf("without limits: not enforced %v", not)
	}
	if text, _ := os.ReadFile(filepath.Join(c.Folder, "memory.max")); string(text) != "max" {
		t.Errorf("a limit of the task before is left: %q", text)
	}
}

func TestWhatIsNotHeldIsNamed(t *testing.T) {
	t.Parallel()
	_, not := (&groups{}).slot(0, executor.Spec{VCPU: 1, MemoryBytes: 1})
	if slices.Sort(not); !slices.Equal(not, []string{"cpu", "memory"}) {
		t.Errorf("not enforced: %v", not)
	}
}

func TestAGroupThatWasRemovedIsMadeAgain(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	g := &groups{v1: map[string]string{"pids": base}, set: map[int]limits{}}
	spec := executor.Spec{VCPU: 1, MemoryBytes: 1 << 20}
	made := func() bool {
		g.slot(0, spec)
		_, err := os.Stat(filepath.Join(base, "slot-0"))
		return err == nil
	}
	if !made() {
		t.Fatal("not made")
	}
	if err := os.RemoveAll(filepath.Join(base, "slot-0")); err != nil {
		t.Fatal(err)
	}
	if made() {
		t.Error("looked at again for every task")
	}
	g.forget(0)
	if !made() {
		t.Error("not made again")
	}
}

// The kernel's own list of a process's limits tells which of ours it lacks.
func TestUnlimitedNamesTheLimitsOfAProcess(t *testing.T) {
	t.Parallel()
	const held = `Limit                     Soft Limit           Hard Limit           Units
Max file size             1073741824           1073741824           bytes
Max data size             unlimited            unlimited            bytes
Max processes             4096                 4096                 processes
`
	for name, tt := range map[string]struct {
		limits   string
		ofMemory bool
		want     []string
	}{
		"all that it needs":           {held, false, nil},
		"no group holds memory":       {held, true, []string{"memory of a process"}},
		"a soft limit can be raised":  {strings.ReplaceAll(held, "1073741824           1073741824", "1073741824           unlimited "), false, []string{"file size"}},
		"nothing is known about them": {"", true, []string{"file size", "memory of a process", "processes"}},
	} {
		if got := unlimited(tt.limits, tt.ofMemory); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
