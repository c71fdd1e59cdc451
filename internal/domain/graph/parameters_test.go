package graph

import (
	"fmt"
	"strings"
	"testing"
)

func TestAParameterIsAJSONSchema(t *testing.T) {
	t.Parallel()
	unfolding := `{"$defs":{"d0":{"type":"string"}`
	for i := range 30 {
		unfolding += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	unfolding += `},"$ref":"#/$defs/d30"}`
	for name, tt := range map[string]struct{ schema, path, says string }{
		"a known type":                {`{"type":"integer"}`, "", ""},
		"nothing said":                {`{}`, "", ""},
		"a reference inside":          {`{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a","default":"x"}`, "", ""},
		"a property named $ref":       {`{"type":"object","properties":{"$ref":{"type":"string"},"default":{"type":"integer"}}}`, "", ""},
		"data that looks like one":    {`{"const":{"$ref":"http://example.com"}}`, "", ""},
		"the draft itself":            {`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, "", ""},
		"no schema":                   {`true`, "parameters.p", "must be an object"},
		"an unknown type":             {`{"type":"int"}`, "parameters.p.type", "'array', 'boolean'"},
		"a wrong bound":               {`{"minimum":"a"}`, "parameters.p.minimum", "number"},
		"a broken pattern":            {`{"pattern":"("}`, "parameters.p.pattern", "not valid"},
		"a wrong default":             {`{"type":"integer","default":"a"}`, "parameters.p.default", "got string, want integer"},
		"a default out of range":      {`{"type":"integer","minimum":5,"default":1}`, "parameters.p.default", "got 1, want 5"},
		"a default too large":         {`{"type":"integer","default":9007199254740993}`, "parameters.p.default", "beyond ±2^53"},
		"a reference elsewhere":       {`{"$ref":"http://example.com/s"}`, "parameters.p", "within the parameter"},
		"a reference to a file":       {`{"items":{"$ref":"file:///etc/passwd"}}`, "parameters.p", "within the parameter"},
		"a reference to nothing":      {`{"$ref":"#/$defs/a"}`, "parameters.p", "not there"},
		"another identity":            {`{"$id":"http://example.com"}`, "parameters.p", "not supported"},
		"another draft":               {`{"$schema":"http://json-schema.org/draft-07/schema#"}`, "parameters.p", "2020-12"},
		"a circle":                    {`{"properties":{"a":{"$ref":"#"}}}`, "parameters.p", "refers to itself"},
		"one that unfolds":            {unfolding, "parameters.p", "too complex"},
		"a pattern that unfolds":      {`{"pattern":"(((((a{10}){10}){10})(((a{10}){10}){10})(((a{10}){10}){10}))(((a{10}){10}){10})(((a{10}){10}){10})(((a{10}){10}){10}))"}`, "parameters.p", "too complex"},
		"a default that is too large": {`{"type":"array","items":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 100) + `{}]},"default":[` + strings.Repeat(`1,`, 20_000) + `1]}`, "parameters.p.default", "too large"},
		"one that is too large":       {`{"title":"` + strings.Repeat("a", maxSchema) + `"}`, "parameters.p", "larger than 64 KB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := Parse([]byte(`{"parameters":{"p":` + tt.schema + `}}`))
			if tt.says != "" {
				wantProblem(t, problems, tt.path, tt.says)
			} else if len(problems) > 0 {
				t.Errorf("refused: %v", problems)
			}
		})
	}
}

const declared = `{"parameters":{
	"minQuality":{"type":"integer","default":20,"minimum":0},
	"name":{"type":"string"},
	"ratio":{"type":"number","default":1e0},
	"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}},"default":[]}}}`

func TestParametersAreCompletedWithDefaults(t *testing.T) {
	t.Parallel()
	g := parsed(t, declared)
	values, problems := g.CheckParameters([]byte(`{"name":"x y","minQuality":3e1}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got, want := string(values.JSON()), `{"list":[],"minQuality":30,"name":"x y","ratio":1}`; got != want {
		t.Errorf("have %s, want %s", got, want)
	}
	for name, want := range map[string]string{"name": "x y", "minQuality": "30", "ratio": "1", "list": "[]"} {
		if got, ok := values.Text(name); !ok || got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	again, problems := g.CheckParameters(values.JSON())
	if len(problems) > 0 || string(again.JSON()) != string(values.JSON()) {
		t.Errorf("read back as %s, %v", again.JSON(), problems)
	}
	if _, ok := values.Text("other"); ok {
		t.Error("a name that is not declared has a text")
	}
}

func TestWrongParametersAreNamed(t *testing.T) {
	t.Parallel()
	g := parsed(t, declared)
	for given, want := range map[string][2]string{
		`{}`:                                {"parameters.name", "is required"},
		``:                                  {"parameters.name", "is required"},
		`null`:                              {"parameters.name", "is required"},
		`[]`:                                {"parameters", "must be an object"},
		`{"name":"a","minQuality":-1}`:      {"parameters.minQuality", "got -1, want 0"},
		`{"name":"a","minQuality":"1"}`:     {"parameters.minQuality", "got string, want integer"},
		`{"name":"a","minQuality":1e15000}`: {"parameters.minQuality", "does not fit"},
		`{"name":"a","minQuality":1e300}`:   {"parameters.minQuality", "beyond ±2^53"},
		`{"name":"a","minQuality":null}`:    {"parameters.minQuality", "got null"},
		`{"name":"a","minQualty":1}`:        {"parameters.minQualty", `did you mean "minQuality"?`},
		`{"name":"a","list":[{},{"a":1}]}`:  {"parameters.list[1].a", "got number, want string"},
		`{"name":"a","name":"b"}`:           {"parameters.name", "twice"},
		`{"name":`:                          {"parameters.name", "not valid JSON"},
	} {
		_, problems := g.CheckParameters([]byte(given))
		wantProblem(t, problems, want[0], want[1])
	}
}
