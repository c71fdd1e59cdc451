package main

import (
	"bufio"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// programs are what the orchestrators carry out, each in its own language.
//
//go:embed orchestrators
var programs embed.FS

// work is an amount of it, with the result that it must have.
type work struct {
	kind  string // the key of the measurements: long, short or fan
	tasks int
	fibo  int // of a task of a sequence
}

// workOf is what is measured: the two sequences that Windmill has published, and a fan-out.
func workOf(s settings) []work {
	return []work{{"long", s.long, s.fibo}, {"short", s.short, 10}, {"fan", s.fan, 0}}
}

func (w work) sequence() bool { return w.kind != "fan" }

func (w work) String() string {
	if w.sequence() {
		return fmt.Sprintf("%d tasks of fibo(%d), one after the other", w.tasks, w.fibo)
	}
	return fmt.Sprintf("%d files, then one task", w.tasks)
}

// lines are how many a file has.
func lines(file int) int { return file%50 + 1 }

// want is the result of the work.
func (w work) want() string {
	if w.sequence() {
		a, b := 0, 1
		for range w.fibo {
			a, b = b, a+b
		}
		return fmt.Sprint(w.tasks * a)
	}
	sum := 0
	for i := range w.tasks {
		sum += lines(i)
	}
	return fmt.Sprintf("%d %d", w.tasks, sum)
}

// layOut puts the programs into a folder, and for a fan-out the files.
func (w work) layOut(dir string) error {
	text, err := programs.ReadDir("orchestrators")
	if err != nil {
		return err
	}
	for _, file := range text {
		content, err := programs.ReadFile("orchestrators/" + file.Name())
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file.Name()), content, 0o600)
		}
		if err != nil {
			return err
		}
	}
	if w.sequence() {
		return nil
	}
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o700); err != nil {
		return err
	}
	for i := range w.tasks {
		name := filepath.Join(dir, "files", fmt.Sprintf("f%05d.txt", i))
		if err := os.WriteFile(name, []byte(strings.Repeat("line\n", lines(i))), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// orchestrator is a tool that carries out work in a folder.
type orchestrator struct {
	name    string
	open    func(s settings) (opened, error)
	version func(s settings) (string, error)
}

// opened is one that is ready: what runs beside it, such as a server, is running.
type opened struct {
	prepare func(w work, dir string) error           // before the time is taken
	command func(w work, dir string) *exec.Cmd       // what people type
	result  func(w work, dir string) (string, error) // after the time is taken
	beside  func() time.Duration                     // CPU that what runs beside it has used
	close   func()
}

// about is what a table needs besides the measurements. It is the first line of the results.
type about struct {
	About struct {
		Machine  string            `json:"machine"`
		AtOnce   int               `json:"atOnce"`
		Work     []string          `json:"work"`
		Versions map[string]string `json:"versions"`
	} `json:"about"`
}

// measureOrchestrators has each tool do each work in turn. It says what it does, since it takes long.
func measureOrchestrators(s settings, file io.Writer) error {
	chosen := chooseOrchestrators(s)
	if len(chosen) == 0 {
		return errors.New("no orchestrator is here")
	}
	a, err := describe(s, chosen)
	if err != nil {
		return err
	}
	r := &results{file: file}
	if s.resume != "" {
		if err := r.resume(s.resume, a); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(file).Encode(a); err != nil {
		return err
	}
	for _, m := range r.all {
		if err := json.NewEncoder(file).Encode(m); err != nil {
			return err
		}
	}
	if err := r.orchestrate(s, chosen); err != nil {
		return err
	}
	writeOrchestrators(os.Stdout, a, r, workOf(s))
	return nil
}

func chooseOrchestrators(s settings) (chosen []orchestrator) {
	for _, o := range orchestrators {
		if s.only != "" && !strings.Contains(","+s.only+",", ","+o.name+",") {
			continue
		}
		if _, err := os.Stat(filepath.Join(s.bin, o.name)); err != nil {
			fmt.Printf("%s is not here and is left out\n", o.name)
			continue
		}
		chosen = append(chosen, o)
	}
	return chosen
}

func describe(s settings, chosen []orchestrator) (a about, err error) {
	a.About.Machine, a.About.AtOnce, a.About.Versions = machineFacts(), s.atOnce, map[string]string{}
	for _, w := range workOf(s) {
		a.About.Work = append(a.About.Work, w.String())
	}
	for _, o := range chosen {
		if a.About.Versions[o.name], err = o.version(s); err != nil {
			return a, fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return a, nil
}

// resume takes over the measurements of an earlier run that broke off. They must be of the same work,
// with the same versions, on the same machine.
func (r *results) resume(path string, now about) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	all := bufio.NewScanner(f)
	all.Buffer(nil, 1<<20)
	for first := true; all.Scan(); first = false {
		if first {
			var then about
			if err := json.Unmarshal(all.Bytes(), &then); err != nil {
				return err
			}
			before, _ := json.Marshal(then)
			after, _ := json.Marshal(now)
			if string(before) != string(after) {
				return fmt.Errorf("%s has other sizes, versions or another machine:\n%s\n%s", path, before, after)
			}
			continue
		}
		var m measurement
		if err := json.Unmarshal(all.Bytes(), &m); err != nil {
			return err
		}
		r.all = append(r.all, m)
	}
	return all.Err()
}

// has reports whether a measurement was made.
func (r *results) has(name, op string, round int) bool {
	for _, m := range r.all {
		if m["name"] == name && m["op"] == op && m.number("round") == float64(round) {
			return true
		}
	}
	return false
}

// orchestrate measures what was not measured yet.
func (r *results) orchestrate(s settings, chosen []orchestrator) error {
	store, err := filepath.Abs(filepath.Join(s.out, "orchestrators"))
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(store), os.Mkdir(store, 0o700)); err != nil {
		return err
	}
	defer os.RemoveAll(store)
	s.store = store
	for round := range s.rounds {
		for i := range chosen {
			// A different one begins each round, and nothing of the others runs beside it.
			o := chosen[(i+round)%len(chosen)]
			if err := r.round(s, o, round); err != nil {
				return fmt.Errorf("%s: %w\nwhat was measured counts: go on with -resume", o.name, err)
			}
		}
	}
	return nil
}

func (r *results) round(s settings, o orchestrator, round int) error {
	left := []work{}
	for _, w := range workOf(s) {
		if w.tasks > 0 && !r.has(o.name, w.kind, round) {
			left = append(left, w)
		}
	}
	if len(left) == 0 {
		return nil
	}
	fmt.Fprintf(os.Stderr, "round %d of %d: starting %s\n", round+1, s.rounds, o.name)
	ready, err := o.open(s)
	if err != nil {
		return err
	}
	defer ready.close()
	for _, w := range left {
		m, err := ready.measure(s, w)
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
		if err := r.keep(m.add("name", o.name).add("op", w.kind).add("round", float64(round))); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "  %-42s %8.2f s, CPU %8.2f s, load %s\n", w, m.number("s"), m.number("cpu_s"), m["load"])
	}
	return nil
}

// measure carries out the work once, in a folder of its own, and holds the result to what it must be.
func (o opened) measure(s settings, w work) (m measurement, err error) {
	dir, err := os.MkdirTemp(s.store, w.kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := w.layOut(dir); err != nil {
		return nil, err
	}
	if err := o.prepare(w, dir); err != nil {
		return nil, err
	}
	cmd := o.command(w, dir)
	cmd.Dir = dir
	syscall.Sync() // nobody pays for somebody else's writing
	load, beside := loadAverage(), o.beside()
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begun)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out[max(0, len(out)-2000):])
	}
	used := o.beside() - beside + cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	got, err := o.result(w, dir)
	if got = strings.TrimSpace(got); err == nil && got != w.want() {
		err = fmt.Errorf("the result is %q instead of %q", got, w.want())
	}
	return measurement{}.add("n", w.tasks).add("s", took.Seconds()).add("cpu_s", used.Seconds()).add("load", load), err
}
