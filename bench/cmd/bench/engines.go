package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// enginePeers have clusters carry out tasks; a cluster's own means are no programs of
// ours to start.
var enginePeers = []peer{{name: us, command: program("millrace")}}

var engineRows = []row{
	{"slurm", "begin_ms", "Slurm: submit to first, ms", 0},
	{"slurm", "end_ms", "Slurm: last to record, ms", 0},
	{"beyond sbatch", "begin_ms", "beyond sbatch: to begin, ms", 0},
	{"beyond sbatch", "end_ms", "beyond sbatch: to record, ms", 0},
	{"kubernetes", "begin_ms", "Kubernetes: submit to first, ms", 0},
	{"kubernetes", "end_ms", "Kubernetes: last to record, ms", 0},
	{"beyond job", "begin_ms", "beyond a Job: to begin, ms", 0},
	{"beyond job", "end_ms", "beyond a Job: to record, ms", 0},
}

var engineGoals = []goal{
	{"beyond sbatch", "begin_ms", "", false, 300, "Slurm: submitted to first instruction: at most 300 ms beyond sbatch"},
	{"beyond sbatch", "end_ms", "", false, 300, "Slurm: last instruction to recorded: at most 300 ms beyond sbatch"},
	{"beyond job", "begin_ms", "", false, 300, "Kubernetes: submitted to first instruction: at most 300 ms beyond a Job"},
	{"beyond job", "end_ms", "", false, 300, "Kubernetes: last instruction to recorded: at most 300 ms beyond a Job"},
}

// pairs is how many tasks of each a round has: Slurm starts jobs at every full
// second of its own, so that one says little.
const pairs = 20

// span is how long an engine takes around a task, in ms.
type span struct{ begin, end float64 }

// engine is a cluster.
type engine struct {
	name, bare string
	here       func() bool
	// ours starts our server on it, whose tasks see a folder; run has it do a task.
	ours func(s settings, folder string) (run func(command string) error, stop func(), err error)
	// alone has the cluster do a task by its own means.
	alone func(folder string) (run func(command string) error, err error)
	// together submits to both at the same moment, so that they wait for the same look
	// of Slurm's at its queue. Where nothing is waited for they would only hinder each
	// other, and take turns.
	together bool
}

var engines = []engine{
	{name: "slurm", bare: "sbatch", here: func() bool { return os.Getenv("SLURM_CONF") != "" }, ours: onSlurm, alone: bySbatch, together: true},
	{name: "kubernetes", bare: "job", here: func() bool { return os.Getenv("MILLRACE_TEST_KUBERNETES") != "" }, ours: onKubernetes, alone: byJob},
}

