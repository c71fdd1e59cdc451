// Package guarded says what of a definition those may not change who may not use
// the team's secrets.
package guarded

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"github.com/millrace/millrace/internal/domain/graph"
)

var (
	inCommands    = regexp.MustCompile(`PARAM_([A-Za-z_][A-Za-z0-9_]*)`)
	inExpressions = regexp.MustCompile(`\bparams\b(?:\.([A-Za-z_][A-Za-z0-9_]*))?`)
)

// mentioned are the parameters that a node depends on: by name in its command, its
// variables and its expressions, or all of them where it takes them together.
func mentioned(n, all fields) fields {
	found := fields{}
	for _, text := range []json.RawMessage{n["command"], n["env"]} {
		if bytes.Contains(text, []byte("PARAMS_FILE")) {
			return all
		}
		for _, m := range inCommands.FindAllSubmatch(text, -1) {
			found[string(m[1])] = nil
		}
	}
	for _, text := range []json.RawMessage{n["when"], n["scatter"]} {
		for _, m := range inExpressions.FindAllSubmatch(text, -1) {
			if m[1] == nil {
				return all
			}
			found[string(m[1])] = nil
		}
	}
	return found
}

// State is what of a definition somebody who may not use the team's secrets may not
// change.
type State struct {
	text    string
	unknown []string // fields that definitions do not have
}

// Of is the state of a definition.
func Of(definition []byte) State { return State{Text(definition), graph.UnknownFields(definition)} }

// Nothing reports whether there is nothing to guard, so that only fields that are new can
// change the state.
func (s State) Nothing() bool { return s.text == "" }

// Changed reports whether the next definition differs in what is guarded.
func (s State) Changed(next State) bool { return s.text != next.text }

// NewField is a field of the next definition that definitions do not have, nor had this
// one; empty if there is none.
func (s State) NewField(next State) string {
	for _, name := range next.unknown {
		if !slices.Contains(s.unknown, name) {
			return name
		}
	}
	return ""
}

// Text is the part of a definition that somebody who may not use the team's
// secrets may not change, as a text to compare: the nodes that name secrets or
// connections, all nodes before those, the edges into all of these and the
// parameters that they mention, and which code and software all nodes run with.
// Where nodes are drawn is not in it. It is empty where there is nothing to guard.
//
// It reads names exactly, as runs do. Into a struct, encoding/json would also read "nodeſ"
// as "nodes", and steps that nobody runs would be compared.
func Text(definition []byte) string {
	var (
		top          map[string]json.RawMessage
		parameters   map[string]json.RawMessage
		nodes, edges []json.RawMessage
	)
	read := func(name string, into any) bool { return top[name] == nil || json.Unmarshal(top[name], into) == nil }
	if json.Unmarshal(definition, &top) != nil || !read("parameters", &parameters) || !read("nodes", &nodes) || !read("edges", &edges) {
		return "unreadable: " + string(definition) // none of it may change
	}
	d := definitionOf(objects(nodes), objects(edges))
	guarded := []any{}
	if top["source"] != nil {
		guarded = append(guarded, "source", top["source"])
	}
	for _, n := range d.nodes {
		if e := n["environment"]; e != nil {
			guarded = append(guarded, "environment", n["id"], e)
		}
		if !d.closed[text(n["id"])] {
			continue
		}
		for _, free := range []string{"position", "ui"} {
			delete(n, free)
		}
		guarded = append(guarded, "node", n)
		mentions := mentioned(n, parameters)
		for _, name := range slices.Sorted(maps.Keys(mentions)) {
			guarded = append(guarded, "parameter", name, parameters[name])
		}
		for _, e := range d.into[text(n["id"])] {
			guarded = append(guarded, "edge", e)
		}
	}
	if len(guarded) == 0 {
		return ""
	}
	result, err := json.Marshal(guarded)
	if err != nil {
		return "unreadable: " + string(definition)
	}
	return string(result)
}

type fields = map[string]json.RawMessage

// guardedGraph is the nodes of a definition, the edges into each, and which are guarded.
type guardedGraph struct {
	nodes  []fields
	into   map[string][]fields
	closed map[string]bool
}

func definitionOf(nodes, edges []fields) guardedGraph {
	d := guardedGraph{nodes: nodes, into: map[string][]fields{}, closed: map[string]bool{}}
	for _, e := range edges {
		d.into[text(e["target"])] = append(d.into[text(e["target"])], e)
	}
	for _, n := range nodes {
		if n["secrets"] != nil || n["connections"] != nil || n["connection"] != nil {
			d.close(text(n["id"]))
		}
	}
	return d
}

// close guards a node and all that come before it.
func (d guardedGraph) close(id string) {
	for waiting := []string{id}; len(waiting) > 0; {
		id, waiting = waiting[0], waiting[1:]
		if d.closed[id] {
			continue
		}
		d.closed[id] = true
		for _, e := range d.into[id] {
			waiting = append(waiting, text(e["source"]))
		}
	}
}

// text is a JSON string; empty if it is none.
func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// objects are those of a list. What else somebody put into it is no part of any
// workflow, and must not keep the rest from being read.
func objects(list []json.RawMessage) (found []fields) {
	for _, one := range list {
		var f fields
		if json.Unmarshal(one, &f) == nil && f != nil {
			found = append(found, f)
		}
	}
	return found
}
