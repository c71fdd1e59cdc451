package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/waittest"
)

// onSlurm starts a server whose tasks run on a real cluster, which sees the
// folder.
func onSlurm(t *testing.T, folder string, args ...string) *server {
	t.Helper()
	if os.Getenv("MILLRACE_TEST_SLURM") == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("MILLRACE_TEST_SLURM is not set: use `make test`")
		}
		t.Skip("MILLRACE_TEST_SLURM is not set: scripts/with-slurm starts a cluster")
	}
	cmd := millrace(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--executor", "slurm", "--slurm-folder", folder, "--runs-per-minute", "1000"}, args...)...)
	cmd.Env = append(cmd.Env, "SLURM_CONF="+os.Getenv("SLURM_CONF"))
	putDatabase(t, cmd)
	return launch(t, cmd)
}

// made are the hashes of what a run has made, by name.
func (s *server) made(cookie, id string) map[string]string {
	s.t.Helper()
	hashes := map[string]string{}
	for _, raw := range s.want(200, "GET", "/api/runs/"+id+"/outputs?all=true", "", "Cookie", cookie)["data"].([]any) {
		o := raw.(map[string]any)
		hashes[fmt.Sprint(o["nodeId"], o["port"], o["index"], o["name"])] = o["sha256"].(string)
	}
	return hashes
}

// beginRun starts a run as soon as the server sees its cluster: another package
// tests what happens while it has no controller.
func (s *server) beginRun(cookie, body string) (id string) {
	s.t.Helper()
	var answer map[string]any
	if !waittest.Until(func() bool {
		var status int
		status, answer, _ = s.call("POST", "/api/runs", body, "Cookie", cookie)
		id, _ = answer["runId"].(string)
		return status != 409
	}) || id == "" {
		s.t.Fatalf("no run begins: %v", answer)
	}
	return id
}

