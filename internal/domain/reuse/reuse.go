// Package reuse foretells what a run that is started again takes from the run
// before it, and why it computes the rest.
package reuse

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/domain/source"
)

// Expectation is what is expected of one node.
type Expectation string

// What is expected: the results are taken over, the node runs, or it runs
// unless what comes before it makes the same files again.
const (
	Reused   Expectation = "reused"
	Computed Expectation = "computed"
	Depends  Expectation = "depends"
)

// Run is what a run computes, and from what.
type Run struct {
	Graph  *graph.Graph
	Values graph.Values
	Inputs map[string][]string // keys of files, by input
}

// Ended is a run with what it has come to.
type Ended struct {
	Run
	States  map[string]lifecycle.NodeState
	Deleted map[string]bool  // nodes some of whose outputs are gone
	Items   map[string]Items // of scattered nodes
}

// Items counts the items of a scattered node.
type Items struct {
	Total, Failed int
	Kept          int // items whose result can be reused
}

// Node is what is expected of one node, and why.
type Node struct {
	ID     string
	Name   string
	Expect Expectation
	Reason string
	Items  *ItemPlan // of a scattered node whose items are known
}

// ItemPlan says how many items of a scattered node are reused, how many run,
// and how many of those that run failed before.
type ItemPlan struct {
	Reused, Run, Failed int
}

// Foretell says of every task of a run, in its order, whether it will be taken
// from the run before. A result that `cache` finds in another run is not
// foreseen.
func Foretell(before Ended, now Run) []Node {
	expected := map[string]Expectation{}
	var list []Node
	for _, n := range now.Graph.Order() {
		out := Node{ID: n.ID, Name: n.Name}
		out.Expect, out.Reason = expect(before, now, n, expected)
		out.Items = planItems(before, now, n, expected, out.Expect)
		if items := before.Items[n.ID]; items.Failed > 0 && before.States[n.ID] == lifecycle.NodeFailed {
			if out.Items != nil {
				out.Reason = fmt.Sprintf("%d of %d items failed", items.Failed, items.Total)
			} else if old, known := before.Graph.Node(n.ID); known && n.Scatter != nil && changed(before.Run, now, old, n) == "" {
				out.Reason = fmt.Sprintf("%d of %d items failed. The others are reused if nothing about them changed", items.Failed, items.Total)
			}
		}
		expected[n.ID] = out.Expect
		list = append(list, out)
	}
	return list
}

func expect(before Ended, now Run, n *graph.Node, expected map[string]Expectation) (Expectation, string) {
	old, known := before.Graph.Node(n.ID)
	if !known || old.Type != graph.Task {
		return Computed, "it is new"
	}
	if state := before.States[n.ID]; state != lifecycle.NodeSucceeded {
		return Computed, notDone(state)
	}
	if why := changed(before.Run, now, old, n); why != "" {
		return Computed, why
	}
	if before.Deleted[n.ID] {
		return Computed, "its outputs were deleted"
	}
	if n.UsesSource() && !sameCode(before.Graph.Source, now.Graph.Source) {
		return Depends, "its code comes from elsewhere now: it runs again unless that is the same"
	}
	for _, e := range now.Graph.Incoming(n.ID) {
		// A scattered node may read the outputs of any node before it.
		if (e.Carries() || n.Scatter != nil) && expected[e.Source] != Reused {
			return Depends, fmt.Sprintf("it reads files of %s, which runs again", nameOf(now.Graph, e.Source))
		}
	}
	if otherItems(before.Run, now, overOf(old), overOf(n)) {
		return Depends, "its list of items changed: items that were computed before are reused"
	}
	return Reused, ""
}

