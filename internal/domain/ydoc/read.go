package ydoc

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/ydoc/lib0"
)

// Map, Array and Text are views of types in a document. They show the document
// as it is when they are asked, and nothing once they were deleted from it.
type (
	Map   struct{ b *branch }
	Array struct{ b *branch }
	Text  struct{ b *branch }
)

// Map returns a root read as a map. What was never written is empty.
func (d *Doc) Map(root string) Map { return Map{d.roots[root]} }

// Array returns a root read as a list.
func (d *Doc) Array(root string) Array { return Array{d.roots[root]} }

// Text returns a root read as a text.
func (d *Doc) Text(root string) Text { return Text{d.roots[root]} }

// JSON returns a root read as a map, as encoding/json would have made it:
// maps and texts inside are maps and strings.
func (d *Doc) JSON(root string) map[string]any { return d.Map(root).JSON() }

// Keys returns the keys in order.
func (m Map) Keys() []string {
	if m.b == nil {
		return nil
	}
	keys := slices.Sorted(maps.Keys(m.b.keys))
	return slices.DeleteFunc(keys, func(key string) bool { return m.b.live(key) == nil })
}

// Value returns the value of a key as encoding/json would have made it. It
// reports false if there is none.
func (m Map) Value(key string) (any, bool) {
	it := m.b.live(key)
	if it == nil {
		return nil, false
	}
	values := it.values()
	if len(values) == 0 || values[len(values)-1] == undefined {
		return nil, false
	}
	return values[len(values)-1], true
}

// Map returns the map that a key holds. It reports false if there is none.
func (m Map) Map(key string) (Map, bool) {
	b := m.nested(key, typeMap)
	return Map{b}, b != nil
}

// Array returns the list that a key holds. It reports false if there is none.
func (m Map) Array(key string) (Array, bool) {
	b := m.nested(key, typeArray)
	return Array{b}, b != nil
}

// Text returns the text that a key holds. It reports false if there is none.
func (m Map) Text(key string) (Text, bool) {
	b := m.nested(key, typeText)
	return Text{b}, b != nil
}

func (m Map) nested(key string, kind byte) *branch {
	if it := m.b.live(key); it != nil && it.child != nil && it.child.kind == kind {
		return it.child
	}
	return nil
}

// JSON returns the whole map.
func (m Map) JSON() map[string]any {
	all := map[string]any{}
	for _, key := range m.Keys() {
		if v, ok := m.Value(key); ok {
			all[key] = v
		}
	}
	return all
}

// JSON returns the whole list.
func (a Array) JSON() []any {
	all := []any{}
	for it := range a.b.list {
		for _, v := range it.values() {
			if v == undefined {
				v = nil
			}
			all = append(all, v)
		}
	}
	return all
}

// String returns the whole text.
func (t Text) String() string {
	var s strings.Builder
	for it := range t.b.list {
		if it.kind == kindString {
			s.WriteString(it.raw)
		}
	}
	return s.String()
}

// list goes over the items of a list that are not deleted.
func (b *branch) list(yield func(*item) bool) {
	if b == nil {
		return
	}
	for it := b.start; it != nil; it = it.right {
		if !it.deleted && !yield(it) {
			return
		}
	}
}

func (b *branch) json() any {
	switch b.kind {
	case typeMap:
		return Map{b}.JSON()
	case typeArray:
		return Array{b}.JSON()
	case typeText:
		return Text{b}.String()
	default:
		return nil
	}
}

// undefined is JavaScript's; JSON has none.
var undefined any = new(struct{ _ byte })

// values returns what an item holds, element by element.
func (it *item) values() []any {
	r := lib0.NewReader([]byte(it.raw))
	var values []any
	switch it.kind {
	case kindAny:
		for r.Len() > 0 {
			v, defined := r.Any()
			if !defined {
				v = undefined
			}
			values = append(values, v)
		}
	case kindJSON, kindEmbed:
		for r.Len() > 0 {
			values = append(values, fromJSON(r.Bytes()))
		}
	case kindString:
		for _, c := range it.raw {
			values = append(values, string(c))
		}
	case kindBinary:
		values = append(values, slices.Clone(r.Bytes()))
	case kindType:
		values = append(values, it.child.json())
	case kindDoc:
		values = append(values, nil)
	}
	return values
}

func fromJSON(b []byte) any {
	var v any
	if json.Unmarshal(b, &v) != nil {
		return undefined
	}
	return v
}
