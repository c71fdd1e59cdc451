package graph

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Scope is what the expressions of a run can see. Files are named by whatever
// the caller knows them by; a file that is not there is an empty text, and
// `has` tells the two apart.
type Scope struct {
	Parameters Values
	Inputs     map[string][]string            // by input
	Outputs    map[string]map[string][]string // by node and port
}

// EvalWhen reports whether a node runs. A node without `when` does.
func (g *Graph) EvalWhen(n *Node, s Scope) (bool, error) {
	if n.When == "" {
		return true, nil
	}
	out, err := g.evaluate(n.When, s)
	if err != nil {
		return false, fmt.Errorf("`when` of %s: %w", n.ID, err)
	}
	answer, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("`when` of %s must say true or false, but it is of type %s", n.ID, out.Type().TypeName())
	}
	return bool(answer), nil
}

// EvalOver lists the items that a node is scattered over: text, bool, int64,
// float64, nil, or lists and maps of these.
func (g *Graph) EvalOver(n *Node, s Scope) ([]any, error) {
	if n.Scatter == nil || n.Scatter.Over == "" {
		return nil, fmt.Errorf("%s is not scattered over anything", n.ID)
	}
	out, err := g.evaluate(n.Scatter.Over, s)
	if err != nil {
		return nil, fmt.Errorf("`scatter.over` of %s: %w", n.ID, err)
	}
	list, ok := out.(traits.Lister)
	if !ok {
		return nil, fmt.Errorf("`scatter.over` of %s must be a list, but it is of type %s", n.ID, out.Type().TypeName())
	}
	if size, _ := list.Size().(types.Int); size > MaxShards {
		return nil, fmt.Errorf("%s would be scattered over %d items; at most %d are allowed", n.ID, size, MaxShards)
	}
	return items(list)
}

func (g *Graph) evaluate(src string, s Scope) (ref.Val, error) {
	x := g.expressions[src]
	if x == nil || x.ast == nil {
		return nil, errors.New("the expression is malformed")
	}
	program, err := x.env.Program(x.ast, cel.CostLimit(maxCost))
	if err != nil {
		return nil, err
	}
	out, _, err := program.Eval(map[string]any{
		"params": g.params(s), "inputs": g.inputs(s), "nodes": g.nodes(s),
	})
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

func (r *record) Type() ref.Type { return types.NewObjectType(r.kind) }
func (r *record) Value() any     { return r }

func (r *record) Equal(other ref.Val) ref.Val { return types.Bool(r == other) }

func (r *record) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("%s cannot become %s", r.kind, t.TypeName())
}

func (r *record) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s cannot be used as a value", r.kind)
}

func (g *Graph) params(s Scope) *record {
	return &record{
		kind: paramsType,
		has:  func(name string) bool { return s.Parameters.all.member(name) != nil },
		get: func(name string) any {
			p, _ := g.Parameter(name)
			if v := s.Parameters.all.member(name); v != nil {
				return celValue(v, celType(p.schema.source))
			}
			return types.NewErr("the parameter `%s` has no value", name)
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
		return &record{kind: nodePrefix + id, get: func(string) any { return g.ports(id, s.Outputs[id]) }}
	}}
}

func (g *Graph) ports(id string, made map[string][]string) *record {
	return &record{
		kind: portsPrefix + id,
		has:  func(port string) bool { return len(made[port]) > 0 },
		get: func(port string) any {
			t, _ := vocabulary{g: g}.fieldType(portsPrefix+id, port)
			return files(made[port], t)
		},
	}
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

// items turns a list of CEL values into plain ones.
func items(list traits.Lister) ([]any, error) {
	size, _ := list.Size().(types.Int)
	all := make([]any, 0, size)
	for i := range size {
		item, err := native(list.Get(i))
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

func native(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.String:
		return string(v), nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return int64(v), nil
	case types.Double:
		return float64(v), nil
	case types.Null:
		return nil, nil
	case traits.Lister:
		return items(v)
	case traits.Mapper:
		return nativeMap(v)
	}
	return nil, fmt.Errorf("a value of type %s cannot be handed to a task", v.Type().TypeName())
}

func nativeMap(m traits.Mapper) (any, error) {
	all := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, errors.New("the keys of a map must be texts")
		}
		item, err := native(m.Get(key))
		if err != nil {
			return nil, err
		}
		all[string(name)] = item
	}
	return all, nil
}

func parseFloat(lit string) float64 {
	// The reader has refused what does not fit.
	f, _ := strconv.ParseFloat(lit, 64)
	return f
}
