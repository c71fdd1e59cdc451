package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// JSON is the definition as it is stored and returned: everything the author
// wrote, in that order and spelling, and a position for every node.
func (g *Graph) JSON() []byte { return g.root.appendJSON(g.buffer()) }

// Canonical is what the definition says, in the one form that all its
// spellings share: without positions and `ui`, keys sorted, nodes and edges
// sorted by id, no white space, every number spelled one way.
func (g *Graph) Canonical() []byte { return appendCanonical(g.buffer(), &g.root, &rootShape) }

// buffer has room for the definition and the positions given to it.
func (g *Graph) buffer() []byte {
	return make([]byte, 0, g.size+len(g.Nodes)*len(`,"position":{"x":-00000,"y":-00000}`))
}

// Fingerprint is the hex SHA-256 of the canonical form.
func (g *Graph) Fingerprint() string {
	sum := sha256.Sum256(g.Canonical())
	return hex.EncodeToString(sum[:])
}

// SameValue reports whether two texts are the same JSON value, however it is spelled.
func SameValue(a, b []byte) bool {
	x, one := read(a, nil, &problems{})
	y, other := read(b, nil, &problems{})
	return one && other && string(appendCanonical(nil, &x, nil)) == string(appendCanonical(nil, &y, nil))
}

// shape says which members of a value are about looks only, and what its parts
// are shaped like. Nil is a value all of which counts.
type shape struct {
	omit   []string
	fields map[string]*shape
	each   *shape // of the elements, or of the members that fields does not name
	byID   bool   // the elements are sorted by their id
}

var (
	leafShape    = shape{omit: []string{"ui"}}
	entriesShape = shape{each: &leafShape}
	nodeShape    = shape{omit: []string{"ui", "position"}, fields: map[string]*shape{
		"inputs": &entriesShape, "outputs": &entriesShape,
		"resources": &leafShape, "retries": &leafShape, "scatter": &leafShape,
	}}
	rootShape = shape{omit: []string{"ui"}, fields: map[string]*shape{
		"parameters": &entriesShape, "inputs": &entriesShape, "outputs": &entriesShape,
		"nodes": {each: &nodeShape, byID: true}, "edges": {each: &leafShape, byID: true},
	}}
)

func (s *shape) of(name string) *shape {
	if s == nil {
		return nil
	}
	if f := s.fields[name]; f != nil {
		return f
	}
	return s.each
}

func appendCanonical(dst []byte, v *value, s *shape) []byte {
	return new(writer).append(dst, v, s)
}

// writer keeps the parts of the values being written, in their order, on one
// stack.
type writer struct{ parts []*value }

func (w *writer) append(dst []byte, v *value, s *shape) []byte {
	switch v.kind {
	case number:
		return append(dst, canonicalNumber(v.text)...)
	case array, object:
	default:
		return v.appendJSON(dst)
	}
	dst = append(dst, byte(v.kind))
	first := len(w.parts)
	w.arrange(v, s)
	for i := first; i < len(w.parts); i++ {
		part := w.parts[i]
		if i > first {
			dst = append(dst, ',')
		}
		if v.kind == object {
			dst = append(appendQuoted(dst, part.name), ':')
		}
		dst = w.append(dst, part, s.of(part.name))
	}
	w.parts = w.parts[:first]
	return append(dst, byte(v.kind)+2)
}

// arrange puts the parts of v that count on the stack, in canonical order.
func (w *writer) arrange(v *value, s *shape) {
	first := len(w.parts)
	for i := range v.items {
		if s == nil || v.kind != object || !slices.Contains(s.omit, v.items[i].name) {
			w.parts = append(w.parts, &v.items[i])
		}
	}
	switch {
	case v.kind == object:
		slices.SortFunc(w.parts[first:], func(a, b *value) int { return strings.Compare(a.name, b.name) })
	case s != nil && s.byID:
		slices.SortFunc(w.parts[first:], func(a, b *value) int { return strings.Compare(idOf(a), idOf(b)) })
	}
}

func idOf(v *value) string {
	if id := v.member("id"); id != nil {
		return id.text
	}
	return ""
}
