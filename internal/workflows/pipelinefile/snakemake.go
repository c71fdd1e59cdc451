package pipelinefile

import (
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fromConfig reads the parameters of a Snakemake workflow: the plain values at the
// top of its configuration, with the comments on them. What is nested stays as the
// repository has it.
func fromConfig(text []byte, p *parameters) error {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return errors.New("the configuration of the workflow: " + strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if document.Kind == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	fields := document.Content[0].Content
	for i := 0; i+1 < len(fields); i += 2 {
		name, value := fields[i], fields[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if out := valueSchema(value); out != nil {
			if about := comment(name, fields[i+1]); about != "" {
				out["description"] = about
			}
			p.add(name.Value, out)
		}
	}
	return nil
}

// valueSchema takes what its default is; nil: it is not plain.
func valueSchema(n *yaml.Node) map[string]any {
	if n.Kind != yaml.ScalarNode {
		return nil
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return map[string]any{"type": "string", "default": n.Value}
	case "!!bool":
		var v bool
		if n.Decode(&v) == nil {
			return map[string]any{"type": "boolean", "default": v}
		}
	case "!!int":
		var v int64
		if n.Decode(&v) == nil {
			return map[string]any{"type": "integer", "default": v}
		}
	case "!!float":
		var v float64
		if n.Decode(&v) == nil {
			if _, err := json.Marshal(v); err == nil { // not infinite
				return map[string]any{"type": "number", "default": v}
			}
		}
	case "!!null":
		return map[string]any{"type": []string{"string", "null"}, "default": nil}
	}
	return nil
}

// comment is what stands above a field or behind it.
func comment(name, value *yaml.Node) string {
	var lines []string
	for _, text := range []string{name.HeadComment, value.LineComment} {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#")); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return prose(strings.Join(lines, " "))
}
