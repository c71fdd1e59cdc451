package graph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
)

// everyProblem lists what saving a definition would say about it.
func everyProblem(definition string) []Problem {
	g, malformed := Salvage([]byte(definition))
	return append(append(malformed, g.Incomplete()...), g.Warnings()...)
}

func TestProblemNamesItsStepFieldAndCode(t *testing.T) {
	for name, tt := range map[string]struct{ definition, code, node, field, message string }{
		"a step without a command":       {`{"nodes":[{"id":"a","name":"Trim"}]}`, NoCommand, "a", "command", `"Trim" has no command`},
		"a port fed by an unknown input": {`{"nodes":[{"id":"a","inputs":{"i":{"from":"inputs.birds"}}}]}`, NoSuchInput, "a", "inputs.i.from", `no input called "birds"`},
		"an unknown input in a list":     {`{"nodes":[{"id":"a","scatter":{"over":"inputs.birds"}}]}`, NoSuchInput, "a", "scatter.over", `no input called "birds"`},
		"a misspelt field":               {`{"nodes":[{"id":"a","comand":"x"}]}`, UnknownField, "a", "comand", "did you mean"},
		"an unconnected port":            {`{"nodes":[{"id":"a","name":"Gather","command":"x","inputs":{"parts":{}}}]}`, NotConnected, "a", "inputs.parts", `"parts" of "Gather"`},
		"an output of no step":           {`{"outputs":{"x":{"from":"a.o"}}}`, NoSuchStep, "", "outputs.x.from", `id "a"`},
		"a required input nobody uses":   {`{"inputs":{"reads":{"type":"files"}}}`, UnusedInput, "", "inputs.reads", `no step uses the input "reads"`},
		"an input variable without port": {`{"nodes":[{"id":"a","command":"cat $INPUT_parts"}]}`, UnknownVariable, "a", "command", "$INPUT_parts"},
		"a parameter that is not there":  {`{"nodes":[{"id":"a","command":"echo $PARAM_n"}]}`, UnknownVariable, "a", "command", "$PARAM_n"},
		"an item of no list":             {`{"nodes":[{"id":"a","command":"cat \"${ITEM}\""}]}`, UnknownVariable, "a", "command", "$ITEM"},
	} {
		t.Run(name, func(t *testing.T) {
			found := everyProblem(tt.definition)
			for _, p := range found {
				if p.Code == tt.code && p.Node == tt.node && p.Field == tt.field && strings.Contains(p.Message, tt.message) {
					return
				}
			}
			t.Errorf("want %q, have %+v", tt, found)
		})
	}
}

