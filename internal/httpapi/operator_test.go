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

var operatorPages = []string{"workers", "queue", "disk", "chores", "teams", "errors", "version"}

func (h *harness) operates(who someone, yes bool) {
	h.t.Helper()
	if err := h.db.SetOperator(h.t.Context(), who.email, yes, h.clock()); err != nil {
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
		all(200, bearer(ada.token)) // a token of the session
		all(403, token)
		all(403, cookie(eve.secret))
		if me := h.call("GET", "/api/me", "", bearer(ada.token)).want(200); me.at("data", "operator") != true {
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
