package shim

import (
	"errors"
	"time"
)

// prepare makes a sandbox for an attempt to come. The lock is held.
func (s *shim) prepare(l Launch) {
	if len(s.waiting) >= maxWaiting || s.waiting[l.ID] != nil {
		s.report(Report{Gone: l.ID})
		return
	}
	p := newSandbox(l, s.server)
	s.addWaiting(p)
	go func() {
		defer close(p.made)
		on := s.threads.take(l)
		on.do(func() { p.err = p.begin(&s.commands, on) })
		if !on.joined && p.err == nil {
			p.err = errors.New("its groups are gone")
		}
	}()
}

// addWaiting lets a sandbox wait for an attempt. The lock is held.
func (s *shim) addWaiting(p *runningSandbox) {
	s.waiting[p.launch.ID], p.since = p, time.Now()
	p.expiry = time.AfterFunc(waitsFor, func() { s.expire(p) })
}

// takeSandbox gives away a sandbox that waits, or nil. The lock is held.
func (s *shim) takeSandbox(id string) *runningSandbox {
	p := s.waiting[id]
	if p != nil {
		delete(s.waiting, id)
		p.expiry.Stop()
	}
	return p
}

// keepSandbox lets the sandbox of an attempt wait for the next one, and returns
// its name, if the server that knows of it is still there. The lock is held.
func (s *shim) keepSandbox(t *task) string {
	if !t.kept {
		return ""
	}
	p := t.sandbox
	if s.server == nil || s.server != p.server || s.waiting[p.launch.ID] != nil {
		go p.end(&s.threads)
		return ""
	}
	if len(s.waiting) >= maxWaiting {
		s.expireOldest()
	}
	s.addWaiting(p)
	return p.launch.ID
}

// expireOldest makes place for a sandbox that is more likely to be used.
func (s *shim) expireOldest() {
	var oldest *runningSandbox
	for _, p := range s.waiting {
		if oldest == nil || p.since.Before(oldest.since) {
			oldest = p
		}
	}
	s.takeSandbox(oldest.launch.ID)
	go s.endWaiting(oldest)
}

// expire ends a sandbox that nobody has come for.
func (s *shim) expire(p *runningSandbox) {
	s.mu.Lock()
	waits := s.waiting[p.launch.ID] == p && time.Since(p.since) >= waitsFor
	if waits {
		s.takeSandbox(p.launch.ID)
	}
	s.mu.Unlock()
	if waits {
		s.endWaiting(p)
	}
}

// endWaiting ends a sandbox, and reports when it has gone.
func (s *shim) endWaiting(p *runningSandbox) {
	p.end(&s.threads)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == p.server {
		s.report(Report{Gone: p.launch.ID})
	}
}

// expireAll leaves nothing that waits for a server that has gone.
func (s *shim) expireAll() {
	s.mu.Lock()
	all := s.waiting
	s.waiting = map[string]*runningSandbox{}
	s.mu.Unlock()
	for _, p := range all {
		p.end(&s.threads)
	}
}
