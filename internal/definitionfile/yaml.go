package definitionfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What YAML may unfold to: aliases repeat what they stand for.
const (
	maxDepth = 100
	maxNodes = 1_000_000
)

func problem(format string, args ...any) error { return fmt.Errorf(format, args...) }

// fromYAML is a YAML document as JSON. Dates stay the text that they are written
// as.
func fromYAML(text []byte) ([]byte, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, errors.New("the definition is empty")
	} else if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("the definition holds more than one document")
	}
	w := &writer{}
	if err := w.node(&document, 0); err != nil {
		return nil, err
	}
	return w.out.Bytes(), nil
}

// writer writes nodes as JSON, and counts.
type writer struct {
	out   bytes.Buffer
	nodes int
}

// count refuses what unfolds without end.
func (w *writer) count(n *yaml.Node, depth int) error {
	if w.nodes++; w.nodes > maxNodes || w.out.Len() > MaxBytes {
		return problem("line %d: its aliases unfold to more than 8 MB", n.Line)
	}
	if depth > maxDepth {
		return problem("line %d: it is nested more than %d deep", n.Line, maxDepth)
	}
	return nil
}

func (w *writer) node(n *yaml.Node, depth int) error {
	if err := w.count(n, depth); err != nil {
		return err
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return w.node(n.Content[0], depth)
	case yaml.AliasNode:
		return w.node(n.Alias, depth+1)
	case yaml.SequenceNode:
		return w.list(n, depth)
	case yaml.MappingNode:
		return w.object(n, depth)
	}
	return w.scalar(n)
}

func (w *writer) list(n *yaml.Node, depth int) error {
	w.out.WriteByte('[')
	for i, one := range n.Content {
		if i > 0 {
			w.out.WriteByte(',')
		}
		if err := w.node(one, depth+1); err != nil {
			return err
		}
	}
	w.out.WriteByte(']')
	return nil
}

func (w *writer) object(n *yaml.Node, depth int) error {
	fields, err := w.fields(n, depth)
	if err != nil {
		return err
	}
	w.out.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.text(f.name)
		w.out.WriteByte(':')
		if err := w.node(f.value, depth+1); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}

// field is one of a mapping.
type field struct {
	name  string
	value *yaml.Node
}

// fields are those of a mapping, with those that it merges by `<<`, over which
// its own count.
func (w *writer) fields(n *yaml.Node, depth int) (list []field, err error) {
	if err := w.count(n, depth); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Tag == "!!merge":
			merged = append(merged, mappings(value)...)
		case key.Kind != yaml.ScalarNode:
			return nil, problem("line %d: a key must be a word", key.Line)
		case known[key.Value]:
			return nil, problem("line %d: the key %s occurs twice", key.Line, strconv.Quote(shortened(key.Value)))
		default:
			known[key.Value] = true
			list = append(list, field{key.Value, value})
		}
	}
	for _, from := range merged {
		if from.Kind != yaml.MappingNode {
			return nil, problem("line %d: << takes a mapping", from.Line)
		}
		more, err := w.fields(from, depth+1)
		if err != nil {
			return nil, err
		}
		w.nodes += len(more)
		for _, f := range more {
			if !known[f.name] {
				known[f.name] = true
				list = append(list, f)
			}
		}
	}
	return list, nil
}

// mappings are what << stands for: one, or a list of them.
func mappings(n *yaml.Node) (list []*yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	for _, one := range n.Content {
		if one.Kind == yaml.AliasNode {
			one = one.Alias
		}
		list = append(list, one)
	}
	return list
}

func (w *writer) text(s string) {
	quoted, err := json.Marshal(s)
	if err != nil { // strings can always be written
		panic(err)
	}
	w.out.Write(quoted)
}

func (w *writer) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		w.text(n.Value)
		return nil
	case "!!null":
		w.out.WriteString("null")
		return nil
	case "!!bool":
		return decoded(w, n, strconv.FormatBool)
	case "!!int":
		return decoded(w, n, func(v int64) string { return strconv.FormatInt(v, 10) })
	case "!!float":
		return decoded(w, n, func(v float64) string {
			if math.IsInf(v, 0) || math.IsNaN(v) {
				return ""
			}
			return strconv.FormatFloat(v, 'g', -1, 64)
		})
	}
	return problem("line %d: the tag %s is not known here", n.Line, strconv.Quote(shortened(n.Tag)))
}

// decoded writes a scalar that is not text.
func decoded[T any](w *writer, n *yaml.Node, format func(T) string) error {
	var v T
	if n.Decode(&v) == nil {
		if text := format(v); text != "" {
			w.out.WriteString(text)
			return nil
		}
	}
	return problem("line %d: %s is not a number that JSON allows", n.Line, strconv.Quote(shortened(n.Value)))
}

func shortened(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
