package mcp

import (
	"encoding/json"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/millrace/millrace/api"
)

// description is what the API says of itself. It is a part of the program, so
// that reading it cannot fail.
type description struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct{ Schema map[string]any }
		}
	}
	Components struct{ Schemas map[string]any }
}

func describe() (d description) {
	if err := json.Unmarshal(api.JSON, &d); err != nil {
		panic(err)
	}
	// Definitions would be most of these schemas, which models may read with every list of tools.
	d.Components.Schemas["Definition"] = map[string]any{"type": "object", "description": "The graph of steps."}
	return d
}

// answer is the schema of what an operation answers, complete in itself.
func (d description) answer(operation string) *jsonschema.Schema {
	method, path, _ := strings.Cut(operation, " ")
	var root map[string]any
	defs := map[string]any{}
	for status, response := range d.Paths[path][strings.ToLower(method)].Responses {
		if body, found := response.Content["application/json"]; found && strings.HasPrefix(status, "2") {
			root = d.within(body.Schema, defs).(map[string]any)
		}
	}
	root["type"] = "object" // also where the root is a reference, since the protocol asks for it
	root["$defs"] = defs
	text, err := json.Marshal(root)
	if err != nil {
		panic(err)
	}
	schema := new(jsonschema.Schema)
	if err := json.Unmarshal(text, schema); err != nil {
		panic(err)
	}
	return schema
}

// within copies a part of a schema and puts what it refers to into defs. It
// leaves out what only our generators read.
func (d description) within(part any, defs map[string]any) any {
	switch part := part.(type) {
	case map[string]any:
		out := make(map[string]any, len(part))
		for key, value := range part {
			if !strings.HasPrefix(key, "x-") {
				out[key] = d.within(value, defs)
			}
		}
		if to, found := part["$ref"].(string); found {
			name := strings.TrimPrefix(to, "#/components/schemas/")
			out["$ref"] = "#/$defs/" + name
			if _, known := defs[name]; !known {
				defs[name] = nil // a schema may refer to itself
				defs[name] = d.within(d.Components.Schemas[name], defs)
			}
		}
		return out
	case []any:
		out := make([]any, len(part))
		for i, value := range part {
			out[i] = d.within(value, defs)
		}
		return out
	}
	return part
}
