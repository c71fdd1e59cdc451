// Package admission decides which queued runs a worker starts, and for which it
// fetches what they need first. It is pure: what there is comes in, the choice
// comes out.
package admission

import (
	"cmp"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/pipeline"
)

// Claim is a worker that asks for runs.
type Claim struct {
	Owner string // begins with Host and a space
	Host  string // earlier workers on it are gone

	Executor string // whose runs it takes, beside those that name none
	Orphans  bool   // and beside those of executors that are GoneAfter

	Total credits.Size // what its executor has in all
	Most  int          // runs

	Lacks []pipeline.Engine // whose pipelines its tasks cannot launch

	Prepares  bool             // it fetches what runs need before they start
	Preparing map[ids.Run]bool // those it does that for; true once all is there
}

// GoneAfter is how long no worker of an executor has been seen when others take
// its runs: it has another name now, or is there no more. It is longer than any
// task goes on without its worker, and than a restart takes.
const GoneAfter = 15 * time.Minute

// Candidate is a queued run, as far as admission looks at it.
type Candidate struct {
	ID     ids.Run
	Team   ids.Team // of those that are to be prepared
	Size   credits.Size
	Passed int // how often a run that came later was started before it

	Needs      []Need
	PreparedBy string // who fetches that at the moment, if somebody does
}

// TeamQueue is what one team has waiting, oldest first, and what it has used of
// late.
type TeamQueue struct {
	Team    ids.Team
	Used    float64      // vCPU-seconds, those of running runs too
	Running credits.Size // of the team, on the worker that asks
	Waiting []Candidate
}

const (
	// MaxPassed is how often a run may be passed by smaller ones that fit while
	// it does not. Then nothing starts before it.
	MaxPassed = 20
	// LineLength is how far into a team's line admission looks for a run that
	// fits.
	LineLength = 20

	// firstCharge is what a run counts as used when it starts, in seconds, so
	// that one claim does not take all of one team's.
	firstCharge = 60
)

// Admit chooses the runs that a worker starts: the team that has used least
// goes first, and of its line the oldest run that fits beside what runs. It
// also names the runs that were passed, each as often as it was.
func Admit(c Claim, used credits.Size, lines []TeamQueue) (admitted, passed []ids.Run) {
	for i := range lines {
		lines[i].Waiting = slices.DeleteFunc(slices.Clone(lines[i].Waiting), c.cannotStart)
	}
	for len(admitted) < c.Most {
		slices.SortStableFunc(lines, byUsage)
		pick, skipped, closed := next(c.Total, used, lines)
		if closed || pick == nil {
			return admitted, passed
		}
		run := pick.line.Waiting[pick.at]
		pick.line.Waiting = slices.Delete(slices.Clone(pick.line.Waiting), pick.at, pick.at+1)
		pick.line.Used += float64(run.Size.VCPU) * firstCharge
		pick.line.Running = pick.line.Running.Plus(run.Size)
		used = used.Plus(run.Size)
		admitted = append(admitted, run.ID)
		for _, s := range skipped {
			s.Passed++
			passed = append(passed, s.ID)
		}
	}
	return admitted, passed
}

// cannotStart reports a run that no capacity on this worker can help: it is
// another one's to start, or not ready. Nobody waits for it here.
func (c Claim) cannotStart(run Candidate) bool { return run.Size.GPU > c.Total.GPU || !c.ready(run) }

type choice struct {
	line *TeamQueue
	at   int
}

// next finds the run whose turn it is, and those before it that do not fit. It
// is closed when one of them may not be passed any more.
func next(total, used credits.Size, lines []TeamQueue) (pick *choice, skipped []*Candidate, closed bool) {
	for i := range lines {
		l := &lines[i]
		for at := range l.Waiting {
			run := &l.Waiting[at]
			if l.overShare(total, run.Size, lines) {
				break // the team's own doing: it is not passed
			}
			if Fits(total, used, run.Size) {
				return &choice{l, at}, skipped, false
			}
			if run.Passed >= MaxPassed {
				return nil, nil, true
			}
			skipped = append(skipped, run)
		}
	}
	return nil, nil, false
}

// Fits reports whether a size has room beside what is used. One that is larger
// than everything there is runs alone.
func Fits(total, used, size credits.Size) bool {
	if size.GPU > total.GPU-used.GPU {
		return false
	}
	if used.VCPU == 0 && used.RAMGB == 0 {
		return true
	}
	return used.VCPU+size.VCPU <= total.VCPU && used.RAMGB+size.RAMGB <= total.RAMGB
}

// overShare reports whether a team has its share: half of everything, while
// others wait. Its only run is never held back.
func (l *TeamQueue) overShare(total, size credits.Size, lines []TeamQueue) bool {
	if l.Running == (credits.Size{}) {
		return false
	}
	others := slices.ContainsFunc(lines, func(o TeamQueue) bool { return o.Team != l.Team && len(o.Waiting) > 0 })
	return others && 2*(l.Running.VCPU+size.VCPU) > total.VCPU
}

// byUsage puts the team first that has used less, then the one whose oldest run
// came first.
func byUsage(a, b TeamQueue) int {
	if a.Used != b.Used || len(a.Waiting) == 0 || len(b.Waiting) == 0 {
		return cmp.Compare(a.Used, b.Used)
	}
	return cmp.Compare(a.Waiting[0].ID, b.Waiting[0].ID)
}
