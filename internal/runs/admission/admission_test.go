package admission

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
)

func size(vcpu int) credits.Size { return credits.Size{VCPU: vcpu, RAMGB: 4 * vcpu} }

func waiting(team string, sizes ...int) TeamQueue {
	l := TeamQueue{Team: ids.Team(team)}
	for i, vcpu := range sizes {
		l.Waiting = append(l.Waiting, Candidate{ID: ids.Run(fmt.Sprintf("%s%d", team, i)), Size: size(vcpu)})
	}
	return l
}

func TestARunStartsWhenItsWholeSizeFits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		used  int
		lines []TeamQueue
		want  string
	}{
		"one at a time where each fills the machine":  {0, []TeamQueue{waiting("a", 4, 4, 4, 4, 4)}, "[a0]"},
		"none beside one that fills it":               {4, []TeamQueue{waiting("a", 4)}, "[]"},
		"as many as fit":                              {0, []TeamQueue{waiting("a", 2, 1, 1, 1)}, "[a0 a1 a2]"},
		"a smaller one passes one that does not fit":  {1, []TeamQueue{waiting("a", 4, 2)}, "[a1]"},
		"one larger than the machine runs alone":      {0, []TeamQueue{waiting("a", 9, 1)}, "[a0]"},
		"one larger than the machine waits for that":  {1, []TeamQueue{waiting("a", 9)}, "[]"},
		"nothing beside one larger than the machine":  {9, []TeamQueue{waiting("a", 1)}, "[]"},
		"teams take turns":                            {0, []TeamQueue{waiting("a", 1, 1, 1, 1), waiting("b", 1, 1)}, "[a0 b0 a1 b1]"},
		"a team may have half while others wait":      {0, []TeamQueue{waiting("a", 1, 1, 1, 1), waiting("b", 4)}, "[a0 a1]"},
		"and everything when nobody else does":        {0, []TeamQueue{waiting("a", 1, 1, 1, 1)}, "[a0 a1 a2 a3]"},
		"its only run is never held back by its size": {0, []TeamQueue{waiting("a", 4), waiting("b", 1)}, "[a0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := Admit(Claim{Total: size(4), Most: 10}, size(tt.used), tt.lines)
			if fmt.Sprint(got) != tt.want {
				t.Errorf("admitted %v, want %s", got, tt.want)
			}
		})
	}
}

func TestWhoHasUsedLessGoesFirst(t *testing.T) {
	t.Parallel()
	a, b := waiting("a", 2, 2), waiting("b", 2, 2)
	a.Used, b.Used = 1000, 10
	if got, _ := Admit(Claim{Total: size(2), Most: 10}, credits.Size{}, []TeamQueue{a, b}); fmt.Sprint(got) != "[b0]" {
		t.Errorf("admitted %v", got)
	}
}

func TestNobodyIsPassedForEver(t *testing.T) {
	t.Parallel()
	large, small := waiting("large", 4), waiting("small")
	for i := range 100 {
		small.Waiting = append(small.Waiting, Candidate{ID: ids.Run(fmt.Sprint("small", i)), Size: size(1)})
	}
	lines := []TeamQueue{large, small}
	started := 0
	for range 100 { // one small run always runs, so the large one never fits
		got, passed := Admit(Claim{Total: size(4), Most: 1}, size(1), lines)
		started += len(got)
		lines[0].Running, lines[1].Running = credits.Size{}, credits.Size{} // as if each had ended
		if n := len(passed); n != len(got) {
			t.Fatalf("%d started and passed %d", len(got), n)
		}
	}
	if started != MaxPassed {
		t.Errorf("it was passed %d times, the bound is %d", started, MaxPassed)
	}
	if got, _ := Admit(Claim{Total: size(4), Most: 1}, size(0), lines); fmt.Sprint(got) != "[large0]" {
		t.Errorf("then %v starts", got)
	}
}

