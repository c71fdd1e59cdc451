package pipelinefile

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/graph"
)

// What a form may hold; the definition's own limits are a little wider.
const (
	maxParameters  = 500
	maxDescription = 1_000     // characters
	maxTogether    = 200 << 10 // bytes
)

var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// parameters are those that a pipeline has, in its order.
type parameters struct {
	list []parameter
	size int
	full bool
}

type parameter struct {
	name   string
	schema map[string]any
}

// add adds a parameter that a form can hold. Where its schema is not sound, its
// value is not checked here.
func (p *parameters) add(name string, schema map[string]any) {
	if p.full || !parameterName.MatchString(name) || p.has(name) {
		return
	}
	if !sound(name, schema) {
		description := schema["description"]
		schema = map[string]any{"default": nil}
		if description != nil {
			schema["description"] = description
		}
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return
	}
	if p.full = len(p.list) == maxParameters || p.size+len(text) > maxTogether; p.full {
		return
	}
	p.size += len(text)
	p.list = append(p.list, parameter{name, schema})
}

func (p *parameters) has(name string) bool {
	for _, known := range p.list {
		if known.name == name {
			return true
		}
	}
	return false
}

// sound reports whether a definition may have such a parameter.
func sound(name string, schema map[string]any) bool {
	text, err := json.Marshal(map[string]any{"parameters": map[string]any{name: schema}})
	if err != nil {
		return false
	}
	_, wrong := graph.Parse(text)
	return len(wrong) == 0
}

func (p *parameters) byName() map[string]any {
	all := make(map[string]any, len(p.list))
	for _, each := range p.list {
		all[each.name] = each.schema
	}
	return all
}

// prose is a text of a stranger for people: without NUL and of a bounded length.
func prose(texts ...string) string {
	var kept []string
	for _, text := range texts {
		if text = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "")); text != "" {
			kept = append(kept, text)
		}
	}
	text := strings.Join(kept, "\n\n")
	if utf8.RuneCountInString(text) > maxDescription {
		text = string([]rune(text)[:maxDescription-1]) + "…"
	}
	return text
}
