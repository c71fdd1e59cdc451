package httpapi_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace/docs"
	"github.com/millrace/millrace/internal/domain/access"
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

// scoped is a token of somebody with these scopes.
func (h *harness) scoped(who someone, scopes ...string) string {
	h.t.Helper()
	return h.call("POST", "/auth/api-tokens", `{"name":"model","scopes":["`+strings.Join(scopes, `","`)+`"]}`, cookie(who.secret)).want(201).text("data", "token")
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

// use calls a tool, and gives what it says and whether it failed. What it gives
// must be the same as text and with structure.
func use(t *testing.T, s *mcp.ClientSession, name string, arguments any) (string, bool) {
	t.Helper()
	result, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return err.Error(), true
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if !result.IsError {
		var said any
		if err := json.Unmarshal([]byte(text), &said); err != nil || len(result.Content) != 1 || !reflect.DeepEqual(said, result.StructuredContent) {
			t.Errorf("%s: %v: the text is %s and the structure %v", name, err, text, result.StructuredContent)
		}
	}
	return text, result.IsError
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

		acting := h.asModel(h.scoped(ada, "read", "run", "write"))
		made, failed := use(t, acting, "create_workflow", map[string]any{"name": "By a model", "definition": json.RawMessage(oneStep)})
		if failed {
			t.Fatal(made)
		}
		var workflow struct{ Data struct{ ID string } }
		if err := json.Unmarshal([]byte(made), &workflow); err != nil || workflow.Data.ID == "" {
			t.Fatal(made, err)
		}
		id := workflow.Data.ID
		if text, failed := use(t, acting, "update_workflow", map[string]any{"workflowId": id, "definition": json.RawMessage(strings.Replace(oneStep, `"A"`, `"B"`, 1))}); failed {
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
		read := h.asModel(h.scoped(ada, "read"))
		for tool, arguments := range map[string]any{
			"who_am_i": nil, "list_workflows": map[string]any{"limit": 5}, "get_workflow": map[string]any{"workflowId": id}, "list_files": nil,
			"check_definition": map[string]any{"definition": json.RawMessage(oneStep)}, "list_runs": map[string]any{"workflowId": id, "q": "model"},
			"get_run": map[string]any{"runId": run.Data.RunID}, "read_log": map[string]any{"runId": run.Data.RunID, "nodeId": "a", "limit": 100}, "list_outputs": map[string]any{"runId": run.Data.RunID},
		} {
			if text, failed := use(t, read, tool, arguments); failed {
				t.Errorf("%s: %s", tool, text)
			}
		}
		if text, failed := use(t, acting, "cancel_run", map[string]any{"runId": run.Data.RunID}); failed {
			t.Error(text)
		}

		// What the arguments say goes nowhere else, and another team's is not there.
		bob := h.asModel(h.signUp("Bob").token)
		for _, id := range []string{id, "../me", "x/../../me", "wf_x?limit=1", "wf_x#", "", strings.Repeat("x", 1000), "a\x00b"} {
			if text, failed := use(t, bob, "get_workflow", map[string]any{"workflowId": id}); !failed {
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
	oldest := func(r *http.Request) { r.Header.Set("MCP-Protocol-Version", "2025-03-26") }
	for _, several := range []string{"[" + list + "]", "\n [" + list + "," + list + "]"} {
		h.call("POST", "/mcp", several, accept, oldest, bearer(ada.token)).want(400)
	}
	report := h.call("POST", "/auth/api-tokens", `{"name":"reports","scopes":["report"]}`, cookie(ada.secret)).want(201).text("data", "token")
	h.call("POST", "/mcp", list, accept, bearer(report)).want(403)
	for _, body := range []string{"", "[]", "{", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_run","arguments":[]}}`, strings.Repeat("[", 10000)} {
		if r := h.call("POST", "/mcp", body, accept, bearer(ada.token)); r.status >= 500 {
			t.Errorf("%.20q: %d %s", body, r.status, r.body)
		}
	}
}

func TestToolsSayWhatTheyTakeAndGive(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s := h.asModel(h.scoped(h.signUp("Ada"), "read", "run", "write"))
	if c := s.InitializeResult().Capabilities; c.Tools == nil || c.Tools.ListChanged || c.Prompts == nil || c.Prompts.ListChanged || c.Completions == nil || c.Resources != nil {
		t.Errorf("%+v", c)
	}
	names := []string{
		"workflowId", "runId", "nodeId", "cursor", "limit", "offset", "q", "status", "tag", "name", "definition", "parameters", "inputs", "maxCredits",
	}
	gives := map[string]string{ // a field, from the contract
		"who_am_i": "Me", "list_workflows": "WorkflowRow", "get_workflow": "Workflow", "check_definition": "Problems", "list_runs": "RunRow", "get_run": "Run", "read_log": "RunLogs",
		"list_outputs": "Output", "list_files": "File", "start_run": "StartedRun", "cancel_run": "CancelledRun", "create_workflow": "Workflow", "update_workflow": "Workflow",
	}
	page, err := docs.Files.ReadFile("mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	for prompt, err := range s.Prompts(t.Context(), nil) {
		if err != nil || !strings.Contains(string(page), "| `"+prompt.Name+"` |") {
			t.Errorf("docs/mcp.md lacks a prompt: %+v %v", prompt, err)
		}
	}
	size := 0
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		in, out := tool.InputSchema.(map[string]any), tool.OutputSchema.(map[string]any)
		arguments, _ := in["properties"].(map[string]any)
		for name := range arguments {
			if !slices.Contains(names, name) {
				t.Errorf("%s calls something %s", tool.Name, name)
			}
		}
		if in["additionalProperties"] == nil || out["type"] != "object" || out["$defs"].(map[string]any)[gives[tool.Name]] == nil {
			t.Errorf("%s: %v", tool.Name, out)
		}
		text, err := json.Marshal(out)
		if err != nil || strings.Contains(string(text), "x-go") || strings.Contains(string(text), "#/components") {
			t.Errorf("%s: %v %s", tool.Name, err, text)
		}
		if !strings.Contains(string(page), "`"+tool.Name+"`") {
			t.Errorf("docs/mcp.md lacks %s", tool.Name)
		}
		size += len(text)
		delete(gives, tool.Name)
	}
	if len(gives) != 0 || size > 60_000 {
		t.Errorf("%v are no tools; their schemas have %d bytes", gives, size)
	}
}

func TestARunWithALongLogCanBeRead(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		id := h.start(ada, `{"workflowId":"`+h.workflow(ada, `{"nodes":[{"id":"a","command":"# dummy: print=first longline=300000 print=middle longline=9000 print=last exit=3"}]}`)+`"}`)
		h.await(ada, id)
		model := h.asModel(ada.token)
		text, failed := use(t, model, "get_run", map[string]any{"runId": id})
		var run struct {
			Status, Logs  string
			LogsTruncated bool
		}
		if err := json.Unmarshal([]byte(text), &run); failed || err != nil || run.Status != "failed" || !run.LogsTruncated || !strings.HasPrefix(run.Logs, "middle") || !strings.HasSuffix(run.Logs, "last\n") {
			t.Errorf("%v %.300s", err, text)
		}
		// The beginning is read with another tool.
		if text, failed := use(t, model, "read_log", map[string]any{"runId": id, "nodeId": "a"}); failed || !strings.Contains(text, "first") || len(text) > 20<<10 {
			t.Errorf("%d: %.300s", len(text), text)
		}
	})
}

func TestPromptsAreFilledIn(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	reads, writes := h.asModel(h.scoped(ada, "read")), h.asModel(h.scoped(ada, "read", "write"))
	all := map[string]map[string]string{
		"explain_failure":   {"runId": "run_1", "nodeId": "align"},
		"summarize_results": {"runId": "run_1"},
		"describe_methods":  {"runId": "run_1"},
		"adapt_workflow":    {"workflowId": "wf_1", "change": "{{.runId}} with \x00 twice the reads"},
		"write_workflow":    {"analysis": "count reads"},
	}
	tools := toolNames(t, writes)
	for prompt, err := range reads.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		arguments := all[prompt.Name]
		delete(all, prompt.Name)
		if prompt.Title == "" || prompt.Description == "" || len(prompt.Arguments) != len(arguments) {
			t.Errorf("%+v", prompt)
		}
		for _, s := range []*mcp.ClientSession{reads, writes} {
			filled, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt.Name, Arguments: arguments})
			if err != nil {
				t.Fatal(err)
			}
			text := filled.Messages[0].Content.(*mcp.TextContent).Text
			for name, value := range arguments {
				if !strings.Contains(text, value) {
					t.Errorf("%s without %s: %s", prompt.Name, name, text)
				}
			}
			for _, word := range regexp.MustCompile(`[a-z]+_[a-z_]+`).FindAllString(text, -1) {
				if !slices.Contains(tools, word) && word != "run_" && word != "wf_" {
					t.Errorf("%s names %s, which is no tool", prompt.Name, word)
				}
			}
			if strings.HasSuffix(prompt.Name, "_workflow") {
				if strings.Contains(text, "Save it") != (s == writes) {
					t.Error(text)
				}
				page := filled.Messages[1].Content.(*mcp.EmbeddedResource).Resource
				if page.URI != base+"/help/definition" || !strings.Contains(page.Text, "# A definition, field by field") {
					t.Errorf("%+v", page)
				}
			}
		}
		for _, argument := range prompt.Arguments {
			wrong := maps.Clone(arguments)
			delete(wrong, argument.Name)
			if _, err := reads.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt.Name, Arguments: wrong}); argument.Required == (err == nil) {
				t.Errorf("%s without %s: %v", prompt.Name, argument.Name, err)
			}
			for _, hostile := range []string{"../me", "run_1 and do as I say", "a\x00b", strings.Repeat("x", 1000)} {
				wrong[argument.Name] = hostile
				if _, err := reads.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt.Name, Arguments: wrong}); strings.HasSuffix(argument.Name, "Id") == (err == nil) {
					t.Errorf("%s with %s=%.30q: %v", prompt.Name, argument.Name, hostile, err)
				}
			}
		}
	}
	if len(all) != 0 {
		t.Errorf("%v are no prompts", all)
	}
}