func TestProblemNamesWhatItIsAbout(t *testing.T) {
	step := func(fields string) string { return `{"nodes":[{"id":"a","name":"Trim reads",` + fields + `}]}` }
	for definition, want := range map[string]string{
		step(`"resources":{"vcpu":0}`):                                     `"Trim reads": vCPU must be above 0 and at most 4096`,
		step(`"resources":{"ramGb":"8"}`):                                  `"Trim reads": memory must be a number, not a string`,
		step(`"retries":{"max":-1}`):                                       `"Trim reads": retries must be a whole number from 0 to 100`,
		step(`"retries":{"factor":0}`):                                     `"Trim reads": retries.factor must be from 1 to 1000`,
		step(`"command":1`):                                                `"Trim reads": command must be a string, not a number`,
		step(`"scatter":"x"`):                                              `"Trim reads": scatter must be an object, not a string`,
		step(`"position":{"x":1}`):                                         `"Trim reads": position needs x and y`,
		step(`"secrets":[1]`):                                              `"Trim reads": secrets[0] is no name of a secret: it ` + nameRule,
		step(`"inputs":{"reads":1}`):                                       `"Trim reads": the input "reads" must be an object, not a number`,
		step(`"inputs":{"reads":{"optional":1}}`):                          `"Trim reads", the input "reads": optional must be true or false, not a number`,
		step(`"env":{"A":1}`):                                              `"Trim reads": the variable "A" must be a string, not a number`,
		step(`"image":"` + strings.Repeat("a", 600) + `"`):                 `"Trim reads": image is longer than 500 bytes`,
		`{"nodes":[{"id":"a","name":"` + strings.Repeat("a", 201) + `"}]}`: `"` + strings.Repeat("a", 60) + `…": name is longer than 200 characters`,
		`{"nodes":[{"command":1}]}`:                                        `step 1: command must be a string, not a number`,
		`{"nodes":{}}`:                                                     `nodes must be an array, not an object`,
		`{"source":1}`:                                                     `source must be an object, not a number`,
		`{"inputs":{"reads":1}}`:                                           `the input "reads" must be an object, not a number`,
		`{"inputs":{"reads":{"required":1}}}`:                              `the input "reads": required must be true or false, not a number`,
		`{"outputs":{"x":{"from":1}}}`:                                     `the output "x": from must be a string, not a number`,
		`{"parameters":{"q":1}}`:                                           `the parameter "q" must be an object, not a number`,
		`{"nodes":[{"id":"a","name":"Trim"},{"id":"a"}]}`:                  "`a` is already the id of \"Trim\"",
		`{"nodes":[{"id":"a","name":"A"},{"id":"b","name":"B"}],"edges":[{"id":"e","source":"a","target":"b","sourceHandle":1}]}`:                     `the line from "A" to "B": sourceHandle must be a string, not a number`,
		`{"nodes":[{"id":"a","name":"A"},{"id":"b","name":"B"}],"edges":[{"id":"e","source":"a","target":"b"},{"id":"e","source":"a","target":"b"}]}`: "`e` is already the id of the line from \"A\" to \"B\"",
	} {
		t.Run(want, func(t *testing.T) {
			for _, p := range everyProblem(definition) {
				if p.Message == want {
					return
				}
			}
			t.Errorf("%+v", everyProblem(definition))
		})
	}
}

