package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asModel connects the protocol's own client with a token.
func (h *harness) asModel(token string) *mcp.ClientSession {
	h.t.Helper()
	server := httptest.NewServer(h.mux)
	h.t.Cleanup(server.Close)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(h.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: server.URL + "/mcp", DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: authorized(token)},
	}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { session.Close() })
	return session
}

type authorized string

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(a))
	return http.DefaultTransport.RoundTrip(r)
}

func toolNames(t *testing.T, s *mcp.ClientSession) (names []string) {
	t.Helper()
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// use calls a tool, and gives what it says and whether it failed.
func use(t *testing.T, s *mcp.ClientSession, name string, arguments any) (string, bool) {
	t.Helper()
	result, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return err.Error(), true
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

const oneStep = `{"version":1,"nodes":[{"id":"a","name":"A","type":"task","command":"true"}],"edges":[]}`

func TestAModelReadsByDefaultAndActsWithConsent(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		all := h.asModel(ada.token)
		for _, name := range toolNames(t, all) {
			if !slices.Contains([]string{"who_am_i", "list_workflows", "get_workflow", "check_definition", "list_runs", "get_run", "read_log", "list_outputs", "list_files"}, name) {
				t.Errorf("a token without bounds has the tool %s", name)
			}
		}
		if text, failed := use(t, all, "start_run", map[string]any{"workflowId": "wf_x", "maxCredits": 1}); !failed {
			t.Error("it started a run:", text)
		}

		token := func(scopes string) string {
			return h.call("POST", "/auth/api-tokens", `{"name":"model","scopes":[`+scopes+`]}`, cookie(ada.secret)).want(201).text("data", "token")
		}
		acting := h.asModel(token(`"read","run","write"`))
		made, failed := use(t, acting, "create_workflow", map[string]any{"name": "By a model", "definition": json.RawMessage(oneStep)})
		if failed {
			t.Fatal(made)
		}
		var workflow struct{ Data struct{ ID string } }
		if err := json.Unmarshal([]byte(made), &workflow); err != nil || workflow.Data.ID == "" {
			t.Fatal(made, err)
		}
		id := workflow.Data.ID
		if text, failed := use(t, acting, "update_workflow", map[string]any{"id": id, "definition": json.RawMessage(strings.Replace(oneStep, `"A"`, `"B"`, 1))}); failed {
			t.Error(text)
		}
		started, failed := use(t, acting, "start_run", map[string]any{"workflowId": id, "maxCredits": 5})
		if failed {
			t.Fatal(started)
		}
		var run struct{ Data struct{ RunID string } }
		if err := json.Unmarshal([]byte(started), &run); err != nil || run.Data.RunID == "" {
			t.Fatal(started, err)
		}
		read := h.asModel(token(`"read"`))
		for tool, arguments := range map[string]any{
			"who_am_i": nil, "list_workflows": map[string]any{"limit": 5}, "get_workflow": map[string]any{"id": id}, "list_files": nil,
			"check_definition": map[string]any{"definition": json.RawMessage(oneStep)}, "list_runs": map[string]any{"workflowId": id, "q": "model"},
			"get_run": map[string]any{"id": run.Data.RunID}, "read_log": map[string]any{"runId": run.Data.RunID, "nodeId": "a", "limit": 100}, "list_outputs": map[string]any{"runId": run.Data.RunID},
		} {
			if text, failed := use(t, read, tool, arguments); failed {
				t.Errorf("%s: %s", tool, text)
			}
		}
		if text, failed := use(t, acting, "cancel_run", map[string]any{"id": run.Data.RunID}); failed {
			t.Error(text)
		}

		// What the arguments say goes nowhere else, and another team's is not there.
		bob := h.asModel(h.signUp("Bob").token)
		for _, id := range []string{id, "../me", "x/../../me", "wf_x?limit=1", "wf_x#", "", strings.Repeat("x", 1000), "a\x00b"} {
			if text, failed := use(t, bob, "get_workflow", map[string]any{"id": id}); !failed {
				t.Errorf("%q: %s", id, text)
			}
		}
	})
}

