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

// MaxProcesses is how many processes and threads a command may have.
const MaxProcesses = 4096

// bound is a second line: it holds single files and processes, while the meter
// watches all of them together. Twice the memory that is allowed leaves the
// meter the time to tell a task that needs too much from one that fails for
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
