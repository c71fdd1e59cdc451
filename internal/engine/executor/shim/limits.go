package shim

import "github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"

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
