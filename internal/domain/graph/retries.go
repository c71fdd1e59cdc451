package graph

import (
	"math"
	"slices"
	"time"
)

// Reason is why an attempt failed.
type Reason string

// The reasons that a node may be tried again for.
const (
	OnError   Reason = "error"
	OnTimeout Reason = "timeout"
	OnOOM     Reason = "oom"
)

func reasons() []Reason { return []Reason{OnError, OnTimeout, OnOOM} }

// Retries says how often and when a failed node is tried again.
type Retries struct {
	Max          int
	Backoff      time.Duration
	Factor       float64
	MaxBackoff   time.Duration
	On           []Reason
	MemoryFactor float64 // memory grows by this after each attempt that ran out of it
}

func defaultRetries() Retries {
	return Retries{
		Backoff: time.Second, Factor: 2, MaxBackoff: 10 * time.Minute, On: reasons(), MemoryFactor: 1,
	}
}

// Again reports whether a node whose attempt (from 1) failed for this reason
// is tried once more.
func (r Retries) Again(attempt int, why Reason) bool {
	return attempt <= r.Max && slices.Contains(r.On, why)
}

// Wait is how long to wait after an attempt (from 1) failed.
func (r Retries) Wait(attempt int) time.Duration {
	wait := float64(r.Backoff) * math.Pow(r.Factor, float64(attempt-1))
	return time.Duration(min(wait, float64(r.MaxBackoff)))
}
