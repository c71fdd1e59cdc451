package httpapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
)

func TestPeopleNameTheirRuns(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		eve := h.colleague(ada, "Eve", access.Member)
		as := bearer(eve.token)
		wf := h.runnable(ada)
		first := h.start(eve, `{"workflowId":"`+wf+`","name":" First try ","note":"why\nnot","tags":["pilot","pilot","grant:1/2"]}`)
		h.await(eve, first)
		second := h.start(ada, `{"workflowId":"`+wf+`"}`)
		h.await(ada, second)
		other := h.start(ada, `{"workflowId":"`+h.runnable(ada)+`"}`)
		h.await(ada, other)

		r := h.call("GET", "/api/runs/"+first, "", as).want(200)
		if r.at("number") != 1.0 || r.at("name") != "First try" || r.at("note") != "why\nnot" || fmt.Sprint(r.at("tags")) != "[pilot grant:1/2]" {
			t.Errorf("%s", r.body)
		}
		r = h.call("GET", "/api/runs/"+second, "", as).want(200)
		if r.at("number") != 2.0 || r.at("name") != nil || r.at("note") != nil || len(r.at("tags").([]any)) != 0 {
			t.Errorf("%s", r.body)
		}
		if n := h.call("GET", "/api/runs/"+other, "", as).want(200).at("number"); n != 1.0 {
			t.Errorf("the first run of another workflow has the number %v", n)
		}

		edited := h.call("PATCH", "/api/runs/"+first, `{"name":"Second thoughts"}`, as).want(200)
		if edited.text("data", "name") != "Second thoughts" || edited.text("data", "note") != "why\nnot" {
			t.Errorf("%s", edited.body)
		}
		edited = h.call("PATCH", "/api/runs/"+first, `{"name":"","note":"","tags":[]}`, as).want(200)
		if edited.at("data", "name") != nil || edited.at("data", "note") != nil || len(edited.at("data", "tags").([]any)) != 0 {
			t.Errorf("%s", edited.body)
		}
		h.call("PATCH", "/api/runs/"+second, `{"name":"x"}`, as).want(403) // somebody else's
		h.call("PATCH", "/api/runs/"+first, `{"name":"x"}`, bearer(ada.token)).want(200)

		for _, wrong := range []string{
			`{"name":"` + strings.Repeat("x", 201) + `"}`, `{"name":"a\nb"}`, `{"name":"a\u0000b"}`, `{"note":"a\u0000b"}`, `{"note":"` + strings.Repeat("x", 10_001) + `"}`,
			`{"tags":["two words"]}`, `{"tags":[""]}`, `{"tags":["é"]}`, `{"tags":"a"}`, `{"tags":[1]}`, `{"number":7}`,
			`{"tags":["` + strings.Join(strings.Split("a b c d e f g h i j k l m n o p q r s t u", " "), `","`) + `"]}`,
		} {
			h.call("PATCH", "/api/runs/"+first, wrong, as).want(400)
			h.call("POST", "/api/runs", `{"workflowId":"`+wf+`",`+wrong[1:], as).want(400)
		}
		again := h.call("POST", "/api/runs/"+first+"/retry", "", as).want(202).text("data", "runId")
		if r := h.call("GET", "/api/runs/"+again, "", as).want(200); r.at("number") != 3.0 || r.at("name") != nil {
			t.Errorf("%s", r.body)
		}
	})
}