// planItems counts the items of a scattered node that are reused and that run,
// or returns nil where its list of items or their files may differ.
func planItems(before Ended, now Run, n *graph.Node, expected map[string]Expectation, is Expectation) *ItemPlan {
	old, known := before.Graph.Node(n.ID)
	items := before.Items[n.ID]
	if !known || n.Scatter == nil || old.Scatter == nil || items.Total == 0 || is == Depends ||
		otherItems(before.Run, now, old.Scatter.Over, n.Scatter.Over) {
		return nil
	}
	if is == Reused {
		return &ItemPlan{Reused: items.Total}
	}
	if changed(before.Run, now, old, n) != "" {
		return &ItemPlan{Run: items.Total, Failed: items.Failed}
	}
	if n.UsesSource() && !sameCode(before.Graph.Source, now.Graph.Source) {
		return nil
	}
	for _, e := range now.Graph.Incoming(n.ID) {
		if expected[e.Source] != Reused {
			return nil
		}
	}
	return &ItemPlan{Reused: items.Kept, Run: items.Total - items.Kept, Failed: items.Failed}
}

func notDone(state lifecycle.NodeState) string {
	switch state {
	case lifecycle.NodeFailed:
		return "it failed"
	case lifecycle.NodeSkipped:
		return "it was skipped"
	case lifecycle.NodeCancelled:
		return "it was cancelled"
	}
	return "it has not run yet"
}

// changed says what about a node is not as it was, or nothing.
func changed(before, now Run, old, n *graph.Node) string {
	switch {
	case old.Command != n.Command:
		return "its command changed"
	case old.Interpreter != n.Interpreter:
		return "its interpreter changed"
	case old.Image != n.Image:
		return "its image changed"
	case !sameSoftware(old.Environment, n.Environment):
		return "its environment changed"
	case !maps.Equal(old.Env, n.Env):
		return "its variables changed"
	case !slices.Equal(old.Outputs, n.Outputs):
		return "its outputs are declared differently"
	case !slices.Equal(old.Secrets, n.Secrets):
		return "its secrets changed"
	case !maps.EqualFunc(before.feeds(old), now.feeds(n), slices.Equal):
		return "its inputs changed"
	}
	text := n.Command + "\n" + strings.Join(slices.Collect(maps.Values(n.Env)), "\n")
	if name := mentioned(before.Values, now.Values, text, paramsSet); name != "" {
		return fmt.Sprintf("the parameter %s changed", name)
	}
	if pipeline.Mentions(n, pipeline.ParametersVariable) && !bytes.Equal(before.Values.JSON(), now.Values.JSON()) {
		return "the parameters changed"
	}
	return ""
}

// sameCode reports whether the code of two definitions is said to be the same.
func sameCode(a, b *source.Source) bool { return a == b || a != nil && b != nil && *a == *b }

func sameSoftware(a, b *environment.Spec) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Canonical() == b.Canonical()
}

// feeds are where the files of each port come from, in their order.
func (r Run) feeds(n *graph.Node) map[string][]string {
	list := map[string][]string{}
	for _, p := range n.Inputs {
		if p.From != "" {
			list[p.Name] = append(list[p.Name], r.Inputs[p.From]...)
		}
	}
	for _, e := range r.Graph.Incoming(n.ID) {
		if e.Carries() {
			list[e.TargetHandle] = append(list[e.TargetHandle], e.Source+"."+e.SourceHandle)
		}
	}
	return list
}

var (
	paramsSet = regexp.MustCompile(`PARAM_([A-Za-z_][A-Za-z0-9_]*)`)
	paramsIn  = regexp.MustCompile(`params\.([A-Za-z_][A-Za-z0-9_]*)`)
)

// mentioned is the first parameter that a text mentions and that has another
// value now.
func mentioned(before, now graph.Values, text string, pattern *regexp.Regexp) string {
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		was, had := before.Text(found[1])
		is, has := now.Text(found[1])
		if was != is || had != has {
			return found[1]
		}
	}
	return ""
}

// otherItems reports whether a list to scatter over may not be what it was.
func otherItems(before, now Run, was, is string) bool {
	return was != is || mentioned(before.Values, now.Values, is, paramsIn) != "" ||
		strings.Contains(is, "inputs") && !maps.EqualFunc(before.Inputs, now.Inputs, slices.Equal)
}

func overOf(n *graph.Node) string {
	if n.Scatter == nil {
		return ""
	}
	return n.Scatter.Over
}

func nameOf(g *graph.Graph, id string) string {
	if n, ok := g.Node(id); ok && n.Name != "" {
		return n.Name
	}
	return id
}
