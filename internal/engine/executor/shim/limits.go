package shim

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// stage shows folders at a place that a plain user can reach, to this thread
// and the command alone.
func (l Launch) stage() error {
	if l.Stage == "" {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	if err := unix.Mount("tmpfs", l.Stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64k"); err != nil {
		return &os.PathError{Op: "mount", Path: l.Stage, Err: err}
	}
	for _, b := range l.Binds {
		if err := b.make(l.Stage); err != nil {
			return err
		}
	}
	return nil
}

func (b Bind) make(stage string) error {
	info, err := os.Stat(b.From)
	if err != nil {
		return err
	}
	target := filepath.Join(stage, b.Name)
	if info.IsDir() {
		err = os.Mkdir(target, 0o755)
	} else {
		err = os.WriteFile(target, nil, 0o644)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(b.From, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return &os.PathError{Op: "bind", Path: b.From, Err: err}
	}
	return nil
}

// tighten lowers the limits that the command is to inherit, and gives a
// function that lifts the soft ones again for the shim. The hard ones stay, and
// leave the shim room enough: nobody can count on being allowed to change those
// of a process that has another user.
func (l Launch) tighten() (restore func()) {
	limits := l.rlimits()
	for which, limit := range limits {
		var old unix.Rlimit
		if unix.Getrlimit(which, &old) == nil {
			limit.Max = min(limit.Max, old.Max)
			limit.Cur = min(limit.Cur, limit.Max)
			_ = unix.Setrlimit(which, &limit)
			limits[which] = limit
		}
	}
	return func() {
		for which, limit := range limits {
			limit.Cur = limit.Max
			_ = unix.Setrlimit(which, &limit)
		}
	}
}

// rlimits are a second line. They bound single files, while the meter watches
// all of them together.
func (l Launch) rlimits() map[int]unix.Rlimit {
	const spare = 64 << 20
	limits := map[int]unix.Rlimit{unix.RLIMIT_CORE: {}}
	if l.Disk > 0 {
		log := l.Log
		if log == 0 {
			log = defaultLog
		}
		limits[unix.RLIMIT_FSIZE] = unix.Rlimit{Cur: uint64(l.Disk), Max: uint64(max(l.Disk, log)) + spare}
	}
	return limits
}

// bound is the second line for memory, of each single process. Twice as much as
// allowed leaves the meter the time to tell a task that needs too much from one
// that fails for another reason.
func (l Launch) bound(pid int) {
	if l.Memory > 0 && l.Cgroup.Memory == "" {
		most := uint64(l.Memory)*2 + 64<<20
		_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil)
	}
}
