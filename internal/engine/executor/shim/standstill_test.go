package shim

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestStandstillIsNotedWhenAwakeTooLate(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var s standstill
	for _, second := range []int{0, 1, 2, 4, 44, 45, 30} { // busy at 4, stopped until 44, and a clock that is set back
		s.note(noon.Add(time.Duration(second) * time.Second))
	}
	want := Span{From: noon.Add(4 * time.Second), To: noon.Add(44 * time.Second)}
	if got := s.suspended(noon); len(got) != 1 || got[0] != want || s.length(noon) != 40*time.Second {
		t.Errorf("%v", got)
	}
	for n := range 1000 {
		s.note(noon.Add(time.Duration(n) * time.Hour))
	}
	if n := len(s.suspended(noon)); n != maxSuspended {
		t.Errorf("%d are kept", n)
	}
}

// A standstill of the whole machine is part of the time in which the command is frozen.
func TestStandstillHasTheTimeThatACommandIsFrozen(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }
	var s standstill
	s.note(at(0))
	s.freeze(at(1))
	s.freeze(at(2)) // once more
	s.note(at(40))  // the machine stood still
	if got := s.suspended(at(41)); len(got) != 1 || got[0] != (Span{From: at(1), To: at(41)}) || s.length(at(41)) != 40*time.Second {
		t.Errorf("frozen: %v", got)
	}
	s.thaw(at(50))
	s.thaw(at(51))
	s.note(at(52))
	if got := s.suspended(at(60)); len(got) != 1 || got[0] != (Span{From: at(1), To: at(50)}) {
		t.Errorf("thawed: %v", got)
	}
	s.freeze(at(59)) // by a process that had stood still
	s.thaw(at(58))   // by a clock that was set back
	if got := s.suspended(at(60)); len(got) != 2 || got[1] != (Span{From: at(52), To: at(59)}) {
		t.Errorf("frozen again: %v", got)
	}
}

func TestStandstillSeesNoneWhileTimePasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s standstill
		stop := s.watch()
		time.Sleep(time.Hour)
		stop()
		if got := s.suspended(time.Now()); len(got) != 0 {
			t.Errorf("%v", got)
		}
	})
}
