package local

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
)

// capacity is CPU and memory that attempts share.
type capacity struct {
	vcpu   float64
	memory int64
}

// share is what a task has of the machine.
type share struct {
	Key       executor.Key `json:"key"`
	VCPU      float64      `json:"vcpu"`
	Memory    int64        `json:"memory"`
	SharedGPU bool         `json:"sharedGPU,omitempty"`
	Devices   []int        `json:"devices,omitempty"`
}

// sharedDevices are the GPUs that all attempts of a run may use.
type sharedDevices struct {
	devices []int
	users   int
}

// room says what the machine has for attempts, and what of it they use.
type room struct {
	machine capacity
	gpus    int
	used    capacity
	running int
	devices map[int]bool
	shared  map[ids.Run]*sharedDevices
}

func newRoom(c Config) room {
	return room{machine: machineCapacity(c), gpus: cmp.Or(c.GPUs, countGPUs()), devices: map[int]bool{}, shared: map[ids.Run]*sharedDevices{}}
}

// fits reports whether an attempt can run beside those that do. One that is
// larger than the machine runs alone. A try of the sandbox always fits: what an earlier
// server has started must not keep this one from serving.
func (r *room) fits(s executor.Spec) bool {
	if isTry(s.Key) {
		return true
	}
	if r.sharedBy(s.SharedGPU, s.Key.Run) == nil && s.GPU > r.gpus-len(r.devices) {
		return false
	}
	const rounding = 1e-9
	together := r.used.vcpu+s.VCPU <= r.machine.vcpu+rounding && r.used.memory+s.MemoryBytes <= r.machine.memory
	return together || r.running == 0
}

// take gives an attempt its share, with devices.
func (r *room) take(s executor.Spec) share {
	if isTry(s.Key) {
		s = executor.Spec{Key: s.Key}
	}
	taken := share{Key: s.Key, VCPU: s.VCPU, Memory: s.MemoryBytes, SharedGPU: s.SharedGPU}
	if shared := r.sharedBy(s.SharedGPU, s.Key.Run); shared != nil {
		taken.Devices = shared.devices
	}
	for device := 0; len(taken.Devices) < s.GPU; device++ {
		if !r.devices[device] {
			taken.Devices = append(taken.Devices, device)
		}
	}
	r.occupy(taken)
	return taken
}

// sharedBy are those that an attempt shares with others of its run, if it does
// and they have them.
func (r *room) sharedBy(shares bool, run ids.Run) *sharedDevices {
	if !shares {
		return nil
	}
	return r.shared[run]
}

func (r *room) occupy(s share) {
	r.running++
	r.used.vcpu += s.VCPU
	r.used.memory += s.Memory
	for _, device := range s.Devices {
		r.devices[device] = true
	}
	if s.SharedGPU {
		if r.shared[s.Key.Run] == nil {
			r.shared[s.Key.Run] = &sharedDevices{devices: s.Devices}
		}
		r.shared[s.Key.Run].users++
	}
}

func (r *room) free(s share) {
	r.running--
	r.used.vcpu -= s.VCPU
	r.used.memory -= s.Memory
	r.freeDevices(s)
	if r.running == 0 {
		r.used = capacity{} // sums of fractions drift
	}
}

// freeDevices frees those of a share, if no other has them.
func (r *room) freeDevices(s share) {
	if shared := r.sharedBy(s.SharedGPU, s.Key.Run); shared != nil {
		if shared.users--; shared.users > 0 {
			return
		}
		delete(r.shared, s.Key.Run)
	}
	for _, device := range s.Devices {
		delete(r.devices, device)
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
