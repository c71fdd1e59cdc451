// Package limits describes how often something may happen: at most so many in
// any stretch of time, not per calendar minute.
package limits

import "time"

// Window allows Most hits in any Per.
type Window struct {
	Most int
	Per  time.Duration
}

// Standing is where a counted caller stands after asking for one more.
type Standing struct {
	Allowed   bool
	Remaining int
	Reset     time.Duration // until the oldest hit leaves the window
}
