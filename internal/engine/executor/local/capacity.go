package local

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor"
)

// capacity is CPU and memory that attempts share.
type capacity struct {
	vcpu   float64
	memory int64
}

// fits reports whether an attempt can run beside those that do. One that is
// larger than the machine runs alone.
func (d *Driver) fits(s executor.Spec) bool {
	if d.sharedBy(s) == nil && s.GPU > d.gpus-len(d.devices) {
		return false
	}
	const rounding = 1e-9
	together := d.used.vcpu+s.VCPU <= d.machine.vcpu+rounding && d.used.memory+s.MemoryBytes <= d.machine.memory
	return together || d.running == 0
}

// allocate gives an attempt its capacity, a slot of its own, and its devices.
func (d *Driver) allocate(a *attempt) {
	for a.slot = 0; d.slots[a.slot]; {
		a.slot++
	}
	if s := d.sharedBy(a.spec); s != nil {
		a.devices = s.devices
	}
	for device := 0; len(a.devices) < a.spec.GPU; device++ {
		if !d.devices[device] {
			a.devices = append(a.devices, device)
		}
	}
	d.occupy(a)
}

// sharedDevices are the GPUs that all attempts of a run may use.
type sharedDevices struct {
	devices []int
	users   int
}

// sharedBy are those that an attempt shares with others of its run, if it does
// and they have them.
func (d *Driver) sharedBy(s executor.Spec) *sharedDevices {
	if !s.SharedGPU {
		return nil
	}
	return d.shared[s.Key.Run]
}

func (d *Driver) occupy(a *attempt) {
	a.allocated = true
	d.running++
	d.slots[a.slot] = true
	d.used.vcpu += a.spec.VCPU
	d.used.memory += a.spec.MemoryBytes
	for _, device := range a.devices {
		d.devices[device] = true
	}
	if a.spec.SharedGPU {
		if d.shared[a.spec.Key.Run] == nil {
			d.shared[a.spec.Key.Run] = &sharedDevices{devices: a.devices}
		}
		d.shared[a.spec.Key.Run].users++
	}
}

// freeDevices frees an attempt's devices, if no other shares them.
func (d *Driver) freeDevices(a *attempt) {
	if s := d.sharedBy(a.spec); s != nil {
		if s.users--; s.users > 0 {
			return
		}
		delete(d.shared, a.spec.Key.Run)
	}
	for _, device := range a.devices {
		delete(d.devices, device)
	}
}

func (d *Driver) free(a *attempt) {
	if !a.allocated {
		return
	}
	a.allocated = false
	d.running--
	delete(d.slots, a.slot)
	d.used.vcpu -= a.spec.VCPU
	d.used.memory -= a.spec.MemoryBytes
	d.freeDevices(a)
	a.slot, a.devices = 0, nil
	if d.running == 0 {
		d.used = capacity{} // sums of fractions drift
	}
}

func machineCapacity(c Config) capacity {
	r := capacity{vcpu: c.VCPU, memory: c.MemoryBytes}
	if r.vcpu == 0 {
		r.vcpu = float64(runtime.NumCPU())
	}
	if r.memory == 0 {
		r.memory = totalMemory()
	}
	return r
}

func totalMemory() int64 {
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemTotal:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			return kb << 10
		}
	}
	return 0
}

func countGPUs() int {
	found, _ := filepath.Glob("/dev/nvidia[0-9]*")
	return len(found)
}
