package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// taskPeers carry out tasks, two at a time.
var taskPeers = []peer{
	{name: us, command: program("millrace"), taskRunner: millraceRunner("none", 2)},
	{name: "make", command: program("make"), taskRunner: makeRunner},
	{name: "snakemake", command: program("snakemake"), taskRunner: snakemakeRunner},
	{name: "dagu", command: program("dagu"), taskRunner: daguRunner},
	{name: "bare", command: program("taskbare"), taskRunner: bareRunner},
}

// sandboxPeers do the same; ours as it runs by default, each task in a sandbox, and
// bwrap is a loop over bubblewrap alone.
var sandboxPeers = []peer{
	{name: us, command: program("millrace"), taskRunner: millraceRunner("bwrap", 2)},
	{name: "make", command: program("make"), taskRunner: makeRunner},
	{name: "bwrap", command: program("bwrap"), taskRunner: loopRunner(2)},
	{name: "snakemake", command: program("snakemake"), taskRunner: snakemakeRunner},
}

// corePeers are ours and bubblewrap alone, with as many tasks at a time as there are
// cores, and with two.
var corePeers = []peer{
	{name: us, command: program("millrace"), taskRunner: millraceRunner("bwrap", runtime.NumCPU())},
	{name: twoAtATime, command: program("millrace"), taskRunner: millraceRunner("bwrap", 2)},
	{name: "bwrap", command: program("bwrap"), taskRunner: loopRunner(runtime.NumCPU())},
	{name: "bwrap, 2", command: program("bwrap"), taskRunner: loopRunner(2)},
}

const twoAtATime = us + ", 2"

// bareSandbox are the options of a sandbox like that of our tasks, which
// internal/engine/executor/local has in view.go.
const bareSandbox = "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --unshare-net --uid 1000 --gid 1000 --hostname bench " +
	"--die-with-parent --new-session --cap-drop ALL --as-pid-1 --clearenv --setenv PATH /usr/bin:/bin --disable-userns " +
	"--ro-bind /usr /usr --ro-bind-try /bin /bin --ro-bind-try /lib /lib --ro-bind-try /lib64 /lib64 --ro-bind /etc /etc --dir /home --dir /var --symlink /tmp /var/tmp " +
	"--proc /proc --ro-bind /proc/sys /proc/sys --dev /dev --size 1073741824 --tmpfs /dev/shm --size 16777216 --tmpfs /run --remount-ro /dev --tmpfs /tmp --bind . /work --remount-ro / --chdir /work -- "

func program(name string) func(addr, dir string) []string {
	return func(string, string) []string { return []string{name} }
}

// commandRunner is a program that does the work and ends.
func commandRunner(most int, prepare func(kind string, n int, dir string) error, argv func(kind string, n int, dir string) *exec.Cmd) taskRunner {
	return taskRunner{
		most: most, prepare: prepare, close: func() {},
		run: func(kind string, n int, dir string) error {
			cmd := argv(kind, n, dir)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out[max(0, len(out)-500):])
			}
			return gathered(kind, n, dir)
		},
		cpu: func() time.Duration { return cpuOf(syscall.RUSAGE_CHILDREN) },
	}
}

// gathered checks what a fan has made.
func gathered(kind string, n int, dir string) error {
	if kind != "fan" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "out.txt"))
	if lines := bytes.Count(text, []byte("\n")); err != nil || lines != n {
		return fmt.Errorf("%d lines were gathered of %d, %w", lines, n, err)
	}
	return nil
}

