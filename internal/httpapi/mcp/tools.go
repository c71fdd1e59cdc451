package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace/internal/domain/access"
)

// tool is one request to the API, and gives what the API answers.
type tool struct {
	scope access.Scope // that the caller was given
	add   func(*sdk.Server, message)
}

// toolOf makes a tool of an operation, with the schema that the API's description
// has of its answer.
func toolOf[In any](d description, scope access.Scope, about sdk.Tool, operation string, of func(In) request) tool {
	about.OutputSchema = d.answer(operation)
	return tool{scope, func(s *sdk.Server, m message) {
		sdk.AddTool(s, &about, func(_ context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, json.RawMessage, error) {
			q := of(in)
			body, err := m.send(operation, q)
			if err == nil && q.shorten != nil {
				body, err = q.shorten(body)
			}
			if err == nil && len(body) > most {
				err = errTooLong
			}
			// The text is the API's own. The library would sort the fields.
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(body)}}}, body, err
		})
	}}
}

// The arguments of tools have the names that the API has for them.
type (
	nothing struct{}
	page    struct {
		Cursor string `json:"cursor,omitempty" jsonschema:"nextCursor of the page before"`
		Limit  int    `json:"limit,omitempty" jsonschema:"how many to give; 50 where it is left out"`
	}
	aWorkflow struct {
		Workflow string `json:"workflowId"`
	}
	aRun struct {
		Run string `json:"runId"`
	}
	aDefinition struct {
		Definition map[string]any `json:"definition"`
	}
)

func (p page) query(more ...string) url.Values {
	return query(append(more, "cursor", p.Cursor, "limit", strconv.Itoa(cmp.Or(p.Limit, 50)))...)
}

// query has the names and values that follow one another, without empty ones.
func query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

func reading(name, about string) sdk.Tool {
	closed := false
	return sdk.Tool{Name: name, Description: about, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed}}
}

func acting(name, about string, destructive bool) sdk.Tool {
	closed := false
	return sdk.Tool{Name: name, Description: about, Annotations: &sdk.ToolAnnotations{DestructiveHint: &destructive, OpenWorldHint: &closed}}
}

