package screen

import "golang.org/x/sys/unix"

// How the state of a terminal is asked for and changed.
const (
	getState = unix.TCGETS
	setState = unix.TCSETS
)
