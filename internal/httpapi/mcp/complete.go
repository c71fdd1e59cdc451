package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mostTyped is how many bytes are looked for at most. The API takes no more.
const mostTyped = 200

// complete suggests at most 50 ids for an argument of a prompt: of what the
// caller may read and has the typed words in its name, or an id that begins with
// them. It suggests the newest first.
func (m message) complete(_ context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	result := &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}
	typed, given := r.Params.Argument.Value, map[string]string{}
	if r.Params.Context != nil {
		given = r.Params.Context.Arguments
	}
	if len(typed) > mostTyped {
		return result, nil
	}
	var found listed
	var err error
	switch r.Params.Argument.Name {
	case "workflowId":
		found, err = m.workflows(typed)
	case "runId":
		status := ""
		if r.Params.Ref.Name == explainFailure {
			status = "failed"
		}
		found, err = m.list("GET /api/runs", query("limit", "50", "q", typed, "status", status))
	case "nodeId":
		found, err = m.steps(given["runId"], typed)
	}
	// What the API does not know, or does not take, has no ids.
	if e, ok := errors.AsType[refused](err); ok && (e.status == http.StatusBadRequest || e.status == http.StatusNotFound) {
		return result, nil
	}
	for _, each := range found.Data {
		result.Completion.Values = append(result.Completion.Values, each.ID)
	}
	result.Completion.HasMore = found.Page.HasMore
	return result, err
}

// listed is what completion needs of a list.
type listed struct {
	Data []named
	Page struct{ HasMore bool }
}

type named struct{ ID, Name string }

func (m message) list(operation string, q url.Values) (list listed, err error) {
	body, err := m.send(operation, request{query: q})
	if err != nil {
		return list, err
	}
	return list, json.Unmarshal(body, &list)
}

// workflows finds them by their names. The API does not look for the beginning of
// an id, so that is looked for among those that were changed last.
func (m message) workflows(typed string) (listed, error) {
	if !strings.HasPrefix(typed, "wf_") {
		return m.list("GET /api/workflows", query("limit", "50", "q", typed))
	}
	list, err := m.list("GET /api/workflows", query("limit", "50"))
	list.Data = slices.DeleteFunc(list.Data, func(w named) bool { return !strings.HasPrefix(w.ID, typed) })
	return list, err
}

// steps finds those of a run.
func (m message) steps(run, typed string) (list listed, err error) {
	if !plain.MatchString(run) {
		return list, nil
	}
	body, err := m.send("GET /api/runs/{id}", request{id: run})
	if err != nil {
		return list, err
	}
	var of struct{ Nodes []named }
	err = json.Unmarshal(body, &of)
	for _, node := range of.Nodes {
		if strings.Contains(strings.ToLower(node.ID+" "+node.Name), strings.ToLower(typed)) {
			list.Data = append(list.Data, node)
		}
	}
	if list.Page.HasMore = len(list.Data) > 50; list.Page.HasMore {
		list.Data = list.Data[:50]
	}
	return list, err
}
