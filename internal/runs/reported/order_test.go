package reported

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// shown is all of a picture that people see of its steps and attempts.
func shown(p *Picture) string {
	var lines []string
	for _, n := range p.Sorted() {
		r := n.Row()
		exit := "none"
		if r.ExitCode != nil {
			exit = fmt.Sprint(*r.ExitCode)
		}
		lines = append(lines, fmt.Sprint(n.Name, " ", r.State, " ", n.Counts.Text(), " exit ", exit, " attempt ", r.Attempt, " peak ", r.PeakMemory, " cpu ", r.CPU, " ", r.StartedAt.Unix(), "-", r.FinishedAt.Unix()))
	}
	for _, id := range slices.Sorted(func(yield func(string) bool) {
		for id := range p.Rows {
			if !yield(id) {
				return
			}
		}
	}) {
		row := p.Rows[id]
		lines = append(lines, fmt.Sprint("  ", id, " of ", row.Shard, " newest ", row.Newest, " ", row.State, " attempt ", row.Attempt))
	}
	return strings.Join(lines, "\n")
}

// told is what an engine says of some tasks, one report after the other.
func told(r *rand.Rand) (list []Report) {
	number := 0
	for chain := range 3 {
		attempts := 1 + r.IntN(3)
		for n := 1; n <= attempts; n++ {
			number++
			says := func(version int64, state State, more func(*Task)) {
				t := Task{ID: fmt.Sprint(number), Chain: fmt.Sprint(chain % 2), Node: "a", Number: number, Attempt: n, State: state, Version: version}
				t.StartedAt = noon.Add(time.Duration(number) * time.Minute)
				more(&t)
				list = append(list, Report{Tasks: []Task{t}})
			}
			says(1, Queued, func(t *Task) { t.StartedAt = time.Time{} })
			says(2, Running, func(*Task) {})
			says(3, []State{Failed, Succeeded}[rank(n == attempts && r.IntN(2) > 0)], func(t *Task) {
				t.EndedAt, t.Peak, t.CPU = noon.Add(time.Duration(number+r.IntN(9))*time.Minute), r.Int64N(99), time.Duration(r.IntN(99))
				if code := 1 + r.IntN(9); t.State == Failed && r.IntN(4) > 0 {
					t.ExitCode = &code
				}
				t.WillRetry = t.State == Failed && n < attempts && r.IntN(2) > 0
				t.Ignored = t.State == Failed && !t.WillRetry && r.IntN(4) == 0
			})
		}
	}
	return list
}

// In whatever order an engine's words arrive, and however often, they give one picture.
func TestThePictureIsTheSameInAnyOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		list := told(r)
		var want string
		for i := range 6 {
			p := emptyPicture()
			for _, report := range list {
				p.Merge(report, noon)
			}
			if got := shown(p); i == 0 {
				want = got
			} else if got != want {
				t.Fatalf("seed %d:\n%s\nand in another order\n%s", seed, want, got)
			}
			list = append(list, list[r.IntN(len(list))])
			r.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
		}
	}
}
