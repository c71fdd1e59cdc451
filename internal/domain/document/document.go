// Package document is what a definition looks like while several people edit it,
// as a Yjs document: either becomes the other. Who edits it, and where it is
// kept, is decided in collab.
package document

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"github.com/millrace/millrace/internal/domain/ydoc"
)

// The document follows the definition graph, so that either becomes the other
// by a plain walk: maps by key or name everywhere, nodes, ports, parameters and
// settings as maps of their own so that two people who edit two fields both win,
// what people type at length as texts, everything else as plain values. Every step
// has a text from the beginning, so that two people who start to type in it type
// into the same. A text or a map that is empty says nothing. Documents of earlier
// versions have plain values in their place, which become texts and maps when they
// change. A step's key never changes; its id is a field, which is left out where it is
// the key. Edges name steps by key, so that a step can be renamed while somebody else
// connects it or types in its command.
const (
	rootMeta  = "meta"  // version
	rootNodes = "nodes" // by key
	rootEdges = "edges" // by id
	rootExtra = "extra" // what else stands at the top: ui and x-…
)

// named are the roots that hold values by name, as the definition does.
var named = []string{"parameters", "inputs", "outputs"}

// Roots are the names at the top of a document.
var Roots = append([]string{rootMeta, rootNodes, rootEdges, rootExtra}, named...)

// Fields of a node that are more than a value.
const idField, commandField, textField, positionField = "id", "command", "text", "position"

// memberFields are those whose members are changed one by one.
var memberFields = []string{"inputs", "outputs", "env", "resources", "retries", "scatter"}

// helpField is the field of a parameter or input that several people can type in.
const helpField = "description"

func isText(field string) bool { return field == commandField || field == textField }

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
			p.members(tx.Map(name), values)
		}
		nodes := byID(def[rootNodes])
		keys := keysFor(doc, nodes)
		p.values(tx.Map(rootEdges), byKey(byID(def[rootEdges]), keys))
		p.nodes(tx.Map(rootNodes), nodes, keys)
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

// keysFor gives the steps of a definition, by id, their keys in a document: those
// that they have, or for others the id, or something like it where that is taken.
func keysFor(doc *ydoc.Doc, nodes map[string]any) map[string]string {
	keys, taken := make(map[string]string, len(nodes)), map[string]bool{}
	for key, id := range IDs(doc, nil) {
		keys[id], taken[key] = key, true
	}
	for id := range nodes {
		if _, ok := keys[id]; ok {
			continue
		}
		key := unused(id, taken)
		keys[id], taken[key] = key, true
	}
	return keys
}

// byKey is edges whose ends are keys in place of ids.
func byKey(edges map[string]any, keys map[string]string) map[string]any {
	for _, e := range edges {
		rename(e, keys)
	}
	return edges
}

// rename gives the ends of an edge other names, where they have one.
func rename(edge any, names map[string]string) {
	fields, _ := edge.(map[string]any)
	for _, end := range []string{"source", "target"} {
		if name, ok := fields[end].(string); ok && names[name] != "" {
			fields[end] = names[name]
		}
	}
}

// unused is a name that nobody has: the one that is wanted, or with a number.
func unused(wanted string, taken map[string]bool) string {
	name := wanted
	for n := 2; taken[name]; n++ {
		name = wanted + "_" + strconv.Itoa(n)
	}
	return name
}

// IDs returns the id of each step by its key. No two are the same: of steps that
// want one id, that which held it has it, and the others get a number. Where none
// held it, the one whose key it is comes first, then the order of keys decides.
func IDs(doc *ydoc.Doc, held map[string]string) map[string]string {
	nodes := doc.Map(rootNodes)
	keys := nodes.Keys()
	wanted := make(map[string]string, len(keys))
	for _, key := range keys {
		wanted[key] = key
		if node, ok := nodes.Map(key); ok {
			if v, _ := node.Value(idField); v != nil {
				if id, ok := v.(string); ok && id != "" {
					wanted[key] = id
				}
			}
		}
	}
	later := func(key string) int {
		switch {
		case held[key] == wanted[key]:
			return 0
		case key == wanted[key]:
			return 1
		}
		return 2
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(later(a), later(b)), cmp.Compare(a, b)) })
	ids, taken := make(map[string]string, len(keys)), make(map[string]bool, len(keys))
	for _, key := range keys {
		if id := wanted[key]; !taken[id] {
			ids[key], taken[id] = id, true
		}
	}
	for _, key := range keys {
		if ids[key] == "" {
			ids[key] = unused(wanted[key], taken)
			taken[ids[key]] = true
		}
	}
	return ids
}

// SetIDs writes the ids that steps have where they asked for others.
func SetIDs(doc *ydoc.Doc, ids map[string]string) (update []byte, err error) {
	return doc.Edit(func(tx *ydoc.Tx) error {
		for key, id := range ids {
			node, ok := tx.Map(rootNodes).Map(key)
			if !ok {
				continue
			}
			if v, has := node.Value(idField); has && v != id || !has && key != id {
				tx.Set(node, idField, id)
			}
		}
		return nil
	})
}

// writer writes what differs.
type writer struct{ tx *ydoc.Tx }

// values makes a map hold these plain values.
func (p writer) values(m ydoc.Map, want map[string]any) {
	p.remove(m, want)
	for key, v := range want {
		p.value(m, key, v)
	}
}

func (p writer) remove(m ydoc.Map, want map[string]any) {
	for _, key := range m.Keys() {
		if _, ok := want[key]; !ok {
			p.tx.Delete(m, key)
		}
	}
}