// tools are all there are: what changes nothing, what spends credits and ends
// that, and what changes workflows, each change as a revision that people can
// take back.
var tools = sync.OnceValue(func() []tool {
	d := describe()
	return []tool{
		toolOf(d, access.ScopeRead, reading("who_am_i", "The person and team whose token this is, with their role."), "GET /api/me", func(nothing) request {
			return request{}
		}),
		toolOf(d, access.ScopeRead, reading("list_workflows", "The team's workflows, the latest changed first."), "GET /api/workflows", func(in struct {
			page
			Words string `json:"q,omitempty" jsonschema:"words of its name"`
		},
		) request {
			return request{query: in.query("q", in.Words)}
		}),
		toolOf(d, access.ScopeRead, reading("get_workflow", "A workflow with its definition and what is wrong with it."), "GET /api/workflows/{id}", func(in aWorkflow) request {
			return request{id: in.Workflow}
		}),
		toolOf(d, access.ScopeRead, reading("check_definition", "Says what is wrong with a definition, without saving it."), "POST /api/workflows/validate", func(in aDefinition) request {
			return request{body: in}
		}),
		toolOf(d, access.ScopeRead, reading("list_runs", "The team's runs, newest first, by filters."), "GET /api/runs", func(in struct {
			page
			Status   string `json:"status,omitempty" jsonschema:"queued, running, completed, failed, cancelled or interrupted"`
			Workflow string `json:"workflowId,omitempty"`
			Tag      string `json:"tag,omitempty"`
			Words    string `json:"q,omitempty" jsonschema:"words of its name, id, tags, error or parameters"`
		},
		) request {
			return request{query: in.query("status", in.Status, "workflowId", in.Workflow, "tag", in.Tag, "q", in.Words)}
		}),
		toolOf(d, access.ScopeRead, reading("get_run", "A run: its state, its steps, what it cost, why it failed, and the end of its log."), "GET /api/runs/{id}", func(in aRun) request {
			return request{id: in.Run, shorten: endOfLog}
		}),
		toolOf(d, access.ScopeRead, reading("read_log", "What a step of a run wrote."), "GET /api/runs/{id}/logs", func(in struct {
			aRun
			Node   string `json:"nodeId,omitempty" jsonschema:"the step; without it, of all"`
			Offset int64  `json:"offset,omitempty" jsonschema:"the byte to begin at"`
			Limit  int    `json:"limit,omitempty" jsonschema:"how many bytes; 16384 where it is left out"`
		},
		) request {
			return request{id: in.Run, query: query("nodeId", in.Node, "offset", strconv.FormatInt(in.Offset, 10), "limit", strconv.Itoa(cmp.Or(in.Limit, mostLog)))}
		}),
		toolOf(d, access.ScopeRead, reading("list_outputs", "The files that a run made, with addresses to fetch them."), "GET /api/runs/{id}/outputs", func(in struct {
			page
			aRun
			Node string `json:"nodeId,omitempty" jsonschema:"the step that made them; without it, what the run hands over"`
		},
		) request {
			return request{id: in.Run, query: in.query("nodeId", in.Node)}
		}),
		toolOf(d, access.ScopeRead, reading("list_files", "The team's files: uploads and outputs, with the keys that inputs take."), "GET /api/files", func(in struct {
			page
			Words string `json:"q,omitempty" jsonschema:"words of its name"`
		},
		) request {
			return request{query: in.query("q", in.Words)}
		}),

		toolOf(d, access.ScopeRun, acting("start_run", "Starts a run of a workflow. It spends the team's credits: say how many it may cost at most.", false), "POST /api/runs", func(in struct {
			aWorkflow
			Parameters map[string]any `json:"parameters,omitempty"`
			Inputs     map[string]any `json:"inputs,omitempty" jsonschema:"by the name of an input: keys of files, or addresses"`
			Name       string         `json:"name,omitempty"`
			MaxCredits float64        `json:"maxCredits" jsonschema:"what it may cost at most"`
		},
		) request {
			return request{body: in}
		}),
		toolOf(d, access.ScopeRun, acting("cancel_run", "Ends a run that waits or runs.", true), "POST /api/runs/{id}/cancel", func(in aRun) request {
			return request{id: in.Run}
		}),

		toolOf(d, access.ScopeWrite, acting("create_workflow", "Makes a workflow.", false), "POST /api/workflows", func(in struct {
			Name string `json:"name"`
			aDefinition
		},
		) request {
			return request{body: in}
		}),
		toolOf(d, access.ScopeWrite, acting("update_workflow", "Saves a new revision of a workflow; people can restore the one before.", false), "PUT /api/workflows/{id}", func(in struct {
			aWorkflow
			aDefinition
		},
		) request {
			return request{id: in.Workflow, body: in.aDefinition}
		}),
	}
})

// mostLog is how much of a run's log comes with the run. read_log gives all of it.
const mostLog = 16 << 10

// endOfLog leaves the last lines of the log of a run, which alone may be more
// than a model is given.
func endOfLog(body []byte) ([]byte, error) {
	var run map[string]json.RawMessage
	var log string
	if err := json.Unmarshal(body, &run); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(run["logs"], &log); err != nil || len(log) <= mostLog {
		return body, err
	}
	log = log[len(log)-mostLog:]
	if _, lines, found := strings.Cut(log, "\n"); found {
		log = lines
	}
	end, err := json.Marshal(strings.ToValidUTF8(log, ""))
	if err != nil {
		return nil, err
	}
	run["logs"], run["logsTruncated"] = end, json.RawMessage("true")
	return json.Marshal(run)
}
