package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// reporter is a token that may report and nothing else.
func (h *harness) reporter(who someone) change {
	h.t.Helper()
	return bearer(h.call("POST", "/auth/api-tokens", `{"name":"cluster","scopes":["report"]}`, cookie(who.secret)).want(201).text("data", "token"))
}

func TestAReportedRunIsARun(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		report, reads := h.reporter(ada), bearer(ada.token)
		begin := `{"key":"k","engine":"snakemake","engineVersion":"9.27.0","project":"rna-seq","name":"first","parameters":{"genome":"GRCh38"},"details":{"commandLine":"snakemake -c 4"}}`
		begun := h.call("POST", "/api/reported-runs", begin, report).want(201)
		id := begun.text("data", "runId")
		if again := h.call("POST", "/api/reported-runs", begin, report).want(200); again.text("data", "runId") != id {
			t.Error(again.body)
		}
		if begun.text("data", "url") != base+"/runs/"+id {
			t.Error(begun.body)
		}
		other := h.call("POST", "/api/reported-runs", strings.Replace(begin, `"k"`, `"k2"`, 1), report).want(201)
		if other.text("data", "workflowId") != begun.text("data", "workflowId") {
			t.Error("another workflow for the same project:", other.body)
		}
		events := `{"events":[
			{"seq":1,"graph":{"nodes":[{"name":"align","expected":1},{"name":"count"}],"edges":[{"from":"align","to":"count"}]}},
			{"seq":2,"task":{"task":7,"node":"align","status":"running","name":"sample=a","script":"export T=oat_hfn2zuuiosey6auwvzumikob6o; bwa","workDir":"/work","cpus":4}},
			{"seq":3,"task":{"task":7,"node":"align","status":"failed","exitCode":3,"message":"no space"}},
			{"seq":4,"log":{"text":"hello"}}]}`
		for range 2 {
			if got := h.call("POST", "/api/reported-runs/"+id+"/events", events, report).want(200); got.at("data", "lastSeq") != 4.0 || got.at("data", "dropped") != false {
				t.Error(got.body)
			}
		}
		run := h.call("GET", "/api/runs/"+id, "", reads).want(200)
		if run.text("kind") != "reported" || run.text("engine") != "snakemake" || run.text("status") != "running" || run.at("creditsUsed") != 0.0 || run.text("logs") != "hello\n" {
			t.Error(run.body)
		}
		if s := run.at("nodes").([]any)[0].(map[string]any)["shards"].(map[string]any); s["done"] != 1.0 || s["failed"] != 1.0 {
			t.Error("a task that failed has not ended:", run.body)
		}
		if nodes := run.at("nodes").([]any); len(nodes) != 2 || nodes[0].(map[string]any)["status"] != "failed" || nodes[1].(map[string]any)["status"] != "pending" {
			t.Error(run.body)
		}
		shards := h.call("GET", "/api/runs/"+id+"/nodes/align/shards", "", reads).want(200)
		if s := shards.at("data").([]any)[0].(map[string]any); s["index"] != 7.0 || s["item"] != "sample=a" || s["status"] != "failed" {
			t.Error(shards.body)
		}
		task := h.call("GET", "/api/reported-runs/"+id+"/tasks/7", "", reads).want(200)
		if task.text("data", "script") != "export T=***; bwa" || task.at("data", "cpus") != 4.0 || task.text("data", "message") != "no space" {
			t.Error(task.body)
		}
		h.call("GET", "/api/reported-runs/"+id+"/tasks/8", "", reads).want(404)
		h.call("GET", "/api/reported-runs/"+id+"/tasks/x", "", reads).want(404)
		h.call("POST", "/api/runs/"+id+"/retry", "", reads).wantCode(409, "reported_run")
		h.call("POST", "/api/reported-runs/"+id+"/events", `{"events":[{"seq":5,"finish":{"status":"failed"}}]}`, report).want(200)
		if run = h.call("GET", "/api/runs/"+id, "", reads).want(200); run.text("status") != "failed" || run.text("errorMessage") != "Task sample=a of align exited with status 3: no space" {
			t.Error(run.body)
		}
		if got := h.call("POST", "/api/runs/"+other.text("data", "runId")+"/cancel", "", reads).want(200); got.text("data", "status") != "cancelled" {
			t.Error(got.body)
		}
		if got := h.call("POST", "/api/reported-runs/"+other.text("data", "runId")+"/events", events, report).want(200); got.at("data", "dropped") != true {
			t.Error(got.body)
		}
		about := h.call("GET", "/api/reported-runs/"+id, "", reads).want(200)
		if about.text("data", "details", "commandLine") != "snakemake -c 4" || about.text("data", "engineVersion") != "9.27.0" || about.at("data", "tasks") != 1.0 {
			t.Error(about.body)
		}
		h.call("POST", "/api/runs", `{"workflowId":"`+begun.text("data", "workflowId")+`"}`, reads).want(400)
		h.call("DELETE", "/api/workflows/"+begun.text("data", "workflowId"), "", reads).want(200)
		if third := h.call("POST", "/api/reported-runs", strings.Replace(begin, `"k"`, `"k3"`, 1), report).want(201); third.text("data", "workflowId") == begun.text("data", "workflowId") {
			t.Error("a deleted workflow has a run:", third.body)
		}
	})
}

