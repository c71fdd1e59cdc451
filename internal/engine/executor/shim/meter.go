package shim

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// sampleEvery is how often usage is written down; what must not be exceeded is
// looked at with every tick.
const sampleEvery = time.Second

// meter watches what the command uses.
type meter struct {
	launch Launch
	tree   tree // of the command

	cpu0, oom0 int64 // of the group, which has served others before
	peak       int64
	cpu        time.Duration // of the last sample
	sampled    time.Time
	disk       *disk // nil without a limit
	still      standstill
}

func newMeter(f Folder, l Launch) *meter {
	m := &meter{launch: l}
	if l.Disk > 0 {
		m.disk = newDisk(f, l.Disk)
	}
	if l.Cgroup.Exists() {
		m.cpu0 = groupCPU(l.Cgroup.CPU)
	}
	m.oom0 = line(l.Cgroup.OOM, "oom_kill")
	return m
}

// look returns a sample when one is due, and whether the command uses more
// memory than it may where no group holds it.
func (m *meter) look(now time.Time) (sampled *Usage, overMemory bool) {
	sample := now.Sub(m.sampled) >= sampleEvery
	alone := m.alone()
	if sample || alone {
		u := m.usage(now)
		m.peak, m.cpu = max(m.peak, u.Memory), u.CPU
		if sample {
			m.sampled, sampled = now, &u
		}
		if alone && (u.Memory > m.launch.Memory && proportional(m.tree.all(), u.Memory) > m.launch.Memory || inMemory(m.tree.all()) > m.launch.Memory) {
			return sampled, true
		}
	}
	return sampled, false
}

// alone reports whether no group holds the memory.
func (m *meter) alone() bool { return m.launch.Memory > 0 && m.launch.Cgroup.Memory == "" }

// usage asks the group where it knows, and otherwise sums up the processes. A
// group of version 1 may take its time to know of a small process.
func (m *meter) usage(now time.Time) Usage {
	u := Usage{At: now, Suspended: m.still.suspended(now)}
	if m.disk != nil {
		u.Disk = m.disk.used.bytes
	}
	g := m.launch.Cgroup
	if g.CPU != "" {
		u.CPU = time.Duration(groupCPU(g.CPU) - m.cpu0)
	}
	u.Memory = line(g.Memory, g.MemoryKey)
	if g.CPU != "" && u.Memory > 0 {
		return u
	}
	var sum Usage
	for _, pid := range m.tree.all() {
		cpu, memory := processUsage(pid)
		sum.CPU += cpu
		sum.Memory += memory
	}
	if g.CPU == "" {
		u.CPU = sum.CPU
	}
	if u.Memory == 0 {
		u.Memory = sum.Memory
	}
	return u
}

// finish adds to the record what the meter knows better.
func (m *meter) finish(e *Exit) {
	e.Suspended = m.still.suspended(time.Now())
	e.MaxRSS = max(e.MaxRSS, m.peak)
	g := m.launch.Cgroup
	if g.CPU != "" {
		e.CPUTime = max(e.CPUTime, time.Duration(groupCPU(g.CPU)-m.cpu0))
	}
	// A group outlives its tasks, so only a kill since the start counts.
	if e.Code != 0 && g.OOM != "" && line(g.OOM, "oom_kill") > m.oom0 {
		e.OOM = true
	}
	if m.disk != nil && e.Code != 0 && m.disk.full() {
		e.OutOfDisk = true
	}
}

// groupCPU reads both versions: a bare number of nanoseconds, or a line of
// microseconds.
func groupCPU(file string) int64 {
	text, _ := rawfile.Read(file)
	if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
		return n
	}
	return line(file, "usage_usec") * 1000
}

// line is the number behind a key, or 0.
func line(file, key string) int64 {
	if file == "" {
		return 0
	}
	text, _ := rawfile.Read(file)
	for l := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(l), " "); ok && name == key {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

// clockTicks is USER_HZ, 100 on every architecture that Go runs on.
const clockTicks = 100

func processUsage(pid int) (cpu time.Duration, memory int64) {
	f := processes.Stat(processes.Living(pid))
	if len(f) < 22 {
		return 0, 0
	}
	at := func(i int) int64 { n, _ := strconv.ParseInt(f[i], 10, 64); return n }
	// Own time and that of children waited for; fields are counted from the state.
	ticks := at(11) + at(12) + at(13) + at(14)
	return time.Duration(ticks) * time.Second / clockTicks, at(21) * int64(os.Getpagesize())
}

// proportional is the memory of processes with shared pages counted once,
// or otherwise where the kernel does not count that.
func proportional(pids []int, otherwise int64) int64 {
	var sum int64
	for _, pid := range pids {
		text, _ := rawfile.Read(processes.Living(pid) + "/smaps_rollup")
		for l := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(l, "Pss:"); ok {
				n, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
				sum += n << 10
			}
		}
	}
	if sum == 0 {
		return otherwise
	}
	return sum
}

// inMemory is what the files in memory take up that processes have open and
// that have no name. Reading and writing them shows in the size of no process.
func inMemory(pids []int) (bytes int64) {
	seen := map[inode]bool{}
	for _, pid := range pids {
		list := processes.Living(pid) + "/fd"
		entries, _ := os.ReadDir(list)
		for _, entry := range entries {
			var s unix.Stat_t
			link, err := os.Readlink(list + "/" + entry.Name())
			if err != nil || !strings.HasPrefix(link, "/memfd:") && !strings.HasPrefix(link, "/dev/shm/") || unix.Stat(list+"/"+entry.Name(), &s) != nil {
				continue
			}
			if id := (inode{s.Dev, s.Ino}); !seen[id] {
				seen[id] = true
				bytes += s.Blocks * 512
			}
		}
	}
	return bytes
}