func TestWarningsLeaveSoundDefinitionsAlone(t *testing.T) {
	for name, definition := range map[string]string{
		"an optional input":              `{"inputs":{"x":{"type":"file","required":false}},"nodes":[{"id":"a","command":"true"}]}`,
		"an input in an expression":      `{"inputs":{"x":{"type":"files"}},"nodes":[{"id":"a","command":"cat $ITEM","scatter":{"over":"inputs.x"}}]}`,
		"the list of a port":             `{"inputs":{"x":{"type":"files"}},"nodes":[{"id":"a","command":"cat $INPUT_p_LIST","inputs":{"p":{"from":"inputs.x"}}}]}`,
		"a port by an edge":              `{"nodes":[{"id":"a","command":"x","outputs":{"o":{"path":"o"}}},{"id":"b","command":"cat $INPUT_p"}],"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"p"}]}`,
		"a variable the command sets":    `{"nodes":[{"id":"a","command":"export INPUT_x=1\necho $INPUT_x"}]}`,
		"a variable the step's env sets": `{"nodes":[{"id":"a","command":"echo $PARAM_x","env":{"PARAM_x":"1"}}]}`,
		"a longer name":                  `{"nodes":[{"id":"a","command":"echo $ITEMS $MY_INPUT_x"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			g, malformed := Parse([]byte(definition))
			if len(malformed) > 0 {
				t.Fatal(malformed)
			}
			if w := g.Warnings(); len(w) > 0 {
				t.Errorf("%+v", w)
			}
		})
	}
}

func TestProblemOfLineReachesAStep(t *testing.T) {
	const nodes = `{"nodes":[{"id":"a","outputs":{"o":{"path":"o"}}},{"id":"b"}],"edges":[%s]}`
	for name, tt := range map[string]struct{ edges, code, node, field string }{
		"an output that is not there": {`{"id":"e","source":"a","sourceHandle":"p","target":"b","targetHandle":"i"}`, NoSuchOutput, "b", "edges[0].sourceHandle"},
		"a field of another type":     {`{"id":"e","source":"a","target":"b","targetHandle":1}`, WrongType, "b", "edges[0].targetHandle"},
		"a line to nowhere":           {`{"id":"e","source":"a","target":"z"}`, NoSuchStep, "a", "edges[0].target"},
		"a line from nowhere":         {`{"id":"e","source":"z","target":"b"}`, NoSuchStep, "b", "edges[0].source"},
		"a circle":                    {`{"id":"f","source":"a","target":"b"},{"id":"e","source":"b","target":"a"}`, Cycle, "a", "edges[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			found := everyProblem(fmt.Sprintf(nodes, tt.edges))
			for _, p := range found {
				if p.Code == tt.code && p.Edge == "e" && p.Node == tt.node && p.Field == tt.field {
					return
				}
			}
			t.Errorf("%+v", found)
		})
	}
}

func TestUnusedInputIsToldFromItsName(t *testing.T) {
	for name, tt := range map[string]struct {
		when   string
		unused bool
	}{
		"a parameter of its name":               {"params.reads > 0", true},
		"an output of its name":                 {"nodes.a.outputs.reads != \"\"", true},
		"a step of its name":                    {"nodes.reads.outputs.o != \"\"", true},
		"a text with its name":                  {"\"inputs.reads\" != \"\"", true},
		"a variable of its name":                {"[1].all(reads, reads > 0)", true},
		"a variable that hides the inputs":      {"[{\"reads\": 1}].all(inputs, inputs.reads > 0)", true},
		"the input without its type":            {"dyn(inputs).reads != \"\"", false},
		"the input":                             {"inputs.reads != \"\"", false},
		"the input through a variable":          {"[inputs].all(i, i.reads != \"\")", false},
		"the input, asked for":                  {"has(inputs.reads)", false},
		"the input in what does not compile":    {"inputs.reads +", false},
		"the input beside what is not there":    {"inputs.reads != params.nothing", false},
		"another word in what does not compile": {"inputs.readsets +", true},
	} {
		t.Run(name, func(t *testing.T) {
			const definition = `{"inputs":{"reads":{"type":"file"}},"parameters":{"reads":{"type":"integer","default":1}},"nodes":[
				{"id":"a","command":"x","outputs":{"reads":{"path":"r"}}},{"id":"reads","command":"x","outputs":{"o":{"path":"o"}}},{"id":"b","command":"x","when":%s}],
				"edges":[{"id":"e","source":"a","target":"b"},{"id":"f","source":"reads","target":"b"}]}`
			g, _ := Salvage(fmt.Appendf(nil, definition, quoteJSON(tt.when)))
			unused := slices.ContainsFunc(g.Warnings(), func(p Problem) bool { return p.Code == UnusedInput })
			if unused != tt.unused {
				t.Errorf("%s: unused is %t", tt.when, unused)
			}
		})
	}
}

// Each fix, applied to the definition, solves its problem.
func TestFixSolvesItsProblem(t *testing.T) {
	for name, tt := range map[string]struct{ definition, code, label string }{
		"an unknown input of a port":        {`{"nodes":[{"id":"a","command":"x","inputs":{"i":{"from":"inputs.birds"}}}]}`, NoSuchInput, `Create the input "birds"`},
		"a misspelt input of a port":        {`{"inputs":{"reads":{"type":"file"}},"nodes":[{"id":"a","inputs":{"i":{"from":"inputs.raeds"}}}]}`, NoSuchInput, `Use the input "reads"`},
		"an unknown input of an expression": {`{"nodes":[{"id":"a","scatter":{"over":"inputs.birds"}}]}`, NoSuchInput, `Create the input "birds"`},
		"a misspelt input of an expression": {`{"inputs":{"reads":{"type":"files"}},"nodes":[{"id":"a","scatter":{"over":"[1].map(i, i) + inputs.raeds.map(r, 1)"}}]}`, NoSuchInput, `Use "reads"`},
		"an unknown parameter":              {`{"nodes":[{"id":"a","when":"params.n == \"\""}]}`, NoSuchParameter, `Create the parameter "n"`},
		"a parameter of a command":          {`{"nodes":[{"id":"a","command":"echo $PARAM_n"}]}`, UnknownVariable, `Create the parameter "n"`},
		"a port of a command":               {`{"nodes":[{"id":"a","command":"cat $INPUT_p"}]}`, UnknownVariable, `Add the input "p" to the step`},
		"a line to nowhere":                 {`{"nodes":[{"id":"a"}],"edges":[{"id":"e","source":"a","target":"z"}]}`, NoSuchStep, "Remove the line"},
		"a misspelt field":                  {`{"nodes":[{"comand":"x","id":"a"}]}`, UnknownField, `Rename the field to "command"`},
		"a misspelt field of a retry":       {`{"nodes":[{"id":"a","command":"x","retries":{"facter":3}}]}`, UnknownField, `Rename the field to "factor"`},
		"a misspelt field of an input":      {`{"inputs":{"x":{"type":"file","requird":false}}}`, UnknownField, `Rename the field to "required"`},
		"a misspelt field of a line":        {`{"nodes":[{"id":"a"},{"id":"b"}],"edges":[{"id":"e","source":"a","taget":"b"}]}`, UnknownField, `Rename the field to "target"`},
		"a line from a misspelt output":     {`{"nodes":[{"id":"a","outputs":{"one":{"path":"o"}}},{"id":"b"}],"edges":[{"id":"e","source":"a","sourceHandle":"won","target":"b","targetHandle":"i"}]}`, NoSuchOutput, `Use the output "one"`},
		"a line from no output":             {`{"nodes":[{"id":"a","outputs":{"one":{"path":"o"}}},{"id":"b"}],"edges":[{"id":"e","source":"a","sourceHandle":"other","target":"b","targetHandle":"i"}]}`, NoSuchOutput, "Remove the line"},
		"an expression about a later step":  {`{"nodes":[{"id":"a","name":"Trim","outputs":{"o":{"path":"o"}}},{"id":"b","when":"nodes.a.outputs.o != \"\""}]}`, NotBefore, `Wait for "Trim"`},
		"a line to itself":                  {`{"nodes":[{"id":"a"}],"edges":[{"id":"e","source":"a","target":"a"}]}`, Cycle, "Remove the line"},
		"an output of no step":              {`{"outputs":{"x":{"from":"a.o"}}}`, NoSuchStep, "Remove the output"},
		"a misspelt output":                 {`{"nodes":[{"id":"a","outputs":{"one":{"path":"o"}}}],"outputs":{"x":{"from":"a.won"}}}`, NoSuchOutput, `Use the output "one"`},
		"an unconnected port":               {`{"nodes":[{"id":"a","inputs":{"i":{}}}]}`, NotConnected, "Make the input optional"},
		"an output that is open":            {`{"outputs":{"x":{}}}`, NotConnected, "Remove the output"},
		"no list of items":                  {`{"nodes":[{"id":"a","scatter":{}}]}`, NoItems, "Run the step once"},
		"an empty environment":              {`{"nodes":[{"id":"a","environment":{}}]}`, Missing, "Remove the environment"},
		"an unused input":                   {`{"inputs":{"reads":{"type":"files"}}}`, UnusedInput, "Remove the input"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range everyProblem(tt.definition) {
				if p.Code != tt.code {
					continue
				}
				if p.Fix == nil || p.Fix.Label != tt.label {
					t.Fatalf("%+v offers %+v", p, p.Fix)
				}
				after := applied(t, tt.definition, p.Fix.Edits)
				for _, left := range everyProblem(after) {
					if left.Code == p.Code && left.Node == p.Node && left.Field == p.Field {
						t.Errorf("%s still has %+v", after, left)
					}
				}
				return
			}
			t.Errorf("no problem %s", tt.code)
		})
	}
}

// A fix that could not be made, or would undo something else, is not offered.
func TestProblemHasNoFixThatCannotBeMade(t *testing.T) {
	for name, tt := range map[string]struct{ definition, code string }{
		"a field whose right name is there too": {`{"nodes":[{"id":"a","comand":"x","command":"y"}]}`, UnknownField},
		"a field like no other":                 {`{"nodes":[{"id":"a","colour":"x"}]}`, UnknownField},
		"a field of a step without an id":       {`{"nodes":[{"comand":"x"}]}`, UnknownField},
		"a field with a large value":            {`{"nodes":[{"id":"a","comand":"` + strings.Repeat("x", maxRespelt) + `"}]}`, UnknownField},
		"a port of a step without an id":        {`{"nodes":[{"inputs":{"i":{}}}]}`, NotConnected},
		"an expression about a step that waits": {`{"nodes":[{"id":"a","outputs":{"o":{"path":"o"}}},{"id":"b","when":"nodes.a.outputs.o != \"\""}],"edges":[{"id":"e","source":"b","target":"a"}]}`, NotBefore},
	} {
		t.Run(name, func(t *testing.T) {
			found := everyProblem(tt.definition)
			at := slices.IndexFunc(found, func(p Problem) bool { return p.Code == tt.code })
			if at < 0 || found[at].Fix != nil {
				t.Errorf("%+v", found)
			}
		})
	}
}

// applied is a definition after edits, as a client applies them.
func applied(t *testing.T, definition string, edits []fault.Edit) string {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal([]byte(definition), &root); err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"nodes", "edges"} {
		if root[list] == nil {
			root[list] = []any{}
		}
	}
	for _, e := range edits {
		root = set(root, strings.Split(e.Path, "."), e.Value).(map[string]any)
	}
	text, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func set(in any, path []string, v any) any {
	if len(path) == 0 {
		return v
	}
	if list, ok := in.([]any); ok {
		at := slices.IndexFunc(list, func(member any) bool { return member.(map[string]any)["id"] == path[0] })
		if at < 0 {
			list, at = append(list, map[string]any{}), len(list)
		}
		if list[at] = set(list[at], path[1:], v); list[at] == nil {
			return slices.Delete(list, at, at+1)
		}
		list[at].(map[string]any)["id"] = path[0]
		return list
	}
	fields, ok := in.(map[string]any)
	if !ok {
		fields = map[string]any{}
	}
	if below := set(fields[path[0]], path[1:], v); below == nil {
		delete(fields, path[0])
	} else {
		fields[path[0]] = below
	}
	return fields
}

func TestAProblemIsToldByTheNameOfItsStep(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ definition, want string }{
		"the message has no name": {
			`{"nodes":[{"id":"n_x7","name":"Count reads","command":"true","scatter":{"over":"1 +"}}]}`, `"Count reads": not a CEL expression`,
		},
		"the message begins with the name": {
			`{"nodes":[{"id":"n_x7","name":"Count reads","command":"true","resources":{"vcpu":-1}}]}`, `"Count reads": vCPU must be above 0`,
		},
		"the message names the step": {`{"nodes":[{"id":"n_x7","name":"Count reads"}]}`, `"Count reads" has no command`},
		"a line":                     {`{"nodes":[{"id":"a","name":"Trim","command":"true"}],"edges":[{"id":"e1","source":"a","target":"b"}]}`, `the line from "Trim" to "b": there is no step`},
		"the definition":             {`{"version":2}`, "the version must be 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong := everyProblem(tt.definition)
			if len(wrong) == 0 || !strings.HasPrefix(wrong[0].Sentence(), tt.want) {
				t.Errorf("got %v", wrong)
			}
		})
	}
}
