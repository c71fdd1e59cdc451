package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/operator"
)

var operatorPages = []string{"workers", "queue", "disk", "chores", "teams", "errors", "version", "notice", "maintenance"}

func (h *harness) operates(who someone, yes bool) {
	h.t.Helper()
	if err := h.db.SetOperator(h.t.Context(), who.email, yes, true, h.clock()); err != nil {
		h.t.Fatal(err)
	}
}

// A session is needed, whatever a token of an operator's may do in a team.
func TestOnlyOperatorsSeeTheInstallation(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		token := bearer(h.call("POST", "/auth/api-tokens", `{"name":"cluster","role":"owner"}`, cookie(ada.secret)).want(201).text("data", "token"))
		all := func(status int, as change) {
			t.Helper()
			for _, page := range operatorPages {
				h.call("GET", "/api/operator/"+page, "", as).want(status)
			}
		}
		all(403, cookie(ada.secret))
		if me := h.call("GET", "/api/me", "", bearer(ada.token)).want(200); strings.Contains(me.body, "operator") {
			t.Error(me.body)
		}
		h.operates(ada, true)
		all(200, cookie(ada.secret))
		all(403, bearer(ada.token)) // a token of the session, which is not the browser's
		all(403, token)
		all(403, cookie(eve.secret))
		if me := h.call("GET", "/api/me", "", cookie(ada.secret)).want(200); me.at("data", "operator") != true {
			t.Error(me.body)
		}
		if me := h.call("GET", "/api/me", "", token).want(200); strings.Contains(me.body, "operator") {
			t.Error(me.body)
		}
		h.operates(ada, false)
		all(403, cookie(ada.secret))
	})
}

// What operators are shown says how much there is, and nothing of what it is.
func TestOperatorsSeeNothingOfWhatTeamsKeep(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		h.operates(ada, true)
		wf := h.call("POST", "/api/workflows", `{"name":"sesame flow","definition":{"nodes":[{"id":"sesamestep","command":"# dummy: sleep=1h"}],"parameters":{"sesame":{"type":"string"}}}}`, bearer(eve.token)).want(201).text("data", "id")
		run := h.start(eve, `{"workflowId":"`+wf+`","name":"sesame run","note":"sesame note","tags":["sesame"],"parameters":{"sesame":"sesame"}}`)
		h.upload(eve, "sesame.txt", "text/plain", "sesame")
		for _, page := range operatorPages {
			got := h.call("GET", "/api/operator/"+page, "", cookie(ada.secret)).want(200)
			if strings.Contains(strings.ToLower(got.body), "sesame") {
				t.Errorf("%s tells: %s", page, got.body)
			}
		}
		queue := h.call("GET", "/api/operator/queue", "", cookie(ada.secret)).want(200)
		if list := queue.at("data", "runs").([]any); len(list) != 1 || list[0].(map[string]any)["id"] != run || list[0].(map[string]any)["teamId"] != string(eve.team) {
			t.Error(queue.body)
		}
		var seen []string
		cursor := ""
		for {
			page := h.call("GET", "/api/operator/teams?limit=1"+cursor, "", cookie(ada.secret)).want(200)
			row := page.at("data").([]any)[0].(map[string]any)
			seen = append(seen, row["id"].(string))
			if row["id"] == string(eve.team) && (row["storageBytes"] != 6.0 || row["members"] != 1.0 || row["plan"] != "free") {
				t.Error(page.body)
			}
			if page.at("page", "hasMore") != true {
				break
			}
			cursor = "&cursor=" + page.text("page", "nextCursor")
		}
		if fmt.Sprint(seen) != fmt.Sprint([]string{string(ada.team), string(eve.team)}) {
			t.Error(seen)
		}
		if disk := h.call("GET", "/api/operator/disk", "", cookie(ada.secret)).want(200); disk.at("data", "fileBytes") != 6.0 || disk.at("data", "databaseBytes").(float64) < 4096 || disk.text("data", "state") != "enough" {
			t.Error(disk.body)
		}
		for _, wrong := range []string{"queue?limit=0", "queue?limit=501", "teams?limit=x", "teams?cursor=%00", "errors?limit=-1"} {
			h.call("GET", "/api/operator/"+wrong, "", cookie(ada.secret)).want(400)
		}
	})
}

func TestFailuresAreFoundByTheirRequest(t *testing.T) {
	t.Parallel()
	var failures *operator.Recorder
	h := newHarness(t, func(o *httpapi.Options, _ *builtin.Options) {
		o.Checks = map[string]func(context.Context) error{}
		o.Failed = func(id, route, code string) { failures.Record(id, route, code) }
		o.Runs = nil // whoever asks for runs meets a fault of ours
	})
	failures = operator.NewRecorder(h.db, "lab1", h.clock)
	ada := h.signUp("Ada")
	h.operates(ada, true)
	h.call("GET", "/api/runs", "", bearer(ada.token), header("X-Request-Id", "the-one")).want(500)
	h.call("GET", "/api/nothing", "", bearer(ada.token), header("X-Request-Id", "another")).want(404)
	background(t, failures.Run)
	eventually(t, "the failure is listed", func() bool {
		list := h.call("GET", "/api/operator/errors", "", cookie(ada.secret)).want(200).at("data").([]any)
		if len(list) != 1 {
			return false
		}
		row := list[0].(map[string]any)
		return row["requestId"] == "the-one" && row["route"] == "GET /api/runs" && row["code"] == "internal" && row["host"] == "lab1"
	})
}

