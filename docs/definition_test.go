package docs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/docs"
	"github.com/millrace/millrace/internal/domain/graph"
)

// schemas are the objects of a definition, by the heading that describes them.
var schemas = map[string]string{
	"Definition": "Definition", "Source": "Source", "Parameter": "Parameter", "Input": "Input", "Node": "Node", "Input port": "InputPort",
	"Output port": "OutputPort", "Resources": "NodeResources", "Environment": "NodeEnvironment", "Retries": "Retries", "Scatter": "Scatter", "Edge": "Edge",
	"Output of the workflow": "GraphOutput",
}

type schema struct {
	Ref                  string            `json:"$ref"`
	Type                 any               `json:"type"`
	Required             []string          `json:"required"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties json.RawMessage   `json:"additionalProperties"`
	Items                *schema           `json:"items"`
	Default              any               `json:"default"`
	Enum                 []string          `json:"enum"`
	Minimum              *float64          `json:"minimum"`
	Maximum              *float64          `json:"maximum"`
	MaxItems             *float64          `json:"maxItems"`
	MaxLength            *float64          `json:"maxLength"`
	MaxProperties        *float64          `json:"maxProperties"`
}

func contract(t *testing.T) map[string]schema {
	t.Helper()
	var document struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(api.JSON, &document); err != nil {
		t.Fatal(err)
	}
	all := map[string]schema{}
	for name, text := range document.Components.Schemas {
		var s schema
		if json.Unmarshal(text, &s) == nil { // the definition needs none of the others
			all[name] = s
		}
	}
	return all
}

// tables are the rows of each section of a page, as their cells.
func tables(t *testing.T, page string) map[string][][]string {
	t.Helper()
	text, err := docs.Files.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	sections, heading := map[string][][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
		if strings.HasPrefix(line, "| `") {
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			sections[heading] = append(sections[heading], cells)
		}
	}
	return sections
}

func unquoted(cell string) string { return strings.Trim(cell, "`") }

// Every object that a definition can hold has a section, and every field of it
// a row that says its type, default and limits as the contract does.
func TestEveryFieldOfADefinitionHasItsRow(t *testing.T) {
	t.Parallel()
	all, page := contract(t), tables(t, "definition.md")
	described := slices.Collect(maps.Values(schemas))
	for _, name := range reachable(all, "Definition") {
		if !slices.Contains(described, name) {
			t.Errorf("%s has no section", name)
		}
	}
	for heading, name := range schemas {
		rows := map[string][]string{}
		for _, cells := range page[heading] {
			if len(cells) != 6 {
				t.Errorf("%s: %q has %d cells", heading, cells[0], len(cells))
				continue
			}
			rows[unquoted(cells[0])] = cells
		}
		for field, s := range all[name].Properties {
			if field == "ui" {
				continue
			}
			if cells, found := rows[field]; !found {
				t.Errorf("%s.%s has no row", heading, field)
			} else {
				agrees(t, heading+"."+field, cells, s, slices.Contains(all[name].Required, field))
			}
			delete(rows, field)
		}
		for field := range rows {
			t.Errorf("%s has no field %s", heading, field)
		}
	}
}

