package bounds

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Items are what a node is scattered over: text, bool, int64, float64, nil, or
// lists and maps of these, all of which have passed the gate.
type Items struct {
	values []any
	bytes  int
}

// Len is how many there are.
func (s Items) Len() int { return len(s.values) }

// Bytes is how long their texts are together.
func (s Items) Bytes() int { return s.bytes }

// JSON is one item as a task is handed it.
func (s Items) JSON(i int) string {
	text, err := json.Marshal(s.values[i])
	if err != nil {
		panic(err) // the gate lets only JSON pass
	}
	return string(text)
}

// ItemsOf turns the result of an expression into plain values, which is work
// of its own.
func ItemsOf(list traits.Lister, w *Work) (Items, error) {
	var g Gate
	defer func() { w.take(g.elements + g.bytes/8) }()
	size, _ := list.Size().(types.Int)
	if err := g.room(int64(size)); err != nil {
		return Items{}, err
	}
	all := make([]any, 0, size)
	for i := range size {
		g.Next()
		item, err := g.native(list.Get(i), 1)
		if err != nil {
			return Items{}, fmt.Errorf("item %d: %w", i+1, err)
		}
		all = append(all, item)
	}
	return Items{all, g.bytes}, nil
}

// native is a value of CEL as a plain one.
func (g *Gate) native(v ref.Val, depth int) (any, error) {
	if err := g.Element(depth); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case types.String:
		return string(v), g.Text(string(v))
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("the number %d is too large", uint64(v))
		}
		return int64(v), nil
	case types.Double:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%v is not a number that can be handed on", f)
		}
		return float64(v), nil
	case types.Null:
		return nil, nil
	case traits.Mapper:
		return g.nativeMap(v, depth)
	case traits.Lister:
		return g.nativeList(v, depth)
	}
	return nil, fmt.Errorf("a value of type %s cannot be handed to a task", v.Type().TypeName())
}

func (g *Gate) nativeList(list traits.Lister, depth int) (any, error) {
	size, _ := list.Size().(types.Int)
	if err := g.room(int64(size)); err != nil {
		return nil, err
	}
	all := make([]any, 0, size)
	for i := range size {
		item, err := g.native(list.Get(i), depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

func (g *Gate) nativeMap(m traits.Mapper, depth int) (any, error) {
	all := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, errors.New("the keys of a map must be texts")
		}
		if err := g.Text(string(name)); err != nil {
			return nil, err
		}
		item, err := g.native(m.Get(key), depth+1)
		if err != nil {
			return nil, err
		}
		all[string(name)] = item
	}
	return all, nil
}
