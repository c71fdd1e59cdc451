//go:build !linux

// Package uptime measures time that passes also while the machine is suspended.
package uptime

import "time"

var began = time.Now()

// Read returns the time since the program started.
func Read() time.Duration { return time.Since(began) }
