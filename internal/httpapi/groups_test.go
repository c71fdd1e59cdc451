package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/store/storetest"
)

// An operator maps groups at the provider to teams: newcomers begin in theirs, and who leaves
// a group leaves its team with the next sign-in.
func TestOperatorsMapGroupsToTeams(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := newMock(t)
		h := houseOnWith(t, url, m.URL)
		host := h.signUp("Host")
		const route = "/api/operator/group-mapping"
		rules := fmt.Sprintf(`{"rules":[{"group":"lab","teamId":%q,"role":"member"}]}`, host.team)
		h.call("PUT", route, rules, cookie(host.secret)).wantCode(403, "operators_only")
		h.call("PUT", route, rules, bearer(host.token)).wantCode(403, "session_required")
		h.operates(host, true)
		as := cookie(host.secret)
		empty := h.call("GET", route, "", as).want(200)
		if !strings.Contains(empty.body, `"rules":[]`) {
			t.Error(empty.body)
		}
		set := h.call("PUT", route, rules, as, header("If-Match", empty.header.Get("ETag"))).want(200)
		h.call("PUT", route, rules, as, header("If-Match", empty.header.Get("ETag"))).wantCode(412, "stale")
		got := h.call("GET", route, "", as).want(200)
		rule := got.at("data", "rules").([]any)[0].(map[string]any)
		if len(rule) != 3 || rule["group"] != "lab" || rule["teamId"] != string(host.team) || rule["role"] != "member" || got.header.Get("ETag") != set.header.Get("ETag") {
			t.Error(got.body, got.header, set.header)
		}
		for path, wrong := range map[string]string{
			"rules[0].teamId": `{"rules":[{"group":"lab","teamId":"team_nobody","role":"member"}]}`,
			"rules[0].role":   fmt.Sprintf(`{"rules":[{"group":"lab","teamId":%q,"role":"boss"}]}`, host.team),
			"rules[0].group":  fmt.Sprintf(`{"rules":[{"group":"a\u0000b","teamId":%q,"role":"member"}]}`, host.team),
		} {
			if r := h.call("PUT", route, wrong, as).want(400); !strings.Contains(r.body, path) {
				t.Error(r.body)
			}
		}
		h.call("PUT", route, `{}`, as).want(400)
		h.call("PUT", route, `{"rules":[],"more":1}`, as).want(400)

		m.says(map[string]any{"groups": []string{"lab"}})
		secret := h.signInBy(m).want(303).newSession()
		if me := h.call("GET", "/api/me", "", cookie(secret)).want(200); me.text("data", "team", "id") != string(host.team) || me.text("data", "team", "role") != "member" {
			t.Error(me.body)
		}
		m.says(nil)
		h.signInBy(m).want(303)
		if me := h.call("GET", "/api/me", "", cookie(secret)).want(200); me.text("data", "team", "id") == string(host.team) {
			t.Error(me.body)
		}
		h.call("GET", "/api/me", "", cookie(secret), header("X-Team-Id", string(host.team))).wantCode(403, "not_a_member")
		if log := h.call("GET", "/api/audit?action=member.", "", bearer(host.token)).want(200); len(log.at("data").([]any)) != 2 || !strings.Contains(log.body, `"group mapping"`) {
			t.Error(log.body)
		}
	})
}
