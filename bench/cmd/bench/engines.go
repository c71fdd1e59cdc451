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

// enginePeers have a cluster carry out a task: ours, and Slurm's own command.
var enginePeers = []peer{
	{name: us, command: program("millrace")},
	{name: "sbatch", command: program("sbatch")},
}

var engineRows = []row{
	{"task", "begin_ms", "submit to first instruction, ms", 0},
	{"task", "end_ms", "last instruction to record, ms", 0},
	{"overhead", "begin_ms", "beyond sbatch: to begin, ms", 0},
	{"overhead", "end_ms", "beyond sbatch: to record, ms", 0},
}

var engineGoals = []goal{
	{"overhead", "begin_ms", "", false, 300, "submitted to first instruction: at most 300 ms beyond sbatch"},
	{"overhead", "end_ms", "", false, 300, "last instruction to recorded: at most 300 ms beyond sbatch"},
}

// pairs is how many tasks of each a round has: Slurm starts jobs at every full
// second of its own, so that one says little.
const pairs = 20

// span is how long an engine takes around a task, in ms.
type span struct{ begin, end float64 }

// measureEngines submits to both at the same moment, again and again: they then
// wait for the same look of Slurm's at its queue, and for the same machine. Of a
// round the mean counts, since a wait for the next look is all or nothing.
func measureEngines(s settings, chosen []peer, r *results) error {
	if len(chosen) < len(enginePeers) || os.Getenv("SLURM_CONF") == "" {
		fmt.Println("there is no Slurm to measure beside: use bench/run, as root, where Slurm is installed")
		return nil
	}
	server, stop, err := engineServer(s)
	if err != nil {
		return err
	}
	defer stop()
	for round := range s.rounds {
		var ours, bare span
		for range pairs {
			theirs := make(chan error, 1)
			go func() { theirs <- bare.add(bareJob) }()
			if err := errors.Join(ours.add(server), <-theirs); err != nil {
				return err
			}
		}
		for _, m := range []measurement{
			ours.measurement(us, "task"), bare.measurement("sbatch", "task"), span{ours.begin - bare.begin, ours.end - bare.end}.measurement(us, "overhead"),
		} {
			if err := r.keep(m.add("round", round)); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "begin %4.0f and %4.0f ms, end %4.0f and %4.0f ms\n", ours.begin/pairs, bare.begin/pairs, ours.end/pairs, bare.end/pairs)
	}
	return nil
}

func (s span) measurement(name, op string) measurement {
	return measurement{}.add("name", name).add("op", op).add("n", pairs).add("begin_ms", s.begin/pairs).add("end_ms", s.end/pairs)
}

// stamps is a task that notes when it runs.
const stamps = "date +%%s%%N > %[1]s/first; date +%%s%%N > %[1]s/last"

// add has a task run, which run submits and waits for, and adds what it took.
func (s *span) add(run func(command string) error) error {
	dir, err := os.MkdirTemp("", "millrace-bench-task-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
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

// bareJob submits a job as a person would, and asks Slurm until it has ended.
func bareJob(command string) error {
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

// engineServer is ours on the cluster; it runs a workflow of one step.
func engineServer(s settings) (run func(command string) error, stop func(), err error) {
	p := peer{name: us + "-slurm", readyPath: millrace.readyPath, prepare: generous, command: func(addr, dir string) []string {
		return []string{
			"millrace", "serve", "--listen", addr, "--data", filepath.Join(dir, "data"), "--executor", "slurm", "--slurm-folder", filepath.Join(dir, "shared"),
			"--runs-per-minute", "10000", "--plans-file", filepath.Join(dir, "plans.json"),
		}
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