func TestOperatorsAct(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.verified("Ada"), h.signUp("Eve")
		h.operates(ada, true)
		as, her := cookie(ada.secret), bearer(eve.token)
		of := "/api/operator/teams/" + string(eve.team)
		left := func() float64 {
			for _, row := range h.call("GET", "/api/operator/teams", "", as).want(200).at("data").([]any) {
				if row.(map[string]any)["id"] == string(eve.team) {
					return row.(map[string]any)["creditsLeft"].(float64)
				}
			}
			return -1
		}
		before := left()
		h.call("POST", of+"/grant", `{"credits":12.5,"reason":"a workshop"}`, as).want(200)
		h.call("POST", of+"/grant", `{"credits":-2.5}`, as).want(200)
		if now := left(); now != before+10 {
			t.Errorf("%v credits, then %v", before, now)
		}
		// An answer that was lost is asked for again, and nothing is booked twice.
		once := header("Idempotency-Key", "a-click")
		for range 3 {
			h.call("POST", of+"/grant", `{"credits":5}`, as, once).want(200)
		}
		for path, body := range map[string]string{of: `{"credits":6}`, "/api/operator/teams/" + string(ada.team): `{"credits":5}`} {
			if got := h.call("POST", path+"/grant", body, as, once).want(409); got.text("code") != "idempotency_conflict" {
				t.Error(got.body)
			}
		}
		if now := left(); now != before+15 {
			t.Errorf("%v credits, then %v", before, now)
		}
		h.call("POST", of+"/plan", `{"plan":"pro"}`, as).want(200)
		if me := h.call("GET", "/api/me", "", her).want(200); me.text("data", "team", "plan") != "pro" {
			t.Error(me.body)
		}

		slow := h.workflow(eve, `{"nodes":[{"id":"a","command":"# dummy: sleep=1h"}]}`)
		goes := h.start(eve, `{"workflowId":"`+slow+`"}`)
		h.call("POST", of+"/suspend", `{"suspended":true}`, as).want(200)
		if got := h.call("POST", "/api/runs", `{"workflowId":"`+slow+`"}`, her).want(403); got.text("code") != "team_suspended" {
			t.Error(got.body)
		}
		h.call("GET", "/api/runs/"+goes, "", her).want(200)
		h.call("POST", of+"/suspend", `{"suspended":false}`, as).want(200)
		h.start(eve, `{"workflowId":"`+slow+`"}`)

		h.call("POST", "/api/operator/runs/"+goes+"/end", "", as).want(200)
		h.await(eve, goes)
		if run := h.call("GET", "/api/runs/"+goes, "", her).want(200); run.text("status") != "cancelled" {
			t.Error(run.body)
		}
		h.call("POST", "/api/operator/runs/"+goes+"/end", "", as).want(409)
		h.call("POST", "/api/operator/mail/test", "", as).want(200)
		if text := h.mailTo(ada.email); !strings.Contains(text, "This server can send email") {
			t.Error(text)
		}

		for path, body := range map[string]string{
			of + "/grant": `{"credits":0}`, of + "/plan": `{"plan":"gold"}`, of + "/suspend": `{"suspended":1}`, "/api/operator/workers/drain": `{"worker":1}`,
		} {
			h.call("POST", path, body, as).want(400)
		}
		for path, body := range map[string]string{
			"/api/operator/teams/nobodys/grant": `{"credits":1}`, "/api/operator/teams/nobodys/plan": `{"plan":"pro"}`, "/api/operator/teams/nobodys/suspend": `{"suspended":true}`,
			"/api/operator/workers/drain": `{"worker":"nobodys","draining":true}`, "/api/operator/runs/run_nobodys/end": "",
		} {
			h.call("POST", path, body, as).want(404)
		}

		// Whatever was done is on record once, where it concerns a team in its log.
		said := map[string]int{}
		for _, e := range append(h.entries(string(eve.team)), h.entries("installation")...) {
			if e.Actor.Type == "operator" {
				said[e.Action]++
				if e.Actor.ID != string(ada.id) || e.Address == "" {
					t.Errorf("%+v", e)
				}
			}
		}
		want := map[string]int{
			"operator.credits_granted": 3, "operator.plan_set": 1, "operator.team_suspension": 2, "operator.run_ended": 1, "operator.mail_tested": 1,
		}
		if fmt.Sprint(said) != fmt.Sprint(want) {
			t.Errorf("on record: %v", said)
		}
	})
}

// What a suspended team has queued, and what only a draining worker could take,
// waits and says why.
func TestADrainedWorkerTakesNoMoreRuns(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		h.operates(ada, true)
		as := cookie(ada.secret)
		wf := h.runnable(ada)
		var worker string
		eventually(t, "the worker reports", func() bool {
			list := h.call("GET", "/api/operator/workers", "", as).want(200).at("data").([]any)
			if len(list) == 1 {
				worker = list[0].(map[string]any)["id"].(string)
			}
			return worker != ""
		})
		drain := func(yes bool) {
			t.Helper()
			h.call("POST", "/api/operator/workers/drain", fmt.Sprintf(`{"worker":%q,"draining":%v}`, worker, yes), as).want(200)
		}
		drain(true)
		run := h.start(ada, `{"workflowId":"`+wf+`"}`)
		why := func() any {
			got := h.call("GET", "/api/runs/"+run, "", bearer(ada.token)).want(200)
			if got.text("status") != "queued" {
				t.Fatal(got.body)
			}
			return got.at("waiting", "reason")
		}
		if why() != "executor_unavailable" {
			t.Error(why())
		}
		h.call("POST", "/api/operator/teams/"+string(ada.team)+"/suspend", `{"suspended":true}`, as).want(200)
		drain(false)
		if why() != "team_suspended" {
			t.Error(why())
		}
		h.call("POST", "/api/operator/teams/"+string(ada.team)+"/suspend", `{"suspended":false}`, as).want(200)
		h.await(ada, run)
	})
}
