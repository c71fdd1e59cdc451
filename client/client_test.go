package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
)

func answering(t *testing.T, status int, header http.Header, body string) *client.ClientWithResponses {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer oat_x" || r.Header.Get("X-Team-Id") != "team_1" {
			t.Errorf("called with %v", r.Header)
		}
		for name, values := range header {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, client.WithToken("oat_x"), client.WithTeam("team_1"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestASuccessIsDecoded(t *testing.T) {
	c := answering(t, 200, nil, `{"success": true, "data": {"id": "user_1", "name": "Ada", "email": "ada@example.org", "team": {"id": "team_1", "name": "Red", "role": "owner", "plan": "free"}}}`)
	response, err := c.GetMeWithResponse(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := response.JSON200.Data; got.Name != "Ada" || got.Team.Role != api.RoleOwner {
		t.Errorf("got %+v", got)
	}
}

func TestEveryFailureIsAnError(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		header http.Header
		body   string
		want   client.Error
	}{
		"ours": {
			400,
			http.Header{"X-Request-Id": {"r1"}},
			`{"success": false, "error": "The request is not valid.", "code": "invalid", "requestId": "r1", "details": [{"path": "name", "message": "is missing"}]}`,
			client.Error{Status: 400, Code: "invalid", Message: "The request is not valid.", RequestID: "r1", Details: []api.Detail{{Path: "name", Message: "is missing"}}},
		},
		"a limit": {
			429,
			http.Header{"Retry-After": {"12"}},
			`{"success": false, "error": "Too many.", "code": "rate_limited", "requestId": "r2"}`,
			client.Error{Status: 429, Code: "rate_limited", Message: "Too many.", RetryAfter: 12 * time.Second},
		},
		"the chat format": {
			503, nil, `{"error": {"message": "No model.", "type": "server_error", "code": "model_unavailable"}}`,
			client.Error{Status: 503, Code: "model_unavailable", Message: "No model."},
		},
		"the OAuth format": {
			400, nil, `{"error": "slow_down"}`,
			client.Error{Status: 400, Code: "slow_down", Message: "slow_down"},
		},
		"a proxy's page": {502, nil, `<html>`, client.Error{Status: 502}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := answering(t, tt.status, tt.header, tt.body).GetMeWithResponse(t.Context(), nil)
			got, ok := errors.AsType[*client.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Error(diff)
			}
			if got.Error() == "" {
				t.Error("says nothing")
			}
		})
	}
}

func TestAProblemOfADefinitionIsToldWithoutItsPath(t *testing.T) {
	t.Parallel()
	err := &client.Error{Status: 400, Message: "The workflow cannot run yet.", Details: []api.Detail{
		{Path: "nodes[2].scatter.over", Message: `"Align" is not an array`, Code: "invalid_expression", Node: "n_x7", Field: "scatter.over"},
		{Path: "edges[0]", Message: "the steps form a cycle", Code: "cycle", Node: "n_x7", Edge: "e1", Field: "edges[0]"},
		{Path: "name", Message: "is missing"},
	}}
	want := "The workflow cannot run yet.\n  \"Align\" is not an array (scatter.over)\n  the steps form a cycle\n  name: is missing"
	if err.Error() != want {
		t.Errorf("got %s", err)
	}
}
