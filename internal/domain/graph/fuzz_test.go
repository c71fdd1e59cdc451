package graph

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/bounds"
)

// What an expression returns can be handed to a command, or is an error that
// can be shown and stored.
func FuzzWhatAnExpressionReturns(f *testing.F) {
	for _, seed := range []string{
		`inputs.reads`, `params.l.map(x, x * 10)`, `[1, 2.5, "a", true, null, {"k": [1u]}]`, `params.o.k`,
		`["x\u0000--bind\u0000/"]`, `[[1]].map(a, [a,a,a]).map(a, a + a)`, `["a"].map(s, s + s + "\x00")`, `[1.0/0.0, -1.0/0.0]`,
		`[b"\xff"]`, `[string(b"a")]`, `[{"a": 1}["b"]]`, `params.l.filter(x, params.s.matches("^x{1,3}$"))`, `[duration("1s")].map(d, string(d))`,
		`nodes.b.outputs.each.map(f, {f: size(f)})`, `[[], [[]], {}]`, `params.any == 7 ? dyn([1]) : dyn(["a"])`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		text, err := json.Marshal(expression)
		if err != nil {
			t.Skip()
		}
		g, problems := Parse([]byte(graphWith(`"scatter":{"over":` + string(text) + `}`)))
		if len(problems) > 0 {
			return
		}
		n, _ := g.Node("c")
		values, _ := g.CheckParameters(nil)
		items, err := g.EvalOver(n, Scope{
			Parameters: values, Inputs: map[string][]string{"reads": {"r1", "r2"}}, Work: bounds.NewWork(),
			Outputs: func(string, string) []string { return []string{"B0", "B1"} },
		})
		if err != nil {
			if said := err.Error(); len(said) > 2_000 || !utf8.ValidString(said) || strings.ContainsAny(said, "\x00\n") {
				t.Fatalf("%q says %q", expression, said)
			}
			return
		}
		if items.Len() > MaxShards {
			t.Fatalf("%d items", items.Len())
		}
		for i := range items.Len() {
			var back any
			item := items.JSON(i)
			if err := json.Unmarshal([]byte(item), &back); err != nil || bounds.TextFault(item) != nil || strings.Contains(fmt.Sprint(back), "\x00") {
				t.Fatalf("item %d of %q is %q: %v", i, expression, item, err)
			}
		}
	})
}

// Whatever the schema and the parameters are, checking them ends, and what
// passes is read back as it is.
func FuzzParameters(f *testing.F) {
	for schema, given := range map[string]string{
		`{"type":"integer","minimum":0}`:                                   `3`,
		`{"items":{"enum":[1,"a",null,1e-300]},"uniqueItems":true}`:        `[1,"a"]`,
		`{"type":"string","pattern":"^(a|b){1,9}$"}`:                       `"abab"`,
		`{"$defs":{"a":{"type":"string"}},"items":{"$ref":"#/$defs/a"}}`:   `["x"]`,
		`{"properties":{"a":{"multipleOf":0.1}},"required":["a"]}`:         `{"a":0.3}`,
		`{"oneOf":[{"const":1},{"not":{"type":"null"}}],"default":[[[]]]}`: `{}`,
	} {
		f.Add(schema, given)
	}
	f.Fuzz(func(t *testing.T, schema, given string) {
		g, problems := Parse([]byte(`{"parameters":{"p":` + schema + `}}`))
		if len(problems) > 0 {
			return
		}
		values, problems := g.CheckParameters([]byte(`{"p":` + given + `}`))
		if len(problems) > 0 {
			return
		}
		again, problems := g.CheckParameters(values.JSON())
		if len(problems) > 0 || string(again.JSON()) != string(values.JSON()) {
			t.Fatalf("%s was read back as %s: %v", values.JSON(), again.JSON(), problems)
		}
		for _, p := range g.Parameters {
			if text, ok := values.Text(p.Name); !ok || bounds.TextFault(text) != nil {
				t.Fatalf("%s is %q", p.Name, text)
			}
		}
	})
}
