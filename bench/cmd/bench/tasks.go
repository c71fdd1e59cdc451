package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

var taskRows = []row{
	{"independent", "ms", "independent: ms/task", 2},
	{"independent", "cpu_ms", "independent: CPU ms/task", 2},
	{"independent", "own_ms", "independent: server alone, CPU", 2},
	{"chain", "ms", "chain: ms/task", 2},
	{"chain", "cpu_ms", "chain: CPU ms/task", 2},
	{"fan", "ms", "fan: ms/task", 2},
	{"fan", "cpu_ms", "fan: CPU ms/task", 2},
	{"many", "ms", "10 × as many: ms/task", 2},
	{"many", "growth", "10 × as many, to independent", 2},
}

var taskGoals = []goal{
	{"independent", "cpu_ms", "", false, 6, "independent tasks (durable, no sandbox): CPU at most 6 ms a task on a quiet machine"},
	{"independent", "ms", "dagu", false, 1.0 / 6, "independent tasks: time at most 1/6 of dagu"},
	{"many", "growth", "", false, 1.25, "time per task at 10 × as many at most 1.25 ×"},
}

var sandboxRows = taskRows[:7]

var sandboxGoals = []goal{
	{"independent", "ms", "bwrap", false, 3, "independent tasks, each in a sandbox: time at most 3 × bare bubblewrap"},
	{"independent", "cpu_ms", "bwrap", false, 3, "independent tasks, each in a sandbox: CPU at most 3 × bare bubblewrap"},
	{"independent", "ms", "snakemake", false, 1.0 / 4, "independent tasks, each in a sandbox: time at most 1/4 of snakemake"},
}

var coreRows = []row{
	{"scatter", "ms", "scatter: ms/task", 2},
	{"scatter", "cpu_ms", "scatter: CPU ms/task", 2},
}

var coreGoals = []goal{
	{"scatter", "ms", twoAtATime, false, 1.0 / 3, "a scatter on 16 cores: with 16 tasks at a time at most 1/3 of the time with two"},
}

// taskCase is a shape of work.
type taskCase struct {
	name string
	n    int
}

func taskCases(s settings) []taskCase {
	return []taskCase{{"independent", s.tasks}, {"chain", s.tasks / 5}, {"fan", s.tasks * 3 / 10}, {"many", s.tasks * 10}}
}

// taskRunner is a peer that carries out tasks.
type taskRunner struct {
	most    int // tasks at once, for peers that would take too long; 0: any number
	prepare func(kind string, n int, dir string) error
	run     func(kind string, n int, dir string) error
	cpu     func() time.Duration // so far, of the peer and what it started
	own     func() time.Duration // of a server alone, if there is one
	close   func()
}

func measureTasks(s settings, chosen []peer, r *results) error {
	return measureWork(s, chosen, taskCases(s), r)
}

func measureSandbox(s settings, chosen []peer, r *results) error {
	return measureWork(s, chosen, taskCases(s)[:3], r)
}

func measureCores(s settings, chosen []peer, r *results) error {
	return measureWork(s, chosen, []taskCase{{"scatter", 4 * s.tasks}}, r)
}

// measureWork has each peer do the same work in turn.
func measureWork(s settings, chosen []peer, cases []taskCase, r *results) error {
	var err error
	if s.store, err = filepath.Abs(filepath.Join(s.out, "tasks")); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(s.store), os.Mkdir(s.store, 0o700)); err != nil {
		return err
	}
	defer os.RemoveAll(s.store)
	runners := map[string]taskRunner{}
	for _, p := range chosen {
		w, err := p.taskRunner(s, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		defer w.close()
		runners[p.name] = w
	}
	for round := range s.rounds {
		for _, c := range cases {
			for i := range chosen {
				p := chosen[(i+round)%len(chosen)]
				if c.name == "many" && p.name != us {
					continue
				}
				m, err := measureTask(s, runners[p.name], c)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", p.name, c.name, err)
				}
				if c.name == "many" {
					m.add("growth", m.number("ms")/r.latest(us, "independent", "ms"))
				}
				if err := r.keep(m.add("name", p.name).add("op", c.name).add("round", round)); err != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "%-12s %-15s %6.2f ms/task, CPU %5.2f ms/task\n", c.name, p.name, m.number("ms"), m.number("cpu_ms"))
			}
		}
	}
	return nil
}

func measureTask(s settings, w taskRunner, c taskCase) (measurement, error) {
	n := c.n
	if w.most > 0 {
		n = min(n, w.most)
	}
	dir, err := os.MkdirTemp(s.store, c.name)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	kind := c.name
	if kind == "many" {
		kind = "scatter"
	}
	if err := w.prepare(kind, n, dir); err != nil {
		return nil, err
	}
	syscall.Sync() // nobody pays for somebody else's writing
	own := w.own
	if own == nil {
		own = func() time.Duration { return 0 }
	}
	cpu, alone, begun := w.cpu(), own(), time.Now()
	if err := w.run(kind, n, dir); err != nil {
		return nil, err
	}
	took, used := time.Since(begun), w.cpu()-cpu
	each := 1000 / float64(n)
	m := measurement{}.add("n", n).add("ms", took.Seconds()*each).add("cpu_ms", used.Seconds()*each)
	if w.own != nil {
		m.add("own_ms", (own()-alone).Seconds()*each)
	}
	return m, nil
}