func TestIDsAreCompleted(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		works := h.workflow(ada, `{"nodes":[{"id":"a","command":"true"}]}`)
		fails := h.workflow(ada, `{"nodes":[{"id":"trim","name":"Trim reads","command":"true"},{"id":"align","command":"# dummy: exit=1"}]}`)
		h.call("PUT", "/api/workflows/"+works, `{"name":"Größe 100%"}`, bearer(ada.token)).want(200)
		h.call("PUT", "/api/workflows/"+fails, `{"name":"Variant calling"}`, bearer(ada.token)).want(200)
		completed, failed := h.start(ada, `{"workflowId":"`+works+`","name":"pilot"}`), h.start(ada, `{"workflowId":"`+fails+`"}`)
		h.await(ada, completed)
		h.await(ada, failed)

		complete := func(s *mcp.ClientSession, prompt, argument, typed string, given map[string]string) mcp.CompletionResultDetails {
			t.Helper()
			result, err := s.Complete(t.Context(), &mcp.CompleteParams{
				Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: prompt}, Argument: mcp.CompleteParamsArgument{Name: argument, Value: typed},
				Context: &mcp.CompleteContext{Arguments: given},
			})
			if err != nil {
				t.Fatalf("%s %.30q: %v", argument, typed, err)
			}
			return result.Completion
		}
		viewer := h.colleague(ada, "Vera", access.Viewer)
		team := h.asModel(h.scoped(viewer, "read"))
		stranger := h.asModel(h.signUp("Bob").token)
		of := map[string]string{"runId": failed}
		for _, c := range []struct {
			prompt, argument, typed string
			given                   map[string]string
			want                    []string
		}{
			{"adapt_workflow", "workflowId", "", nil, []string{fails, works}},
			{"adapt_workflow", "workflowId", "variant", nil, []string{fails}},
			{"adapt_workflow", "workflowId", "große", nil, []string{works}},
			{"adapt_workflow", "workflowId", works, nil, []string{works}},
			{"adapt_workflow", "workflowId", works[:len(works)-1], nil, []string{works}},
			{"adapt_workflow", "workflowId", "wf_%", nil, nil},
			{"adapt_workflow", "change", "", nil, nil},
			{"summarize_results", "runId", "", nil, []string{failed, completed}},
			{"summarize_results", "runId", "pil", nil, []string{completed}},
			{"summarize_results", "runId", "calling", nil, []string{failed}},
			{"summarize_results", "runId", completed[:len(completed)-1], nil, []string{completed}},
			{"explain_failure", "runId", "", nil, []string{failed}},
			{"explain_failure", "runId", completed, nil, nil},
			{"explain_failure", "nodeId", "", of, []string{"trim", "align"}},
			{"explain_failure", "nodeId", "READS", of, []string{"trim"}},
			{"explain_failure", "nodeId", "", nil, nil},
			{"explain_failure", "nodeId", "", map[string]string{"runId": "../me"}, nil},
			{"explain_failure", "nodeId", "", map[string]string{"runId": "run_00000000000000000000000000000000"}, nil},
			{"no_such_prompt", "no_such_argument", "x", nil, nil},
		} {
			if got := complete(team, c.prompt, c.argument, c.typed, c.given); !slices.Equal(got.Values, c.want) || got.HasMore {
				t.Errorf("%s %q: %v", c.argument, c.typed, got)
			}
			if got := complete(stranger, c.prompt, c.argument, c.typed, c.given); len(got.Values) != 0 {
				t.Errorf("somebody else: %s %q: %v", c.argument, c.typed, got)
			}
		}
		for _, argument := range []string{"workflowId", "runId", "nodeId"} {
			for _, hostile := range []string{"\x00", "a\x00b", "\xff", "%", "_", "' or 1=1 --", "&limit=1000", "#", "wf_\x00", strings.Repeat("a", 200), strings.Repeat("é", 100), strings.Repeat("wf_", 100000)} {
				if got := complete(team, "summarize_results", argument, hostile, of); len(got.Values) > 2 {
					t.Errorf("%s %.30q: %v", argument, hostile, got)
				}
			}
		}
		for range 51 {
			h.runnable(ada)
		}
		if got := complete(team, "adapt_workflow", "workflowId", "w", nil); len(got.Values) != 50 || !got.HasMore {
			t.Errorf("%d %v", len(got.Values), got.HasMore)
		}
	})
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
