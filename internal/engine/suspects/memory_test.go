package suspects

import "testing"

// TestMemoryCountsStacks is not parallel: another test would change what is in use.
func TestMemoryCountsStacks(t *testing.T) {
	before := memory()
	if after := memoryAtDepth(2 * memoryGrowth / frame); after < before+memoryGrowth {
		t.Errorf("%d bytes are in use, and %d under %d bytes of stack", before, after, 2*memoryGrowth)
	}
}

const frame = 64 << 10

// memoryAtDepth returns what is in use below so many frames.
func memoryAtDepth(depth int) uint64 {
	var local [frame]byte
	local[depth%frame] = 1
	if depth == 0 {
		return memory()
	}
	return memoryAtDepth(depth-1) * uint64(local[depth%frame])
}
