package graph

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/millrace/millrace/internal/domain/bounds"
)

// Scope is what the expressions of a run can see. Files are named by whatever
// the caller knows them by; a file that is not there is an empty text, and
// `has` tells the two apart.
type Scope struct {
	Parameters Values
	Inputs     map[string][]string              // by input
	Outputs    func(node, port string) []string // nil: none
	Work       *bounds.Work                     // nil: only what one expression may cost counts
}

// EvalWhen reports whether a node runs. A node without `when` does.
func (g *Graph) EvalWhen(n *Node, s Scope) (bool, error) {
	if n.When == "" {
		return true, nil
	}
	out, err := g.evaluate(n.When, s)
	if err != nil {
		return false, fmt.Errorf("`when`: %s", long(err.Error()))
	}
	answer, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("`when` must be true or false, but it is of type %s", out.Type().TypeName())
	}
	return bool(answer), nil
}

// EvalOver lists the items that a node is scattered over.
func (g *Graph) EvalOver(n *Node, s Scope) (bounds.Items, error) {
	if n.Scatter == nil || n.Scatter.Over == "" {
		return bounds.Items{}, errors.New("it is not scattered over anything")
	}
	out, err := g.evaluate(n.Scatter.Over, s)
	if err != nil {
		return bounds.Items{}, fmt.Errorf("`scatter.over`: %s", long(err.Error()))
	}
	list, ok := out.(traits.Lister)
	if !ok {
		return bounds.Items{}, fmt.Errorf("`scatter.over` must be a list, but it is of type %s", out.Type().TypeName())
	}
	if size, _ := list.Size().(types.Int); size > MaxShards {
		return bounds.Items{}, fmt.Errorf("it would be scattered over %d items; at most %d are allowed", size, MaxShards)
	}
	all, err := bounds.ItemsOf(list, s.Work)
	if err != nil {
		return bounds.Items{}, fmt.Errorf("`scatter.over`: %s", long(err.Error()))
	}
	return all, nil
}

func (g *Graph) evaluate(src string, s Scope) (ref.Val, error) {
	x := g.expressions[src]
	if x == nil || x.ast == nil {
		return nil, errors.New("the expression is malformed")
	}
	if err := s.Work.Spent(); err != nil {
		return nil, err
	}
	m := bounds.NewMeter(x.read)
	program, err := x.env.Program(x.ast, cel.CustomDecoratorV2(m.Decorate))
	if err != nil {
		return nil, err
	}
	out, _, err := program.Eval(map[string]any{
		"params": g.params(s, m), "inputs": g.inputs(s), "nodes": g.nodes(s),
	})
	s.Work.Spend(m)
	return out, err
}

// record is params, inputs, nodes or a part of nodes while an expression is
// evaluated.
type record struct {
	kind string
	get  func(field string) any
	has  func(field string) bool
}

func (r *record) isSet(field string) bool { return r.has == nil || r.has(field) }

func (r *record) Type() ref.Type              { return types.NewObjectType(r.kind) }
func (r *record) Value() any                  { return r }
func (r *record) Equal(other ref.Val) ref.Val { return types.Bool(r == other) }

func (r *record) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("%s cannot become %s", r.kind, t.TypeName())
}

func (r *record) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s cannot be used as a value", r.kind)
}

func (g *Graph) params(s Scope, m *bounds.Meter) *record {
	known := map[string]any{} // a large one that is asked for often is made once
	return &record{
		kind: paramsType,
		has:  func(name string) bool { return s.Parameters.all.member(name) != nil },
		get: func(name string) any {
			if v, ok := known[name]; ok {
				return v
			}
			v := s.Parameters.all.member(name)
			if v == nil {
				return types.NewErr("the parameter `%s` has no value", name)
			}
			m.Spend(2 * v.bulk())
			p, _ := g.Parameter(name)
			known[name] = types.DefaultTypeAdapter.NativeToValue(celValue(v, celType(p.schema.source)))
			return known[name]
		},
	}
}

func (g *Graph) inputs(s Scope) *record {
	return &record{
		kind: inputsType,
		has:  func(name string) bool { return len(s.Inputs[name]) > 0 },
		get: func(name string) any {
			in, _ := g.Input(name)
			return files(s.Inputs[name], filesType(in.Many))
		},
	}
}

func (g *Graph) nodes(s Scope) *record {
	return &record{kind: nodesType, get: func(id string) any {
		return &record{kind: nodePrefix + id, get: func(string) any { return g.ports(id, s) }}
	}}
}

func (g *Graph) ports(id string, s Scope) *record {
	return &record{
		kind: portsPrefix + id,
		has:  func(port string) bool { return len(s.made(id, port)) > 0 },
		get: func(port string) any {
			t, _ := vocabulary{g: g}.fieldType(portsPrefix+id, port)
			return files(s.made(id, port), t)
		},
	}
}

func (s Scope) made(node, port string) []string {
	if s.Outputs == nil {
		return nil
	}
	return s.Outputs(node, port)
}

func files(names []string, t *types.Type) any {
	switch {
	case t == nil || len(names) == 0:
		return zero(t)
	case t.Kind() == types.ListKind:
		return names
	}
	return names[0]
}
