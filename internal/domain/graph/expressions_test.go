package graph

import (
	"fmt"
	"strings"
	"testing"
)

// choosing is a definition whose node c has this `when`; a comes before it, d
// does not.
func choosing(when string) string { return graphWith(fmt.Sprintf(`"when":%q`, when)) }
func spread(over string) string   { return graphWith(fmt.Sprintf(`"scatter":{"over":%q}`, over)) }

func graphWith(fields string) string {
	return `{
	"parameters": {"n":{"type":"integer","default":3}, "f":{"type":"number","default":2}, "s":{"type":"string","default":"x"}, "b":{"type":"boolean","default":true},
		"l":{"type":"array","items":{"type":"integer"},"default":[1,2.0,3]}, "o":{"type":"object","default":{"k":[1,{"z":1.5}]}}, "any":{"default":7}},
	"inputs": {"reads":{"type":"files"}, "ref":{"type":"file","required":false}},
	"nodes": [
		{"id":"a","outputs":{"one":{"path":"x"},"many":{"path":"*","many":true}}},
		{"id":"b","scatter":{"over":"inputs.reads"},"outputs":{"each":{"path":"x"}}},
		{"id":"c","outputs":{"own":{"path":"y"}},` + fields + `},
		{"id":"d","outputs":{"late":{"path":"x"}}},
		{"id":"note","type":"note"}],
	"edges": [{"id":"e","source":"a","target":"b"},{"id":"f","source":"b","target":"c"}]}`
}

func scope(t *testing.T, g *Graph) Scope {
	t.Helper()
	values, problems := g.CheckParameters(nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	made := map[string][]string{"a.one": {"A"}, "b.each": {"B0", "B1"}}
	return Scope{
		Parameters: values,
		Inputs:     map[string][]string{"reads": {"r1", "r2"}},
		Outputs:    func(node, port string) []string { return made[node+"."+port] },
	}
}

func TestAnExpressionIsCheckedWhenItIsSaved(t *testing.T) {
	t.Parallel()
	for src, says := range map[string]string{
		choosing(`params.n > "a"`):                          "`>` cannot be used with (int, string) (at character 10)",
		choosing(`params.m > 1`):                            `no parameter called "m"`,
		choosing(`inputs.raeds.size() > 0`):                 `no input called "raeds"; did you mean "reads"?`,
		choosing(`nodes.z.outputs.one == "x"`):              `no step with the id "z"`,
		choosing(`nodes.note.outputs.one == "x"`):           `no step with the id "note"`,
		choosing(`nodes.a.outputs.won == "x"`):              `"a" has no output called "won"; did you mean "one"?`,
		choosing(`nodes.a.one == "x"`):                      "write `nodes.a.outputs.<port>`",
		choosing(`nodes.d.outputs.late == "x"`):             `"d" does not come before "c"`,
		choosing(`nodes.c.outputs.own == "x"`):              "its own outputs",
		choosing(`[nodes].exists(m, m.d.outputs.late=="")`): `"d" does not come before "c"`,
		choosing(`param.n > 1`):                             "`param` is not known here",
		choosing(`params.n`):                                "must say true or false, but it is of type int",
		choosing(`params.n >`):                              "not a CEL expression",
		choosing(`nodes.a.outputs.many == "x"`):             "`==` cannot be used with (list(string), string)",
		choosing(`nodes.b.outputs.each == "x"`):             "`==` cannot be used with (list(string), string)",
		choosing(`params.s.matches("(")`) + " ":             "",
		choosing(strings.Repeat("(", 300)):                  "nested too deeply",
		choosing(strings.Repeat("x", 2049)):                 "longer than 2048",
		spread(`params.n`):                                  "must be a list, but it is of type int",
		spread(`[params]`):                                  "plain values",
		spread(`[duration("1s")]`):                          "plain values",
	} {
		_, problems := Parse([]byte(src))
		if says == "" {
			if len(problems) > 0 {
				t.Errorf("%s: refused: %v", src, problems)
			}
			continue
		}
		path := "nodes[2].when"
		if strings.Contains(src, `"scatter":{"over":"[`) || strings.Contains(src, `"scatter":{"over":"params`) {
			path = "nodes[2].scatter.over"
		}
		wantProblem(t, problems, path, says)
	}
}

func TestUnknownNameIsSaidWithoutItsPlace(t *testing.T) {
	t.Parallel()
	_, problems := Parse([]byte(choosing(`params.m > 1`)))
	if len(problems) != 1 || problems[0].Message != `there is no parameter called "m"` {
		t.Errorf("problems = %v, want one that says only the name", problems)
	}
}

func TestWhenDecides(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]bool{
		``:                                    true,
		`params.n > 2`:                        true,
		`params.n == 4`:                       false,
		`params.f > 1 && params.f == 2.0`:     true,
		`params.s == "x" && params.b`:         true,
		`params.l[1] == 2`:                    true,
		`params.o.k[1].z > 1`:                 true,
		`params.any == 7`:                     true,
		`has(params.n)`:                       true,
		`has(inputs.ref)`:                     false,
		`inputs.ref == ""`:                    true,
		`has(inputs.reads)`:                   true,
		`size(inputs.reads) == 2`:             true,
		`nodes.a.outputs.one == "A"`:          true,
		`has(nodes.a.outputs.many)`:           false,
		`size(nodes.a.outputs.many) == 0`:     true,
		`nodes.b.outputs.each == ["B0","B1"]`: true,
		`[1,2].exists(params, params > 1)`:    true,
	} {
		g := parsed(t, choosing(when))
		n, _ := g.Node("c")
		got, err := g.EvalWhen(n, scope(t, g))
		if err != nil || got != want {
			t.Errorf("%s is %v, %v", when, got, err)
		}
	}
}

