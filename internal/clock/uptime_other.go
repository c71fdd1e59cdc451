//go:build !linux

package clock

import "time"

var began = time.Now()

// Uptime is the time since the program started.
func Uptime() time.Duration { return time.Since(began) }
