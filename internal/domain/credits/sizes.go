package credits

import (
	"fmt"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Size is what a run computes on.
type Size struct {
	VCPU  int
	RAMGB int
	GPU   int
}

// Plus is both sizes together.
func (s Size) Plus(o Size) Size {
	return Size{VCPU: s.VCPU + o.VCPU, RAMGB: s.RAMGB + o.RAMGB, GPU: s.GPU + o.GPU}
}

// Custom is a size as a caller asks for it. Accelerators come with a profile
// only.
type Custom struct {
	VCPU  int
	RAMGB int
}

// GPUProfile is the one named preset.
const GPUProfile = "gpu"

// What a size may be. The upper bounds are far above any machine there is;
// they catch a slip of the finger before a plan without caps pays for it.
const (
	minRAMPerVCPU = 4
	maxVCPU       = 1024
	maxRAMGB      = 32768
)

// DefaultSize is what a run gets that asks for nothing.
func DefaultSize() Size { return Size{VCPU: 2, RAMGB: 8} }

// Resolve turns what a caller asked for into a size. A custom size takes
// precedence over the profile; with neither it is the default. When something
// is wrong it says everything that is, and the size means nothing.
func Resolve(custom *Custom, profile string) (Size, []fault.Detail) {
	var problems []fault.Detail
	size := DefaultSize()
	switch profile {
	case "":
	case GPUProfile:
		size = Size{VCPU: 4, RAMGB: 16, GPU: 1}
	default:
		problems = append(problems, fault.Detail{
			Path: "resourceProfile", Message: fmt.Sprintf("there is no profile %q; the only one is %q", profile, GPUProfile),
		})
	}
	if custom != nil {
		size = Size{VCPU: custom.VCPU, RAMGB: custom.RAMGB}
		problems = append(problems, custom.problems()...)
	}
	return size, problems
}

func (c Custom) problems() (found []fault.Detail) {
	note := func(path, format string, args ...any) {
		found = append(found, fault.Detail{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if c.VCPU < 1 || c.VCPU > maxVCPU {
		note("compute.vcpu", "must be a whole number from 1 to %d", maxVCPU)
	}
	switch {
	case c.RAMGB < minRAMPerVCPU || c.RAMGB > maxRAMGB:
		note("compute.ramGb", "must be a whole number from %d to %d", minRAMPerVCPU, maxRAMGB)
	case c.VCPU <= maxVCPU && c.RAMGB < minRAMPerVCPU*c.VCPU:
		note("compute.ramGb", "must be at least %d GB for each vCPU, here %d", minRAMPerVCPU, minRAMPerVCPU*c.VCPU)
	}
	return found
}