// measureEngines has each cluster that is here do the same tasks for us and by its own
// means, again and again. Of a round the mean counts, since a wait for the next look
// of Slurm's is all or nothing.
func measureEngines(s settings, _ []peer, r *results) error {
	for _, e := range engines {
		if !e.here() {
			fmt.Printf("there is no %s to measure beside: use bench/run, as root, where it is installed\n", e.name)
			continue
		}
		if err := e.measure(s, r); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}

func (e engine) measure(s settings, r *results) error {
	// Not below /tmp, which a task has as its own.
	folder, err := os.MkdirTemp("/var/tmp", "millrace-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := os.Chmod(folder, 0o777); err != nil { // tasks may be somebody else's
		return err
	}
	server, stop, err := e.ours(s, folder)
	if err != nil {
		return err
	}
	defer stop()
	alone, err := e.alone(folder)
	if err != nil {
		return err
	}
	for round := range s.rounds {
		var ours, bare span
		for range pairs {
			theirs := make(chan error, 1)
			submit := func() { theirs <- bare.add(folder, alone) }
			if e.together {
				go submit()
			} else {
				submit()
			}
			if err := errors.Join(ours.add(folder, server), <-theirs); err != nil {
				return err
			}
		}
		for _, m := range []measurement{
			ours.measurement(us, e.name), bare.measurement(e.bare, e.name), span{ours.begin - bare.begin, ours.end - bare.end}.measurement(us, "beyond "+e.bare),
		} {
			if err := r.keep(m.add("round", round)); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "%-10s begin %4.0f and %4.0f ms, end %4.0f and %4.0f ms\n", e.name, ours.begin/pairs, bare.begin/pairs, ours.end/pairs, bare.end/pairs)
	}
	return nil
}

func (s span) measurement(name, op string) measurement {
	return measurement{}.add("name", name).add("op", op).add("n", pairs).add("begin_ms", s.begin/pairs).add("end_ms", s.end/pairs)
}

// stamps is a task that notes when it runs.
const stamps = "date +%%s%%N > %[1]s/first; date +%%s%%N > %[1]s/last"

// add has a task run, which run submits and waits for, and adds what it took.
func (s *span) add(folder string, run func(command string) error) error {
	dir, err := os.MkdirTemp(folder, "task-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		return err
	}
	submitted := time.Now()
	if err := run(fmt.Sprintf(stamps, dir)); err != nil {
		return err
	}
	recorded := time.Now()
	first, err := stamp(filepath.Join(dir, "first"))
	if err != nil {
		return err
	}
	last, err := stamp(filepath.Join(dir, "last"))
	s.begin += first.Sub(submitted).Seconds() * 1000
	s.end += recorded.Sub(last).Seconds() * 1000
	return err
}

func stamp(path string) (time.Time, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return time.Time{}, err
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return time.Unix(0, ns), err
}

func bySbatch(string) (func(command string) error, error) { return sbatch, nil }

// sbatch submits a job as a person would, and asks Slurm until it has ended.
func sbatch(command string) error {
	c := exec.Command("sbatch", "--parsable", "--output=/dev/null", "--mem=128M")
	c.Stdin = strings.NewReader("#!/bin/sh\n" + command + "\n")
	id, err := c.Output()
	if err != nil {
		return fmt.Errorf("sbatch: %w", err)
	}
	for {
		state, err := exec.Command("squeue", "--noheader", "--states=all", "--format=%T", "--jobs="+strings.TrimSpace(string(id))).Output()
		switch text := strings.TrimSpace(string(state)); {
		case err != nil:
			return fmt.Errorf("squeue: %w", err)
		case text == "COMPLETED":
			return nil
		case text != "PENDING" && text != "CONFIGURING" && text != "RUNNING" && text != "COMPLETING":
			return fmt.Errorf("the job is %s", text)
		}
	}
}

func onSlurm(s settings, _ string) (run func(command string) error, stop func(), err error) {
	return engineServer(s, "slurm", func(_, dir string) ([]string, error) {
		return []string{"--slurm-folder", filepath.Join(dir, "shared")}, nil
	})
}

// engineServer is ours on a cluster, with settings for it; it runs a workflow of one
// step.
func engineServer(s settings, executor string, more func(addr, dir string) ([]string, error)) (run func(command string) error, stop func(), err error) {
	var args []string
	p := peer{name: us + "-" + executor, readyPath: millrace.readyPath, prepare: func(addr, dir string) (err error) {
		args, err = more(addr, dir)
		return errors.Join(err, generous(addr, dir))
	}, command: func(addr, dir string) []string {
		return append([]string{
			"millrace", "serve", "--listen", addr, "--data", filepath.Join(dir, "data"), "--executor", executor,
			"--runs-per-minute", "10000", "--plans-file", filepath.Join(dir, "plans.json"),
		}, args...)
	}}
	proc, err := start(s, p)
	if err != nil {
		return nil, nil, err
	}
	sess, err := millrace.signIn(s, proc)
	if err != nil {
		proc.stop()
		return nil, nil, err
	}
	c := &caller{client: http.Client{Timeout: 30 * time.Second}}
	if c.auth, err = sess.authorization(); err != nil {
		proc.stop()
		return nil, nil, err
	}
	var workflow struct{ Data struct{ ID string } }
	err = c.post(proc.base+"/api/workflows", map[string]any{"name": "task", "definition": map[string]any{
		"parameters": map[string]any{"command": map[string]any{"type": "string"}},
		"nodes":      []any{map[string]any{"id": "t", "interpreter": "sh", "command": `eval "$PARAM_command"`}},
	}}, &workflow)
	if err != nil {
		proc.stop()
		return nil, nil, err
	}
	return func(command string) error {
		if c.auth, err = sess.authorization(); err != nil {
			return err
		}
		var started struct{ Data struct{ RunID string } }
		err := c.post(proc.base+"/api/runs", map[string]any{"workflowId": workflow.Data.ID, "parameters": map[string]any{"command": command}}, &started)
		if err != nil {
			return err
		}
		return awaitRun(proc.base+"/api/runs/"+started.Data.RunID+"/stream", c.auth)
	}, proc.stop, nil
}
