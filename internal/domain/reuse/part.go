package reuse

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/pipeline"
)

// Part is the definition of some tasks and all before them. Those before are
// taken from an earlier definition where they are done there, so that their
// results are found again; where old and new do not fit together, all is taken
// as it is now. The problems are tasks that are not there.
func Part(now, earlier []byte, only []string, done map[string]bool) ([]byte, []fault.Detail, error) {
	d, err := readDrawing(now)
	if err != nil {
		return nil, nil, err
	}
	var wrong []fault.Detail
	for i, id := range only {
		if _, there := d.nodes[id]; !there {
			wrong = append(wrong, fault.Detail{Path: fmt.Sprintf("only[%d]", i), Message: fmt.Sprintf("there is no step `%s`", id)})
		}
	}
	if len(wrong) > 0 {
		return nil, wrong, nil
	}
	before, err := readDrawing(earlier)
	if err != nil {
		return nil, nil, err
	}
	definition, err := d.only(only, before, done)
	if _, unfit := graph.Parse(definition); err == nil && len(unfit) > 0 {
		definition, err = d.only(only, d, nil)
	}
	return definition, nil, err
}

// drawing is a definition whose nodes and edges can be picked.
type drawing struct {
	rest     map[string]json.RawMessage
	nodes    map[string]json.RawMessage
	incoming map[string][]drawnEdge
}

type drawnEdge struct {
	source string
	raw    json.RawMessage
}

func readDrawing(definition []byte) (drawing, error) {
	d := drawing{nodes: map[string]json.RawMessage{}, incoming: map[string][]drawnEdge{}}
	var lists struct{ Nodes, Edges []json.RawMessage }
	if err := json.Unmarshal(definition, &d.rest); err != nil {
		return d, err
	}
	if err := json.Unmarshal(definition, &lists); err != nil {
		return d, err
	}
	for _, raw := range lists.Nodes {
		var n struct{ ID, Type string }
		if json.Unmarshal(raw, &n) == nil && n.Type != string(graph.Note) {
			d.nodes[n.ID] = raw
		}
	}
	for _, raw := range lists.Edges {
		var e struct{ Source, Target string }
		if json.Unmarshal(raw, &e) == nil {
			d.incoming[e.Target] = append(d.incoming[e.Target], drawnEdge{e.Source, raw})
		}
	}
	return d, nil
}

// only is the definition of some nodes and all before them; those before are
// taken from another drawing where they are done there.
func (d drawing) only(ids []string, before drawing, done map[string]bool) ([]byte, error) {
	nodes, edges := []json.RawMessage{}, []json.RawMessage{}
	seen, wanted := map[string]bool{}, map[string]bool{}
	for _, id := range ids {
		wanted[id] = true
	}
	for queue := append([]string{}, ids...); len(queue) > 0; queue = queue[1:] {
		id, from := queue[0], d
		if seen[id] {
			continue
		}
		seen[id] = true
		if _, there := before.nodes[id]; there && done[id] && !wanted[id] {
			from = before
		}
		if raw, there := from.nodes[id]; there {
			nodes = append(nodes, raw)
		}
		for _, e := range from.incoming[id] {
			edges, queue = append(edges, e.raw), append(queue, e.source)
		}
	}
	return d.with(nodes, edges, outputsOf(ids, d))
}

// with is the definition with other nodes, and without parameters and inputs
// that none of them mentions.
func (d drawing) with(nodes, edges []json.RawMessage, outputs map[string]any) ([]byte, error) {
	out := map[string]any{}
	for name, raw := range d.rest {
		out[name] = raw
	}
	var text strings.Builder
	for _, raw := range nodes {
		text.Write(raw)
	}
	for field, marks := range map[string][]string{"parameters": {"PARAM_", "params."}, "inputs": {"inputs."}} {
		var all map[string]json.RawMessage
		if d.rest[field] == nil || json.Unmarshal(d.rest[field], &all) != nil {
			continue
		}
		if field == "parameters" && strings.Contains(text.String(), pipeline.ParametersVariable) {
			continue
		}
		for name := range all {
			if !mentions(text.String(), name, marks) {
				delete(all, name)
			}
		}
		out[field] = all
	}
	out["nodes"], out["edges"], out["outputs"] = nodes, edges, outputs
	return json.Marshal(out)
}

func mentions(text, name string, marks []string) bool {
	for _, mark := range marks {
		if strings.Contains(text, mark+name) {
			return true
		}
	}
	return false
}

// outputsOf hands out what the nodes make, and nothing of those before them.
func outputsOf(ids []string, d drawing) map[string]any {
	outputs, from := map[string]any{}, map[string]bool{}
	for _, id := range ids {
		var n struct{ Outputs map[string]json.RawMessage }
		if json.Unmarshal(d.nodes[id], &n) != nil || from[id] {
			continue
		}
		from[id] = true
		for _, port := range slices.Sorted(maps.Keys(n.Outputs)) {
			name := port
			for i := len(outputs); outputs[name] != nil; i++ {
				name = fmt.Sprintf("output_%d", i)
			}
			outputs[name] = map[string]string{"from": id + "." + port}
		}
	}
	return outputs
}
