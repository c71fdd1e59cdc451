package executor

import "errors"

// Permit is the right to give orders about the attempts of a run: its worker's lease. A
// driver checks it as late as it can, since staging and waiting may outlast a lease.
type Permit interface {
	// RunFence is the fence of the run. Each worker that takes the run has a higher one.
	RunFence() int64
	// Check returns an error when another worker may have the run by now.
	Check() error
}

// Unleased is the permit for orders that are right whoever has the run: to end what the
// run's journal does not want any more.
type Unleased int64

// NoRun is the permit for attempts that belong to no run.
const NoRun Unleased = 0

// RunFence is the one that the run had when the journal was read.
func (p Unleased) RunFence() int64 { return int64(p) }

// Check returns nil.
func (Unleased) Check() error { return nil }

// Renewal is an attempt that is wanted, and the permit of whoever wants it.
type Renewal struct {
	Handle
	Permit
}

var errTakenOver = errors.New("a later owner of the run has given orders about the attempt")

// Allow checks a permit for an attempt about which orders were given under run fences up
// to last, and returns the highest. Those before it count no more; 0 is none.
func Allow(p Permit, last int64) (int64, error) {
	if fence := p.RunFence(); fence != 0 && fence < last {
		return last, errTakenOver
	}
	return max(last, p.RunFence()), p.Check()
}
