package pipelinefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// schema is as much as is read of nextflow_schema.json: parameters, or groups of
// them, in draft 07 under `definitions` and later under `$defs`.
type schema struct {
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
	Definitions map[string]schema `json:"definitions"`
	Defs        map[string]schema `json:"$defs"`
	AllOf       []struct {
		Ref string `json:"$ref"`
	} `json:"allOf"`
	Title string `json:"title"`
}

// fromSchema reads the parameters of a Nextflow pipeline.
func fromSchema(text []byte, p *parameters) error {
	var top schema
	if err := json.Unmarshal(text, &top); err != nil {
		return errors.New("nextflow_schema.json is not a JSON Schema: " + err.Error())
	}
	for _, name := range top.groups() {
		group := top.Definitions[name]
		if later, ok := top.Defs[name]; ok {
			group = later
		}
		group.addTo(p)
	}
	top.Title = ""
	top.addTo(p)
	return nil
}

// groups are the names of the groups: those that the schema lists, then the others.
func (s schema) groups() (names []string) {
	for _, part := range s.AllOf {
		_, name, _ := strings.Cut(strings.TrimPrefix(part.Ref, "#/"), "/")
		if !slices.Contains(names, name) && len(names) < maxParameters {
			names = append(names, name)
		}
	}
	var others []string
	for _, more := range []map[string]schema{s.Definitions, s.Defs} {
		for name := range more {
			if !slices.Contains(names, name) {
				others = append(others, name)
			}
		}
	}
	slices.Sort(others)
	return append(names, others...)
}

// property is as much as is read of one parameter.
type property struct {
	Type        json.RawMessage `json:"type"`
	Default     json.RawMessage `json:"default"`
	Enum        []any           `json:"enum"`
	Minimum     *float64        `json:"minimum"`
	Maximum     *float64        `json:"maximum"`
	MinLength   *int            `json:"minLength"`
	MaxLength   *int            `json:"maxLength"`
	Pattern     string          `json:"pattern"`
	Description string          `json:"description"`
	HelpText    string          `json:"help_text"`
	Hidden      bool            `json:"hidden"`
}

func (s schema) addTo(p *parameters) {
	for _, each := range members(s.Properties) {
		var one property
		if json.Unmarshal(each.value, &one) != nil {
			one = property{} // it is there, and nobody knows what it takes
		}
		p.add(each.name, one.parameter(slices.Contains(s.Required, each.name), prose(s.Title)))
	}
}

// parameter is a property as a parameter of ours. One that is not required and has
// no default of its own takes nothing, which leaves it to the pipeline.
func (o property) parameter(required bool, group string) map[string]any {
	out := map[string]any{}
	types := readTypes(o.Type)
	set := func(name string, value any, there bool) {
		if there {
			out[name] = value
		}
	}
	set("enum", o.Enum, len(o.Enum) > 0)
	set("minimum", o.Minimum, o.Minimum != nil)
	set("maximum", o.Maximum, o.Maximum != nil)
	set("minLength", o.MinLength, o.MinLength != nil)
	set("maxLength", o.MaxLength, o.MaxLength != nil)
	set("pattern", o.Pattern, o.Pattern != "")
	description := prose(o.Description, o.HelpText)
	var value any
	switch known := json.Unmarshal(o.Default, &value) == nil && value != nil; {
	case known && !computed(value):
		out["default"] = value
	case !required:
		if known {
			description = prose(o.Description, o.HelpText, "By default "+value.(string))
		}
		out["default"] = nil
		if len(types) > 0 {
			types = append(types, "null")
		}
		if len(o.Enum) > 0 {
			out["enum"] = append(slices.Clone(o.Enum), nil)
		}
	}
	set("type", types, len(types) > 1)
	if len(types) == 1 {
		out["type"] = types[0]
	}
	set("description", description, description != "")
	set("x-group", group, group != "")
	set("x-hidden", true, o.Hidden)
	return out
}

// computed reports whether a default is an expression, which the pipeline alone can
// evaluate.
func computed(value any) bool {
	text, ok := value.(string)
	return ok && strings.Contains(text, "$")
}

func readTypes(raw json.RawMessage) (types []string) {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	if json.Unmarshal(raw, &types) != nil {
		return nil
	}
	return types
}

type member struct {
	name  string
	value json.RawMessage
}

// members are those of a JSON object, in its order.
func members(object json.RawMessage) (list []member) {
	d := json.NewDecoder(bytes.NewReader(object))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		var m member
		if err != nil || d.Decode(&m.value) != nil {
			return list
		}
		m.name, _ = name.(string)
		list = append(list, m)
	}
	return list
}
