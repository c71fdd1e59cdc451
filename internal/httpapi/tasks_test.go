package httpapi_test

import (
	"encoding/csv"
	"strings"
	"testing"
)

// tasks are the rows of the table of a run's tasks, by the names of its columns.
func (h *harness) tasks(who someone, run string) []map[string]string {
	h.t.Helper()
	answer := h.call("GET", "/api/runs/"+run+"/tasks.csv", "", bearer(who.token)).want(200)
	if kind := answer.header.Get("Content-Type"); kind != "text/csv; charset=utf-8" || !strings.HasPrefix(answer.header.Get("Content-Disposition"), "attachment") {
		h.t.Errorf("%v", answer.header)
	}
	rows, err := csv.NewReader(strings.NewReader(answer.body)).ReadAll()
	if err != nil || len(rows) == 0 || strings.Join(rows[0][:8], ",") != "task_id,hash,native_id,process,tag,name,status,exit" {
		h.t.Fatalf("%s %v", answer.body, err)
	}
	var list []map[string]string
	for _, row := range rows[1:] {
		task := map[string]string{}
		for i, cell := range row {
			task[rows[0][i]] = cell
		}
		list = append(list, task)
	}
	return list
}

func TestTheTasksOfARunAreATable(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		wf := h.workflow(ada, `{"nodes":[
			{"id":"first","command":"# dummy: print=x"},
			{"id":"each","command":"# dummy: exit=3","retries":{"max":1,"backoffSeconds":0},"resources":{"vcpu":0.5},"scatter":{"over":"['=cmd()','b']"}}],
			"edges":[{"id":"e","source":"first","target":"each"}]}`)
		id := h.start(ada, `{"workflowId":"`+wf+`"}`)
		h.await(ada, id)
		list := h.tasks(ada, id)
		if len(list) != 5 {
			t.Fatalf("%v", list)
		}
		if first := list[0]; first["task_id"] != "1" || first["process"] != "first" || first["name"] != "first" || first["status"] != "COMPLETED" || first["exit"] != "0" || first["item"] != "first/0" {
			t.Errorf("%v", first)
		}
		for i, want := range []struct{ id, tag, name, attempt, item string }{
			{"2", "'=cmd()", "each (=cmd())", "1", "each/0"}, {"2", "'=cmd()", "each (=cmd())", "2", "each/0"}, {"3", "b", "each (b)", "1", "each/1"}, {"3", "b", "each (b)", "2", "each/1"},
		} {
			got := list[i+1]
			if got["task_id"] != want.id || got["tag"] != want.tag || got["name"] != want.name || got["attempt"] != want.attempt || got["item"] != want.item || got["status"] != "FAILED" || got["exit"] != "3" || got["cpus"] != "0.5" {
				t.Errorf("%d: %v", i, got)
			}
			if got["submit"] == "" || got["complete"] < got["start"] || got["duration"] == "" || got["realtime"] == "" {
				t.Errorf("%d: its times are %v", i, got)
			}
		}
		h.call("GET", "/api/runs/"+id+"/tasks.csv", "", bearer(eve.token)).want(404)
		h.call("GET", "/api/runs/"+id+"/tasks.csv", "").want(401)
	})
}

func TestTheTasksOfAReportedRunAreATable(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		report := h.reporter(ada)
		id := h.call("POST", "/api/reported-runs", `{"key":"k","engine":"nextflow","project":"rna"}`, report).want(201).text("data", "runId")
		h.call("POST", "/api/reported-runs/"+id+"/events", `{"events":[
			{"seq":1,"task":{"task":2,"node":"ALIGN","status":"failed","name":"ALIGN (=1+1)","attempt":1,"willRetry":true,"exitCode":137,"workDir":"/scratch/work/3d/5ace0eb4a5d0b2dd2c4886fb03bfc1","nativeId":"4711","cpus":4,
				"submittedAt":"2026-08-01T00:00:00Z","startedAt":"2026-08-01T00:00:10Z","finishedAt":"2026-08-01T00:01:00Z","peakMemoryBytes":1024,"cpuPercent":380.5,"container":"@sum","message":"=cmd"}},
			{"seq":2,"task":{"task":2,"node":"ALIGN","status":"cached","name":"ALIGN (=1+1)","attempt":2}},
			{"seq":3,"task":{"task":1,"node":"TRIM","status":"running","name":"TRIM"}}]}`, report).want(200)
		list := h.tasks(ada, id)
		if len(list) != 3 {
			t.Fatalf("%v", list)
		}
		if got := list[0]; got["task_id"] != "1" || got["process"] != "TRIM" || got["tag"] != "" || got["status"] != "RUNNING" || got["complete"] != "" || got["item"] != "TRIM/1" {
			t.Errorf("%v", got)
		}
		for column, want := range map[string]string{
			"task_id": "2", "hash": "3d/5ace0e", "native_id": "4711", "process": "ALIGN", "tag": "'=1+1", "name": "ALIGN (=1+1)", "status": "FAILED", "exit": "137", "attempt": "1",
			"submit": "2026-08-01T00:00:00.000Z", "start": "2026-08-01T00:00:10.000Z", "complete": "2026-08-01T00:01:00.000Z", "duration": "60000", "realtime": "50000",
			"%cpu": "380.5", "peak_rss": "1024", "cpus": "4", "memory": "", "container": "'@sum", "workdir": "/scratch/work/3d/5ace0eb4a5d0b2dd2c4886fb03bfc1", "item": "ALIGN/2",
		} {
			if list[1][column] != want {
				t.Errorf("%s is %q, want %q", column, list[1][column], want)
			}
		}
		if got := list[2]; got["attempt"] != "2" || got["status"] != "CACHED" {
			t.Errorf("%v", got)
		}
		h.call("POST", "/api/runs/"+id+"/cancel", "", bearer(ada.token)).want(200)
		if got := h.tasks(ada, id); got[0]["status"] != "ABORTED" {
			t.Errorf("of a run that has ended, a task is %v", got[0])
		}
	})
}
