package graph

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/millrace/millrace/internal/domain/spelling"
)

// explain turns what CEL reports into sentences for the author. Parsed is nil
// when the text is not even CEL.
func explain(g *Graph, parsed *cel.Ast, issues *cel.Issues) []string {
	const most = 5
	var faults []string
	for _, err := range issues.Errors() {
		if len(faults) == most {
			break
		}
		said := reword(g, parsed, err)
		if line, column := err.Location.Line(), err.Location.Column()+1; line == 1 && column > 1 {
			said += fmt.Sprintf(" (at character %d)", column)
		} else if line > 1 {
			said += fmt.Sprintf(" (at line %d, character %d)", line, column)
		}
		faults = append(faults, said)
	}
	return faults
}

func reword(g *Graph, parsed *cel.Ast, err *common.Error) string {
	message := err.Message
	if operator, signature, ok := overload(message); ok {
		return fmt.Sprintf("`%s` cannot be used with %s", operator, signature)
	}
	if name, ok := between(message, "undeclared reference to '", "'"); ok {
		return fmt.Sprintf("`%s` is not known here; an expression can use params, inputs and nodes", short(name))
	}
	if field, ok := between(message, "undefined field '", "'"); ok && parsed != nil {
		return undefined(g, ownerOf(parsed, err.ExprID), field)
	}
	if strings.Contains(message, "recursion") {
		return "the expression is nested too deeply"
	}
	if said, ok := strings.CutPrefix(message, "Syntax error: "); ok {
		return "not a CEL expression: " + long(said)
	}
	return long(message)
}

// between cuts what stands between two marks out of a message.
func between(message, before, after string) (string, bool) {
	_, rest, ok := strings.Cut(message, before)
	if !ok {
		return "", false
	}
	inside, _, ok := strings.Cut(rest, after)
	return inside, ok
}

// overload reads CEL's way of saying that an operator or function does not go
// with its arguments: '_>_' applied to '(int, string)'.
func overload(message string) (operator, signature string, ok bool) {
	operator, ok = between(message, "found no matching overload for '", "'")
	if !ok {
		return "", "", false
	}
	signature, ok = between(message, "applied to '", "'")
	operator = strings.ReplaceAll(strings.Trim(operator, "_"), "?_:", "?:")
	return operator, long(signature), ok
}

// ownerOf writes what a field was looked for in, such as nodes.trim.outputs.
func ownerOf(parsed *cel.Ast, id int64) string {
	var owner string
	celast.PreOrderVisit(parsed.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.ID() == id && e.Kind() == celast.SelectKind {
			owner = written(e.AsSelect().Operand())
		}
	}))
	return owner
}

func written(e celast.Expr) string {
	switch e.Kind() {
	case celast.IdentKind:
		return e.AsIdent()
	case celast.SelectKind:
		return written(e.AsSelect().Operand()) + "." + e.AsSelect().FieldName()
	}
	return ""
}

// undefined says what there is instead of a field that there is not.
func undefined(g *Graph, owner, field string) string {
	var known []string
	what := "`" + short(owner) + "` has no `" + short(field) + "`"
	switch {
	case owner == "params":
		what = "the workflow has no parameter `" + short(field) + "`"
		for _, p := range g.Parameters {
			known = append(known, p.Name)
		}
	case owner == "inputs":
		what = "the workflow has no input `" + short(field) + "`"
		for _, in := range g.Inputs {
			known = append(known, in.Name)
		}
	case owner == "nodes":
		what = "there is no task `" + short(field) + "`"
		for _, n := range g.Nodes {
			known = append(known, n.ID)
		}
	case strings.HasSuffix(owner, ".outputs"):
		id := strings.TrimSuffix(strings.TrimPrefix(owner, "nodes."), ".outputs")
		if n := g.byID[id]; n != nil {
			what, known = "node `"+short(id)+"` has no output `"+short(field)+"`", n.outputNames()
		}
	case strings.HasPrefix(owner, "nodes."):
		return what + "; write `" + short(owner) + ".outputs.<port>`"
	}
	return what + spelling.DidYouMean(field, known)
}

func typeWord(t *types.Type) string { return "of type " + cel.FormatCELType(t) }