// reachable are the objects that a schema leads to.
func reachable(all map[string]schema, from string) []string {
	seen := map[string]bool{from: true}
	for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
		for _, s := range all[todo[0]].Properties {
			var additional schema
			_ = json.Unmarshal(s.AdditionalProperties, &additional) // it may be a boolean
			refs := []string{s.Ref, additional.Ref}
			if s.Items != nil {
				refs = append(refs, s.Items.Ref)
			}
			for _, ref := range refs {
				name := strings.TrimPrefix(ref, "#/components/schemas/")
				if name != "" && all[name].Type == "object" && !seen[name] {
					seen[name] = true
					todo = append(todo, name)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// agrees holds a row against what the contract says of the field.
func agrees(t *testing.T, where string, cells []string, s schema, required bool) {
	t.Helper()
	kind, standard, limits := cells[1], cells[2], cells[3]
	if want := typeOf(s); want != "" && kind != want {
		t.Errorf("%s is called %s, and is %s", where, kind, want)
	}
	if s.Default != nil && standard != "`"+fmt.Sprint(s.Default)+"`" {
		t.Errorf("%s: the default is %v, not %s", where, s.Default, standard)
	}
	if required && standard != "required" && !strings.HasPrefix(standard, "required to") {
		t.Errorf("%s is required, not %s", where, standard)
	}
	for _, bound := range []*float64{s.Maximum, s.MaxItems, s.MaxLength, s.MaxProperties} {
		if bound != nil && !strings.Contains(limits, thousands(int(*bound))) {
			t.Errorf("%s: %s does not say %s", where, limits, thousands(int(*bound)))
		}
	}
	for _, value := range s.Enum {
		if !strings.Contains(limits, "`"+value+"`") {
			t.Errorf("%s: %s does not say %s", where, limits, value)
		}
	}
}

// typeOf is what the page calls the type; empty where words do better.
func typeOf(s schema) string {
	if strings.HasSuffix(s.Ref, "/Name") {
		return "name"
	}
	text, _ := s.Type.(string)
	return text
}

func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// around is a definition in which one member of each kind of object can be
// replaced: a map to put it into, by the heading of its object.
func around(t *testing.T) (definition map[string]any, objects map[string]map[string]any) {
	t.Helper()
	const text = `{
		"source": {}, "parameters": {"p": {}, "seeds": {"type": "array"}, "mode": {"type": "string"}}, "inputs": {"in": {"type": "file"}, "reads": {"type": "files"}},
		"nodes": [
			{"id": "node", "inputs": {"port": {}}, "outputs": {"port": {"path": "o"}}, "resources": {}, "retries": {}, "scatter": {}},
			{"id": "trim", "environment": {}, "outputs": {"trimmed": {"path": "t"}}}, {"id": "align", "outputs": {"bam": {"path": "b"}}}],
		"edges": [{"id": "e", "source": "trim", "sourceHandle": "trimmed", "target": "align", "targetHandle": "reads"}],
		"outputs": {"out": {"from": "align.bam"}}
	}`
	if err := json.Unmarshal([]byte(text), &definition); err != nil {
		t.Fatal(err)
	}
	at := func(v any, path ...string) map[string]any {
		for _, name := range path {
			v = v.(map[string]any)[name]
		}
		return v.(map[string]any)
	}
	node := definition["nodes"].([]any)[0]
	return definition, map[string]map[string]any{
		"Definition": definition, "Source": at(definition, "source"), "Parameter": at(definition, "parameters", "p"), "Input": at(definition, "inputs", "in"),
		"Node": at(node), "Input port": at(node, "inputs", "port"), "Output port": at(node, "outputs", "port"),
		"Resources": at(node, "resources"), "Retries": at(node, "retries"), "Scatter": at(node, "scatter"),
		"Environment": at(definition["nodes"].([]any)[1], "environment"),
		"Edge":        at(definition["edges"].([]any)[0]), "Output of the workflow": at(definition, "outputs", "out"),
	}
}

func problems(t *testing.T, definition map[string]any) []graph.Problem {
	t.Helper()
	text, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	_, list := graph.Parse(text)
	return list
}

// Every example is one that is taken.
func TestEveryExampleOfAFieldIsTaken(t *testing.T) {
	t.Parallel()
	for heading, rows := range tables(t, "definition.md") {
		for _, cells := range rows {
			if schemas[heading] == "" {
				continue
			}
			field := unquoted(cells[0])
			var member map[string]any
			if err := json.Unmarshal([]byte("{"+unquoted(cells[5])+"}"), &member); err != nil || member[field] == nil {
				t.Errorf("%s.%s: %s is no example: %v", heading, field, cells[5], err)
				continue
			}
			definition, objects := around(t)
			maps.Copy(objects[heading], member)
			switch heading + "." + field {
			case "Definition.nodes", "Definition.parameters", "Definition.inputs": // the rest of the definition points at what they replace
				maps.DeleteFunc(definition, func(name string, _ any) bool { return name != field })
			case "Node.id":
				definition["nodes"] = definition["nodes"].([]any)[:1]
				delete(definition, "edges")
				delete(definition, "outputs")
			case "Node.text":
				maps.DeleteFunc(objects[heading], func(name string, _ any) bool { return name != "id" && name != "text" })
				objects[heading]["type"] = "note"
			}
			for _, p := range problems(t, definition) {
				t.Errorf("%s.%s: %s: %s: %s", heading, field, cells[5], p.Path, p.Message)
			}
		}
	}
}

var bytesLimit = regexp.MustCompile(`([\d,]+) bytes`)

// What the page says of the length of a text is where it is refused.
func TestTextsAreAsLongAsThePageSays(t *testing.T) {
	t.Parallel()
	tried := 0
	for heading, rows := range tables(t, "definition.md") {
		for _, cells := range rows {
			if schemas[heading] == "" {
				continue
			}
			found := bytesLimit.FindStringSubmatch(cells[3])
			if found == nil {
				continue
			}
			limit, err := strconv.Atoi(strings.ReplaceAll(found[1], ",", ""))
			if err != nil {
				t.Fatal(err)
			}
			tried++
			refused := func(length int) bool {
				definition, objects := around(t)
				var value any = strings.Repeat("a", length)
				switch field := unquoted(cells[0]); field {
				case "env":
					objects[heading][field] = map[string]any{"A": value}
				case "text":
					objects[heading]["type"], objects[heading][field] = "note", value
				default:
					objects[heading][field] = value
				}
				return slices.ContainsFunc(problems(t, definition), func(p graph.Problem) bool {
					return strings.HasSuffix(p.Message, fmt.Sprintf("is longer than %d bytes", limit))
				})
			}
			if refused(limit) || !refused(limit+1) {
				t.Errorf("%s.%s is not bounded by %d bytes", heading, cells[0], limit)
			}
		}
	}
	if tried < 8 {
		t.Errorf("only %d bounds were tried", tried)
	}
}

// Every code of a problem is in docs/workflows.md.
func TestEveryProblemCodeIsExplained(t *testing.T) {
	source, err := os.ReadFile("../internal/domain/graph/problems.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`(?m)^\t[A-Z]\w+ += "([a-z_]+)"$`).FindAllSubmatch(source, -1)
	if len(codes) < 25 {
		t.Fatalf("found only %d codes", len(codes))
	}
	page, err := docs.Files.ReadFile("workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range codes {
		if !strings.Contains(string(page), "`"+string(code[1])+"`") {
			t.Errorf("docs/workflows.md does not explain %s", code[1])
		}
	}
}
