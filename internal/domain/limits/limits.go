// Package limits describes how often something may happen: at most so many in
// any stretch of time, not per calendar minute.
package limits

import "time"

// Window allows Most hits in any Per.
type Window struct {
	Most int
	Per  time.Duration
}

// Result is where a counted caller stands after asking for one more.
type Result struct {
	Allowed   bool
	Remaining int
	Reset     time.Duration // until the oldest hit leaves the window
}

// Rule is a window that is counted under a name of its own.
type Rule struct {
	Name   string // under which the caller is told of it; empty: they are not
	Bucket string // what is counted together
	Window Window
	Why    string // what to tell who is over it
}

// Report takes what callers are told of the rules that they are counted by.
type Report func(Rule, Result)
