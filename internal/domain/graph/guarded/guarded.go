// Package guarded says what of a definition those may not change who may not use
// the team's secrets.
package guarded

import (
	"bytes"
	"encoding/json"
	"regexp"
)

var (
	inCommands    = regexp.MustCompile(`PARAM_([A-Za-z_][A-Za-z0-9_]*)`)
	inExpressions = regexp.MustCompile(`\bparams\b(?:\.([A-Za-z_][A-Za-z0-9_]*))?`)
)

// mentioned are the parameters that a node depends on: by name in its command, its
// variables and its expressions, or all of them where it takes them together.
func mentioned(n map[string]json.RawMessage, all map[string]json.RawMessage) map[string]json.RawMessage {
	found := map[string]json.RawMessage{}
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

// Text is the part of a definition that somebody who may not use the team's
// secrets may not change, as a text to compare: the nodes that name secrets or
// connections, what comes into them, the parameters that they mention, and
// which code and software all nodes run with. Where nodes are drawn is not in
// it. It is empty where there is nothing to guard.
func Text(definition []byte) string {
	var d struct {
		Source     json.RawMessage            `json:"source"`
		Parameters map[string]json.RawMessage `json:"parameters"`
		Nodes      []json.RawMessage          `json:"nodes"`
		Edges      []json.RawMessage          `json:"edges"`
	}
	if json.Unmarshal(definition, &d) != nil {
		return "unreadable: " + string(definition) // none of it may change
	}
	edges := objects(d.Edges)
	guarded := map[string]any{}
	if d.Source != nil {
		guarded["source"] = d.Source
	}
	for _, n := range objects(d.Nodes) {
		id := string(n["id"])
		if e := n["environment"]; e != nil {
			guarded["environment "+id] = e
		}
		if n["secrets"] == nil && n["connections"] == nil && n["connection"] == nil {
			continue
		}
		for _, free := range []string{"position", "ui"} {
			delete(n, free)
		}
		guarded["node "+id] = n
		for name := range mentioned(n, d.Parameters) {
			guarded["parameter "+name] = d.Parameters[name]
		}
		for _, e := range edges {
			if string(e["target"]) == id {
				guarded["edge "+string(e["id"])] = e
			}
		}
	}
	if len(guarded) == 0 {
		return ""
	}
	text, err := json.Marshal(guarded)
	if err != nil {
		return "unreadable: " + string(definition)
	}
	return string(text)
}

// objects are those of a list. What else somebody put into it is no part of any
// workflow, and must not keep the rest from being read.
func objects(list []json.RawMessage) (found []map[string]json.RawMessage) {
	for _, one := range list {
		var fields map[string]json.RawMessage
		if json.Unmarshal(one, &fields) == nil && fields != nil {
			found = append(found, fields)
		}
	}
	return found
}
