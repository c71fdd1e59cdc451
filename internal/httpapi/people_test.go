package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
)

func TestOperatorsSuspendAndResumeAccounts(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		h.operates(ada, true)
		as, eves := cookie(ada.secret), "/api/operator/users/"+string(eve.id)
		token := bearer(h.call("POST", "/auth/api-tokens", `{"name":"cluster","role":"member"}`, cookie(eve.secret)).want(201).text("data", "token"))
		robot := h.call("POST", "/api/service-accounts", `{"name":"robot","role":"member"}`, cookie(eve.secret)).want(201).text("data", "id")
		robots := bearer(h.call("POST", "/api/service-accounts/"+robot+"/tokens", `{"name":"night"}`, cookie(eve.secret)).want(201).text("data", "token"))

		list := h.call("GET", "/api/operator/users?q=EVE@", "", as).want(200)
		row := list.at("data").([]any)[0].(map[string]any)
		if row["id"] != string(eve.id) || row["email"] != eve.email || row["operator"] != false || row["secondFactor"] != false || row["suspendedAt"] != nil || row["lastSeenAt"] == nil || len(row["teams"].([]any)) != 1 {
			t.Error(list.body)
		}
		h.call("POST", eves+"/suspend", "", as).want(200)
		for _, dead := range []change{cookie(eve.secret), bearer(eve.token), token} {
			h.call("GET", "/api/me", "", dead).want(401)
		}
		h.call("GET", "/api/me", "", robots).want(200)
		refused := h.call("POST", "/auth/sign-in", `{"email":"eve@example.org","password":"correct horse"}`).wantCode(403, "account_disabled")
		if !strings.Contains(refused.body, "suspended") {
			t.Error(refused.body)
		}
		if got := h.call("GET", "/api/operator/users?q=eve", "", as).want(200); got.at("data").([]any)[0].(map[string]any)["suspendedAt"] == nil {
			t.Error(got.body)
		}
		h.call("POST", eves+"/suspend", "", as).want(200)
		h.call("POST", eves+"/resume", "", as).want(200)
		h.call("POST", eves+"/resume", "", as).want(200)
		h.call("GET", "/api/me", "", cookie(eve.secret)).want(401)
		h.call("POST", "/auth/sign-in", `{"email":"eve@example.org","password":"correct horse"}`).want(200)
		h.call("POST", eves+"/reset-second-factor", "", as).want(200)

		for _, path := range []string{"/suspend", ""} {
			method := map[string]string{"/suspend": "POST", "": "DELETE"}[path]
			h.call(method, "/api/operator/users/"+string(ada.id)+path, "", as).wantCode(409, "own_account")
			h.call(method, "/api/operator/users/user_nobody"+path, "", as).want(404)
			h.call(method, "/api/operator/users/"+robot+path, "", as).want(404)
			h.call(method, "/api/operator/users/%00"+path, "", as).want(404)
		}
		for _, wrong := range []string{"?q=a%00b", "?limit=0", "?cursor=%00", "?q=" + strings.Repeat("x", 201)} {
			h.call("GET", "/api/operator/users"+wrong, "", as).want(400)
		}
		h.call("GET", "/api/operator/users?q=%25", "", as).want(200)

		log := h.call("GET", "/api/operator/audit?action=operator.", "", as).want(200)
		first := log.at("data").([]any)[0].(map[string]any)
		if first["action"] != "operator.second_factor_reset" || first["target"] != string(eve.id) || first["targetName"] != "Eve" || first["actor"].(map[string]any)["name"] != "Ada" {
			t.Error(log.body)
		}
		if strings.Count(log.body, "operator.account_suspended") != 2 || !strings.Contains(log.body, "operator.account_resumed") {
			t.Error(log.body)
		}
		page := h.call("GET", "/api/operator/audit?limit=1", "", as).want(200)
		h.call("GET", "/api/operator/audit?limit=1&cursor="+page.text("page", "nextCursor"), "", as).want(200)
	})
}