func TestOverListsTheItems(t *testing.T) {
	t.Parallel()
	for over, want := range map[string][]string{
		`inputs.reads`:                     {`"r1"`, `"r2"`},
		`nodes.a.outputs.many`:             {},
		`nodes.b.outputs.each`:             {`"B0"`, `"B1"`},
		`params.l.map(x, x * 10)`:          {"10", "20", "30"},
		`[1, 2.5, "a", true, null]`:        {"1", "2.5", `"a"`, "true", "null"},
		`[{"k": [1]}]`:                     {`{"k":[1]}`},
		`params.l.filter(x, x > params.n)`: {},
		`params.o.k`:                       {"1", `{"z":1.5}`},
	} {
		g := parsed(t, spread(over))
		n, _ := g.Node("c")
		got, err := g.EvalOver(n, scope(t, g))
		if err != nil {
			t.Errorf("%s: %v", over, err)
		}
		if got.Len() != len(want) {
			t.Errorf("%s has %d items, want %d", over, got.Len(), len(want))
			continue
		}
		for i := range want {
			if got.JSON(i) != want[i] {
				t.Errorf("item %d of %s is %s, want %s", i, over, got.JSON(i), want[i])
			}
		}
	}
}

func TestAnExpressionCannotRunAway(t *testing.T) {
	t.Parallel()
	list := `[0,1,2,3,4,5,6,7,8,9]`
	src := list
	for i := range 7 {
		src = fmt.Sprintf(`%s.map(a%d, %s)`, list, i, src)
	}
	g := parsed(t, spread(src))
	n, _ := g.Node("c")
	if _, err := g.EvalOver(n, scope(t, g)); err == nil || !strings.Contains(err.Error(), "steps") {
		t.Errorf("it ended with %v", err)
	}
}

func TestTooManyShardsAreRefused(t *testing.T) {
	t.Parallel()
	g := parsed(t, spread("inputs.reads"))
	n, _ := g.Node("c")
	_, err := g.EvalOver(n, Scope{Inputs: map[string][]string{"reads": make([]string, MaxShards+1)}})
	if err == nil || !strings.Contains(err.Error(), "at most 10000") {
		t.Errorf("it ended with %v", err)
	}
}

func TestAWrongValueAtRunTimeIsAnErrorNotAnAnswer(t *testing.T) {
	t.Parallel()
	g := parsed(t, choosing("params.any"))
	n, _ := g.Node("c")
	if _, err := g.EvalWhen(n, scope(t, g)); err == nil {
		t.Error("7 was taken for true or false")
	}
}
