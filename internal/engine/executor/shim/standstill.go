package shim

import (
	"slices"
	"sync"
	"time"
)

// The watcher of standstills wakes up every second and does nothing else. When it wakes
// up much too late, the process was stopped, usually with its whole machine or container.
const (
	wakeEvery      = time.Second
	suspendedAfter = 2 * time.Second
	maxSuspended   = 100 // later ones are not kept
)

// standstill notes the times in which the command did not run: because it was frozen, or
// because this process did not run either.
type standstill struct {
	mu       sync.Mutex
	awake    time.Time // when this process was last seen to run
	frozenAt time.Time // when the command was frozen; zero while it is not
	spans    []Span
}

// watch notes standstills until the function that it returns is called.
func (s *standstill) watch() (stop func()) {
	s.note(time.Now())
	ended := make(chan struct{})
	go func() {
		ticker := time.NewTicker(wakeEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				s.note(time.Now())
			}
		}
	}()
	return func() {
		close(ended)
		s.note(time.Now())
	}
}

// note takes in that the process runs. Times are compared by the clock on the wall, which
// goes on while the machine sleeps.
func (s *standstill) note(now time.Time) {
	now = now.Round(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.awake.IsZero() && s.frozenAt.IsZero() && now.Sub(s.awake) >= wakeEvery+suspendedAfter {
		s.add(Span{From: s.awake, To: now})
	}
	s.awake = now
}

// freeze takes in that the command is halted until thaw. It may be halted already.
func (s *standstill) freeze(now time.Time) {
	s.note(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozenAt.IsZero() {
		s.frozenAt = s.awake
	}
}

// thaw takes in that the command goes on.
func (s *standstill) thaw(now time.Time) {
	s.note(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.frozenAt.IsZero() {
		s.add(Span{From: s.frozenAt, To: s.awake})
	}
	s.frozenAt = time.Time{}
}

// add keeps a time. The lock is held.
func (s *standstill) add(one Span) {
	if one.To.After(one.From) && len(s.spans) < maxSuspended {
		s.spans = append(s.spans, one)
	}
}

// suspended are the times until now.
func (s *standstill) suspended(now time.Time) []Span {
	now = now.Round(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	spans := slices.Clone(s.spans)
	if !s.frozenAt.IsZero() && now.After(s.frozenAt) && len(spans) < maxSuspended {
		spans = append(spans, Span{From: s.frozenAt, To: now})
	}
	return spans
}

// length is how long they are together.
func (s *standstill) length(now time.Time) (sum time.Duration) {
	for _, one := range s.suspended(now) {
		sum += one.To.Sub(one.From)
	}
	return sum
}