func TestWhoMayNotUseTheProtocol(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	accept := func(r *http.Request) { r.Header.Set("Accept", "application/json, text/event-stream") }
	r := h.call("POST", "/mcp", list, accept).want(401)
	if got := r.header.Get("WWW-Authenticate"); !strings.Contains(got, `resource_metadata="`+base+`/.well-known/oauth-protected-resource/mcp"`) {
		t.Error(got)
	}
	about := h.call("GET", "/.well-known/oauth-protected-resource/mcp", "").want(200)
	if about.text("resource") != base+"/mcp" {
		t.Error(about.body)
	}
	h.call("POST", "/mcp", list, accept, cookie(ada.secret)).want(401)
	h.call("POST", "/mcp", list, accept, bearer(ada.token), func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }).wantCode(403, "cross_origin")
	h.call("POST", "/mcp", list, accept, bearer(ada.token), func(r *http.Request) { r.Header.Set("Origin", base) }).want(200)
	h.call("GET", "/mcp", "", accept, bearer(ada.token)).want(405)
	report := h.call("POST", "/auth/api-tokens", `{"name":"reports","scopes":["report"]}`, cookie(ada.secret)).want(201).text("data", "token")
	h.call("POST", "/mcp", list, accept, bearer(report)).want(403)
	for _, body := range []string{"", "[]", "{", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_run","arguments":[]}}`, strings.Repeat("[", 10000)} {
		if r := h.call("POST", "/mcp", body, accept, bearer(ada.token)); r.status >= 500 {
			t.Errorf("%.20q: %d %s", body, r.status, r.body)
		}
	}
}

// A program asks for scopes, and the person ticks what it gets of them.
func TestAProgramGetsTheScopesThatThePersonTicks(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		const back = "https://notebook.example/callback"
		id := h.call("POST", "/oauth/register", `{"client_name":"Model","redirect_uris":["`+back+`"]}`).want(201).text("client_id")
		ask := func(scope string, more ...string) string {
			return "/oauth/authorize?" + request(append([]string{"client_id", id, "redirect_uri", back, "scope", scope}, more...)...).Encode()
		}
		grant := func(scope string, ticks ...string) reply {
			form := url.Values{"decision": {"allow"}}
			for _, tick := range ticks {
				form.Set(tick, "yes")
			}
			code := h.post(ask(scope), form, cookie(ada.secret)).answered().Get("code")
			return h.post("/oauth/token", redeem(code, "client_id", id, "redirect_uri", back, "resource", base+"/mcp")).want(200)
		}
		page := h.call("GET", ask("read run write"), "", cookie(ada.secret)).want(200).body
		if !strings.Contains(page, `name="run"`) || !strings.Contains(page, `name="write"`) || strings.Contains(page, "manage teams") {
			t.Error(page)
		}
		for _, c := range []struct {
			scope string
			ticks []string
			want  string
		}{
			{"read run write", nil, "read"},
			{"read run write", []string{"run"}, "read run"},
			{"write", []string{"run", "write"}, "read write"},
			{"read", []string{"run", "write", "admin"}, "read"},
			{"user read", nil, "read"},
			{"", nil, "user"},
			{"user", nil, "user"},
		} {
			tokens := grant(c.scope, c.ticks...)
			if tokens.text("scope") != c.want {
				t.Errorf("%v gives %s", c, tokens.body)
			}
			again := h.post("/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {tokens.text("refresh_token")}}).want(200)
			if again.text("scope") != c.want {
				t.Errorf("%v gives %s when renewed", c, again.body)
			}
			as := bearer(again.text("access_token"))
			h.call("GET", "/api/workflows", "", as).want(200)
			status := 403
			if strings.Contains(c.want, "write") || c.want == "user" {
				status = 201
			}
			h.call("POST", "/api/workflows", `{"name":"x"}`, as).want(status)
			if c.want != "user" {
				h.call("POST", "/auth/teams", `{"name":"x"}`, as).want(403)
				h.call("POST", "/api/secrets", `{}`, as).want(405)
				h.call("PUT", "/api/secrets/NAME", `{"value":"12345678"}`, as).want(403)
			}
		}
		for _, scope := range []string{"read", "openid", "user admin"} {
			h.post("/oauth/device_authorization", url.Values{"client_id": {id}, "scope": {scope}}).refused(400, "invalid_scope")
		}
		// Words that we do not know mean no more than was asked for, so they get nothing.
		for _, scope := range []string{"openid", "admin", "read openid", "user offline_access", "READ", "read,run"} {
			if got := h.post(ask(scope), url.Values{"decision": {"allow"}}, cookie(ada.secret)).answered(); got.Get("error") != "invalid_scope" || got.Get("code") != "" {
				t.Errorf("%q gives %v", scope, got)
			}
		}
		// All was allowed last, but what may be narrowed is asked each time.
		if !strings.Contains(h.call("GET", ask("read run"), "", cookie(ada.secret)).want(200).body, `name="run"`) {
			t.Error("it was not asked")
		}
		if got := h.post(ask("read", "resource", "https://other.example/mcp"), url.Values{"decision": {"allow"}}, cookie(ada.secret)).answered().Get("error"); got != "invalid_target" {
			t.Errorf("a token for another's resource: %q", got)
		}
	})
}
