package httpapi_test

import (
	"strings"
	"testing"
	"time"
)

// Everybody is told, also who is not signed in, until the time is over.
func TestEverybodyIsToldTheNotice(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		h.operates(ada, true)
		as := cookie(ada.secret)
		told := func(text any) string {
			t.Helper()
			public := h.call("GET", "/api/notice", "").want(200)
			id, _ := public.at("data", "id").(string)
			if public.at("data", "text") != text || (id != "") != (text != nil) {
				t.Errorf("%s; want %v", public.body, text)
			}
			for _, got := range []reply{public, h.call("GET", "/sign-in", "").want(200), h.call("GET", "/api/runs", "", bearer(eve.token)).want(200), h.call("GET", "/api/runs", "").want(401)} {
				if got.header.Get("X-Notice") != id {
					t.Errorf("the header says %q; want %q", got.header.Get("X-Notice"), id)
				}
			}
			own := h.call("GET", "/api/operator/notice", "", as).want(200)
			if own.at("data", "text") != text {
				t.Errorf("%s; want %v", own.body, text)
			}
			return id
		}
		told(nil)
		until := h.clock().Add(time.Minute).UTC().Format("2006-01-02T15:04:05.000Z")
		set := h.call("PUT", "/api/operator/notice", `{"text":" Friday: new disks <b>& more</b> ","level":"warning","until":"`+until+`"}`, as).want(200)
		if set.at("data", "level") != "warning" || set.at("data", "until") != until {
			t.Error(set.body)
		}
		first := told("Friday: new disks <b>& more</b>")
		for _, body := range []string{`{"text":1}`, `{"text":"x","level":"error"}`, `{"text":"x","until":"yesterday"}`, `{"text":"x","until":"2020-01-01T00:00:00Z"}`, `{"text":"a\nb"}`, `{"text":"\u202e"}`, `{"text":"x","color":"red"}`} {
			h.call("PUT", "/api/operator/notice", body, as).want(400)
		}
		if told("Friday: new disks <b>& more</b>") != first {
			t.Error("what was refused changed it")
		}
		h.pass(time.Minute)
		told(nil)
		h.call("PUT", "/api/operator/notice", `{"text":"Welcome"}`, as).want(200)
		second := told("Welcome")
		h.call("PUT", "/api/operator/notice", `{"text":"Welcome"}`, as).want(200)
		if told("Welcome") == second {
			t.Error("a notice that is set again stays dismissed")
		}
		h.call("PUT", "/api/operator/notice", `{"text":null}`, as).want(200)
		told(nil)
		said := 0
		for _, e := range h.entries("installation") {
			if e.Action == "operator.notice_set" && e.Actor.Type == "operator" && e.Actor.Name == "Ada" {
				said++
			}
		}
		if said != 4 {
			t.Errorf("%d entries of notices are on record", said)
		}
	})
}

func TestRunsWaitForTheEndOfMaintenance(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		h.operates(ada, true)
		as, her := cookie(ada.secret), bearer(eve.token)
		slow := h.workflow(eve, `{"nodes":[{"id":"a","command":"# dummy: sleep=1h"}]}`)
		quick := h.workflow(eve, `{"nodes":[{"id":"a","command":"# dummy: sleep=0s"}]}`)
		status := func(run string) string { return h.call("GET", "/api/runs/"+run, "", her).want(200).text("status") }
		goes := h.start(eve, `{"workflowId":"`+slow+`"}`)
		eventually(t, "the run goes", func() bool { return status(goes) == "running" })
		for _, body := range []string{`{}`, `{"on":1}`, `{"on":true,"message":"a\nb"}`, `{"on":true,"text":"x"}`} {
			h.call("PUT", "/api/operator/maintenance", body, as).want(400)
		}
		set := h.call("PUT", "/api/operator/maintenance", `{"on":true,"message":"Back at noon."}`, as).want(200)
		if got := h.call("GET", "/api/operator/maintenance", "", as).want(200); got.at("data", "on") != true || got.text("data", "message") != "Back at noon." || got.text("data", "since") != set.text("data", "since") {
			t.Error(got.body)
		}
		waits := h.start(eve, `{"workflowId":"`+quick+`"}`)
		sweep := h.call("POST", "/api/sweeps", `{"workflowId":"`+quick+`","runs":[{}]}`, her)
		if sweep.status == 403 || sweep.status == 409 || sweep.status >= 500 {
			t.Errorf("a sweep is refused: %s", sweep.body)
		}
		one := h.call("GET", "/api/runs/"+waits, "", her).want(200)
		if one.text("status") != "queued" || one.text("waiting", "reason") != "maintenance" || !strings.Contains(one.text("waiting", "message"), "Back at noon.") {
			t.Error(one.body)
		}
		row := h.call("GET", "/api/runs?status=queued", "", her).want(200).at("data").([]any)[0].(map[string]any)
		if row["waiting"].(map[string]any)["reason"] != "maintenance" {
			t.Error(row)
		}
		queue := h.call("GET", "/api/operator/queue", "", as).want(200)
		if !strings.Contains(queue.body, `"reason":"maintenance"`) {
			t.Error(queue.body)
		}
		if status(goes) != "running" {
			t.Errorf("what had started is %s", status(goes))
		}
		off := h.call("PUT", "/api/operator/maintenance", `{"on":false}`, as).want(200)
		if off.at("data", "on") != false || off.at("data", "message") != nil || off.at("data", "since") != nil {
			t.Error(off.body)
		}
		h.await(eve, waits)
		if got := status(waits); got != "completed" {
			t.Errorf("after maintenance it is %s", got)
		}
		said := map[string]int{}
		for _, e := range h.entries("installation") {
			said[e.Action+" "+e.Target+" "+e.TargetName]++
		}
		if said["operator.maintenance_set on Back at noon."] != 1 || said["operator.maintenance_set off "] != 1 {
			t.Error(said)
		}
	})
}
