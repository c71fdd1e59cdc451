package shim

import (
	"slices"

	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
)

// limits are a second line: they hold single files and processes, while the
// meter watches all of them together. Twice the memory that is allowed leaves
// the meter the time to distinguish a task that needs too much from one that
// fails for another reason.
func (l Launch) limits() firstprocess.Limits {
	limits := firstprocess.Limits{FileSize: l.Disk}
	if l.Memory > 0 && l.Cgroup.Memory == "" {
		limits.Data = l.Memory*2 + 64<<20
	}
	return limits
}

// roomy is a limit on each file that is far above what a shim writes itself.
const roomy = 1 << 30

// Limit has the command held to its limits where no sandbox does that, from its first
// instruction on. Where the shim can live with them it holds itself to them, since all that
// it starts inherits them. Otherwise another process does, and becomes the command.
func (p Program) Limit(l *Launch) error {
	switch limits := l.limits(); {
	case limits == firstprocess.Limits{}:
		return nil
	case limits.Data == 0 && limits.FileSize >= max(roomy, 2*l.Log):
		return limits.Set()
	default:
		l.Argv = slices.Concat(p, []string{limitFlag}, limits.Arguments(), l.Argv)
		return nil
	}
}
