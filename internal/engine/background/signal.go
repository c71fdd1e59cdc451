package background

import (
	"sync"
	"time"
)

// Signal asks for something to be done; however often it is asked for before that, it
// is done once. Afterwards it rests for four times as long as it took: what is slow
// because many ask is then done for several of them at once, and what is quick comes
// at once.
type Signal struct {
	C chan struct{} // has something to be done

	clock   func() time.Duration
	longest time.Duration
	mu      sync.Mutex
	resting bool
	asked   bool // while it rests
}

const restTimes = 4

// NewSignal makes a signal that rests no longer than that.
func NewSignal(clock func() time.Duration, longest time.Duration) *Signal {
	return &Signal{C: make(chan struct{}, 1), clock: clock, longest: longest}
}

// Ask does not wait.
func (s *Signal) Ask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resting {
		s.asked = true
		return
	}
	s.send()
}

func (s *Signal) send() {
	select {
	case s.C <- struct{}{}:
	default:
	}
}

// Do does what was asked for, and rests.
func (s *Signal) Do(f func()) {
	s.mu.Lock()
	s.resting = true
	s.mu.Unlock()
	began := s.clock()
	f()
	time.AfterFunc(min(restTimes*(s.clock()-began), s.longest), s.rested)
}

func (s *Signal) rested() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resting = false
	if s.asked {
		s.asked = false
		s.send()
	}
}