func cpuOf(who int) time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(who, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// loopRunner is a loop over bubblewrap, so many at once. This program is the loop, and
// what it uses counts.
func loopRunner(atOnce int) func(settings, peer) (taskRunner, error) {
	return func(s settings, _ peer) (taskRunner, error) {
		return taskRunner{
			prepare: func(string, int, string) error { return nil }, close: func() {},
			run: func(kind string, n int, dir string) error {
				for _, stage := range stages(kind, n) {
					if err := inSandboxes(s, atOnce, dir, stage); err != nil {
						return err
					}
				}
				return gathered(kind, n, dir)
			},
			cpu: func() time.Duration { return cpuOf(syscall.RUSAGE_CHILDREN) + cpuOf(syscall.RUSAGE_SELF) },
		}, nil
	}
}

// stages are commands, each list to be run once the one before it has ended.
func stages(kind string, n int) [][]string {
	switch kind {
	case "chain":
		return slices.Repeat([][]string{{"true"}}, n)
	case "fan":
		var copies []string
		for i := range n {
			copies = append(copies, fmt.Sprintf("cat a.txt > b_%d.txt", i))
		}
		return [][]string{{"echo seed > a.txt"}, copies, {"cat b_*.txt > out.txt"}}
	}
	return [][]string{slices.Repeat([]string{"true"}, n)}
}

func inSandboxes(s settings, atOnce int, dir string, commands []string) error {
	options := strings.Fields(bareSandbox)
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, command := range commands {
		g.Go(func() error {
			argv := []string{command}
			if command != "true" {
				argv = []string{"sh", "-c", command}
			}
			c := exec.Command(filepath.Join(s.bin, "bwrap"), slices.Concat(options, argv)...)
			c.Dir = dir
			if out, err := c.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	return g.Wait()
}

func makeRunner(s settings, _ peer) (taskRunner, error) {
	return commandRunner(0, func(kind string, n int, dir string) error {
		var b strings.Builder
		rule := func(target, needs, recipe string) {
			fmt.Fprintf(&b, "%s: %s\n\t@%s\n", target, needs, recipe)
		}
		var all []string
		for i := range n {
			switch kind {
			case "chain":
				before := ""
				if i > 0 {
					before = fmt.Sprintf("t%d", i-1)
				}
				rule(fmt.Sprintf("t%d", i), before, "true")
				all = []string{fmt.Sprintf("t%d", i)}
			case "fan":
				rule(fmt.Sprintf("b_%d.txt", i), "a.txt", fmt.Sprintf("cat a.txt > b_%d.txt", i))
				all = append(all, fmt.Sprintf("b_%d.txt", i))
			default:
				rule(fmt.Sprintf("t%d", i), "", "true")
				all = append(all, fmt.Sprintf("t%d", i))
			}
		}
		if kind == "fan" {
			rule("a.txt", "", "echo seed > a.txt")
			rule("out.txt", strings.Join(all, " "), "cat b_*.txt > out.txt")
			all = []string{"out.txt"}
		}
		return os.WriteFile(filepath.Join(dir, "Makefile"), []byte("all: "+strings.Join(all, " ")+"\n"+b.String()), 0o600)
	}, func(string, int, string) *exec.Cmd {
		return exec.Command(filepath.Join(s.bin, "make"), "-s", "-j2", "all")
	}), nil
}

// Snakemake needs a file that each task makes.
func snakemakeRunner(s settings, _ peer) (taskRunner, error) {
	return commandRunner(100, func(kind string, n int, dir string) error {
		text := map[string]string{
			"independent": "rule all:\n    input: expand(\"o/{i}\", i=range(%[1]d))\nrule t:\n    output: touch(\"o/{i}\")\n    shell: \"true\"\n",
			"chain":       "rule all:\n    input: \"o/%[2]d\"\nrule t:\n    input: lambda w: [] if int(w.i) == 0 else \"o/%%d\" %% (int(w.i) - 1)\n    output: touch(\"o/{i}\")\n    shell: \"true\"\n",
			"fan": "rule all:\n    input: \"out.txt\"\nrule out:\n    input: expand(\"b_{i}.txt\", i=range(%[1]d))\n    output: \"out.txt\"\n    shell: \"cat b_*.txt > out.txt\"\n" +
				"rule a:\n    output: \"a.txt\"\n    shell: \"echo seed > a.txt\"\nrule b:\n    input: \"a.txt\"\n    output: \"b_{i}.txt\"\n    shell: \"cat a.txt > {output}\"\n",
		}[kind]
		return os.WriteFile(filepath.Join(dir, "Snakefile"), fmt.Appendf(nil, text, n, n-1), 0o600)
	}, func(string, int, string) *exec.Cmd {
		return exec.Command(filepath.Join(s.bin, "snakemake"), "-j2", "--quiet", "all", "--nolock", "--", "all")
	}), nil
}

func daguRunner(s settings, _ peer) (taskRunner, error) {
	return commandRunner(200, func(kind string, n int, dir string) error {
		var b strings.Builder
		fmt.Fprintf(&b, "type: graph\nmax_active_steps: 2\nworking_dir: %s\nsteps:\n", dir)
		step := func(name, command string, needs ...string) {
			fmt.Fprintf(&b, "  - name: %s\n    command: %s\n", name, command)
			if len(needs) > 0 {
				fmt.Fprintf(&b, "    depends: [%s]\n", strings.Join(needs, ", "))
			}
		}
		var all []string
		if kind == "fan" {
			step("a", `sh -c "echo seed > a.txt"`)
		}
		for i := range n {
			name := fmt.Sprintf("t%d", i)
			switch {
			case kind == "fan":
				step(name, fmt.Sprintf(`sh -c "cat a.txt > b_%d.txt"`, i), "a")
			case kind == "chain" && i > 0:
				step(name, `"true"`, fmt.Sprintf("t%d", i-1))
			default:
				step(name, `"true"`)
			}
			all = append(all, name)
		}
		if kind == "fan" {
			step("out", `sh -c "cat b_*.txt > out.txt"`, all...)
		}
		return os.WriteFile(filepath.Join(dir, "dag.yaml"), []byte(b.String()), 0o600)
	}, func(_ string, _ int, dir string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(s.bin, "dagu"), "start", "dag.yaml")
		cmd.Env = append(os.Environ(), "DAGU_HOME="+filepath.Join(dir, "home"))
		return cmd
	}), nil
}

func bareRunner(s settings, _ peer) (taskRunner, error) {
	bin, err := filepath.Abs(filepath.Join(s.bin, "taskbare"))
	return commandRunner(0, func(string, int, string) error { return nil }, func(kind string, n int, dir string) *exec.Cmd {
		return exec.Command(bin, "-case", kind, "-n", fmt.Sprint(n), "-dir", dir)
	}), err
}

// generous is a plan with which a team may run as much as it likes.
func generous(_, dir string) error {
	return os.WriteFile(filepath.Join(dir, "plans.json"), []byte(`{"plans": {"free": {"monthlyCredits": 1000000, "maxVcpu": 1024, "maxRamGb": 4096}}}`), 0o600)
}

func taskServer(sandbox string) func(addr, dir string) []string {
	return func(addr, dir string) []string {
		return []string{"millrace", "serve", "--listen", addr, "--data", filepath.Join(dir, "data"), "--sandbox", sandbox, "--runs-per-minute", "10000", "--plans-file", filepath.Join(dir, "plans.json")}
	}
}

// millraceRunner is a server with a team that may run as much as it likes, and so many
// tasks of a vCPU at once.
func millraceRunner(sandbox string, atOnce int) func(settings, peer) (taskRunner, error) {
	return func(s settings, _ peer) (taskRunner, error) { return millraceWith(s, sandbox, atOnce) }
}

func millraceWith(s settings, sandbox string, atOnce int) (taskRunner, error) {
	p := peer{name: us + "-" + sandbox, readyPath: millrace.readyPath, prepare: generous, command: taskServer(sandbox)}
	proc, err := start(s, p)
	if err != nil {
		return taskRunner{}, err
	}
	sess, err := millrace.signIn(s, proc)
	if err != nil {
		proc.stop()
		return taskRunner{}, err
	}
	c := &caller{client: http.Client{Timeout: 30 * time.Second}}
	var workflow string
	return taskRunner{
		cpu: proc.cpuOfAll, own: proc.cpu, close: proc.stop,
		prepare: func(kind string, n int, _ string) (err error) {
			if c.auth, err = sess.authorization(); err != nil {
				return err
			}
			var answer struct{ Data struct{ ID string } }
			err = c.post(proc.base+"/api/workflows", map[string]any{"name": kind, "definition": definition(kind, n)}, &answer)
			workflow = answer.Data.ID
			return err
		},
		run: func(string, int, string) error {
			var answer struct{ Data struct{ RunID string } }
			if err := c.post(proc.base+"/api/runs", map[string]any{"workflowId": workflow, "compute": map[string]any{"vcpu": atOnce, "ramGb": 4 * atOnce}}, &answer); err != nil {
				return err
			}
			return awaitRun(proc.base+"/api/runs/"+answer.Data.RunID+"/stream", c.auth)
		},
	}, nil
}

func definition(kind string, n int) map[string]any {
	nodes, edges := []map[string]any{}, []map[string]any{}
	connect := func(from, to string, file bool) {
		e := map[string]any{"id": fmt.Sprintf("e%d", len(edges)), "source": from, "target": to}
		if file {
			e["sourceHandle"], e["targetHandle"] = "o", "in"
		}
		edges = append(edges, e)
	}
	task := func(id, command, output string) {
		t := map[string]any{"id": id, "command": command}
		if output != "" {
			t["outputs"] = map[string]any{"o": map[string]any{"path": output}}
		}
		nodes = append(nodes, t)
	}
	if kind == "scatter" {
		items := make([]int, n)
		for i := range items {
			items[i] = i
		}
		return map[string]any{
			"parameters": map[string]any{"items": map[string]any{"type": "array", "default": items}},
			"nodes":      []any{map[string]any{"id": "t", "command": "true", "scatter": map[string]any{"over": "params.items"}}},
		}
	}
	if kind == "fan" {
		task("a", "echo seed > a.txt", "a.txt")
	}
	for i := range n {
		id := fmt.Sprintf("t%d", i)
		switch {
		case kind == "fan":
			task(id, "cat $INPUT_in > b.txt", "b.txt")
			connect("a", id, true)
		case kind == "chain" && i > 0:
			task(id, "true", "")
			connect(fmt.Sprintf("t%d", i-1), id, false)
		default:
			task(id, "true", "")
		}
	}
	if kind == "fan" {
		task("out", "cat $INPUT_in > out.txt", "out.txt")
		for i := range n {
			connect(fmt.Sprintf("t%d", i), "out", true)
		}
	}
	return map[string]any{"nodes": nodes, "edges": edges}
}

// awaitRun follows a run's stream to its end.
func awaitRun(url, auth string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", auth)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var m struct{ Type, Status string }
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			return err
		}
		if m.Type == "done" {
			if m.Status != "completed" {
				return fmt.Errorf("the run is %s", m.Status)
			}
			return nil
		}
	}
	return errors.Join(errors.New("the stream ended early"), lines.Err())
}