func TestAnAccountIsDeletedByItsPerson(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		h.join(eve, ada, access.Member)
		wf := h.runnable(eve)
		shared := h.call("POST", "/api/workflows", `{"name":"shared","definition":{}}`, bearer(eve.token), header("X-Team-Id", string(ada.team))).want(201).text("data", "id")
		confirmed := func(who someone) string { return fmt.Sprintf(`{"confirm":%q}`, who.id) }
		h.call("DELETE", "/api/me", confirmed(ada), cookie(ada.secret)).wantCode(409, "last_owner")
		for _, wrong := range []string{`{}`, `{"confirm":"yes"}`, confirmed(ada)} {
			h.call("DELETE", "/api/me", wrong, cookie(eve.secret)).want(400)
		}
		token := bearer(h.call("POST", "/auth/api-tokens", `{"name":"cluster","role":"owner"}`, cookie(eve.secret)).want(201).text("data", "token"))
		h.call("DELETE", "/api/me", confirmed(eve), token).wantCode(403, "session_required")
		h.call("DELETE", "/api/me", confirmed(eve), cookie(eve.secret), header("Origin", "https://evil.example")).want(403)

		gone := h.call("DELETE", "/api/me", confirmed(eve), cookie(eve.secret)).want(200)
		if list := gone.at("data", "erasedTeams").([]any); len(list) != 1 || list[0] != string(eve.team) {
			t.Error(gone.body)
		}
		if c, err := http.ParseSetCookie(gone.header.Get("Set-Cookie")); err != nil || c.Value != "" {
			t.Errorf("%v, %v", c, err)
		}
		for _, dead := range []change{cookie(eve.secret), bearer(eve.token), token} {
			h.call("GET", "/api/me", "", dead).want(401)
		}
		h.call("POST", "/auth/sign-in", `{"email":"eve@example.org","password":"correct horse"}`).want(401)
		eventually(t, "the team is erased", func() bool {
			e, err := h.db.Erasure(t.Context(), eve.team)
			return err == nil && e.Erased || fault.Is(err, fault.KindNotFound)
		})
		again := h.signUp("Eve")
		h.call("GET", "/api/workflows/"+wf, "", bearer(again.token)).want(404)
		if w := h.call("GET", "/api/workflows/"+shared, "", bearer(ada.token)).want(200); !strings.Contains(w.body, "Eve") {
			t.Error("what they made in another team has no name:", w.body)
		}
		members := h.call("GET", "/auth/teams/"+string(ada.team)+"/members", "", bearer(ada.token)).want(200)
		if strings.Contains(members.body, eve.email) {
			t.Error(members.body)
		}
		if log := h.call("GET", "/api/audit?action=member.left", "", bearer(ada.token)).want(200); !strings.Contains(log.body, "Eve") || strings.Contains(log.body, eve.email) {
			t.Error(log.body)
		}
		h.operates(ada, true)
		log := h.call("GET", "/api/operator/audit?action=account.deleted", "", cookie(ada.secret)).want(200)
		if entries := log.at("data").([]any); len(entries) != 1 || !strings.Contains(log.body, `"Eve"`) || strings.Contains(log.body, eve.email) {
			t.Error(log.body)
		}
		h.call("DELETE", "/api/operator/users/"+string(again.id), "", cookie(ada.secret)).want(200)
		h.call("GET", "/api/me", "", cookie(again.secret)).want(401)
		h.call("DELETE", "/api/me", confirmed(ada), cookie(ada.secret)).wantCode(409, "last_operator")
	})
}

func TestAListInvitesManyAtOnce(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.verified("Ada")
		r := h.call("POST", "/api/team/invitations", `{"list":"bob@example.org, admin\nnobody\nada@example.org\nmia@example.org","role":"viewer"}`, bearer(ada.token)).want(200)
		var got []string
		for _, row := range r.at("data", "results").([]any) {
			one := row.(map[string]any)
			got = append(got, fmt.Sprint(one["line"], one["email"], one["role"], one["result"], one["invitation"] != nil))
		}
		if want := "1bob@example.orgadmininvitedtrue 2nobodyviewerwrongfalse 3ada@example.orgvieweralready_memberfalse 4mia@example.orgviewerinvitedtrue"; strings.ReplaceAll(strings.Join(got, "|"), " ", "") != strings.ReplaceAll(want, " ", "|") {
			t.Error(got)
		}
		if mail := h.mailTo("mia@example.org"); !strings.Contains(mail, "/invitations/") {
			t.Error(mail)
		}
		if log := h.call("GET", "/api/audit?action=invitation.created", "", bearer(ada.token)).want(200); len(log.at("data").([]any)) != 2 {
			t.Error(log.body)
		}
		token := bearer(h.call("POST", "/auth/api-tokens", `{"name":"cluster","role":"admin"}`, cookie(ada.secret)).want(201).text("data", "token"))
		h.call("POST", "/api/team/invitations", `{"list":"max@example.org, admin"}`, token).wantCode(403, "session_required")
		h.call("POST", "/api/team/invitations", `{"list":"max@example.org"}`, token).want(200)
		for _, wrong := range []string{`{}`, `{"list":""}`, `{"list":"\n"}`, `{"list":"a@example.org","role":"king"}`} {
			h.call("POST", "/api/team/invitations", wrong, bearer(ada.token)).want(400)
		}
	})
}