// A worker without a GPU can never start a run that needs one. That must not
// keep it from everybody else's.
func TestARunThatAWorkerCannotStartKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	gpu := Candidate{ID: "gpu", Size: credits.Size{VCPU: 4, RAMGB: 16, GPU: 1}, Passed: MaxPassed}
	other := waiting("b", 1)
	other.Used = 10
	lines := []TeamQueue{{Team: "a", Waiting: []Candidate{gpu}}, other}
	admitted, passed := Admit(Claim{Total: size(4), Most: 10}, credits.Size{}, lines)
	if fmt.Sprint(admitted) != "[b0]" || len(passed) > 0 {
		t.Errorf("started %v past %v", admitted, passed)
	}
	busy := waiting("b", 1)
	busy.Running = size(2)
	if admitted, _ := Admit(Claim{Total: size(4), Most: 10}, size(2), []TeamQueue{{Team: "a", Waiting: []Candidate{gpu}}, busy}); len(admitted) != 1 {
		t.Error("a team is held to its half, although nobody else has anything to start")
	}
	with := Claim{Total: credits.Size{VCPU: 4, RAMGB: 16, GPU: 1}, Most: 10}
	lines = []TeamQueue{{Team: "a", Waiting: []Candidate{gpu}}, other}
	if admitted, _ := Admit(with, credits.Size{VCPU: 1, RAMGB: 4, GPU: 1}, lines); len(admitted) > 0 {
		t.Errorf("%v passes a run that has waited long for a GPU that is there", admitted)
	}
}

// Ten teams with runs of very different sizes and lengths share a machine for a
// simulated while in which all of them have work.
func TestTeamsGetEqualShares(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		m := machine{total: size(16), lines: make([]TeamQueue, 10)}
		vcpus := make([]int, len(m.lines))
		for i := range m.lines {
			m.lines[i].Team = ids.Team(fmt.Sprint(i))
			vcpus[i] = 1 << random.IntN(4)
		}
		for range 3000 {
			for i := range m.lines {
				for len(m.lines[i].Waiting) < 3 {
					m.made++
					m.lines[i].Waiting = append(m.lines[i].Waiting, Candidate{ID: ids.Run(fmt.Sprintf("%08d", m.made)), Size: size(vcpus[i])})
				}
			}
			m.second(t, func() int { return 1 + random.IntN(20) })
		}
		var sum, squares float64
		for _, l := range m.lines {
			sum, squares = sum+l.Used, squares+l.Used*l.Used
		}
		if index := sum * sum / (float64(len(m.lines)) * squares); index < 0.9 {
			t.Errorf("seed %d: Jain's index is %.3f with runs of %v vCPUs", seed, index, vcpus)
		}
	}
}

// machine is a worker in simulated seconds.
type machine struct {
	total   credits.Size
	lines   []TeamQueue
	made    int
	running []simulated
}

type simulated struct {
	team ids.Team
	size credits.Size
	left int // seconds
}

func (m *machine) second(t *testing.T, length func() int) {
	var used credits.Size
	byTeam := map[ids.Team]*TeamQueue{}
	candidates := map[ids.Run]simulated{}
	for i := range m.lines {
		l := &m.lines[i]
		l.Running = credits.Size{}
		byTeam[l.Team] = l
		for _, c := range l.Waiting {
			candidates[c.ID] = simulated{l.Team, c.Size, length()}
			if c.Passed > MaxPassed {
				t.Fatalf("a run was passed %d times", c.Passed)
			}
		}
	}
	for _, r := range m.running {
		used = used.Plus(r.size)
		byTeam[r.team].Running = byTeam[r.team].Running.Plus(r.size)
	}
	before := map[ids.Team]float64{}
	for _, l := range m.lines {
		before[l.Team] = l.Used
	}
	admitted, _ := Admit(Claim{Total: m.total, Most: 100}, used, m.lines)
	for i := range m.lines {
		m.lines[i].Used = before[m.lines[i].Team] // what is really used is counted below
		byTeam[m.lines[i].Team] = &m.lines[i]
	}
	for _, id := range admitted {
		m.running = append(m.running, candidates[id])
	}
	for i := range m.running {
		m.running[i].left--
		byTeam[m.running[i].team].Used += float64(m.running[i].size.VCPU)
	}
	m.running = slices.DeleteFunc(m.running, func(r simulated) bool { return r.left == 0 })
}
