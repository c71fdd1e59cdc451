package screen

import "golang.org/x/sys/unix"

// hideTyped has a terminal not show what is typed.
func hideTyped(fd int) error {
	state, err := unix.IoctlGetTermios(fd, getState)
	if err != nil {
		return err
	}
	state.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, setState, state)
}
