// Command yamljson writes the API description as compact JSON, in the order
// of the YAML, so that a server can publish it without reading YAML.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	var out bytes.Buffer
	if err := write(&out, &doc); err != nil {
		return err
	}
	out.WriteByte('\n')
	return os.WriteFile(to, out.Bytes(), 0o644)
}

// write keeps the order of the keys, which a map would lose.
func write(out *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return write(out, n.Content[0])
	case yaml.AliasNode:
		return write(out, n.Alias)
	case yaml.MappingNode:
		return writeMapping(out, n)
	case yaml.SequenceNode:
		return writeSequence(out, n)
	default:
		return writeScalar(out, n)
	}
}

func writeMapping(out *bytes.Buffer, n *yaml.Node) error {
	out.WriteByte('{')
	for i := 0; i < len(n.Content); i += 2 {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := writeJSON(out, n.Content[i].Value); err != nil {
			return err
		}
		out.WriteByte(':')
		if err := write(out, n.Content[i+1]); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

func writeSequence(out *bytes.Buffer, n *yaml.Node) error {
	out.WriteByte('[')
	for i, item := range n.Content {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := write(out, item); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	return nil
}

func writeScalar(out *bytes.Buffer, n *yaml.Node) error {
	if n.ShortTag() == "!!timestamp" {
		return writeJSON(out, n.Value)
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	return writeJSON(out, value)
}

func writeJSON(out *bytes.Buffer, value any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the encoder ends each value with a newline
	return nil
}
