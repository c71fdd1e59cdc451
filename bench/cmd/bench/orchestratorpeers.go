package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// orchestrators are ours and its peers, each as its own documentation has it used on one machine.
var orchestrators = []orchestrator{
	{name: us, open: openMillrace, version: func(s settings) (string, error) {
		text, err := printed(s, us, "version")
		return strings.TrimPrefix(text, "millrace "), err
	}},
	{name: "prefect", open: openPrefect, version: func(s settings) (string, error) { return printed(s, "prefect", "--version") }},
	{name: "luigi", open: programOf("luigi", luigiArgs), version: func(s settings) (string, error) {
		return printed(s, "python-luigi", "-c", "import importlib.metadata; print(importlib.metadata.version('luigi'))")
	}},
	{name: "snakemake", open: programOf("snakemake", snakemakeArgs), version: func(s settings) (string, error) { return printed(s, "snakemake", "--version") }},
	{name: "nextflow", open: programOf("nextflow", nextflowArgs), version: func(s settings) (string, error) {
		text, err := printed(s, "nextflow", "-version")
		_, version, _ := strings.Cut(text, "version ")
		version, _, _ = strings.Cut(version, " ")
		return strings.TrimSpace(version), err
	}},
}

// printed is what a program prints.
func printed(s settings, name string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Env, cmd.Stderr = environ(), os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// environ has the system's Python come first, so that all tools run their tasks with it, and
// keeps tools from telling somebody about their use.
func environ(more ...string) []string {
	return append(append(os.Environ(), "PATH=/usr/bin:/bin:"+os.Getenv("PATH"), "DO_NOT_TRACK=1", "PYTHONPATH=."), more...)
}

func nothing() time.Duration { return 0 }

// programOf is a tool that is one command.
func programOf(name string, args func(s settings, w work, dir string) []string) func(settings) (opened, error) {
	return func(s settings) (opened, error) {
		path, err := filepath.Abs(filepath.Join(s.bin, name))
		return opened{
			prepare: func(w work, dir string) error { return prepared(s, w, dir) },
			command: func(w work, dir string) *exec.Cmd {
				cmd := exec.Command(path, args(s, w, dir)...)
				cmd.Env = environ("NXF_HOME="+filepath.Join(dir, "nextflow-home"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
				return cmd
			},
			result: written, beside: nothing, close: func() {},
		}, err
	}
}

// prepared makes what depends on the sizes.
func prepared(s settings, w work, dir string) error {
	if err := os.Mkdir(filepath.Join(dir, "made"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "nextflow.config"), fmt.Appendf(nil, "executor.cpus = %d\n", s.atOnce), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "chain.nf"), []byte(nextflowChain(w.tasks)), 0o600)
}

// nextflowChain is the sequence: a process under as many names as there are tasks.
func nextflowChain(tasks int) string {
	var names, calls strings.Builder
	for i := range tasks {
		fmt.Fprintf(&names, "include { step as step%d } from './step.nf'\n", i)
		from := "[]"
		if i > 0 {
			from = fmt.Sprintf("step%d.out", i-1)
		}
		fmt.Fprintf(&calls, "    step%d(%s)\n", i, from)
	}
	return fmt.Sprintf("%sworkflow {\n%s    step%d.out.collectFile(name: 'out.txt', storeDir: projectDir)\n}\n", names.String(), calls.String(), tasks-1)
}

// written is the result that a tool has left behind in the folder.
func written(w work, dir string) (string, error) {
	name := "out.txt"
	for _, made := range []string{"chain.txt", "fan.txt"} { // Snakemake's targets
		if _, err := os.Stat(filepath.Join(dir, made)); err == nil {
			name = made
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	return string(text), err
}

func luigiArgs(s settings, w work, dir string) []string {
	args := []string{"--module", "luigi_flow", "Chain", "--n", fmt.Sprint(w.fibo), "--tasks", fmt.Sprint(w.tasks)}
	if !w.sequence() {
		args = []string{"--module", "luigi_flow", "Fan", "--folder", "files"}
	}
	return append(args, "--local-scheduler", "--workers", fmt.Sprint(s.atOnce))
}

func snakemakeArgs(s settings, w work, _ string) []string {
	target := "chain"
	if !w.sequence() {
		target = "fan"
	}
	return []string{"--cores", fmt.Sprint(s.atOnce), "--config", fmt.Sprintf("fibo=%d", w.fibo), fmt.Sprintf("tasks=%d", w.tasks), "--", target}
}

func nextflowArgs(_ settings, w work, _ string) []string {
	if !w.sequence() {
		return []string{"run", "fan.nf"}
	}
	return []string{"run", "chain.nf", "--n", fmt.Sprint(w.fibo)}
}

// openPrefect starts the server of Prefect, as its documentation begins.
func openPrefect(s settings) (opened, error) {
	python, err := filepath.Abs(filepath.Join(s.bin, "python-prefect"))
	if err != nil {
		return opened{}, err
	}
	var set []string
	proc, err := start(s, peer{
		name: "prefect", readyPath: "/api/ready",
		environ: func(addr, dir string) []string {
			set = environ("PREFECT_HOME="+dir, "PREFECT_API_URL=http://"+addr+"/api", "PREFECT_SERVER_ANALYTICS_ENABLED=false")
			return set
		},
		command: func(addr, _ string) []string {
			host, port, _ := strings.Cut(addr, ":")
			return []string{"prefect", "server", "start", "--host", host, "--port", port}
		},
	})
	if err != nil {
		return opened{}, err
	}
	return opened{
		prepare: func(work, string) error { return nil },
		command: func(w work, dir string) *exec.Cmd {
			cmd := exec.Command(python, "prefect_flow.py", "chain", fmt.Sprint(w.fibo), fmt.Sprint(w.tasks))
			if !w.sequence() {
				cmd = exec.Command(python, "prefect_flow.py", "fan", "files", fmt.Sprint(s.atOnce))
			}
			cmd.Env = set
			return cmd
		},
		result: written, beside: proc.cpuOfAll, close: proc.stop,
	}, nil
}

// openMillrace starts our server with its defaults, each task in a sandbox, and a team that may run
// as much as it likes. Files are uploaded before the time is taken.
func openMillrace(s settings) (opened, error) {
	proc, err := start(s, peer{name: us, readyPath: millrace.readyPath, prepare: generous, command: taskServer("bwrap")})
	if err != nil {
		return opened{}, err
	}
	sess, err := millrace.signIn(s, proc)
	if err != nil {
		proc.stop()
		return opened{}, err
	}
	u := &ours{s: s, proc: proc, c: &caller{client: http.Client{Timeout: 30 * time.Second}}, authorization: sess.authorization}
	if u.program, err = filepath.Abs(filepath.Join(s.bin, us)); err != nil {
		proc.stop()
		return opened{}, err
	}
	return opened{prepare: u.prepare, command: u.command, result: u.result, beside: proc.cpuOfAll, close: proc.stop}, nil
}

// ours is a client of our server.
type ours struct {
	s             settings
	proc          *process
	c             *caller
	authorization func() (string, error)
	program       string
	workflow      string
	keys          []string // of the files
}

func (u *ours) cli(args ...string) *exec.Cmd {
	cmd := exec.Command(u.program, args...)
	cmd.Env = environ("MILLRACE_SERVER="+u.proc.base, "MILLRACE_TOKEN="+strings.TrimPrefix(u.c.auth, "Bearer "))
	return cmd
}

func (u *ours) prepare(w work, dir string) (err error) {
	if u.c.auth, err = u.authorization(); err != nil {
		return err
	}
	var answer struct{ Data struct{ ID string } }
	definition, err := definitionOf(w)
	if err != nil {
		return err
	}
	if err := u.c.post(u.proc.base+"/api/workflows", map[string]any{"name": w.kind, "definition": definition}, &answer); err != nil {
		return err
	}
	u.workflow, u.keys = answer.Data.ID, nil
	if w.sequence() {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "files", "*"))
	if err != nil {
		return err
	}
	upload := u.cli(append([]string{"files", "upload"}, files...)...)
	upload.Stderr = os.Stderr
	out, err := upload.Output()
	u.keys = strings.Fields(string(out))
	if err == nil {
		u.c.auth, err = u.authorization() // uploading may have taken minutes
	}
	return err
}

func (u *ours) command(work, string) *exec.Cmd {
	args := []string{"run", u.workflow, "--watch", "--compute", fmt.Sprintf("%dx%d", u.s.atOnce, 4*u.s.atOnce)}
	for _, key := range u.keys {
		args = append(args, "-i", "files="+key)
	}
	return u.cli(args...)
}

// result is the only output of the newest run.
func (u *ours) result(work, string) (string, error) {
	auth, err := u.authorization()
	if err != nil {
		return "", err
	}
	u.c.auth = auth
	var runs struct{ Data []struct{ ID string } }
	if err := u.c.get(u.proc.base+"/api/runs?limit=1", &runs); err != nil {
		return "", err
	}
	if len(runs.Data) == 0 {
		return "", fmt.Errorf("there is no run")
	}
	var outputs struct{ Data []struct{ URL string } }
	if err := u.c.get(u.proc.base+"/api/runs/"+runs.Data[0].ID+"/outputs", &outputs); err != nil {
		return "", err
	}
	if len(outputs.Data) != 1 {
		return "", fmt.Errorf("the run has %d outputs", len(outputs.Data))
	}
	answer, err := http.Get(outputs.Data[0].URL)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(answer.Body)
	return text.String(), err
}

// definitionOf is the work as our definition.
func definitionOf(w work) (map[string]any, error) {
	text, err := programs.ReadFile("orchestrators/work.py")
	if err != nil {
		return nil, err
	}
	functions, _, _ := strings.Cut(string(text), "\nif __name__")
	task := func(id, call string) map[string]any {
		return map[string]any{
			"id": id, "interpreter": "python3", "outputs": map[string]any{"o": map[string]any{"path": "o.txt"}},
			"command": functions + "\n\nimport os\n\nwith open(\"o.txt\", \"w\") as out:\n    print(" + call + ", file=out)\n",
		}
	}
	const given = "*open(os.environ[\"INPUT_in_LIST\"]).read().split()"
	nodes, edges := []map[string]any{}, []map[string]any{}
	connect := func(from, to string) {
		edges = append(edges, map[string]any{"id": fmt.Sprintf("e%d", len(edges)), "source": from, "sourceHandle": "o", "target": to, "targetHandle": "in"})
	}
	if !w.sequence() {
		count := task("count", `main("count", os.environ["ITEM"])`)
		count["scatter"] = map[string]any{"over": "inputs.files"}
		connect("count", "gather")
		return map[string]any{
			"inputs": map[string]any{"files": map[string]any{"type": "files"}}, "outputs": resultOf("gather"),
			"nodes": []any{count, task("gather", `main("gather", `+given+`)`)}, "edges": edges,
		}, nil
	}
	for i := range w.tasks {
		id, before := fmt.Sprintf("step%d", i), ""
		if i > 0 {
			before = ", " + given
			connect(fmt.Sprintf("step%d", i-1), id)
		}
		nodes = append(nodes, task(id, fmt.Sprintf(`main("step", "%d"%s)`, w.fibo, before)))
	}
	return map[string]any{"nodes": nodes, "edges": edges, "outputs": resultOf(fmt.Sprintf("step%d", w.tasks-1))}, nil
}

// resultOf has a run hand out what a node made, and nothing else.
func resultOf(node string) map[string]any {
	return map[string]any{"result": map[string]any{"from": node + ".o"}}
}
