package engine

import (
	"sync"
	"time"
)

// signal asks for something to be done; however often it is asked for before that, it
// is done once. Afterwards it rests for four times as long as it took: what is slow
// because many ask is then done for several of them at once, and what is quick comes
// at once.
type signal struct {
	C chan struct{} // has something to be done

	clock   func() time.Duration
	longest time.Duration
	mu      sync.Mutex
	resting bool
	asked   bool // while it rests
}

const restTimes = 4

// newSignal makes a signal that rests no longer than that.
func newSignal(clock func() time.Duration, longest time.Duration) *signal {
	return &signal{C: make(chan struct{}, 1), clock: clock, longest: longest}
}

// Ask does not wait.
func (s *signal) Ask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resting {
		s.asked = true
		return
	}
	s.send()
}

func (s *signal) send() {
	select {
	case s.C <- struct{}{}:
	default:
	}
}

// Do does what was asked for, and rests.
func (s *signal) Do(f func()) {
	s.mu.Lock()
	s.resting = true
	s.mu.Unlock()
	began := s.clock()
	f()
	time.AfterFunc(min(restTimes*(s.clock()-began), s.longest), s.rested)
}

func (s *signal) rested() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resting = false
	if s.asked {
		s.asked = false
		s.send()
	}
}
