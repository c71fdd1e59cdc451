package engine

import (
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/engine/taskenv"
)

// resourcesOf are what a shard takes of the run's size: by default one vCPU and its
// share of the memory, and all of it where it launches a pipeline. memory in GB
// takes the place of what the node says, after an attempt that ran out of it; 0: none
// did.
func resourcesOf(n *graph.Node, size credits.Size, memory float64) (vcpu, ramGB float64, gpu int) {
	vcpu, ramGB, gpu = taskenv.VCPUOf(n, size), n.Resources.RAMGB, n.Resources.GPU
	if pipeline.LaunchedBy(n) != "" {
		gpu = size.GPU
	}
	if ramGB == 0 {
		ramGB = float64(size.RAMGB) * vcpu / float64(size.VCPU)
	}
	if memory > 0 {
		ramGB = min(memory, float64(size.RAMGB))
	}
	return vcpu, ramGB, gpu
}

// fits reports whether tasks that take so much together fit a size. Sums of fractions
// come out a little too large: ten tasks of a tenth of a vCPU are one.
func fits(vcpu, ramGB float64, gpu int, size credits.Size) bool {
	const rounding = 1e-9
	return vcpu <= float64(size.VCPU)+rounding && ramGB <= float64(size.RAMGB)+rounding && gpu <= size.GPU
}
