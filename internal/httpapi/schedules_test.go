package httpapi_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAScheduleEndToEnd(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as, wf := bearer(ada.token), h.runnable(ada)
		under := "/api/workflows/" + wf + "/schedules"
		made := h.call("POST", under, `{"cron":"* * * * *","timeZone":"Europe/Berlin","overlap":"skip","catchUp":true,"compute":{"vcpu":1,"ramGb":4}}`, as).want(201)
		id := made.text("data", "id")
		if n := len(made.at("data", "nextTimes").([]any)); n != 5 {
			t.Errorf("%d next times: %s", n, made.body)
		}
		h.pass(61 * time.Second)
		if err := h.schedules.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		row := h.call("GET", under, "", as).want(200).at("data").([]any)[0].(map[string]any)
		firings := row["firings"].([]any)
		fired := firings[len(firings)-1].(map[string]any) // two minutes may have begun, and the second one is skipped
		if fired["outcome"] != "started" {
			t.Fatalf("%v", row)
		}
		h.await(ada, fired["runId"].(string))
		run := h.call("GET", "/api/runs/"+fired["runId"].(string), "", as).want(200)
		if run.text("startedBy", "type") != "schedule" || run.text("startedBy", "id") != id || run.text("status") != "completed" {
			t.Errorf("%s", run.body)
		}
		if got := h.call("PATCH", under+"/"+id, `{"enabled":false}`, as).want(200); len(got.at("data", "nextTimes").([]any)) != 0 {
			t.Errorf("%s", got.body)
		}
		h.call("POST", under, `{"cron":"x"}`, as).want(400)
		h.call("POST", under, `{}`, as).want(400)
		h.call("POST", under, `{"cron":"* * * * *","nonsense":1}`, as).want(400)
		if export := h.call("GET", "/api/account/data", "", as).want(200); !strings.Contains(export.body, id) {
			t.Error("the export does not name the schedule")
		}
		h.call("DELETE", under+"/"+id, "", as).want(200)
		h.call("DELETE", under+"/"+id, "", as).want(404)
		h.call("PATCH", under+"/"+id, `{}`, as).want(404)
	})
}

func TestATriggerStartsARun(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		wf := h.workflow(ada, `{"parameters":{"n":{"type":"integer","default":1}},"nodes":[{"id":"a","command":"# dummy: print=hi"}]}`)
		under := "/api/workflows/" + wf + "/triggers"
		made := h.call("POST", under, `{}`, as).want(201)
		hook := "/hooks/" + made.text("data", "token")
		if made.text("data", "url") != base+hook {
			t.Errorf("%s", made.body)
		}
		called := h.call("POST", hook, `{"n":4}`, header("Idempotency-Key", "one")).want(202)
		if len(called.at("data").(map[string]any)) != 1 {
			t.Errorf("it tells more than the run: %s", called.body)
		}
		run := h.call("GET", "/api/runs/"+called.text("data", "runId"), "", as).want(200)
		if run.at("parameters", "n") != 4.0 || run.text("startedBy", "type") != "trigger" {
			t.Errorf("%s", run.body)
		}
		for _, name := range []string{"Idempotency-Key", "webhook-id"} {
			first := h.call("POST", hook, `{"n":4}`, header(name, name)).want(202)
			again := h.call("POST", hook, `{"n":4}`, header(name, name)).want(202)
			if first.text("data", "runId") != again.text("data", "runId") {
				t.Error("a repeat is another run")
			}
			if again.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s: not replayed", name)
			}
		}
		h.call("POST", hook, `{"n":5}`, header("webhook-id", "webhook-id")).wantCode(409, "idempotency_conflict")
		h.call("POST", hook, `{"m":5}`).want(400)
		h.call("POST", hook, "", func(r *http.Request) { r.Body = http.NoBody }).want(202)
		h.call("POST", "/hooks/mrh_nonsense", `{}`).want(404)
		h.call("GET", hook, "").want(405)

		onRecord := 0
		for _, e := range h.entries(string(ada.team)) {
			if e.Action == "run.started" && e.Actor.ID == made.text("data", "id") && !strings.Contains(e.Target, "mrh_") {
				onRecord++
			}
		}
		if onRecord != 4 {
			t.Errorf("%d runs are on record", onRecord)
		}

		list := h.call("GET", under, "", as).want(200)
		if strings.Contains(list.body, strings.TrimPrefix(hook, "/hooks/")) || list.at("data").([]any)[0].(map[string]any)["lastRunId"] == nil {
			t.Errorf("%s", list.body)
		}
		h.call("DELETE", under+"/"+made.text("data", "id"), "", as).want(200)
		h.call("POST", hook, `{}`).want(404)
	})
}

func TestATriggerChecksSignaturesAndCountsCalls(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	under := "/api/workflows/" + h.runnable(ada) + "/triggers"
	made := h.call("POST", under, `{"secret":"a long secret","map":{}}`, bearer(ada.token)).want(201)
	if strings.Contains(made.body, "a long secret") {
		t.Error("the secret is told")
	}
	hook, body := "/hooks/"+made.text("data", "token"), `{"zen":"Keep it logically awesome."}`
	mac := hmac.New(sha256.New, []byte("a long secret"))
	mac.Write([]byte(body))
	right := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	for _, wrong := range []string{"", "sha256=", right[:20], right[7:], "sha1=" + right[7:], "sha256=" + strings.Repeat("0", 64)} {
		h.call("POST", hook, body, header("X-Hub-Signature-256", wrong)).wantCode(401, "invalid_signature")
	}
	h.call("POST", hook, body+" ", header("X-Hub-Signature-256", right)).want(401)
	h.call("POST", hook, body, header("X-Hub-Signature-256", right)).want(202)
	for range 22 {
		h.call("POST", hook, body).want(401)
	}
	late := h.call("POST", hook, body, header("X-Hub-Signature-256", right)).want(429)
	if late.header.Get("Retry-After") == "" || late.header.Get("RateLimit-Policy") == "" {
		t.Errorf("%v", late.header)
	}
}
