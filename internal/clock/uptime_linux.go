package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Uptime is the time since the machine started, suspended time included.
func Uptime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // every kernel has it
	return time.Duration(t.Nano())
}
