package dummy

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim/longlines"
)

// plan is what a command does.
type plan struct {
	steps      []step
	length     time.Duration
	exit       int
	signal     int
	oom, lose  bool
	noSpace    bool
	ignoreTERM bool
	gate       string        // the file that it waits for
	gateAt     time.Duration // from when on
}

// gateTimeout is how long a gate stays shut that nobody opens.
const gateTimeout = time.Hour

// step happens so long after the start.
type step struct {
	at                  time.Duration
	print, env          string
	outputPath, content string
}

func parse(command string) plan {
	var p plan
	for line := range strings.Lines(command) {
		_, steps, ok := strings.Cut(line, "# dummy:")
		if !ok {
			continue
		}
		for word := range strings.FieldsSeq(steps) {
			p.add(word)
		}
	}
	return p
}

func (p *plan) add(word string) {
	name, value, _ := strings.Cut(word, "=")
	number, _ := strconv.Atoi(value)
	s := step{at: p.length}
	switch name {
	case "sleep":
		length, _ := time.ParseDuration(value)
		p.length += length
	case "await":
		p.gate, p.gateAt = value, p.length
		p.length += gateTimeout
	case "exit":
		p.exit = number
	case "signal":
		p.signal = number
	case "oom":
		p.oom = true
	case "lose":
		p.lose = true
	case "nospace":
		p.noSpace, p.exit = true, 1
	case "ignoreterm":
		p.ignoreTERM = true
	case "print":
		s.print = value + "\n"
	case "longline":
		s.print = strings.Repeat("x", number) + "\n"
	case "printenv":
		s.env = value
	default:
		s.outputPath, _ = strings.CutPrefix(name, "output:")
		s.content = value
	}
	p.steps = append(p.steps, s)
}

// openGate goes through the gate: what comes after it comes at once.
func (p *plan) openGate() {
	for i := range p.steps {
		if p.steps[i].at > p.gateAt {
			p.steps[i].at -= gateTimeout
		}
	}
	p.length -= gateTimeout
	p.gate = ""
}

// outputs are the files that are there so long after the start.
func (p plan) outputs(after time.Duration) map[string]string {
	files := map[string]string{}
	for _, s := range p.steps {
		if s.outputPath != "" && s.at <= after {
			files[s.outputPath] = s.content
		}
	}
	return files
}

// attempt is one attempt, from its start to its end.
type attempt struct {
	Spec  executor.Spec  `json:"spec"`
	Start time.Time      `json:"start"`
	Stop  time.Time      `json:"stop,omitzero"`
	Grace time.Duration  `json:"grace,omitempty"`
	Exit  *executor.Exit `json:"exit,omitempty"`

	RunFence int64 `json:"runFence,omitempty"` // the highest under which orders were given

	plan plan
}

func (l *attempt) log(now time.Time) []byte {
	after := min(now.Sub(l.Start), l.end().Sub(l.Start))
	var text []byte
	for _, s := range l.plan.steps {
		if s.at > after {
			break
		}
		text = append(text, s.print...)
		if s.env != "" {
			text = append(text, l.Spec.Env[s.env]+"\n"...)
		}
	}
	return longlines.Shorten(text)
}

// end is when the attempt ends, by itself or not.
func (l *attempt) end() time.Time {
	end := l.Start.Add(l.plan.length)
	if at, _ := l.endedEarly(); !at.IsZero() {
		return at
	}
	return end
}

// endedEarly is when something else ends the attempt before it is over, if anything
// does, and whether that is a timeout.
func (l *attempt) endedEarly() (at time.Time, timeout bool) {
	natural := l.Start.Add(l.plan.length)
	asked, grace := l.Stop, l.Grace
	if late := l.Start.Add(l.Spec.Timeout); l.Spec.Timeout > 0 && (asked.IsZero() || late.Before(asked)) {
		asked, grace, timeout = late, l.Spec.Grace, true
	}
	if asked.IsZero() || !asked.Before(natural) {
		return time.Time{}, false
	}
	if !l.plan.ignoreTERM {
		return asked, timeout
	}
	if at = asked.Add(grace); at.After(natural) {
		at = natural
	}
	return at, timeout
}

func (l *attempt) exit() executor.Exit {
	e := executor.Exit{
		Fence: l.Spec.Fence, Start: l.Start, End: l.end(),
		Code: l.plan.exit, Signal: l.plan.signal, OOM: l.plan.oom, NoSpace: l.plan.noSpace,
	}
	at, timeout := l.endedEarly()
	switch {
	case !at.IsZero():
		e.OOM, e.TimedOut, e.Stopped, e.Signal = false, timeout, !timeout, 15
		if l.plan.ignoreTERM {
			e.Signal = 9
		}
	case e.OOM:
		e.Signal = 9
	}
	if e.Signal != 0 {
		e.Code = 128 + e.Signal
	}
	e.LogBytes = int64(len(l.log(e.End)))
	return e
}

// checkGate goes through the gate if it is open by now.
func (l *attempt) checkGate() {
	if l.plan.gate == "" {
		return
	}
	if _, err := os.Stat(filepath.Join(l.Spec.Work(), l.plan.gate)); err == nil {
		l.plan.openGate()
	}
}

// status leaves the record the first time that the end is noticed.
func (l *attempt) status(now time.Time) (executor.Status, error) {
	l.checkGate()
	s := executor.Status{Handle: handle(l.Spec), At: l.Start}
	if l.end().After(now) {
		s.Phase, s.Reason = executor.Running, executor.Executing
		if !l.Stop.IsZero() {
			s.Reason = executor.Stopping
		}
		return s, nil
	}
	s.At = l.end()
	if at, _ := l.endedEarly(); l.plan.lose && at.IsZero() {
		s.Phase, s.Reason = executor.Gone, executor.Lost
		return s, nil
	}
	exit, err := l.record()
	if err != nil {
		return s, err
	}
	s.Exit = exit
	s.Phase, s.Reason = executor.Outcome(l.Spec.Fence, exit, executor.DriverStatus{})
	return s, nil
}
