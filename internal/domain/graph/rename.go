package graph

import (
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Kind is a kind of thing that has a name in a definition.
type Kind string

// The things that can be renamed.
const (
	KindStep      Kind = "step"
	KindInput     Kind = "input"
	KindParameter Kind = "parameter"
	KindOutput    Kind = "output" // of a step
)

// Name is one name in a definition: of a step, an input, a parameter, or an
// output of a step.
type Name struct {
	Kind Kind
	Node string // the step, for an output
	Name string
}

// Rename lists the edits that make ports, outputs and expressions say another
// name. What is renamed, the edges and the commands are left to the caller. An
// expression that is not valid is left as it is. There are none for another kind of
// name, such as an input of a step: only edges and commands say it.
func (g *Graph) Rename(what Name, to string) (edits []fault.Edit) {
	if what.owner() == "" {
		return nil
	}
	set := func(path string, value any) { edits = append(edits, fault.Edit{Path: path, Value: value}) }
	for _, n := range g.Nodes {
		at := "nodes." + n.ID
		for _, port := range n.Inputs {
			if what.Kind == KindInput && port.From == what.Name {
				set(at+".inputs."+port.Name+".from", "inputs."+to)
			}
		}
		if text := g.renamed(n.When, what, to); text != n.When {
			set(at+".when", text)
		}
		if n.Scatter != nil {
			if text := g.renamed(n.Scatter.Over, what, to); text != n.Scatter.Over {
				set(at+".scatter.over", text)
			}
		}
	}
	for _, out := range g.Outputs {
		switch {
		case what.Kind == KindStep && out.Node == what.Name:
			set("outputs."+out.Name+".from", to+"."+out.Port)
		case what.Kind == KindOutput && out.Node == what.Node && out.Port == what.Name:
			set("outputs."+out.Name+".from", out.Node+"."+to)
		}
	}
	return edits
}

// owner is the type of the values that have the name as a field; empty for a kind that
// is not known.
func (n Name) owner() string {
	switch n.Kind {
	case KindStep:
		return nodesType
	case KindInput:
		return inputsType
	case KindParameter:
		return paramsType
	case KindOutput:
		return portsPrefix + n.Node
	}
	return ""
}

// renamed is an expression that says another name. It goes by the types of an
// expression, which tell an input called x from everything else called x.
func (g *Graph) renamed(src string, what Name, to string) string {
	x := g.expressions[src]
	if x == nil || x.ast == nil {
		return src
	}
	ast, runes := x.ast.NativeRep(), []rune(src)
	var places []int
	celast.PreOrderVisit(ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.SelectKind || e.AsSelect().FieldName() != what.Name {
			return
		}
		t := ast.TypeMap()[e.AsSelect().Operand().ID()]
		if t == nil || t.Kind() != types.StructKind || t.TypeName() != what.owner() {
			return
		}
		id := e.ID()
		if call, ok := ast.SourceInfo().GetMacroCall(id); ok && e.AsSelect().IsTestOnly() {
			id = call.AsCall().Args()[0].ID() // has(…) stands where it was called, its argument where the name is
		}
		dot, ok := ast.SourceInfo().GetOffsetRange(id)
		if at := nameBehind(runes, int(dot.Start), what.Name); ok && at >= 0 && !slices.Contains(places, at) {
			places = append(places, at)
		}
	}))
	slices.Sort(places)
	for _, at := range slices.Backward(places) {
		runes = slices.Replace(runes, at, at+len(what.Name), []rune(to)...)
	}
	return string(runes)
}

// nameBehind finds the name that follows a dot, across white space, comments and
// the quotes of an escaped name; -1 when it is not there.
func nameBehind(src []rune, dot int, name string) int {
	if dot < 0 || dot >= len(src) || src[dot] != '.' {
		return -1
	}
	for at := dot + 1; at < len(src); at++ {
		switch {
		case strings.ContainsRune(" \t\r\n\f?`", src[at]):
		case src[at] == '/' && at+1 < len(src) && src[at+1] == '/':
			for at < len(src) && src[at] != '\n' {
				at++
			}
		case at+len(name) <= len(src) && string(src[at:at+len(name)]) == name:
			return at
		default:
			return -1
		}
	}
	return -1
}
