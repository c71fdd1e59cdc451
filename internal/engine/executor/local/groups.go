package local

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

const cpuPeriod = 100_000 // microseconds

// groups are the control groups that this server may write to, of version 1
// or 2, or none. Each slot has a group, which serves one attempt after the
// other: making and removing one for every task would take longer than some
// tasks.
type groups struct {
	v1 map[string]string // folder by controller
	v2 string            // folder, whose children have the controllers

	mu  sync.Mutex
	set map[int]limits // of each slot's group of version 1
}

// limits are what a group holds an attempt to.
type limits struct {
	vcpu   float64
	memory int64
}

// findGroups looks where this process is, and makes a folder there.
func findGroups(folder string) *groups {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(folder))
	name := fmt.Sprintf("millrace-%08x", sum.Sum32())
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return &groups{}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return &groups{}
	}
	v1, v2 := ownGroups(string(self), string(mounts))
	g := &groups{v1: map[string]string{}, set: map[int]limits{}}
	for _, controller := range []string{"memory", "cpu", "pids"} {
		if base := filepath.Join(v1[controller], name); v1[controller] != "" && makeGroup(base) == nil {
			g.v1[controller] = base
		}
	}
	if v1["memory"] == "" && v2 != "" {
		g.v2 = enableV2(v2, name)
	}
	return g
}

// ownGroups reads where a process is: the folder by controller of version 1,
// and the one of version 2.
func ownGroups(self, mountinfo string) (v1 map[string]string, v2 string) {
	v1 = map[string]string{}
	for line := range strings.Lines(self) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		if part[1] == "" {
			v2 = groupPath(mountinfo, "cgroup2", "", part[2])
			continue
		}
		for controller := range strings.SplitSeq(part[1], ",") {
			v1[controller] = groupPath(mountinfo, "cgroup", controller, part[2])
		}
	}
	return v1, v2
}

// groupPath finds a group in the file system. In a container only a part of
// the tree is mounted.
func groupPath(mountinfo, kind, controller, group string) string {
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 || g[0] != kind {
			continue
		}
		if controller != "" && !slices.Contains(strings.Split(g[2], ","), controller) {
			continue
		}
		return filepath.Join(f[4], strings.TrimPrefix(group, strings.TrimSuffix(f[3], "/")))
	}
	return ""
}

func makeGroup(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}

// serverLeaf is where the server itself goes in version 2: a group that hands
// out controllers must not hold processes of its own.
const serverLeaf = "millrace-server"

// enableV2 makes a folder whose children have the controllers, or returns
// nothing.
func enableV2(own, name string) string {
	own = strings.TrimSuffix(own, "/"+serverLeaf)
	base := filepath.Join(own, name)
	if enable(own) != nil {
		if makeGroup(filepath.Join(own, serverLeaf)) != nil || moveAll(own, filepath.Join(own, serverLeaf)) != nil || enable(own) != nil {
			return ""
		}
	}
	if makeGroup(base) != nil || enable(base) != nil {
		return ""
	}
	return base
}

func enable(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory +cpu +pids"), 0o644)
}

func moveAll(from, to string) error {
	pids, err := os.ReadFile(filepath.Join(from, "cgroup.procs"))
	if err != nil {
		return err
	}
	for pid := range strings.FieldsSeq(string(pids)) {
		if err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(pid), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (g *groups) notEnforced() []string {
	var not []string
	for _, controller := range []string{"memory", "cpu"} {
		if g.v2 == "" && g.v1[controller] == "" {
			not = append(not, controller)
		}
	}
	return not
}

func slotName(slot int) string { return "slot-" + strconv.Itoa(slot) }

// slot sets the limits of a slot's group. What it could not limit is named.
func (g *groups) slot(slot int, s executor.Spec) (c shim.Cgroup, notEnforced []string) {
	if g.v2 != "" {
		return g.slotV2(filepath.Join(g.v2, slotName(slot)), s)
	}
	held := map[string]bool{}
	for controller, base := range g.v1 {
		dir := filepath.Join(base, slotName(slot))
		if !g.hasLimits(slot, s) && (makeGroup(dir) != nil || limitV1(controller, dir, s) != nil) {
			continue
		}
		held[controller] = true
		c.Threads = append(c.Threads, filepath.Join(dir, "tasks"))
		if controller == "memory" {
			c.OOM, c.Memory, c.MemoryKey = filepath.Join(dir, "memory.oom_control"), filepath.Join(dir, "memory.stat"), "rss"
		}
	}
	for _, controller := range []string{"memory", "cpu"} {
		if !held[controller] {
			notEnforced = append(notEnforced, controller)
		}
	}
	g.setLimits(slot, s, len(held) > 0 && len(held) == len(g.v1))
	slices.Sort(c.Threads)
	return c, notEnforced
}

// hasLimits reports whether the slot's groups have these limits already: the next
// task of a scatter asks for the same as the one before.
func (g *groups) hasLimits(slot int, s executor.Spec) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	set, ok := g.set[slot]
	return ok && set == limits{s.VCPU, s.MemoryBytes}
}

func (g *groups) setLimits(slot int, s executor.Spec, all bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.set, slot)
	if all {
		g.set[slot] = limits{s.VCPU, s.MemoryBytes}
	}
}

