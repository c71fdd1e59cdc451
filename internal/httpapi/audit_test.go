package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/httpapi"
)

// notOnRecord are routes that take a body and change nothing of anybody's, or
// whose change is on record by another route, and why.
var notOnRecord = map[string]string{
	"POST /api/workflows/validate":           "it only looks",
	"POST /api/billing/estimate":             "it only looks",
	"POST /api/webhooks/preview":             "it only looks",
	"POST /api/runs/{id}/retry/preview":      "it only looks",
	"POST /api/results":                      "it only looks",
	"POST /api/collab/token":                 "a pass for an hour, of which nothing is stored",
	"POST /api/me/filters":                   "what somebody looks for is theirs to know",
	"DELETE /api/me/filters/{id}":            "what somebody looks for is theirs to know",
	"PUT /api/favorites/{id}":                "what somebody looks for is theirs to know",
	"DELETE /api/favorites/{id}":             "what somebody looks for is theirs to know",
	"PUT /api/notifications":                 "what somebody has read is theirs to know",
	"POST /auth/token":                       "a token of five minutes, of which nothing is stored",
	"POST /api/ai/proxy/v1/chat/completions": "only counted",
	"POST /api/runs/{id}/explain":            "only counted",
	"POST /api/files/uploads/{id}/parts":     "allowed by POST /api/files/uploads",
	"DELETE /api/files/uploads/{id}":         "nothing has come of it",
	"PUT /objects/{key...}":                  "allowed by POST /api/files/presign",
	"POST /api/reported-runs/{id}/events":    "follows from run.reported",
	"PUT /api/nextflow/trace/{id}/begin":     "the same",
	"PUT /api/nextflow/trace/{id}/progress":  "the same",
	"PUT /api/nextflow/trace/{id}/heartbeat": "the same",
	"PUT /api/nextflow/trace/{id}/complete":  "the same",
	"POST /auth/reset":                       "anybody may ask for a mail; the reset itself is on record",
	"POST /reset":                            "the same",
	"POST /oauth/token":                      "follows from app.allowed",
	"POST /oauth/device_authorization":       "nobody has decided yet",
	"POST /oauth/register":                   "nobody has decided yet",
}

// elsewhereTried are those whose rows in the table of roles do not get as far as
// a change; the test that is named does, and looks for the entry.
var elsewhereTried = map[string]bool{
	"POST /auth/token": true, "DELETE /auth/sessions/{id}": true, "POST /auth/invitations/{token}/accept": true, "POST /auth/reset/{token}": true,
	"DELETE /auth/api-tokens": true, "POST /auth/api-tokens/{id}/rotate": true, "DELETE /auth/apps/{id}": true, "POST /webhooks/stripe": true,
	"POST /checkout/{secret}": true, "POST /api/ai/upload": true,
}

func (h *harness) entries(chain string) []audit.Entry {
	h.t.Helper()
	list, err := h.db.AuditEntries(h.t.Context(), chain, audit.Filter{}, 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

func count(list []audit.Entry, action string) (n int) {
	for _, e := range list {
		if e.Action == action {
			n++
		}
	}
	return n
}

// Every route that changes something leaves exactly one entry, with who did it
// and what it was, and reading leaves none.
func TestEveryChangeIsOnRecordOnce(t *testing.T) {
	t.Parallel()
	for pattern, row := range routeRows {
		method, path, _ := strings.Cut(pattern, " ")
		reads := method == "GET" && pattern != "GET /api/account/data"
		page := !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/auth/") && !strings.HasPrefix(path, "/objects") && !strings.HasPrefix(path, "/webhooks")
		if page || elsewhereTried[pattern] || row.owner >= 400 {
			continue
		}
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			w := &fixtures{harness: newHarness(t)}
			host := w.newcomer()
			who := host
			switch pattern {
			case "POST /auth/teams/{id}/invitations/{invId}/resend":
				w.verify(host) // who is not sends no mail
			case "POST /auth/teams/{id}/leave": // the last owner cannot
				host, who = w.team(access.Member)
			}
			method, path, body := w.request(pattern, row.body, host)
			as := bearer(who.token)
			if strings.HasSuffix(pattern, "/restore") { // to what it is would change nothing
				w.pass(6 * time.Minute)
				as = cookie(who.secret)
				w.call("PUT", strings.TrimSuffix(path, "/revisions/1/restore"), `{"definition":{"nodes":[{"id":"a","command":"true"}]}}`, as).want(200)
			}
			before, installation := w.entries(string(host.team)), w.entries(audit.Installation)
			r := w.call(method, path, body, as, header("X-Team-Id", string(host.team)), header("X-Request-Id", "the-one"))
			if r.status >= 400 {
				t.Fatalf("%d: %s", r.status, r.body)
			}
			var added []audit.Entry
			for _, e := range append(w.entries(string(host.team))[:], w.entries(audit.Installation)...) {
				if e.RequestID == "the-one" {
					added = append(added, e)
				}
			}
			total := len(w.entries(string(host.team))) + len(w.entries(audit.Installation)) - len(before) - len(installation)
			want := 1
			if reads || notOnRecord[pattern] != "" {
				want = 0
			}
			other := strings.HasPrefix(path, "/auth/sign-") || pattern == "POST /auth/teams" || strings.HasPrefix(path, "/api/collab/join") // may be in another team's
			if len(added) != want && !other || total > 1 {
				t.Fatalf("%d entries (%d in all), want %d: %+v", len(added), total, want, added)
			}
			for _, e := range added {
				if e.Action == "" || e.Address == "" || e.Hash != e.Sum() {
					t.Errorf("%+v", e)
				}
				if e.Actor.ID != string(who.id) && !strings.Contains(pattern, "join") {
					t.Errorf("done by %+v, not by %s", e.Actor, who.id)
				}
			}
		})
	}
}

