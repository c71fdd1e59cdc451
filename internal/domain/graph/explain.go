package graph

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/spelling"
)

// mistake is one thing wrong with an expression.
type mistake struct {
	code    string
	message string
	// fixed is the expression with the nearest known name, if that is all that was
	// wrong with it.
	fixed, near string
	create      *fault.Fix // declares the name that is not known
}

// explain turns what CEL reports into sentences for the author. Parsed is nil
// when the text is not even CEL.
func explain(g *Graph, src string, parsed *cel.Ast, issues *cel.Issues) []mistake {
	const most = 5
	var found []mistake
	for _, err := range issues.Errors() {
		if len(found) == most {
			break
		}
		m := reword(g, src, parsed, err)
		if m.code == InvalidExpression { // a name that is not known needs no place
			m.message += place(err.Location)
		}
		found = append(found, m)
	}
	return found
}

// place says where in an expression something is; nothing for its first character.
func place(at common.Location) string {
	switch line, column := at.Line(), at.Column()+1; {
	case line > 1:
		return fmt.Sprintf(" (at line %d, character %d)", line, column)
	case column > 1:
		return fmt.Sprintf(" (at character %d)", column)
	default:
		return ""
	}
}

func reword(g *Graph, src string, parsed *cel.Ast, err *common.Error) mistake {
	message := err.Message
	said := func(format string, args ...any) mistake {
		return mistake{code: InvalidExpression, message: fmt.Sprintf(format, args...)}
	}
	if operator, signature, ok := overload(message); ok {
		return said("`%s` cannot be used with %s", operator, signature)
	}
	if name, ok := between(message, "undeclared reference to '", "'"); ok {
		return said("`%s` is not known here; an expression can use `params`, `inputs` and `nodes`", short(name))
	}
	if field, ok := between(message, "undefined field '", "'"); ok && parsed != nil {
		m, known := undefined(g, ownerOf(parsed, err.ExprID), field)
		if m.near = spelling.Nearest(field, known); m.near != "" {
			m.fixed = replaceName(src, err.Location, field, m.near)
		}
		return m
	}
	if strings.Contains(message, "recursion") {
		return said("the expression is nested too deeply")
	}
	if syntax, ok := strings.CutPrefix(message, "Syntax error: "); ok {
		return said("not a CEL expression: %s", long(syntax))
	}
	return said("%s", long(message))
}

// replaceName puts another name in the place of the first one at or behind a
// location of an expression of one line.
func replaceName(src string, at common.Location, from, to string) string {
	runes := []rune(src)
	if at.Line() != 1 || at.Column() > len(runes) {
		return ""
	}
	before := string(runes[:at.Column()])
	i := strings.Index(src[len(before):], from)
	if i < 0 {
		return ""
	}
	i += len(before)
	return src[:i] + to + src[i+len(from):]
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

// undefined says what there is instead of a field that there is not, and the names
// that there are.
func undefined(g *Graph, owner, field string) (m mistake, known []string) {
	m = mistake{code: InvalidExpression, message: "`" + short(owner) + "` has no `" + short(field) + "`"}
	name := quote(field)
	switch {
	case owner == "params":
		m = mistake{code: NoSuchParameter, message: "there is no parameter called " + name, create: newParameter(field)}
		for _, p := range g.Parameters {
			known = append(known, p.Name)
		}
	case owner == "inputs":
		m = mistake{code: NoSuchInput, message: "there is no input called " + name, create: newInput(field)}
		known = g.inputNames()
	case owner == "nodes":
		m = mistake{code: NoSuchStep, message: "there is no step with the id " + name}
		for _, n := range g.Nodes {
			if n.Type == Task {
				known = append(known, n.ID)
			}
		}
	case strings.HasSuffix(owner, ".outputs"):
		id := strings.TrimSuffix(strings.TrimPrefix(owner, "nodes."), ".outputs")
		if n := g.byID[id]; n != nil {
			m, known = mistake{code: NoSuchOutput, message: n.label() + " has no output called " + name}, n.outputNames()
		}
	case strings.HasPrefix(owner, "nodes."):
		m.message += "; write `" + short(owner) + ".outputs.<port>`"
		return m, nil
	}
	m.message += spelling.DidYouMean(field, known)
	return m, known
}

func typeWord(t *types.Type) string { return "of type " + cel.FormatCELType(t) }
