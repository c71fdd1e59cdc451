package graph

import (
	"maps"
	"slices"
	"strings"
)

// Differences says line by line how after differs from before: nodes that were
// added, changed or removed, with the fields that changed, and the rest. There
// are none where they would do the same.
func Differences(before, after *Graph) (lines []string) {
	d := diff(before, after)
	for _, n := range after.Nodes {
		old, there := before.byID[n.ID]
		switch {
		case !there:
			lines = append(lines, "added "+label(n))
		case before.spelling(old) != after.spelling(n):
			lines = append(lines, "changed "+label(n)+": "+strings.Join(changedFields(before, old, after, n), ", "))
		}
	}
	for _, name := range d.removed {
		lines = append(lines, "removed "+name)
	}
	for _, part := range d.rest {
		lines = append(lines, "changed "+part)
	}
	return lines
}

// changedFields are the names of those that differ between two nodes.
func changedFields(before *Graph, old *Node, after *Graph, n *Node) []string {
	was, is := before.fieldsOf(old), after.fieldsOf(n)
	changed := map[string]bool{}
	for name, text := range is {
		changed[name] = was[name] != text
	}
	for name, text := range was {
		changed[name] = is[name] != text
	}
	maps.DeleteFunc(changed, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(changed))
}

// fieldsOf are the canonical forms of a node's fields.
func (g *Graph) fieldsOf(n *Node) map[string]string {
	v := &g.root.member("nodes").items[n.Index]
	fields := map[string]string{}
	for i := range v.items {
		if name := v.items[i].name; !slices.Contains(nodeShape.omit, name) {
			fields[name] = string(appendCanonical(nil, &v.items[i], nodeShape.of(name)))
		}
	}
	return fields
}