// A server is killed while its tasks run on the cluster. They go on, the next
// one adopts them, and each has run once.
func TestTasksOnSlurmOutliveTheirServer(t *testing.T) {
	t.Parallel()
	folder, data, shared := t.TempDir(), t.TempDir(), t.TempDir()
	s := onSlurm(t, folder, "--data", data)
	_, cookie, _ := s.signUp("ada")
	mark := fmt.Sprintf(alone, shared)
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[
		{"id":"a","command":%q,"scatter":{"over":"[1,2,3]"},"outputs":{"o":{"path":"o"}}},{"id":"b","command":%q}],
		"edges":[{"id":"e1","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}}`,
		mark+fmt.Sprintf("while [ ! -e %s/go ]; do sleep 0.05; done; echo $ITEM > o", shared), mark+"cat $INPUT_in"), "Cookie", cookie)["id"].(string)
	id := s.beginRun(cookie, fmt.Sprintf(`{"workflowId":%q,"compute":{"vcpu":3,"ramGb":12}}`, w))
	ran := func(task string) int {
		text, _ := os.ReadFile(filepath.Join(shared, id+"."+task))
		return strings.Count(string(text), "\n")
	}
	for range 3 { // before, while and after they begin
		s.kill()
		s = onSlurm(t, folder, "--data", data, "--public-urls", s.base)
	}
	await(t, "the tasks", func() bool { return ran("a.0")+ran("a.1")+ran("a.2") == 3 })
	s.kill()
	if err := os.WriteFile(filepath.Join(shared, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s = onSlurm(t, folder, "--data", data, "--public-urls", s.base)
	if r := s.endedFor(cookie, id); r["status"] != "completed" || !strings.Contains(r["logs"].(string), "1\n2\n3\n") {
		t.Errorf("%v: %v\n%v", r["status"], r["errorMessage"], r["logs"])
	}
	for _, task := range []string{"a.0", "a.1", "a.2", "b.0"} {
		if n := ran(task); n != 1 {
			t.Errorf("%s ran %d times", task, n)
		}
	}
	s.billedOnce(cookie, []string{id})
	await(t, "nothing to be left", func() bool {
		left, err := filepath.Glob(filepath.Join(folder, "attempts", "run_*"))
		return err == nil && len(left) == 0
	})
}

// A partition that is closed stands for one that is full.
func TestATaskInSlurmsQueueIsQueuedAndFree(t *testing.T) {
	t.Parallel()
	s := onSlurm(t, t.TempDir(), "--data", t.TempDir(), "--slurm-partition", "closed")
	scontrol := func(args ...string) {
		if out, err := exec.Command("scontrol", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	scontrol("create", "partition=closed", "nodes=n1,n2", "state=down")
	defer await(t, "Slurm to let go of the partition, whose job may still be completing", func() bool {
		return exec.Command("scontrol", "delete", "partition=closed").Run() == nil
	})
	_, cookie, _ := s.signUp("ada")
	w := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","command":"echo hello"}]}}`, "Cookie", cookie)["id"].(string)
	id := s.beginRun(cookie, fmt.Sprintf(`{"workflowId":%q}`, w))
	run := func() (map[string]any, string) {
		r := s.want(200, "GET", "/api/runs/"+id, "", "Cookie", cookie)
		nodes, _ := r["nodes"].([]any)
		if len(nodes) == 0 {
			return r, ""
		}
		return r, nodes[0].(map[string]any)["status"].(string)
	}
	await(t, "the step to begin", func() bool { r, state := run(); return r["status"] == "running" && state == "running" })
	await(t, "the step to be queued", func() bool { _, state := run(); return state == "queued" })
	if r, _ := run(); r["creditsUsed"] != 0.0 || r["durationMs"] != 0.0 {
		t.Errorf("waiting costs %v for %v ms", r["creditsUsed"], r["durationMs"])
	}
	await(t, "the reason to be shown", func() bool {
		r, _ := run()
		why, _ := r["nodes"].([]any)[0].(map[string]any)["waitsFor"].(string)
		return strings.Contains(why, "PartitionDown")
	})
	scontrol("update", "partitionname=closed", "state=up")
	r := s.endedFor(cookie, id)
	if r["status"] != "completed" || r["nodes"].([]any)[0].(map[string]any)["waitsFor"] != nil {
		t.Errorf("%v: %v, %v", r["status"], r["errorMessage"], r["nodes"])
	}
	shards := s.want(200, "GET", "/api/runs/"+id+"/nodes/a/shards", "", "Cookie", cookie)["data"].([]any)
	a := shards[0].(map[string]any)["attempts"].([]any)[0].(map[string]any)
	job, _ := a["job"].(map[string]any)
	if a["machine"] != "n1" && a["machine"] != "n2" || a["queuedMs"].(float64) <= 0 || job["command"] != fmt.Sprintf("sacct --jobs=%v --long", job["id"]) {
		t.Errorf("it ran on %v after %v ms as %v", a["machine"], a["queuedMs"], job)
	}
}

func TestTheDoctorHasEachExecutorRunATask(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := onSlurm(t, folder, "--data", t.TempDir()) // a server is no obstacle
	c := millrace(t, "admin", "doctor", "--data", t.TempDir(), "--executor", "slurm", "--slurm-folder", folder)
	c.Env = append(c.Env, "SLURM_CONF="+os.Getenv("SLURM_CONF"))
	if out, _ := c.CombinedOutput(); !strings.Contains(string(out), "ok       executor slurm\n") {
		t.Errorf("%s\n%s", out, s.log)
	}
	file := filepath.Join(t.TempDir(), "executors.json")
	text := fmt.Sprintf(`[{"name":"cluster","kind":"slurm","slurm":{"folder":%q,"partition":"nowhere"}},{"name":"here","kind":"local"}]`, folder)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c = millrace(t, "admin", "doctor", "--data", t.TempDir(), "--executors-file", file)
	c.Env = append(c.Env, "SLURM_CONF="+os.Getenv("SLURM_CONF"))
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "WRONG    executor cluster: Slurm has no machine for us") || !strings.Contains(string(out), "ok       executor here\n") {
		t.Errorf("%v %s", err, out)
	}
	left, err := filepath.Glob(filepath.Join(folder, "millrace-doctor-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// One server has two executors: each run is executed where it was asked for, at
// the price of that place, and goes on there when the server was killed.
func TestARunIsExecutedWhereItWasAskedFor(t *testing.T) {
	t.Parallel()
	folder, data := t.TempDir(), t.TempDir()
	path := filepath.Join(data, "executors.json")
	file := fmt.Sprintf(`[{"name":"here","kind":"local","capacity":"vcpu=4,ramGb=16"},
		{"name":"cluster","kind":"slurm","priceFactor":1.5,"slurm":{"folder":%q}}]`, folder)
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	launchBoth := func(more ...string) *server {
		if os.Getenv("MILLRACE_TEST_SLURM") == "" {
			onSlurm(t, folder) // says why not
		}
		cmd := millrace(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data, "--executors-file", path}, more...)...)
		cmd.Env = append(cmd.Env, "SLURM_CONF="+os.Getenv("SLURM_CONF"))
		return launch(t, cmd)
	}
	s := launchBoth()
	_, cookie, _ := s.signUp("ada")
	shared := t.TempDir()
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[{"id":"a","command":%q}]}}`,
		fmt.Sprintf("echo begun; if [ -e %[1]s ]; then while [ ! -e %[1]s/go ]; do sleep 0.05; done; fi", shared)), "Cookie", cookie)["id"].(string)
	begin := func(more string) string {
		return s.beginRun(cookie, fmt.Sprintf(`{"workflowId":%q,"compute":{"vcpu":1,"ramGb":4}%s}`, w, more))
	}
	s.want(400, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q,"executor":"moon"}`, w), "Cookie", cookie)
	names := []string{}
	for _, e := range s.want(200, "GET", "/api/executors", "", "Cookie", cookie)["data"].([]any) {
		names = append(names, e.(map[string]any)["name"].(string))
	}
	if strings.Join(names, " ") != "here cluster" {
		t.Errorf("offered are %v", names)
	}
	price := func(more string) float64 {
		return s.want(200, "POST", "/api/billing/estimate", `{"compute":{"vcpu":1,"ramGb":4}`+more+`}`, "Cookie", cookie)["creditsPerHour"].(float64)
	}
	if usual, there := price(""), price(`,"executor":"cluster"`); math.Abs(there-1.5*usual) > 1e-9 {
		t.Errorf("an hour costs %v, and on the cluster %v", usual, there)
	}
	here, there := begin(""), begin(`,"executor":"cluster"`)
	machine := func(id string) any {
		shards := s.want(200, "GET", "/api/runs/"+id+"/nodes/a/shards", "", "Cookie", cookie)["data"].([]any)
		if len(shards) == 0 || len(shards[0].(map[string]any)["attempts"].([]any)) == 0 {
			return nil
		}
		return shards[0].(map[string]any)["attempts"].([]any)[0].(map[string]any)["machine"]
	}
	await(t, "the cluster's machine", func() bool { return machine(there) != nil })
	s.kill()
	s = launchBoth("--public-urls", s.base)
	if err := os.WriteFile(filepath.Join(shared, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{here: "here", there: "cluster"} {
		r := s.endedFor(cookie, id)
		if r["status"] != "completed" || r["executor"] != want || (machine(id) != nil) != (want == "cluster") {
			t.Errorf("%s: %v on %v, machine %v: %v", want, r["status"], r["executor"], machine(id), r["errorMessage"])
		}
		if events := strings.Count(r["logs"].(string), "begun"); events != 1 {
			t.Errorf("%s ran %d times", want, events)
		}
	}
}

// The table of a month counts what Slurm does, of which sacct shows the same times.
func TestTheUsageOfAMonthIsWhatSlurmCounts(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := onSlurm(t, t.TempDir(), "--data", data)
	_, cookie, me := s.signUp("ada")
	team := me["team"].(map[string]any)["id"].(string)
	database := s.cmd.Env
	admin := func(args ...string) string {
		c := millrace(t, append(append([]string{"admin"}, args...), "--data", data)...)
		c.Env = database
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return string(out)
	}
	admin("team", "set-quota", team, "--account", "genomics", "--wckey", "grant.7")
	w := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","command":"sleep 2","resources":{"vcpu":2},"scatter":{"over":"[1,2]"}}]}}`, "Cookie", cookie)["id"].(string)
	var cpu, jobs float64
	for range 2 {
		id := s.beginRun(cookie, fmt.Sprintf(`{"workflowId":%q,"compute":{"vcpu":2,"ramGb":8}}`, w))
		if r := s.endedFor(cookie, id); r["status"] != "completed" {
			t.Fatalf("%v: %v", r["status"], r["errorMessage"])
		}
		for _, shard := range s.want(200, "GET", "/api/runs/"+id+"/nodes/a/shards", "", "Cookie", cookie)["data"].([]any) {
			job, _ := shard.(map[string]any)["attempts"].([]any)[0].(map[string]any)["job"].(map[string]any)
			said, err := exec.Command("scontrol", "show", "job", "--oneliner", fmt.Sprint(job["id"])).CombinedOutput()
			if err != nil {
				t.Fatalf("%v %s", err, said)
			}
			for _, want := range []string{" Account=genomics ", " Comment=" + id + ".a.", "_s_team:" + team + ",person=ada:user_"} {
				if !strings.Contains(string(said), want) {
					t.Errorf("%q is not in %s", want, said)
				}
			}
			var cpus, hours, minutes, seconds float64
			for _, field := range strings.Fields(string(said)) {
				_, _ = fmt.Sscanf(field, "NumCPUs=%f", &cpus)
				_, _ = fmt.Sscanf(field, "RunTime=%f:%f:%f", &hours, &minutes, &seconds)
			}
			cpu += cpus * (hours*3600 + minutes*60 + seconds)
			jobs++
		}
	}
	rows, err := csv.NewReader(strings.NewReader(admin("usage", "--month", time.Now().UTC().Format("2006-01"), "--csv"))).ReadAll()
	if err != nil || len(rows) != 2 || rows[1][0] != team || rows[1][5] != fmt.Sprint(jobs) {
		t.Fatalf("%v, %v", rows, err)
	}
	// Slurm counts whole seconds, and the time that its daemons take around a task.
	if counted, err := strconv.ParseFloat(rows[1][7], 64); err != nil || math.Abs(counted-cpu) > 2*2*jobs || counted < 2*2*jobs {
		t.Errorf("%v CPU seconds are counted, Slurm counted %v, %v", rows[1][7], cpu, err)
	}
}
