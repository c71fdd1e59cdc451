// Package guarded says what of a definition those may not change who may not use
// the team's secrets.
package guarded

import (
	"encoding/json"
	"regexp"
)

var parameterUse = regexp.MustCompile(`PARAM_([A-Za-z_][A-Za-z0-9_]*)`)

// Text is the part of a definition that somebody who may not use the team's
// secrets may not change, as a text to compare: the nodes that name secrets or
// connections, what comes into them, the parameters that they mention, and
// which code and software all nodes run with. Where nodes are drawn is not in
// it. It is empty where there is nothing to guard.
func Text(definition []byte) string {
	var d struct {
		Source     json.RawMessage              `json:"source"`
		Parameters map[string]json.RawMessage   `json:"parameters"`
		Nodes      []map[string]json.RawMessage `json:"nodes"`
		Edges      []map[string]json.RawMessage `json:"edges"`
	}
	if json.Unmarshal(definition, &d) != nil {
		return "unreadable"
	}
	guarded := map[string]any{}
	if d.Source != nil {
		guarded["source"] = d.Source
	}
	for _, n := range d.Nodes {
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
		for _, text := range []json.RawMessage{n["command"], n["env"]} {
			for _, m := range parameterUse.FindAllSubmatch(text, -1) {
				guarded["parameter "+string(m[1])] = d.Parameters[string(m[1])]
			}
		}
		for _, e := range d.Edges {
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
		return "unreadable"
	}
	return string(text)
}
