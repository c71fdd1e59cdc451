package mcp

import (
	"net/http"
	"net/url"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type (
	page struct {
		Cursor string `json:"cursor,omitempty" jsonschema:"where the last page ended (nextCursor)"`
		Limit  int    `json:"limit,omitempty" jsonschema:"how many to give"`
	}
	one struct {
		ID string `json:"id"`
	}
	nothing struct{}
)

func (p page) query() url.Values {
	q := url.Values{}
	set(q, "cursor", p.Cursor)
	if p.Limit != 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	return q
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func reading(name, about string) sdk.Tool {
	closed := false
	return sdk.Tool{Name: name, Description: about, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed}}
}

func acting(name, about string, destructive bool) sdk.Tool {
	closed := false
	return sdk.Tool{Name: name, Description: about, Annotations: &sdk.ToolAnnotations{DestructiveHint: &destructive, OpenWorldHint: &closed}}
}

func get(path string, ids ...string) request {
	return request{method: http.MethodGet, path: path, ids: ids}
}

// addReading adds what changes nothing.
func (t tools) addReading() {
	add(t, reading("who_am_i", "The person and team whose token this is, with their role."), func(nothing) request { return get("me") })
	add(t, reading("list_workflows", "The team's workflows, the latest changed first."), func(in page) request {
		q := get("workflows")
		q.query = in.query()
		return q
	})
	add(t, reading("get_workflow", "A workflow with its definition and what is wrong with it."), func(in one) request { return get("workflows/{}", in.ID) })
	add(t, reading("check_definition", "Says what is wrong with a definition, without saving it."), func(in struct {
		Definition map[string]any `json:"definition"`
	},
	) request {
		return request{method: http.MethodPost, path: "workflows/validate", body: in}
	})
	add(t, reading("list_runs", "The team's runs, newest first, by filters."), func(in struct {
		page
		Status   string `json:"status,omitempty" jsonschema:"queued, running, completed, failed, cancelled or interrupted"`
		Workflow string `json:"workflowId,omitempty"`
		Tag      string `json:"tag,omitempty"`
		Words    string `json:"q,omitempty" jsonschema:"words of its name, id, tags, error or parameters"`
	},
	) request {
		q := get("runs")
		q.query = in.page.query()
		set(q.query, "status", in.Status)
		set(q.query, "workflowId", in.Workflow)
		set(q.query, "tag", in.Tag)
		set(q.query, "q", in.Words)
		return q
	})
	add(t, reading("get_run", "A run: its state, its steps, what it cost, and why it failed."), func(in one) request { return get("runs/{}", in.ID) })
	add(t, reading("read_log", "What a step of a run wrote."), func(in struct {
		Run    string `json:"runId"`
		Step   string `json:"nodeId,omitempty" jsonschema:"the step; without it, of all"`
		Offset int64  `json:"offset,omitempty" jsonschema:"the byte to begin at"`
		Limit  int    `json:"limit,omitempty" jsonschema:"how many bytes"`
	},
	) request {
		q := get("runs/{}/logs", in.Run)
		q.query = page{Limit: in.Limit}.query()
		set(q.query, "nodeId", in.Step)
		if in.Offset != 0 {
			q.query.Set("offset", strconv.FormatInt(in.Offset, 10))
		}
		return q
	})
	add(t, reading("list_outputs", "The files that a run made, with addresses to fetch them."), func(in struct {
		page
		Run string `json:"runId"`
	},
	) request {
		q := get("runs/{}/outputs", in.Run)
		q.query = in.page.query()
		return q
	})
	add(t, reading("list_files", "The team's files: uploads and outputs, with the keys that inputs take."), func(in page) request {
		q := get("files")
		q.query = in.query()
		return q
	})
}

// addRunning adds what spends credits, and what ends it.
func (t tools) addRunning() {
	add(t, acting("start_run", "Starts a run of a workflow. It spends the team's credits: say how many it may cost at most.", false), func(in struct {
		Workflow   string         `json:"workflowId"`
		Parameters map[string]any `json:"parameters,omitempty"`
		Inputs     map[string]any `json:"inputs,omitempty" jsonschema:"by the name of an input: keys of files, or addresses"`
		Name       string         `json:"name,omitempty"`
		MaxCredits float64        `json:"maxCredits" jsonschema:"what it may cost at most"`
	},
	) request {
		return request{method: http.MethodPost, path: "runs", body: in}
	})
	add(t, acting("cancel_run", "Ends a run that waits or runs.", true), func(in one) request {
		return request{method: http.MethodPost, path: "runs/{}/cancel", ids: []string{in.ID}}
	})
}

// addWriting adds what changes workflows. Each change is a revision that people
// can take back.
func (t tools) addWriting() {
	add(t, acting("create_workflow", "Makes a workflow.", false), func(in struct {
		Name       string         `json:"name"`
		Definition map[string]any `json:"definition"`
	},
	) request {
		return request{method: http.MethodPost, path: "workflows", body: in}
	})
	add(t, acting("update_workflow", "Saves a new revision of a workflow; people can restore the one before.", false), func(in struct {
		ID         string         `json:"id"`
		Definition map[string]any `json:"definition"`
	},
	) request {
		return request{method: http.MethodPut, path: "workflows/{}", ids: []string{in.ID}, body: map[string]any{"definition": in.Definition}}
	})
}
