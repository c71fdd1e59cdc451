package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

var sleepingRows = []row{
	{"sleeping", "mb", "sleeping: MB/task", 2},
	{"sleeping", "cpu", "sleeping: % of a core/task", 3},
}

var sleepingGoals = []goal{
	{"sleeping", "mb", "", false, 15, "tasks that sleep: at most 15 MB each, the server included"},
	{"sleeping", "cpu", "", false, 0.05, "tasks that sleep: at most 0.05 % of a core each"},
}

var sleepingPeers = []peer{{name: us, readyPath: millrace.readyPath, prepare: generous, command: taskServer("bwrap"), signIn: millrace.signIn}}

// sleepingFor is how long what tasks that sleep cost is added up.
const sleepingFor = 30 * time.Second

// measureSleeping has as many tasks as there are to be at work at once, which all sleep.
func measureSleeping(s settings, chosen []peer, r *results) error {
	for round := range s.rounds {
		m, err := sleep(s, chosen[0])
		if err != nil {
			return err
		}
		if err := r.keep(m.add("name", us).add("op", "sleeping").add("round", round)); err != nil {
			return err
		}
	}
	return nil
}

func sleep(s settings, p peer) (measurement, error) {
	proc, err := start(s, p)
	if err != nil {
		return nil, err
	}
	defer proc.stop()
	sess, err := p.signIn(s, proc)
	if err != nil {
		return nil, err
	}
	c := &caller{client: http.Client{Timeout: 30 * time.Second}}
	if c.auth, err = sess.authorization(); err != nil {
		return nil, err
	}
	workflow := definition("scatter", s.tasks)
	node := workflow["nodes"].([]any)[0].(map[string]any)
	node["command"], node["resources"] = "sleep 1000", map[string]any{"vcpu": float64(runtime.NumCPU()) / float64(s.tasks)}
	var made struct{ Data struct{ ID, RunID string } }
	if err := c.post(proc.base+"/api/workflows", map[string]any{"name": "sleeping", "definition": workflow}, &made); err != nil {
		return nil, err
	}
	size := map[string]any{"vcpu": runtime.NumCPU(), "ramGb": 4 * runtime.NumCPU()}
	if err := c.post(proc.base+"/api/runs", map[string]any{"workflowId": made.Data.ID, "compute": size}, &made); err != nil {
		return nil, err
	}
	if err := awaitSleepers(proc.cmd.Process.Pid, s.tasks); err != nil {
		return nil, fmt.Errorf("%w (log: %s)", err, proc.log)
	}
	cpu := proc.cpuOfAll()
	time.Sleep(sleepingFor)
	used := (proc.cpuOfAll() - cpu).Seconds() / sleepingFor.Seconds()
	m := measurement{}.add("n", s.tasks).add("cpu", 100*used/float64(s.tasks)).add("mb", proportional(proc.cmd.Process.Pid)/float64(s.tasks))
	return m, c.post(proc.base+"/api/runs/"+made.Data.RunID+"/cancel", nil, nil)
}

// awaitSleepers waits until so many tasks are at work below a process.
func awaitSleepers(pid, n int) error {
	asleep := 0
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		asleep = 0
		for _, child := range family(pid) {
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child)); string(name) == "sleep\n" {
				asleep++
			}
		}
		if asleep == n {
			return nil
		}
	}
	return fmt.Errorf("%d of %d tasks have started", asleep, n)
}

// proportional is the memory in MB of a process and what it started, with what several
// of them share counted once.
func proportional(pid int) (mb float64) {
	for _, one := range family(pid) {
		text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(one), "smaps_rollup"))
		for line := range bytes.Lines(text) {
			if value, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
				kb, _ := strconv.ParseFloat(string(bytes.Fields(value)[0]), 64)
				mb += kb / 1024
			}
		}
	}
	return mb
}