func TestAReportIsRefusedWhole(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada, eve := h.signUp("Ada"), h.signUp("Eve")
	report := h.reporter(ada)
	id := h.call("POST", "/api/reported-runs", `{"key":"k","engine":"snakemake","project":"p"}`, report).want(201).text("data", "runId")
	events := "/api/reported-runs/" + id + "/events"
	for name, body := range map[string]string{
		"no events":           `{"events":[]}`,
		"too many":            `{"events":[` + strings.Repeat(`{"seq":1},`, 1000) + `{"seq":1}]}`,
		"no number":           `{"events":[{"log":{"text":"x"}}]}`,
		"two things":          `{"events":[{"seq":1,"log":{"text":"x"},"finish":{"status":"failed"}}]}`,
		"an unknown field":    `{"events":[{"seq":1,"task":{"task":1,"node":"a","status":"running","colour":"red"}}]}`,
		"an unknown status":   `{"events":[{"seq":1,"task":{"task":1,"node":"a","status":"asleep"}}]}`,
		"a nameless step":     `{"events":[{"seq":1,"task":{"task":1,"node":"","status":"running"}}]}`,
		"a task of no number": `{"events":[{"seq":1,"task":{"node":"a","status":"running"}}]}`,
		"a negative number":   `{"events":[{"seq":1,"task":{"task":-1,"node":"a","status":"running"}}]}`,
		"a negative size":     `{"events":[{"seq":1,"task":{"task":1,"node":"a","status":"running","memoryBytes":-1}}]}`,
		"half good":           `{"events":[{"seq":1,"task":{"task":1,"node":"a","status":"running"}},{"seq":0}]}`,
		"an end of no kind":   `{"events":[{"seq":1,"finish":{"status":"running"}}]}`,
		"a step without end":  `{"events":[{"seq":1,"graph":{"nodes":[{"name":"` + strings.Repeat("x", 501) + `"}]}}]}`,
	} {
		if got := h.call("POST", events, body, report); got.status != 400 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if run := h.call("GET", "/api/runs/"+id, "", bearer(ada.token)).want(200); len(run.at("nodes").([]any)) > 0 {
		t.Error(run.body)
	}
	for name, body := range map[string]string{
		"no key": `{"engine":"snakemake","project":"p"}`, "no project": `{"key":"k","engine":"snakemake"}`, "an engine in words": `{"key":"k","engine":"My Engine","project":"p"}`,
		"a bad detail": `{"key":"k","engine":"snakemake","project":"p","details":{"a b":"c"}}`, "a tag with spaces": `{"key":"k","engine":"snakemake","project":"p","tags":["a b"]}`,
	} {
		if got := h.call("POST", "/api/reported-runs", body, report); got.status != 400 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	h.call("POST", events, `{"events":[{"seq":1,"log":{"text":"`+strings.Repeat("x", 8<<20)+`"}}]}`, report).want(413)
	h.call("POST", events, `{"events":[{"seq":1}]}`, h.reporter(eve)).want(404)
	h.call("POST", "/api/reported-runs/run_nobodys/events", `{"events":[{"seq":1}]}`, report).want(404)
	h.call("POST", "/api/reported-runs/"+h.finished(ada)+"/events", `{"events":[{"seq":1}]}`, report).want(404)
}

// What strangers write is cut and mended, and shown as text.
func TestHostileReportsAreTaken(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		report := h.reporter(ada)
		id := h.call("POST", "/api/reported-runs", `{"key":"k","engine":"snakemake","project":"<script>alert(1)</script>"}`, report).want(201).text("data", "runId")
		long := strings.Repeat("é", 100<<10)
		for i, node := range []string{`<img src=x onerror=alert(1)>`, `../../etc/passwd`, `a\u0000b`, `'; DROP TABLE runs; --`, `\u202e`, ` `} {
			body := fmt.Sprintf(`{"events":[{"seq":%d,"task":{"task":%d,"node":"%s","status":"failed","script":"%s","message":"\u0000","startedAt":"0001-01-01T00:00:00Z","finishedAt":"9999-12-31T00:00:00Z"}}]}`, i+1, i+1, node, long)
			h.call("POST", "/api/reported-runs/"+id+"/events", body, report).want(200)
			task := h.call("GET", fmt.Sprintf("/api/reported-runs/%s/tasks/%d", id, i+1), "", bearer(ada.token)).want(200)
			if script := task.text("data", "script"); len(script) > 64<<10 || !strings.HasSuffix(script, "[cut]") || task.at("data", "startedAt") != nil {
				t.Error(len(script), task.at("data", "startedAt"))
			}
		}
		run := h.call("GET", "/api/runs/"+id, "", bearer(ada.token)).want(200)
		if len(run.at("nodes").([]any)) != 6 {
			t.Error(run.body)
		}
	})
}

// After a restart of ours a reporter goes on where it was.
func TestAReporterGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	report := h.reporter(ada)
	begin := `{"key":"k","engine":"snakemake","project":"p"}`
	id := h.call("POST", "/api/reported-runs", begin, report).want(201).text("data", "runId")
	h.call("POST", "/api/reported-runs/"+id+"/events", `{"events":[{"seq":1,"task":{"task":1,"node":"a","status":"running"}}]}`, report).want(200)
	again := houseOn(t, h.url)
	again.pass(20 * time.Second)
	if b := again.call("POST", "/api/reported-runs", begin, report).want(200); b.text("data", "runId") != id || b.at("data", "lastSeq") != 1.0 {
		t.Error(b.body)
	}
	again.call("POST", "/api/reported-runs/"+id+"/events", `{"events":[{"seq":1,"task":{"task":1,"node":"a","status":"running"}},{"seq":2,"task":{"task":1,"node":"a","status":"succeeded"}},{"seq":3,"finish":{"status":"completed"}}]}`, report).want(200)
	if run := again.call("GET", "/api/runs/"+id, "", bearer(ada.token)).want(200); run.text("status") != "completed" || run.at("progressPercent") != 100.0 {
		t.Error(run.body)
	}
}
