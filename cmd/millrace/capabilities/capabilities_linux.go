// Package capabilities keeps the rights with which a server was started from the programs that
// it starts.
package capabilities

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// KeepToOurselves has programs that this process starts inherit none of the capabilities that
// the service manager gave it to open a port below 1024. bubblewrap refuses to work with any.
func KeepToOurselves() error {
	none, err := noneInherited()
	if err != nil || none {
		return err
	}
	// Each thread has capabilities of its own.
	if _, _, e := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("cannot keep capabilities from tasks (a program that was built with CGO_ENABLED=0 can; otherwise remove AmbientCapabilities from the unit): %w", e)
	}
	return nil
}

// noneInherited reports whether a program that was started now would inherit no capability.
func noneInherited() (bool, error) {
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		is, err := unix.PrctlRetInt(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET, c, 0, 0)
		if err != nil && err != unix.EINVAL { // an older kernel has fewer
			return false, err
		}
		if is == 1 {
			return false, nil
		}
	}
	return true, nil
}