func limitV1(controller, dir string, s executor.Spec) error {
	switch controller {
	case "memory":
		most := int64(-1)
		if s.MemoryBytes > 0 {
			most = s.MemoryBytes
		}
		const memory, withSwap = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
		// The second must never be below the first, so one of the orders fails.
		_ = set(dir, withSwap, most)
		err := set(dir, memory, most)
		_ = set(dir, withSwap, most)
		return err
	case "cpu":
		quota := int64(-1)
		if s.VCPU > 0 {
			quota = quotaOf(s.VCPU)
		}
		return set(dir, "cpu.cfs_quota_us", quota)
	case "pids":
		return set(dir, "pids.max", shim.MaxProcesses)
	}
	return nil
}

func quotaOf(vcpu float64) int64 { return int64(math.Max(1000, vcpu*cpuPeriod)) }

func (g *groups) slotV2(dir string, s executor.Spec) (shim.Cgroup, []string) {
	if makeGroup(dir) != nil {
		return shim.Cgroup{}, []string{"memory", "cpu"}
	}
	memory, cpu := "max", "max"
	if s.MemoryBytes > 0 {
		memory = strconv.FormatInt(s.MemoryBytes, 10)
	}
	if s.VCPU > 0 {
		cpu = strconv.FormatInt(quotaOf(s.VCPU), 10)
	}
	_ = write(dir, "memory.swap.max", "0") // there is none without swap
	_ = write(dir, "pids.max", strconv.Itoa(shim.MaxProcesses))
	var not []string
	if write(dir, "memory.max", memory) != nil {
		not = append(not, "memory")
	}
	if write(dir, "cpu.max", cpu+" "+strconv.Itoa(cpuPeriod)) != nil {
		not = append(not, "cpu")
	}
	return shim.Cgroup{
		Folder: dir, OOM: filepath.Join(dir, "memory.events"), CPU: filepath.Join(dir, "cpu.stat"),
		Memory: filepath.Join(dir, "memory.stat"), MemoryKey: "anon",
	}, not
}

func set(dir, file string, n int64) error { return write(dir, file, strconv.FormatInt(n, 10)) }

func write(dir, file, text string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644)
}

// forget has the slot's groups made again, with their limits.
func (g *groups) forget(slot int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.set, slot)
}

// end ends what is left in the groups of a slot, and reports whether they are empty.
func (g *groups) end(slot int) (empty bool) {
	empty = true
	for _, base := range g.bases() {
		pids, _ := os.ReadFile(filepath.Join(base, slotName(slot), "cgroup.procs"))
		for field := range strings.FieldsSeq(string(pids)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 1 && pid != os.Getpid() {
				empty = false
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	return empty
}

// bases are the folders in which the groups of slots are.
func (g *groups) bases() (bases []string) {
	for _, base := range g.v1 {
		bases = append(bases, base)
	}
	if g.v2 != "" {
		bases = append(bases, g.v2)
	}
	return bases
}

// isFrozen reports whether a process is in a group of version 2 that is frozen.
func isFrozen(pid int) bool {
	self, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return false
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	_, group := ownGroups(string(self), string(mounts))
	events, err := os.ReadFile(filepath.Join(group, "cgroup.events"))
	return err == nil && group != "" && strings.Contains("\n"+string(events), "\nfrozen 1\n")
}

// remove gives the groups back. The kernel may need a moment after the last
// process has left.
func (g *groups) remove() {
	for _, base := range g.bases() {
		slots, _ := filepath.Glob(filepath.Join(base, "slot-*"))
		for _, dir := range append(slots, base) {
			for tries := 0; os.Remove(dir) != nil && tries < 50; tries++ {
				time.Sleep(2 * time.Millisecond)
			}
		}
	}
}