// Every route with a method that changes things has a word in the log, or a
// reason why not.
func TestEveryRouteHasAWordOrAReason(t *testing.T) {
	t.Parallel()
	words := httpapi.Words()
	for pattern := range routeRows {
		method, _, _ := strings.Cut(pattern, " ")
		if method == "GET" {
			continue
		}
		if (words[pattern] != "") == (notOnRecord[pattern] != "") {
			t.Errorf("%s: a word %q, a reason %q", pattern, words[pattern], notOnRecord[pattern])
		}
	}
}

func TestWhatTheLogSays(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		h.join(bob, ada, access.Member)
		as := bearer(ada.token)
		in := header("X-Team-Id", string(ada.team))
		h.call("PUT", "/api/secrets/TOKEN", `{"value":"nobody reads this"}`, as, from("192.0.2.5:1")).want(200)
		h.call("DELETE", "/api/secrets/NONE", "", as).want(404)                                         // nothing was done
		h.call("PUT", "/api/secrets/TOKEN", `{"value":"short"}`, as).want(400)                          // nor here
		h.call("PUT", "/api/secrets/TOKEN", `{"value":"long enough"}`, bearer(bob.token), in).want(403) // nor here
		w := h.runnable(ada)
		h.call("POST", "/api/runs", `{"workflowId":"`+w+`"}`, bearer(bob.token), in).want(202)
		h.call("POST", "/auth/sign-in", `{"email":"`+ada.email+`","password":"wrong horse battery"}`).want(401)
		h.call("POST", "/auth/sign-in", `{"email":"`+ada.email+`","password":"correct horse"}`).want(200)
		r := h.call("GET", "/api/audit?limit=500", "", as).want(200)
		if strings.Contains(r.body, "nobody reads this") {
			t.Error("it tells the secret")
		}
		list := h.entries(string(ada.team))
		for action, want := range map[string]int{"secret.set": 1, "run.started": 1, "session.started": 1, "workflow.created": 1, "account.created": 1, "secret.deleted": 0} {
			if n := count(list, action); n != want {
				t.Errorf("%d entries of %s, want %d", n, action, want)
			}
		}
		one := h.call("GET", "/api/audit?action=secret.&limit=1", "", as).want(200).at("data").([]any)[0].(map[string]any)
		if one["target"] != "TOKEN" || one["actor"].(map[string]any)["id"] != string(ada.id) {
			t.Errorf("%v", one)
		}
		for action, name := range map[string]any{"workflow.created": "w", "run.started": "#1 of w", "secret.set": nil} {
			e := h.call("GET", "/api/audit?action="+action, "", as).want(200).at("data").([]any)[0].(map[string]any)
			if e["targetName"] != name {
				t.Errorf("%s of %v, want %v", action, e["targetName"], name)
			}
		}
		if r := h.call("GET", "/api/audit?actor="+string(bob.id), "", as).want(200); len(r.at("data").([]any)) == 0 {
			t.Error(r.body)
		}
		h.call("GET", "/api/audit?since=yesterday", "", as).want(400)
		csv := h.call("GET", "/api/audit/export", "", as).want(200)
		if !strings.HasPrefix(csv.body, "seq,at,") || strings.Count(csv.body, "\n") != len(list)+1 {
			t.Error(csv.body)
		}
		if lines := h.call("GET", "/api/audit/export?format=jsonl", "", as).want(200); strings.Count(lines.body, "\n") != len(list) {
			t.Error(lines.body)
		}
		found, err := h.db.VerifyAudit(t.Context())
		for _, v := range found {
			if v.Problem != "" {
				t.Errorf("%s: %s", v.Chain, v.Problem)
			}
		}
		if err != nil || len(found) < 2 {
			t.Error(fmt.Sprint(found), err)
		}
	})
}

