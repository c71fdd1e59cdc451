package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/fault"
)

// expression is one CEL text of the definition, compiled. Nodes that have the
// same text share it.
type expression struct {
	env    *cel.Env
	ast    *cel.Ast
	result *types.Type
	uses   []*Node // the nodes whose outputs it reads
	read   bounds.Readings
	wrong  []mistake
}

// expressions compiles what decides whether and how often nodes run, so that
// an unknown name or a wrong type is found when the definition is saved.
func (c *checker) expressions(o order) {
	e := &compiler{g: c.g, p: &c.p, order: o}
	for _, n := range c.g.Nodes {
		if n.When != "" {
			e.use(n, n.at().field("when"), n.When, mustBeBool)
		}
		if n.Scatter != nil && n.Scatter.Over != "" {
			e.use(n, n.at().field("scatter").field("over"), n.Scatter.Over, mustBeList)
		}
	}
}

type compiler struct {
	g     *Graph
	p     *problems
	order order
	env   *cel.Env // made for the first expression
	size  int      // of the texts so far
	terms int      // of the expressions so far
	above []bits   // what comes before each node, by its index; made when asked for
}

// use compiles an expression of n and notes what is wrong with it there.
func (e *compiler) use(n *Node, here *where, src string, fits func(*types.Type) string) {
	x, err := e.compile(src)
	if err != nil {
		e.p.add(here, TooMany, "%s", err)
		return
	}
	for _, m := range x.wrong {
		e.p.addFix(e.fix(n, here, m), here, m.code, "%s", m.message)
	}
	if len(x.wrong) > 0 {
		return
	}
	if misfit := fits(x.result); misfit != "" {
		e.p.add(here, InvalidExpression, "%s", misfit)
	}
	for _, used := range x.uses {
		switch {
		case used == n:
			e.p.add(here, InvalidExpression, "a step cannot ask for its own outputs")
		case !e.order.cyclic && !e.comesBefore(used, n):
			e.p.addFix(e.wait(n, used), here, NotBefore, "%s does not come before %s: no lines lead from it to here", used.label(), n.label())
		}
	}
}

// wait is the fix that has a step wait for another; nil where that closes a circle.
// Its line is called after both steps, so that fixing twice makes one line.
func (e *compiler) wait(n, first *Node) *fault.Fix {
	if e.comesBefore(n, first) {
		return nil
	}
	sum := sha256.Sum256([]byte(first.ID + " " + n.ID))
	id := "wait_" + hex.EncodeToString(sum[:8])
	return setFix("edges."+id, map[string]any{"source": first.ID, "target": n.ID}, "Wait for %s", first.label())
}

// fix is the expression with the nearest known name where that makes it valid,
// else the declaration of the name that is missing.
func (e *compiler) fix(n *Node, here *where, m mistake) *fault.Fix {
	if m.fixed != "" {
		x := &expression{env: e.env}
		if e.check(x, m.fixed); len(x.wrong) == 0 {
			_, field := here.split()
			return setFix("nodes."+n.ID+"."+field, m.fixed, "Use %s", quote(m.near))
		}
	}
	return m.create
}

// compile returns the compiled text, from the second time on without work.
func (e *compiler) compile(src string) (*expression, error) {
	if x := e.g.expressions[src]; x != nil {
		return x, nil
	}
	if e.size += len(src); e.size > maxExpressions {
		return nil, fmt.Errorf("the expressions of the workflow are together longer than %d KB", maxExpressions>>10)
	}
	if e.env == nil {
		env, err := newEnv(e.g)
		if err != nil {
			return nil, err
		}
		e.env, e.g.expressions = env, map[string]*expression{}
	}
	x := &expression{env: e.env}
	e.check(x, src)
	e.g.expressions[src] = x
	return x, nil
}

func (e *compiler) check(x *expression, src string) {
	parsed, issues := e.env.Parse(src)
	if issues.Err() != nil {
		x.wrong = explain(e.g, src, nil, issues)
		return
	}
	terms, macros := weight(parsed)
	if e.terms += terms; terms > maxTerms || macros > maxMacros || e.terms > maxAllTerms {
		x.wrong = []mistake{{code: TooMany, message: "the expression is too complex"}}
		return
	}
	checked, issues := e.env.Check(parsed)
	if issues.Err() != nil {
		x.wrong = explain(e.g, src, parsed, issues)
		return
	}
	x.ast, x.result, x.uses, x.read = checked, checked.OutputType(), e.uses(checked), bounds.ReadingsOf(checked)
}

// weight counts the terms of an expression and the macros among them.
func weight(parsed *cel.Ast) (terms, macros int) {
	celast.PreOrderVisit(parsed.NativeRep().Expr(), celast.NewExprVisitor(func(x celast.Expr) {
		terms++
		if x.Kind() == celast.ComprehensionKind {
			macros++
		}
	}))
	return terms, macros
}

// uses finds the nodes that an expression asks about by the types in it, which
// no variable of the same name can hide.
func (e *compiler) uses(checked *cel.Ast) []*Node {
	var nodes []*Node
	for _, t := range checked.NativeRep().TypeMap() {
		if id, ok := nodeOf(t); ok && !slices.Contains(nodes, e.g.byID[id]) {
			nodes = append(nodes, e.g.byID[id])
		}
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return a.Index - b.Index })
	return nodes
}

func mustBeBool(t *types.Type) string {
	if t.Kind() == types.BoolKind || t.Kind() == types.DynKind {
		return ""
	}
	return "the expression must say true or false, but it is " + typeWord(t)
}

func mustBeList(t *types.Type) string {
	switch {
	case t.Kind() == types.DynKind:
		return ""
	case t.Kind() != types.ListKind:
		return "the expression must be a list, but it is " + typeWord(t)
	case !isData(t):
		return "the items of the list must be plain values, but it is " + typeWord(t)
	}
	return ""
}

// isData reports whether a value of the type can be handed to a command.
func isData(t *types.Type) bool {
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.StringKind,
		types.DynKind, types.NullTypeKind, types.TypeParamKind:
		return true
	case types.ListKind, types.MapKind:
		for _, p := range t.Parameters() {
			if !isData(p) {
				return false
			}
		}
		return true
	}
	return false
}

// bits is a set of nodes by their index.
type bits []uint64

func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// comesBefore reports whether edges lead from one node to another.
func (e *compiler) comesBefore(first, then *Node) bool {
	if e.above == nil {
		e.climb()
	}
	return e.above[then.Index].has(first.Index)
}

// climb works out all that comes before each node at once, which costs little
// more than looking at every edge.
func (e *compiler) climb() {
	words := (len(e.g.Nodes) + 63) / 64
	all := make(bits, words*len(e.g.Nodes))
	e.above = make([]bits, len(e.g.Nodes))
	for i := range e.above {
		e.above[i] = all[i*words : (i+1)*words]
	}
	for _, n := range e.order.nodes {
		if e.g.byID[n.ID] != n {
			continue
		}
		mine := e.above[n.Index]
		for _, in := range e.g.incoming[n.ID] {
			i := in.source.Index
			for w, word := range e.above[i] {
				mine[w] |= word
			}
			mine[i/64] |= 1 << (i % 64)
		}
	}
}
