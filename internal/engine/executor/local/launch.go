package local

import (
	"errors"
	"os"
	"slices"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// firstUser begins the uids of running attempts, beyond those that
// distributions and containers hand out.
const (
	firstUser = 1_900_000_000
	userBlock = 4096 // slots of one folder
)

// launchOf says how an attempt is carried out in its slot.
func launchOf(s executor.Spec, slot int, devices []int, g *groups, b box) (shim.Launch, error) {
	if err := os.Mkdir(s.Places().Temp, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return shim.Launch{}, err
	}
	l := shim.Launch{
		ID: s.Key.Folder(), Fence: s.Fence, Folder: s.Dir,
		Memory: s.MemoryBytes, Disk: s.DiskBytes, Log: s.LogBytes, Timeout: s.Timeout, Grace: s.Grace, AbandonAfter: s.AbandonAfter, Outputs: s.Outputs, Secrets: s.Secrets,
	}
	var not []string
	l.Cgroup, not = g.slot(slot, s)
	l.NotEnforced = slices.DeleteFunc(not, func(limit string) bool { return limit == "memory" })
	return l, b.fill(&l, s, slot, devices)
}
