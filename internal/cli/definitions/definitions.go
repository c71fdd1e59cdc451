// Package definitions reads workflows from files, and the parameters and inputs
// that a run is given on the command line.
package definitions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/definitionfile"
)

// Naming is what a person says of a workflow beside its file. What is empty is read from
// the file.
type Naming struct {
	Name    string
	License string
}

// ReadWorkflow reads a bare definition or an exported workflow, in YAML or JSON.
func ReadWorkflow(w screen.Console, path string, says Naming) (api.NewWorkflow, error) {
	text, err := ReadSmall(w, path, definitionfile.MaxBytes)
	if err != nil {
		return api.NewWorkflow{}, err
	}
	file, err := definitionfile.Read(path, text)
	if err != nil {
		return api.NewWorkflow{}, fmt.Errorf("%s: %w", path, err)
	}
	in := api.NewWorkflow{Name: file.Name, Definition: file.Definition}
	if file.Exported {
		in.Description = &file.Description
	} else if !hasNodes(file.Definition) {
		return in, fmt.Errorf("%s contains no workflow: it has neither \"definition\" nor \"nodes\"", path)
	}
	if says.Name != "" {
		in.Name = says.Name
	}
	if license := cmp.Or(says.License, file.License); license != "" {
		in.License = &license
	}
	if in.Name == "" {
		in.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if path == "-" && in.Name == "-" {
		return in, fmt.Errorf("the definition on standard input has no name; set one with --name")
	}
	return in, nil
}

func hasNodes(definition []byte) bool {
	var graph struct {
		Nodes json.RawMessage `json:"nodes"`
	}
	return json.Unmarshal(definition, &graph) == nil && graph.Nodes != nil
}

// ReadSmall reads a file, or standard input for -, of at most so many bytes.
func ReadSmall(w screen.Console, path string, most int64) ([]byte, error) {
	in := w.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %s", path, screen.Size(most))
	}
	return text, err
}

// Graph is as much of a definition as the command line looks at.
type Graph struct {
	Parameters map[string]Schema `json:"parameters"`
	Inputs     map[string]Input  `json:"inputs"`
	Nodes      []struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Type string `json:"type"`
	} `json:"nodes"`
}

// Input is an input of a workflow.
type Input struct {
	Type        string `json:"type"`
	Required    *bool  `json:"required"`
	Description string `json:"description"`
}

// Schema is a parameter's, as far as it decides how a value is written.
type Schema struct {
	Type        any             `json:"type"` // a word, or several
	Default     json.RawMessage `json:"default"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
}

func (s Schema) types() []string {
	switch t := s.Type.(type) {
	case string:
		return []string{t}
	case []any:
		var all []string
		for _, one := range t {
			all = append(all, fmt.Sprint(one))
		}
		return all
	default:
		return nil
	}
}

// ReadGraph reads what of a definition a command line needs.
func ReadGraph(definition json.RawMessage) (Graph, error) {
	var g Graph
	if err := json.Unmarshal(definition, &g); err != nil {
		return g, fmt.Errorf("can't read the workflow's definition: %w", err)
	}
	return g, nil
}

// NameOf is what a step is called: its id where it has no name.
func (g Graph) NameOf(id string) string {
	for _, n := range g.Nodes {
		if n.ID == id && n.Name != "" {
			return n.Name
		}
	}
	return id
}

// Describe shows a definition's parameters, inputs and nodes.
func Describe(w screen.Console, definition json.RawMessage) {
	g, err := ReadGraph(definition)
	if err != nil {
		w.Say("\n%v", err)
		return
	}
	section := func(heading []string, rows [][]string) {
		if len(rows) > 0 {
			w.Say("")
			w.Table(append([][]string{heading}, rows...))
		}
	}
	var parameters, inputs, nodes [][]string
	for _, name := range slices.Sorted(maps.Keys(g.Parameters)) {
		p := g.Parameters[name]
		value := string(p.Default)
		if value == "" {
			value = "(required)"
		}
		parameters = append(parameters, []string{name, strings.Join(p.types(), " or "), value, strings.TrimSpace(p.Title + " " + p.Description)})
	}
	for _, name := range slices.Sorted(maps.Keys(g.Inputs)) {
		in := g.Inputs[name]
		need := "required"
		if in.Required != nil && !*in.Required {
			need = "optional"
		}
		inputs = append(inputs, []string{name, in.Type, need, in.Description})
	}
	for _, n := range g.Nodes {
		if n.Type != "note" {
			nodes = append(nodes, []string{n.ID, n.Name})
		}
	}
	section([]string{"PARAMETER", "TYPE", "DEFAULT", "MEANING"}, parameters)
	section([]string{"INPUT", "TYPE", "", "MEANING"}, inputs)
	section([]string{"STEP", "NAME"}, nodes)
}
