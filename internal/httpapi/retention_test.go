package httpapi_test

import (
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
)

func TestATeamChoosesHowLongItKeepsThings(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		path := "/api/team/retention"
		r := h.call("GET", path, "", bearer(ada.token)).want(200)
		if r.at("data", "logsDays") != nil || r.at("data", "most", "logsDays") != 90.0 || r.at("data", "most", "runsDays") != nil {
			t.Errorf("at first: %v", r.at("data"))
		}
		h.call("PUT", path, `{"logsDays":30,"revisionsDays":7,"runsDays":null}`, bearer(ada.token)).want(200)
		r = h.call("GET", path, "", bearer(ada.token)).want(200)
		if r.at("data", "logsDays") != 30.0 || r.at("data", "revisionsDays") != 7.0 || r.at("data", "runsDays") != nil || r.at("data", "eventsDays") != nil {
			t.Errorf("chosen: %v", r.at("data"))
		}
		for _, body := range []string{
			`{"logsDays":91}`, `{"logsDays":0}`, `{"runsDays":-5}`, `{"runsDays":36501}`, `{"runsDays":1.5}`, `{"runsDays":"7"}`,
			`{"days":1}`, `[]`, `{"runsDays":99999999999999999999}`,
		} {
			h.call("PUT", path, body, bearer(ada.token)).want(400)
		}
		if r := h.call("GET", path, "", bearer(bob.token)).want(200); r.at("data", "revisionsDays") != nil {
			t.Errorf("another team has it too: %v", r.at("data"))
		}
		h.call("PUT", path, `{}`, bearer(ada.token)).want(200)
		if r := h.call("GET", path, "", bearer(ada.token)).want(200); r.at("data", "logsDays") != nil {
			t.Errorf("taken back: %v", r.at("data"))
		}
	})
}

func TestMembersSeeHowLongThingsAreKeptAndChooseNothing(t *testing.T) {
	t.Parallel()
	w := &fixtures{harness: newHarness(t)}
	host, who := w.team(access.Member)
	in := header("X-Team-Id", string(host.team))
	w.call("GET", "/api/team/retention", "", bearer(who.token), in).want(200)
	w.call("PUT", "/api/team/retention", `{"runsDays":1}`, bearer(who.token), in).want(403)
}
