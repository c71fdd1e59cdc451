// Package document is what a definition looks like while several people edit it,
// as a Yjs document: either becomes the other. Who edits it, and where it is
// kept, is decided in collab.
package document

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/millrace/millrace/internal/domain/ydoc"
)

// The document follows the definition graph, so that either becomes the other
// by a plain walk: maps by id or name everywhere, nodes as maps of their own so
// that two people who edit two fields both win, commands as texts, everything
// else as plain values.
const (
	rootMeta  = "meta"  // version
	rootNodes = "nodes" // by id
	rootEdges = "edges" // by id
	rootExtra = "extra" // what else stands at the top: ui and x-…
)

// named are the roots that hold plain values by name, as the definition does.
var named = []string{"parameters", "inputs", "outputs"}

// Roots are the names at the top of a document.
var Roots = append([]string{rootMeta, rootNodes, rootEdges, rootExtra}, named...)

// Fields of a node that are more than a value.
const commandField, positionField = "command", "position"

var mapFields = []string{"inputs", "outputs", "env"}

// Seed is the first content of a document, which is the same on any server.
func Seed(definition []byte) (update []byte, err error) {
	const client = 1
	doc := ydoc.New(client, ydoc.Limits{Roots: Roots})
	if _, err := Write(doc, definition); err != nil {
		return nil, err
	}
	return doc.Encode(), nil
}

// Write makes a document say a definition, and touches nothing that it says
// already.
func Write(doc *ydoc.Doc, definition []byte) (update []byte, err error) {
	var def map[string]any
	if err := json.Unmarshal(definition, &def); err != nil {
		return nil, err
	}
	return doc.Edit(func(tx *ydoc.Tx) error {
		p := writer{tx}
		meta, extra := map[string]any{}, map[string]any{}
		for name, v := range def {
			switch {
			case name == "version":
				meta[name] = v
			case name != rootNodes && name != rootEdges && !slices.Contains(named, name):
				extra[name] = v
			}
		}
		p.values(tx.Map(rootMeta), meta)
		p.values(tx.Map(rootExtra), extra)
		for _, name := range named {
			values, _ := def[name].(map[string]any)
			p.values(tx.Map(name), values)
		}
		p.values(tx.Map(rootEdges), byID(def[rootEdges]))
		p.nodes(tx.Map(rootNodes), byID(def[rootNodes]))
		return nil
	})
}

// byID are the members of a list by their ids, without them. What has none
// cannot be kept.
func byID(list any) map[string]any {
	members, _ := list.([]any)
	out := make(map[string]any, len(members))
	for _, m := range members {
		fields, _ := m.(map[string]any)
		id, ok := fields["id"].(string)
		if !ok {
			continue
		}
		delete(fields, "id")
		out[id] = fields
	}
	return out
}

// writer writes what differs.
type writer struct{ tx *ydoc.Tx }

// values makes a map hold these plain values.
func (p writer) values(m ydoc.Map, want map[string]any) {
	p.remove(m, want)
	for key, v := range want {
		if old, ok := m.Value(key); !ok || !reflect.DeepEqual(old, v) {
			p.tx.Set(m, key, v)
		}
	}
}

func (p writer) remove(m ydoc.Map, want map[string]any) {
	for _, key := range m.Keys() {
		if _, ok := want[key]; !ok {
			p.tx.Delete(m, key)
		}
	}
}

func (p writer) nodes(m ydoc.Map, want map[string]any) {
	p.remove(m, want)
	for id, v := range want {
		node, ok := m.Map(id)
		if !ok {
			node = p.tx.SetMap(m, id)
		}
		fields, _ := v.(map[string]any)
		p.node(node, fields)
	}
}

func (p writer) node(m ydoc.Map, want map[string]any) {
	p.remove(m, want)
	for name, v := range want {
		if name == positionField {
			v = pair(v)
		}
		text, isText := v.(string)
		inner, isMap := v.(map[string]any)
		switch {
		case name == commandField && isText:
			if t, ok := m.Text(name); !ok {
				p.tx.SetText(m, name, text)
			} else if t.String() != text {
				p.tx.Replace(t, text)
			}
		case slices.Contains(mapFields, name) && isMap:
			under, ok := m.Map(name)
			if !ok {
				under = p.tx.SetMap(m, name)
			}
			p.values(under, inner)
		default:
			if old, ok := m.Value(name); !ok || !reflect.DeepEqual(old, v) {
				p.tx.Set(m, name, v)
			}
		}
	}
}

// pair is a position as the document keeps it: one value, so that dragging
// leaves one trace.
func pair(v any) any {
	if p, ok := v.(map[string]any); ok && len(p) == 2 {
		if x, ok := p["x"].(float64); ok {
			if y, ok := p["y"].(float64); ok {
				return []any{x, y}
			}
		}
	}
	return v
}

func unpair(v any) any {
	if p, ok := v.([]any); ok && len(p) == 2 {
		return map[string]any{"x": p[0], "y": p[1]}
	}
	return v
}

// Read is the definition that a document says. Nodes and edges that prior had
// stay in its order, the others follow by id.
func Read(doc *ydoc.Doc, prior []byte) ([]byte, error) {
	def := doc.JSON(rootExtra)
	if version, ok := doc.Map(rootMeta).Value("version"); ok {
		def["version"] = version
	} else {
		def["version"] = 1
	}
	for _, name := range named {
		def[name] = doc.JSON(name)
	}
	order := orderOf(prior)
	def[rootNodes] = listed(doc.JSON(rootNodes), order.Nodes)
	def[rootEdges] = listed(doc.JSON(rootEdges), order.Edges)
	return json.Marshal(def)
}

type member struct {
	ID string `json:"id"`
}

type ordered struct {
	Nodes []member `json:"nodes"`
	Edges []member `json:"edges"`
}

func orderOf(definition []byte) (o ordered) {
	_ = json.Unmarshal(definition, &o) // an odd one has no order
	return o
}

// listed are members by id as a list.
func listed(members map[string]any, prior []member) []any {
	place := make(map[string]int, len(prior))
	for i, m := range prior {
		place[m.ID] = i + 1
	}
	keys := make([]string, 0, len(members))
	for id := range members {
		keys = append(keys, id)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(last(place[a]), last(place[b])), cmp.Compare(a, b))
	})
	list := make([]any, len(keys))
	for i, id := range keys {
		fields, ok := members[id].(map[string]any)
		if !ok {
			list[i] = members[id]
			continue
		}
		fields["id"] = id
		if at, ok := fields[positionField]; ok {
			fields[positionField] = unpair(at)
		}
		list[i] = fields
	}
	return list
}

func last(place int) int {
	if place == 0 {
		return 1 << 30
	}
	return place
}
