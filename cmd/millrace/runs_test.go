package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func (s *server) workflow(token, definition string) string {
	s.t.Helper()
	return s.want(201, "POST", "/api/workflows", `{"name":"w","definition":`+definition+`}`, "Authorization", bearer(token))["id"].(string)
}

func (s *server) run(token, body string) string {
	s.t.Helper()
	return s.want(202, "POST", "/api/runs", body, "Authorization", bearer(token))["runId"].(string)
}

// logged waits until a run has printed something.
func (s *server) logged(token, id, text string) {
	s.t.Helper()
	await(s.t, text+" in the log", func() bool {
		return strings.Contains(s.want(200, "GET", "/api/runs/"+id, "", "Authorization", bearer(token))["logs"].(string), text)
	})
}

// ended follows a run until it has ended.
func (s *server) ended(token, id string) map[string]any {
	s.t.Helper()
	return s.endedAs(id, "Authorization", bearer(token))
}

func TestARealRunInItsSandbox(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir())
	token, _, _ := s.signUp("ada")
	url, key := s.presign(token, "numbers 1.txt", 6)
	if got := put(t, url, strings.NewReader("1\n2\n3\n"), 6); got != 200 {
		t.Fatal(got)
	}
	w := s.workflow(token, `{
		"parameters":{"factor":{"type":"integer","default":2}},
		"inputs":{"numbers":{"type":"file"}},
		"nodes":[
			{"id":"scale","command":"awk -v f=\"$PARAM_factor\" '{print $1*f}' \"$INPUT_in\" > out.txt","inputs":{"in":{"from":"inputs.numbers"}},"outputs":{"o":{"path":"out.txt"}}},
			{"id":"each","command":"echo \"$ITEM:$ITEM_INDEX\" > o.txt","scatter":{"over":"['a','b','c']"},"outputs":{"o":{"path":"o.txt"}}},
			{"id":"sum","command":"cat $INPUT_parts > all.txt; awk '{s+=$1} END {print s}' $INPUT_numbers >> all.txt; cat all.txt","outputs":{"all":{"path":"all.txt"}}}],
		"edges":[
			{"id":"e1","source":"scale","sourceHandle":"o","target":"sum","targetHandle":"numbers"},
			{"id":"e2","source":"each","sourceHandle":"o","target":"sum","targetHandle":"parts"}],
		"outputs":{"all":{"from":"sum.all"}}}`)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q,"parameters":{"factor":5},"inputs":{"numbers":%q}}`, w, key))
	r := s.ended(token, id)
	if r["status"] != "completed" || !strings.Contains(r["logs"].(string), "a:0\nb:1\nc:2\n30\n") {
		t.Errorf("%v %v\n%v", r["status"], r["errorMessage"], r["logs"])
	}
	outputs := s.want(200, "GET", "/api/runs/"+id+"/outputs", "", "Authorization", bearer(token))["data"].([]any)
	if len(outputs) != 1 || outputs[0].(map[string]any)["name"] != "all.txt" {
		t.Errorf("%v", outputs)
	}

	gpu := fmt.Sprintf(`{"workflowId":%q,"resourceProfile":"gpu"}`, w)
	if e := s.want(409, "POST", "/api/runs", strings.Replace(gpu, "}", fmt.Sprintf(`,"inputs":{"numbers":%q}}`, key), 1), "Authorization", bearer(token)); e["code"] != "no_capacity" {
		t.Errorf("%v", e)
	}
	if e := s.want(200, "POST", "/api/billing/estimate", gpu, "Authorization", bearer(token)); e["allowed"] != false {
		t.Errorf("%v", e)
	}
	fails := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, `{"nodes":[{"id":"boom","command":"echo before; exit 3"}]}`)))
	if r := s.ended(token, fails); r["status"] != "failed" || r["errorMessage"] != "Step boom exited with status 3" || r["errorCode"] != "node_failed" {
		t.Errorf("%v", r)
	}
}

func TestAFailedRunSaysWhereItFailedAndWhatMayHelp(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir())
	token, _, _ := s.signUp("ada")
	failure := func(definition string) map[string]any {
		t.Helper()
		r := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, definition))))
		f, _ := r["failure"].(map[string]any)
		if r["status"] != "failed" || f == nil {
			t.Fatalf("%v: %v", r["status"], f)
		}
		return f
	}
	first := func(f map[string]any) map[string]any {
		list, _ := f["suggestions"].([]any)
		if len(list) == 0 {
			t.Fatalf("nothing is suggested: %v", f)
		}
		return list[0].(map[string]any)
	}
	f := failure(`{"nodes":[{"id":"count","command":"printf '\\033[31mbegin\\033[0m\\n10 %%\\r20 %%\\n'; if [ $ITEM = 2 ]; then no_such_program_here x; fi","scatter":{"over":"[1,2,3]"}}]}`)
	lines := fmt.Sprint(f["lines"])
	if f["node"] != "count" || f["item"] != 1.0 || f["attempt"] != 1.0 || f["exitCode"] != 127.0 || !strings.HasPrefix(lines, "[begin 20 % ") || !strings.Contains(lines, "no_such_program_here: command not found") {
		t.Errorf("%v", f)
	}
	if s := first(f); s["code"] != "missing_program" || s["edit"] != nil {
		t.Errorf("%v", s)
	}
	f = failure(`{"nodes":[{"id":"read","interpreter":"python3","command":"import no_such_module_here"}]}`)
	edit, _ := first(f)["edit"].(map[string]any)
	if f["item"] != nil || edit["node"] != "read" || edit["field"] != "environment.pip" || fmt.Sprint(edit["value"]) != "[no_such_module_here]" {
		t.Errorf("%v", f)
	}
	if r := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, `{"nodes":[{"id":"a","command":"true"}]}`)))); r["failure"] != nil {
		t.Errorf("a run that completed has a failure: %v", r["failure"])
	}
}

func TestAScatterMayLoseShards(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir())
	token, _, _ := s.signUp("ada")
	scatter := func(allow bool, over string) map[string]any {
		w := s.workflow(token, fmt.Sprintf(`{
			"nodes":[
				{"id":"map","command":"echo $ITEM > o.txt; exit $ITEM","scatter":{"over":"%s","maxParallel":1},"outputs":{"o":{"path":"o.txt"}},"allowFailure":%v},
				{"id":"gather","command":"cat $INPUT_in < /dev/null; wc -l < $INPUT_in_LIST"}],
			"edges":[{"id":"e","source":"map","sourceHandle":"o","target":"gather","targetHandle":"in"}]}`, over, allow))
		return s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w)))
	}
	if r := scatter(true, "[0,4,0]"); r["status"] != "completed" || r["logs"] != "0\n0\n2\n" {
		t.Errorf("%v %v %v", r["status"], r["errorMessage"], r["logs"])
	}
	if r := scatter(true, "[4]"); r["status"] != "completed" || r["logs"] != "" {
		t.Errorf("none is left: %v %v %v", r["status"], r["errorMessage"], r["logs"])
	}
	r := scatter(false, "[4,0]")
	if m := r["nodes"].([]any)[0].(map[string]any); r["errorMessage"] != "Step map exited with status 4" || m["exitCode"] != 4.0 {
		t.Errorf("%v %v", r["errorMessage"], m)
	}
	if r := scatter(false, "[]"); r["status"] != "completed" || r["logs"] != "0\n" {
		t.Errorf("%v %v %q", r["status"], r["errorMessage"], r["logs"])
	}
}

func TestCancelEndsARealTask(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir())
	token, _, _ := s.signUp("ada")
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, `{"nodes":[{"id":"deaf","command":"( setsid bash -c 'trap \"\" TERM HUP; sleep 87654; :' & ); trap '' TERM; echo up; while :; do sleep 1; done"}]}`)))
	s.logged(token, id, "up")
	s.want(200, "POST", "/api/runs/"+id+"/cancel", "", "Authorization", bearer(token))
	if r := s.ended(token, id); r["status"] != "cancelled" {
		t.Errorf("%v", r["status"])
	}
	if alive("sleep\x0087654") {
		t.Error("a process that went its own way outlives the run")
	}
}

// What a task uses, and when and where it wrote, comes all the way from the
// executor.
func TestARunningTaskIsMeasured(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--sandbox", "none")
	token, _, _ := s.signUp("ada")
	gate := filepath.Join(t.TempDir(), "go")
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, fmt.Sprintf(
		`{"nodes":[{"id":"busy","command":"ls -A; echo out; sleep 0.2; echo err >&2; echo 1/4 > $PROGRESS_FILE; while [ ! -e %s ]; do :; done"}]}`, gate))))
	r, err := http.NewRequest("GET", s.base+"/api/runs/"+id+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", bearer(token))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var used, step bool
	for lines := bufio.NewScanner(resp.Body); !(used && step) && lines.Scan(); {
		text, _ := strings.CutPrefix(lines.Text(), "data: ")
		var frame struct {
			CurrentStep string
			Resources   struct{ CPUPercent, MemBytes float64 }
		}
		_ = json.Unmarshal([]byte(text), &frame) // heartbeats are none
		used = used || frame.Resources.CPUPercent > 0 && frame.Resources.MemBytes > 0
		step = step || frame.CurrentStep == "busy: 1/4"
	}
	if !used || !step {
		t.Errorf("its use was told: %v, its progress: %v", used, step)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := s.ended(token, id); r["status"] != "completed" || r["logs"] != "out\nerr\n" {
		t.Errorf("%v %v %q", r["status"], r["errorMessage"], r["logs"])
	}
	marks := s.want(200, "GET", "/api/runs/"+id+"/logs?nodeId=busy", "", "Authorization", bearer(token))["marks"].([]any)
	if len(marks) != 2 || marks[0].(map[string]any)["stream"] != "stdout" || marks[1].(map[string]any)["stream"] != "stderr" {
		t.Errorf("%v", marks)
	}
}
