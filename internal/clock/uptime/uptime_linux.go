// Package uptime measures time that passes also while the machine is suspended.
package uptime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Read returns the time since the machine started, suspended time included.
func Read() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // every kernel has it
	return time.Duration(t.Nano())
}
