package shim

import "golang.org/x/sys/unix"

// bound is a second line: it holds single files and processes, while the meter
// watches all of them together. Twice the memory that is allowed leaves the
// meter the time to distinguish a task that needs too much from one that fails for
// another reason. The process has only just begun, and whatever it starts
// inherits its limits. A reaper bounds its command itself.
func (l Launch) bound(pid int) {
	if l.Reaped {
		return
	}
	if l.Disk > 0 {
		limit(pid, unix.RLIMIT_FSIZE, l.Disk)
	}
	if l.Memory > 0 && l.Cgroup.Memory == "" {
		limit(pid, unix.RLIMIT_DATA, l.Memory*2+64<<20)
	}
}

func limit(pid, which int, most int64) {
	_ = unix.Prlimit(pid, which, &unix.Rlimit{Cur: uint64(most), Max: uint64(most)}, nil)
}
