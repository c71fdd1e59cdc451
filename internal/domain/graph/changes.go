package graph

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

const maxSummary = 120

// Changes says in one short line how after differs from before, for a list of
// revisions; nothing when they do not differ.
func Changes(before, after *Graph) string {
	d := diff(before, after)
	if line := d.byName(); len(line) > 0 && utf8.RuneCountInString(line) <= maxSummary {
		return line
	}
	if line := d.byCount(); line != "" {
		return line
	}
	switch {
	case moved(before, after):
		return "moved steps"
	case !bytes.Equal(before.JSON(), after.JSON()):
		return "changed the layout or notation"
	}
	return ""
}

// difference is what was done to the nodes, by name, and to the rest.
type difference struct {
	added, changed, removed []string
	rest                    []string // such as "parameters"
}

func diff(before, after *Graph) difference {
	var d difference
	was := spellings(before)
	for _, n := range after.Nodes {
		old, ok := was[n.ID]
		switch {
		case !ok:
			d.added = append(d.added, label(n))
		case old != after.spelling(n):
			d.changed = append(d.changed, label(n))
		}
		delete(was, n.ID)
	}
	for _, n := range before.Nodes {
		if _, gone := was[n.ID]; gone {
			d.removed = append(d.removed, label(n))
		}
	}
	for _, part := range []struct{ field, word string }{
		{"edges", "connections"}, {"parameters", "parameters"}, {"inputs", "inputs"}, {"outputs", "outputs"},
	} {
		if before.part(part.field) != after.part(part.field) {
			d.rest = append(d.rest, part.word)
		}
	}
	if d.none() && !bytes.Equal(before.Canonical(), after.Canonical()) {
		d.rest = append(d.rest, "other fields")
	}
	return d
}

func (d difference) none() bool {
	return len(d.added)+len(d.changed)+len(d.removed)+len(d.rest) == 0
}

func (d difference) byName() string {
	var parts []string
	for _, p := range []struct {
		verb  string
		names []string
	}{{"added ", d.added}, {"changed ", d.changed}, {"removed ", d.removed}, {"changed ", d.rest}} {
		if len(p.names) > 0 {
			parts = append(parts, p.verb+strings.Join(p.names, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

func (d difference) byCount() string {
	var parts []string
	for _, p := range []struct {
		verb  string
		names []string
	}{{"added", d.added}, {"changed", d.changed}, {"removed", d.removed}} {
		switch n := len(p.names); {
		case n == 0:
		case len(parts) > 0:
			parts = append(parts, fmt.Sprintf("%s %d", p.verb, n))
		case n == 1:
			parts = append(parts, p.verb+" 1 step")
		default:
			parts = append(parts, fmt.Sprintf("%s %d steps", p.verb, n))
		}
	}
	line := strings.Join(parts, ", ")
	if len(d.rest) == 0 {
		return line
	}
	if line != "" {
		line += "; "
	}
	return line + "changed " + strings.Join(d.rest, ", ")
}

// spellings are the canonical forms of all nodes, by id.
func spellings(g *Graph) map[string]string {
	all := make(map[string]string, len(g.Nodes))
	for _, n := range g.Nodes {
		all[n.ID] = g.spelling(n)
	}
	return all
}

// spelling is the canonical form of one node.
func (g *Graph) spelling(n *Node) string {
	return string(appendCanonical(nil, &g.root.member("nodes").items[n.Index], &nodeShape))
}

// part is the canonical form of one top-level field; leaving it out says the
// same as leaving it empty.
func (g *Graph) part(name string) string {
	v := g.root.member(name)
	if v == nil || len(v.items) == 0 {
		return ""
	}
	return string(appendCanonical(nil, v, rootShape.fields[name]))
}

func moved(before, after *Graph) bool {
	for _, n := range after.Nodes {
		if old, ok := before.byID[n.ID]; ok && old.Position != n.Position {
			return true
		}
	}
	return false
}

// label is a node's name, short enough to stand beside others.
func label(n *Node) string {
	const most = 30
	name := strings.Join(strings.Fields(n.Name), " ")
	if utf8.RuneCountInString(name) > most {
		return string([]rune(name)[:most-1]) + "…"
	}
	return name
}
