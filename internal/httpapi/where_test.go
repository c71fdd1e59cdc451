package httpapi_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
)

func TestWhereFindsTheTeamOfAnID(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, mia := h.signUp("Ada"), h.signUp("Mia")
		eve := h.signUp("Eve")
		h.join(eve, ada, access.Viewer)
		wf := h.runnable(ada)
		run := h.start(ada, `{"workflowId":"`+wf+`"}`)
		h.await(ada, run)
		sweep := h.call("POST", "/api/sweeps", `{"workflowId":"`+h.workflow(ada, sweepable)+`","vary":{"q":[1]}}`, bearer(ada.token)).want(202).text("data", "sweepId")
		file := h.upload(ada, "reads & more.csv", "text/csv", "a,b").key
		paper := h.call("POST", "/api/ai/analyze", byDOI(mill), bearer(ada.token)).want(200).text("data", "analysisId")
		where := func(id string, who someone, changes ...change) reply {
			return h.call("GET", "/api/where/"+url.PathEscape(id), "", append(changes, bearer(who.token))...)
		}
		for id, path := range map[string]string{
			wf: "/workflows/" + wf, run: "/runs/" + run, sweep: "/runs/sweeps/" + sweep, file: "/files?preview=" + url.QueryEscape(file), paper: "/papers?id=" + paper,
		} {
			want := fmt.Sprintf("map[path:%s teamId:%s]", path, ada.team)
			for _, who := range []someone{ada, eve} {
				if got := fmt.Sprint(where(id, who).want(200).at("data")); got != want {
					t.Errorf("%s: %s, want %s", id, got, want)
				}
			}
			where(id, eve, header("X-Team-Id", string(ada.team))).want(200)
			where(id, mia).wantCode(404, "not_found")
		}
		for _, id := range []string{"wf_nothing", "run_nothing", "swp_nothing", "an_nothing", "teams/" + string(ada.team) + "/uploads/x/y", "x", "a\x00b", "team_1"} {
			where(id, ada).wantCode(404, "not_found")
		}
		h.call("DELETE", "/api/runs/"+run, "", bearer(ada.token)).want(200)
		where(run, ada).want(404)
		h.call("DELETE", "/auth/teams/"+string(ada.team)+"/members/"+string(eve.id), "", bearer(ada.token)).want(200)
		where(wf, eve).want(404)
	})
}
