package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// testTag tells runs of some nodes from those of the whole workflow.
const testTag = "test"

// takeOnly cuts the run down to some nodes and what comes before them. What
// comes before is taken as it was where it succeeded, so that it is reused
// even when it has been edited since.
func (s *Service) takeOnly(ctx context.Context, old Run, r *Run, in *New) error {
	now, err := readDrawing(r.Definition)
	if err != nil {
		return err
	}
	var wrong []fault.Detail
	for i, id := range in.Only {
		if _, there := now.nodes[id]; !there {
			wrong = append(wrong, fault.Detail{Path: fmt.Sprintf("only[%d]", i), Message: fmt.Sprintf("there is no node `%s`", id)})
		}
	}
	if len(wrong) > 0 {
		return fault.Problems(wrong, "%s: %s", wrong[0].Path, wrong[0].Message)
	}
	nodes, err := s.details.NodesOf(ctx, old.ID)
	if err != nil {
		return err
	}
	before, err := readDrawing(old.Definition)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for _, n := range nodes {
		done[n.ID] = n.State == lifecycle.NodeSucceeded
	}
	definition, err := now.only(in.Only, before, done)
	if err != nil {
		return err
	}
	if _, wrong := graph.Parse(definition); len(wrong) > 0 {
		// What was and what is do not fit together: as it is now, then.
		if definition, err = now.only(in.Only, now, nil); err != nil {
			return err
		}
	}
	r.Definition, in.Label = definition, Label{Tags: []string{testTag}}
	return in.keepAsked(definition)
}

// keepAsked leaves out values and files that the definition does not ask for.
func (n *New) keepAsked(definition []byte) error {
	a, err := readAsked(definition)
	if err != nil {
		return err
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(n.Parameters, &values); err != nil {
		return err
	}
	for name := range values {
		if _, asked := a.Parameters[name]; !asked {
			delete(values, name)
		}
	}
	for name := range n.Inputs {
		if _, asked := a.Inputs[name]; !asked {
			delete(n.Inputs, name)
		}
	}
	n.Parameters, err = json.Marshal(values)
	return err
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
		if d.rest[field] != nil && json.Unmarshal(d.rest[field], &all) != nil {
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
	outputs := map[string]any{}
	for _, id := range ids {
		var n struct{ Outputs map[string]json.RawMessage }
		if json.Unmarshal(d.nodes[id], &n) != nil {
			continue
		}
		for port := range n.Outputs {
			name := port
			if _, taken := outputs[name]; taken {
				name = fmt.Sprintf("output_%d", len(outputs))
			}
			outputs[name] = map[string]string{"from": id + "." + port}
		}
	}
	return outputs
}