// What the walk over the routes does not get to.
func TestWhatNeedsMoreThanOneRequestIsOnRecord(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		mine := cookie(ada.secret)
		token := h.call("POST", "/auth/api-tokens", `{"name":"ci"}`, mine).want(201).text("data", "id")
		rotated := h.call("POST", "/auth/api-tokens/"+token+"/rotate", `{}`, mine).want(201).text("data", "id")
		h.call("DELETE", "/auth/api-tokens?id="+rotated, "", mine).want(200)
		h.call("POST", "/auth/sign-in", `{"email":"`+ada.email+`","password":"correct horse"}`).want(200)
		for _, s := range h.call("GET", "/auth/sessions", "", mine).want(200).at("data").([]any) {
			if one := s.(map[string]any); one["current"] != true {
				h.call("DELETE", "/auth/sessions/"+one["id"].(string), "", mine).want(200)
			}
		}
		link := h.call("POST", "/api/team/invite", `{"email":"`+bob.email+`","role":"member"}`, mine).want(201).text("data", "link")
		h.call("POST", "/auth/invitations/"+strings.TrimPrefix(link, base+"/invitations/")+"/accept", "", bearer(bob.token)).want(200)
		h.call("POST", "/auth/password", `{"currentPassword":"wrong horse battery","newPassword":"another horse"}`, mine).want(403)
		list := h.entries(string(ada.team))
		for action, want := range map[string]int{
			"token.created": 1, "token.rotated": 1, "token.revoked": 1, "session.started": 1, "session.revoked": 1, "member.joined": 1, "account.password_changed": 0,
		} {
			if n := count(list, action); n != want {
				t.Errorf("%d entries of %s, want %d", n, action, want)
			}
		}
	})
}

// What was deleted is called what it was called before, and the chain is whole with that.
func TestAuditNamesWhatIsGone(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		h.join(bob, ada, access.Member)
		as, session := bearer(ada.token), cookie(ada.secret)
		made := func(path, body string) string {
			t.Helper()
			return h.call("POST", path, body, session).want(201).text("data", "id")
		}
		team := "/auth/teams/" + string(ada.team)
		run := h.finished(ada)
		file := h.upload(ada, "=reads.csv", "text/csv", "a,b\n")
		h.files(ada) // the upload is complete
		hook := made("/api/webhooks", `{"url":"http://127.0.0.1:1/secret/path"}`)
		invited := made(team+"/invitations", `{"email":"eve@example.org","role":"member"}`)
		connection := made("/api/connections", `{"name":"lab","type":"s3","endpoint":"http://127.0.0.1:1","bucket":"lab"}`)
		token := made("/auth/api-tokens", `{"name":"ci"}`)
		program := made("/api/service-accounts", `{"name":"nightly"}`)
		flow := h.workflow(ada, `{"nodes":[]}`)
		for action, do := range map[string]func(){
			"run.deleted":             func() { h.call("DELETE", "/api/runs/"+run, "", as).want(200) },
			"file.deleted":            func() { h.call("POST", "/api/files/delete", `{"key":"`+file.key+`","source":"upload"}`, as).want(200) },
			"webhook.deleted":         func() { h.call("DELETE", "/api/webhooks/"+hook, "", as).want(200) },
			"invitation.revoked":      func() { h.call("DELETE", team+"/invitations/"+invited, "", as).want(200) },
			"connection.deleted":      func() { h.call("DELETE", "/api/connections/"+connection, "", as).want(200) },
			"token.revoked":           func() { h.call("DELETE", "/auth/api-tokens?id="+token, "", session).want(200) },
			"service_account.deleted": func() { h.call("DELETE", "/api/service-accounts/"+program, "", as).want(200) },
			"member.removed":          func() { h.call("DELETE", team+"/members/"+string(bob.id), "", as).want(200) },
			"workflow.deleted":        func() { h.call("DELETE", "/api/workflows/"+flow, "", as).want(200) },
		} {
			do()
			want := map[string]string{
				"run.deleted": "#1 of w", "file.deleted": "=reads.csv", "webhook.deleted": "127.0.0.1:1", "invitation.revoked": "eve@example.org", "connection.deleted": "lab",
				"token.revoked": "ci", "service_account.deleted": "nightly", "member.removed": "Bob", "workflow.deleted": "w",
			}[action]
			e := h.call("GET", "/api/audit?action="+action, "", as).want(200).at("data").([]any)[0].(map[string]any)
			if gone := action != "invitation.revoked"; e["targetName"] != want || e["targetExists"] == gone {
				t.Errorf("%s of %v (there: %v), want %s", action, e["targetName"], e["targetExists"], want)
			}
			if csv := h.call("GET", "/api/audit/export?action="+action, "", as).want(200).body; !strings.HasSuffix(csv, ","+strings.Replace(want, "=", "'=", 1)+"\n") {
				t.Errorf("%s ends as %s", action, csv)
			}
		}
		found, err := h.db.VerifyAudit(t.Context())
		for _, v := range found {
			if v.Problem != "" {
				t.Errorf("%s: %s", v.Chain, v.Problem)
			}
		}
		if err != nil || len(found) < 2 {
			t.Error(fmt.Sprint(found), err)
		}
	})
}
