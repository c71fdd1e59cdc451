package graph

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// The types of what expressions can see. None can be written in an
// expression, because each has a space.
const (
	paramsType  = "the parameters"
	inputsType  = "the inputs"
	nodesType   = "the steps"
	nodePrefix  = "the step "
	portsPrefix = "the outputs of "
)

// What an expression may cost to check. CEL's checker takes
// longer than in proportion, for macros above all, so that the size of the text
// alone is no bound.
const (
	maxRecursion = 24
	maxTerms     = 300    // of one expression, with its macros unfolded
	maxAllTerms  = 30_000 // of all distinct expressions
	maxMacros    = 10     // such as map and exists, in one expression
)

// newEnv is the language of the graph's expressions: CEL with the names that
// the definition declares.
func newEnv(g *Graph) (*cel.Env, error) {
	std, err := cel.NewEnv()
	if err != nil {
		return nil, fmt.Errorf("expressions: %w", err)
	}
	return std.Extend(
		cel.CustomTypeProvider(vocabulary{Provider: std.CELTypeProvider(), g: g}),
		cel.Variable("params", cel.ObjectType(paramsType)),
		cel.Variable("inputs", cel.ObjectType(inputsType)),
		cel.Variable("nodes", cel.ObjectType(nodesType)),
		cel.CrossTypeNumericComparisons(true),
		cel.EnableIdentifierEscapeSyntax(),
		cel.EnableMacroCallTracking(), // Rename finds the names inside of has(…) by it
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(maxRecursion),
		cel.ParserErrorRecoveryLimit(4),
	)
}

// vocabulary tells CEL which names there are under params, inputs and nodes.
// It asks the graph, so that a large one costs nothing until a name is used.
type vocabulary struct {
	types.Provider
	g *Graph
}

func (v vocabulary) FindStructType(name string) (*types.Type, bool) {
	if !strings.HasPrefix(name, "the ") {
		return v.Provider.FindStructType(name)
	}
	return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
}

func (v vocabulary) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if !strings.HasPrefix(name, "the ") {
		return v.Provider.FindStructFieldType(name, field)
	}
	t, ok := v.fieldType(name, field)
	if !ok {
		return nil, false
	}
	return &types.FieldType{
		Type: t,
		IsSet: func(target any) bool {
			r, ok := target.(*record)
			return ok && r.isSet(field)
		},
		GetFrom: func(target any) (any, error) {
			r, ok := target.(*record)
			if !ok {
				return nil, fmt.Errorf("`%s` is not known here", field)
			}
			return r.get(field), nil
		},
	}, true
}

func (v vocabulary) fieldType(name, field string) (*types.Type, bool) {
	switch name {
	case paramsType:
		p, ok := v.g.Parameter(field)
		if !ok {
			return nil, false
		}
		return celType(p.schema.source), true
	case inputsType:
		in, ok := v.g.Input(field)
		return filesType(in.Many), ok
	case nodesType:
		n, ok := v.g.byID[field]
		return types.NewObjectType(nodePrefix + field), ok && n.Type == Task
	}
	if id, ok := strings.CutPrefix(name, nodePrefix); ok {
		return types.NewObjectType(portsPrefix + id), field == "outputs"
	}
	n := v.g.byID[strings.TrimPrefix(name, portsPrefix)]
	if n == nil {
		return nil, false
	}
	port, ok := n.Output(field)
	return filesType(port.Many || n.Scatter != nil), ok
}

// nodeOf is the id of the node that a type stands for.
func nodeOf(t *types.Type) (string, bool) {
	if t.Kind() != types.StructKind {
		return "", false
	}
	return strings.CutPrefix(t.TypeName(), nodePrefix)
}

func filesType(many bool) *types.Type {
	if many {
		return types.NewListType(types.StringType)
	}
	return types.StringType
}

// celType is the type that values of a schema have in expressions.
func celType(schema *value) *types.Type {
	t := schema.member("type")
	if t == nil || t.kind != text {
		return types.DynType
	}
	switch t.text {
	case "integer":
		return types.IntType
	case "number":
		return types.DoubleType
	case "string":
		return types.StringType
	case "boolean":
		return types.BoolType
	case "object":
		return types.NewMapType(types.StringType, types.DynType)
	case "array":
		if schema.member("prefixItems") == nil {
			return types.NewListType(celType(schema.member("items")))
		}
		return types.NewListType(types.DynType)
	}
	return types.DynType
}

// celValue is a JSON value as a value of that type.
func celValue(v *value, t *types.Type) any {
	switch v.kind {
	case text:
		return v.text
	case yes, no:
		return v.kind == yes
	case number:
		if n, ok := integer(v.text); ok && t.Kind() != types.DoubleKind {
			return n
		}
		f, _ := strconv.ParseFloat(v.text, 64) // the reader has refused what does not fit
		return f
	case array:
		item := types.DynType
		if t.Kind() == types.ListKind {
			item = t.Parameters()[0]
		}
		list := make([]any, len(v.items))
		for i := range v.items {
			list[i] = celValue(&v.items[i], item)
		}
		return list
	case object:
		m := make(map[string]any, len(v.items))
		for i := range v.items {
			m[v.items[i].name] = celValue(&v.items[i], types.DynType)
		}
		return m
	}
	return types.NullValue
}

// zero is what stands for something that is not there.
func zero(t *types.Type) ref.Val {
	if t.Kind() == types.ListKind {
		return types.NewStringList(types.DefaultTypeAdapter, nil)
	}
	return types.String("")
}