// nodes makes a map hold these nodes, each at the key of its id.
func (p writer) nodes(m ydoc.Map, want map[string]any, keys map[string]string) {
	kept := make(map[string]any, len(want))
	for id := range want {
		kept[keys[id]] = nil
	}
	p.remove(m, kept)
	for id, v := range want {
		key := keys[id]
		fields, _ := v.(map[string]any)
		node, ok := m.Map(key)
		if !ok {
			node = p.tx.SetMap(m, key)
			p.emptyText(node, fields)
		}
		if _, has := node.Value(idField); fields != nil && (has || key != id) {
			fields[idField] = id
		}
		p.node(node, fields)
	}
}

// emptyText gives a step a text to type in, if the definition has none for it.
func (p writer) emptyText(m ydoc.Map, fields map[string]any) {
	field := commandField
	if fields["type"] == "note" {
		field = textField
	}
	if _, has := fields[field]; !has {
		p.tx.SetText(m, field, "")
	}
}

func (p writer) node(m ydoc.Map, want map[string]any) {
	for _, key := range m.Keys() {
		if _, ok := want[key]; ok {
			continue
		}
		text, hasText := m.Text(key)
		inner, hasMembers := m.Map(key)
		switch { // somebody may be changing what is in it
		case hasText && isText(key):
			p.tx.Replace(text, "")
		case hasMembers && slices.Contains(memberFields, key):
			p.members(inner, nil)
		default:
			p.tx.Delete(m, key)
		}
	}
	for name, v := range want {
		if name == positionField {
			v = pair(v)
		}
		inner, isMap := v.(map[string]any)
		switch {
		case isText(name):
			p.text(m, name, v)
		case slices.Contains(memberFields, name) && isMap && differs(m, name, v):
			under, ok := m.Map(name)
			if !ok {
				under = p.tx.SetMap(m, name)
			}
			p.members(under, inner)
		default:
			p.value(m, name, v)
		}
	}
}

// members makes a map hold these values, each of which may have fields.
func (p writer) members(m ydoc.Map, want map[string]any) {
	p.remove(m, want)
	for name, v := range want {
		fields, isMap := v.(map[string]any)
		if !isMap {
			p.value(m, name, v)
			continue
		}
		if !differs(m, name, v) {
			continue
		}
		under, ok := m.Map(name)
		if !ok {
			under = p.tx.SetMap(m, name)
		}
		p.fields(under, fields)
	}
}

// fields makes the map of a member hold these fields.
func (p writer) fields(m ydoc.Map, want map[string]any) {
	for _, key := range m.Keys() {
		if _, ok := want[key]; ok {
			continue
		}
		if help, ok := m.Text(key); ok && key == helpField {
			p.tx.Replace(help, "") // somebody may be typing in it
		} else {
			p.tx.Delete(m, key)
		}
	}
	for name, v := range want {
		if name == helpField {
			p.text(m, name, v)
		} else {
			p.value(m, name, v)
		}
	}
}

// text makes a field a text that reads v, if that is one.
func (p writer) text(m ydoc.Map, name string, v any) {
	s, ok := v.(string)
	switch t, isText := m.Text(name); {
	case !ok || !differs(m, name, v):
		p.value(m, name, v)
	case isText:
		p.tx.Replace(t, s)
	default:
		p.tx.SetText(m, name, s)
	}
}

func (p writer) value(m ydoc.Map, name string, v any) {
	if differs(m, name, v) {
		p.tx.Set(m, name, v)
	}
}

// differs reports whether a map says something else of a key.
func differs(m ydoc.Map, key string, v any) bool {
	old, ok := m.Value(key)
	return !ok || !reflect.DeepEqual(old, v)
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

// Read is the definition that a document says, with these ids of its steps. Nodes
// and edges that prior had stay in its order, the others follow by id.
func Read(doc *ydoc.Doc, ids map[string]string, prior []byte) ([]byte, error) {
	def := doc.JSON(rootExtra)
	if version, ok := doc.Map(rootMeta).Value("version"); ok {
		def["version"] = version
	} else {
		def["version"] = 1
	}
	for _, name := range named {
		values := doc.JSON(name)
		for _, v := range values {
			if fields, ok := v.(map[string]any); ok && fields[helpField] == "" {
				delete(fields, helpField)
			}
		}
		def[name] = values
	}
	order := orderOf(prior)
	nodes := make(map[string]any, len(ids))
	for key, node := range doc.JSON(rootNodes) {
		nodes[ids[key]] = node
	}
	edges := doc.JSON(rootEdges)
	for _, e := range edges {
		rename(e, ids)
	}
	def[rootNodes] = listed(nodes, order.Nodes)
	def[rootEdges] = listed(edges, order.Edges)
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
		leaveOutEmpty(fields)
		list[i] = fields
	}
	return list
}

// leaveOutEmpty removes fields of a node that only have a place for what people
// will write.
func leaveOutEmpty(node map[string]any) {
	for _, name := range []string{commandField, textField} {
		if node[name] == "" {
			delete(node, name)
		}
	}
	for _, name := range memberFields {
		members, ok := node[name].(map[string]any)
		if ok && len(members) == 0 {
			delete(node, name)
		}
		for _, m := range members {
			if fields, ok := m.(map[string]any); ok && fields[helpField] == "" {
				delete(fields, helpField)
			}
		}
	}
}

func last(place int) int {
	if place == 0 {
		return 1 << 30
	}
	return place
}
