package executor

// DriverStatus is what a cluster or machine reports about an attempt. The zero value is
// one that knows nothing.
type DriverStatus struct {
	Phase  Phase
	Reason Reason
}

// Outcome decides the phase of an attempt. An exit record under the right fence
// outweighs anything; then the driver is believed, as far as it can know; what
// neither explains is lost.
func Outcome(fence string, record *Exit, status DriverStatus) (Phase, Reason) {
	if record != nil && record.Fence == fence {
		return Ended, ReasonOf(record)
	}
	switch status.Phase {
	case Pending, Running, Gone:
		return status.Phase, status.Reason
	case Ended:
		if knownToDriver(status.Reason) {
			return Ended, status.Reason
		}
	}
	return Gone, Lost
}

// ReasonOf reads a record. What the platform did comes before what the command
// made of it: a command that catches TERM and exits with zero was stopped all
// the same.
func ReasonOf(e *Exit) Reason {
	switch {
	case e.NoSpace:
		return NoSpace
	case e.StartFailed != "":
		return StartFailed
	case e.OOM:
		return OutOfMemory
	case e.OutOfDisk:
		return OutOfDisk
	case e.Evicted:
		return Evicted
	case e.TimedOut:
		return TimedOut
	case e.Stopped:
		return Cancelled
	case e.Abandoned:
		return Abandoned
	case e.Preempted:
		return Preempted
	case e.Signal != 0:
		return Signaled
	case e.Code != 0:
		return ExitedNonZero
	case len(e.Missing) > 0:
		return OutputMissing
	}
	return ExitedZero
}

// knownToDriver are endings that a driver brings about or observes itself. That a
// command succeeded is not among them: without a record nobody has seen its
// outputs.
func knownToDriver(r Reason) bool {
	switch r {
	case OutOfMemory, OutOfDisk, TimedOut, Cancelled, Preempted, NoSpace, StartFailed, ImageUnavailable:
		return true
	}
	return false
}