func TestRunsAreFoundByWhatPeopleKnowOfThem(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		eve := h.colleague(ada, "Eve", access.Member)
		as := bearer(ada.token)
		wf := h.workflow(ada, `{"parameters":{"genome":{"type":"string","default":"x"}},"nodes":[{"id":"a","command":"# dummy: print=x $PARAM_genome"}]}`)
		one := h.start(ada, `{"workflowId":"`+wf+`","name":"50% Done_it","tags":["Pilot"]}`)
		h.await(ada, one)
		middle := h.clock()
		h.pass(time.Second)
		two := h.start(eve, `{"workflowId":"`+wf+`","note":"for Örjan","tags":["pilot","x_y"],"parameters":{"genome":"GRCh38"}}`)
		h.await(eve, two)

		for query, want := range map[string]string{
			"":                                  one + two,
			"tag=pilot":                         two,
			"tag=Pilot":                         one,
			"tag=x_y":                           two,
			"tag=xzy":                           "", // an underscore is no wildcard
			"tag=pil":                           "",
			"startedBy=" + string(eve.id):       two,
			"startedBy=nobody":                  "",
			"q=" + url.QueryEscape("50% done_"): one,
			"q=" + url.QueryEscape("do it"):     one,
			"q=" + url.QueryEscape("50 one"):    one, // a part of a word
			"q=grch38":                          two,
			"q=PILOT":                           one + two,
			"q=" + strings.ToUpper(one):         one,
			"q=" + one[:len(one)-4]:             one,
			"q=" + strings.ToUpper(one[24:]):    one,
			"q=" + url.QueryEscape("#2"):        two,
			"q=" + url.QueryEscape("#9"):        "",
			"q=" + url.QueryEscape("Örjan"):     two,
			"q=" + url.QueryEscape("orjan"):     two, // without accents, on both databases
			"q=" + url.QueryEscape("%"):         "",
			"q=" + url.QueryEscape("!"):         "",
			"q=" + url.QueryEscape(`'"\`):       "",
			"until=" + url.QueryEscape(middle.UTC().Format(time.RFC3339Nano)):                         one,
			"since=" + url.QueryEscape(middle.UTC().Format(time.RFC3339Nano)):                         two,
			"until=" + url.QueryEscape(middle.UTC().Format(time.RFC3339Nano)) + "&tag=pilot&q=genome": "",
		} {
			got := ""
			for _, r := range h.call("GET", "/api/runs?"+query, "", as).want(200).at("data").([]any) {
				got = r.(map[string]any)["id"].(string) + got // oldest first
			}
			if got != want {
				t.Errorf("%s: found %q, want %q", query, got, want)
			}
		}
		for _, wrong := range []string{"until=x", "tag=two+words", "q=" + strings.Repeat("x", 201), "q=%00", "startedBy=%00", "tag=%00", "q=%ff"} {
			h.call("GET", "/api/runs?"+wrong, "", as).want(400)
		}
	})
}

func TestWorkflowsHaveTags(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		made := h.call("POST", "/api/workflows", `{"name":"w","tags":["rna","rna"]}`, as).want(201)
		id := made.text("data", "id")
		if fmt.Sprint(made.at("data", "tags")) != "[rna]" {
			t.Errorf("%s", made.body)
		}
		before := h.call("GET", "/api/workflows/"+id, "", as).want(200)
		after := h.call("PUT", "/api/workflows/"+id, `{"tags":["b","a"]}`, as).want(200)
		if fmt.Sprint(after.at("data", "tags")) != "[b a]" || after.at("data", "revision") != before.at("data", "revision") {
			t.Errorf("%s", after.body)
		}
		h.call("PUT", "/api/workflows/"+id, `{"name":"other"}`, as).want(200)
		row := h.call("GET", "/api/workflows", "", as).want(200).at("data").([]any)[0].(map[string]any)
		if fmt.Sprint(row["tags"]) != "[b a]" {
			t.Errorf("%v", row)
		}
		h.call("PUT", "/api/workflows/"+id, `{"tags":[]}`, as).want(200)
		if list := h.call("GET", "/api/workflows/"+id, "", as).want(200).at("data", "tags").([]any); len(list) != 0 {
			t.Errorf("%v", list)
		}
		h.call("PUT", "/api/workflows/"+id, `{"tags":["no no"]}`, as).want(400)
		h.call("POST", "/api/workflows", `{"name":"w","tags":["no no"]}`, as).want(400)
	})
}

// colleague is somebody new who has no team but the host's.
func (h *harness) colleague(host someone, name string, role access.Role) someone {
	h.t.Helper()
	who := h.signUp(name)
	h.join(who, host, role)
	h.join(h.signUp(name+"Successor"), who, access.Owner)
	h.call("POST", "/auth/teams/"+string(who.team)+"/leave", "", bearer(who.token)).want(200)
	who.team = host.team
	return who
}
