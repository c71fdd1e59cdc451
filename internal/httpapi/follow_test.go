package httpapi_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/workflows"
)

// repository is one that has a new commit whenever somebody looks.
type repository struct{ looked atomic.Int64 }

func (r *repository) Latest(context.Context, ids.Team, source.Source) (string, error) {
	return fmt.Sprintf("%040d", r.looked.Add(1)), nil
}

func (r *repository) File(_ context.Context, _ ids.Team, _ source.Source, commit string, _ workflows.FileWanted) (string, []byte, error) {
	return "millrace.yaml", []byte("nodes:\n- id: a\n  command: echo " + commit), nil
}

// A workflow that follows Git is changed there: nothing here changes its
// definition, by whatever route, until it is detached.
func TestAWorkflowThatFollowsGitIsChangedThere(t *testing.T) {
	t.Parallel()
	h := &fixtures{harness: newHarness(t)}
	host := h.newcomer()
	made := h.call("POST", "/api/workflows", `{"git":{"git":"https://example.org/lab/analysis.git","ref":"main"}}`, bearer(host.token)).want(201)
	at := "/api/workflows/" + made.text("data", "id")
	if made.text("data", "name") != "analysis" || made.text("data", "git", "ref") != "main" || made.text("data", "git", "commit") == "" {
		t.Errorf("made %s", made.body)
	}
	h.call("PUT", at, `{"name":"Renamed","tags":["x"]}`, bearer(host.token)).want(200)
	h.call("PUT", at, `{"definition":{"nodes":[]}}`, bearer(host.token)).wantCode(409, "follows_git")
	h.call("POST", at+"/refresh", "", bearer(host.token)).want(200)
	h.call("POST", at+"/revisions/1/restore", "", bearer(host.token)).wantCode(409, "follows_git")
	room := h.call("POST", "/api/collab/token", fmt.Sprintf(`{"workflowId":%q}`, made.text("data", "id")), cookie(host.secret)).want(200)
	if room.text("data", "role") != "viewer" {
		t.Errorf("in the room its owner is %s", room.body)
	}
	h.call("POST", at+"/triggers", `{"action":"refresh","inputs":{"x":"y"}}`, bearer(host.token)).want(400)
	hook := h.call("POST", at+"/triggers", `{"action":"refresh"}`, bearer(host.token)).want(201).text("data", "token")
	if called := h.call("POST", "/hooks/"+hook, `{"ref":"refs/heads/main"}`).want(202); called.at("data", "runId") != nil {
		t.Errorf("a refresh started %s", called.body)
	}
	h.call("POST", at+"/detach", "", bearer(host.token)).want(200)
	h.call("POST", at+"/detach", "", bearer(host.token)).wantCode(409, "not_from_git")
	h.call("POST", at+"/refresh", "", bearer(host.token)).wantCode(409, "not_from_git")
	h.call("POST", "/hooks/"+hook, `{}`).wantCode(409, "not_from_git")
	h.call("PUT", at, `{"definition":{"nodes":[]}}`, bearer(host.token)).want(200)
	room = h.call("POST", "/api/collab/token", fmt.Sprintf(`{"workflowId":%q}`, made.text("data", "id")), cookie(host.secret)).want(200)
	if room.text("data", "role") != "editor" {
		t.Errorf("detached, its owner is %s", room.body)
	}
	var actions []string
	for _, e := range h.entries(string(host.team)) {
		actions = append(actions, e.Action)
	}
	if fmt.Sprint(actions[:6]) != "[workflow.updated workflow.detached workflow.refresh_requested trigger.created workflow.refreshed workflow.updated]" {
		t.Errorf("on record are %v", actions)
	}
}

func TestAWorkflowFromGitIsSaidWell(t *testing.T) {
	t.Parallel()
	h := &fixtures{harness: newHarness(t)}
	host := h.newcomer()
	for body, code := range map[string]string{
		`{"git":{"git":""}}`:                                                "invalid",
		`{"git":{"git":"file:///etc"}}`:                                     "invalid",
		`{"git":{"git":"https://u:p@example.org/x"}}`:                       "invalid",
		`{"git":{"git":"https://example.org/x","ref":"--upload-pack=x"}}`:   "invalid",
		`{"git":{"git":"https://example.org/x","path":"../.."}}`:            "invalid",
		`{"git":{"git":"https://example.org/x","submodules":true}}`:         "invalid",
		`{"git":{"git":"https://example.org/x"},"definition":{"nodes":[]}}`: "invalid",
		`{"git":{"git":"https://example.org/x"},"name":"two\nlines"}`:       "invalid",
		`{"description":"neither a name nor a repository"}`:                 "invalid",
	} {
		h.call("POST", "/api/workflows", body, bearer(host.token)).wantCode(400, code)
	}
	for range 60 {
		r := h.call("POST", "/api/workflows", `{"git":{"git":"https://example.org/x"}}`, bearer(host.token))
		if r.status == 429 {
			return
		}
	}
	t.Error("a team reads from Git without end")
}
