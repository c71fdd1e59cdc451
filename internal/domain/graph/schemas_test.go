package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// References lead anywhere within the parameter, also into lists, and nowhere
// else.
func TestWhereReferencesLead(t *testing.T) {
	t.Parallel()
	for schema, says := range map[string]string{
		`{"anyOf":[{"type":"string"},{"$ref":"#/anyOf/0"}]}`:                     "",
		`{"prefixItems":[{"type":"string"}],"items":{"$ref":"#/prefixItems/0"}}`: "",
		`{"$defs":{"a/b":{"type":"string"}},"$ref":"#/$defs/a~1b"}`:              "",
		`{"$defs":{"a":true},"$ref":"#/$defs/a"}`:                                "",
		`{"$ref":"#/anyOf/1","anyOf":[{"type":"string"}]}`:                       "not there",
		`{"$ref":"#/anyOf/-1","anyOf":[{"type":"string"}]}`:                      "not there",
		`{"$ref":"#/anyOf/x","anyOf":[{"type":"string"}]}`:                       "not there",
		`{"$ref":"#/type/x","type":"string"}`:                                    "not there",
		`{"$ref":"#/$defs/a%2Fb","$defs":{"a/b":{}}}`:                            "may only lead to `#/…`",

		`{"$ref":"#anchor"}`:  "may only lead to `#/…`",
		`{"$ref":"other#/a"}`: "may only lead to `#/…`",
		`{"$ref":""}`:         "may only lead to `#/…`",
		`{"$ref":7}`:          "may only lead to `#/…`",
		`{"$ref":"#"}`:        "refers to itself",
		`{"$ref":"#/properties/a","properties":{"a":{"$ref":"#/properties/b"},"b":{"$ref":"#/properties/a"}}}`: "refers to itself",
		`{"$anchor":"a"}`:                                                "`$anchor` is not supported",
		`{"items":{"$dynamicRef":"#a"}}`:                                 "`$dynamicRef` is not supported",
		`{"allOf":[{"$vocabulary":{}}]}`:                                 "`$vocabulary` is not supported",
		`{"$schema":7}`:                                                  "must be JSON Schema 2020-12",
		`{"dependentSchemas":{"a":{"$id":"x"}}}`:                         "`$id` is not supported",
		`{"default":{"$ref":"http://evil"}}`:                             "",
		`{"enum":[{"$ref":"http://evil"}]}`:                              "",
		`{"patternProperties":{"(":{}}}`:                                 "not valid",
		`{"patternProperties":{"` + strings.Repeat("x", 1001) + `":{}}}`: "at most 1000 characters",
	} {
		_, problems := Parse([]byte(`{"parameters":{"p":` + schema + `}}`))
		if says == "" && len(problems) > 0 || says != "" && (len(problems) == 0 || !strings.Contains(fmt.Sprint(problems), says)) {
			t.Errorf("%.90s: %v, want %q", schema, problems, says)
		}
	}
}

// Of many violations the first twenty are named.
func TestViolationsAreNamedUpToABound(t *testing.T) {
	t.Parallel()
	g := parsed(t, `{"parameters":{"p":{"type":"array","items":{"type":"string"}}}}`)
	for _, n := range []int{1, 20, 21, 100} {
		_, problems := g.CheckParameters([]byte(`{"p":` + list("1", n) + `}`))
		if len(problems) != min(n, 20) || problems[0].Path != "parameters.p[0]" || !strings.Contains(problems[0].Message, "got number, want string") {
			t.Errorf("%d: %d problems, the first %v", n, len(problems), problems[0])
		}
	}
	g = parsed(t, `{"parameters":{"p":{"not":{}},"q":{"oneOf":[{"type":"string"},{"type":"null"}]},"r":{"required":["a","b"]}}}`)
	_, problems := g.CheckParameters([]byte(`{"p":1,"q":1,"r":{"a":1}}`))
	for _, name := range []string{"p", "q", "r"} {
		if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Path == "parameters."+name && p.Message != "" }) {
			t.Errorf("nothing is said of %s: %v", name, problems)
		}
	}
}

// together are many nodes, each with an expression of its own.
func together(n int, expression string) string {
	return `{"parameters":{"n":{"type":"integer","default":1}},"nodes":[` + repeat(n, `{"id":"n#","when":"`+expression+`"}`) + `]}`
}

func TestExpressionsHaveBounds(t *testing.T) {
	t.Parallel()
	terms := func(n int) string { return "size(" + list("1", n-4) + ") > 0" } // beside the items: the list, size, > and 0
	for name, tt := range map[string]struct {
		src, says string
		wrong     int
	}{
		"as many terms as may be":   {choosing(terms(maxTerms)), "", 0},
		"more":                      {choosing(terms(maxTerms + 1)), "too complex", 1},
		"as many macros as may be":  {choosing(strings.Repeat("[1].all(a, ", 10) + "true" + strings.Repeat(")", 10)), "", 0},
		"one macro more":            {choosing(strings.Repeat("[1].all(a, ", 11) + "true" + strings.Repeat(")", 11)), "too complex", 1},
		"many, which are the same":  {together(MaxNodes, terms(100)), "", 0},
		"many of their own":         {together(310, strings.ReplaceAll(terms(100), "> 0", "> -#")), "too complex", 10},
		"longer than all may be":    {together(200, "'"+strings.Repeat("x", 1000)+"#'!=''"), "together longer than 128 KB", 0},
		"more faults than are told": {choosing("a+b+c+d+e+f+g+h > 0"), "is not known here", 5},
		"faults in several lines":   {choosing("params.n\n  > zero"), "(at line 2, character 5)", 1},
	} {
		_, problems := Parse([]byte(tt.src))
		if tt.says == "" && len(problems) > 0 || tt.says != "" && (len(problems) == 0 || !strings.Contains(problems[0].Message, tt.says)) {
			t.Errorf("%s: %.200v, want %q", name, problems, tt.says)
		}
		if tt.wrong > 0 && len(problems) != tt.wrong {
			t.Errorf("%s: %d problems, want %d", name, len(problems), tt.wrong)
		}
	}
}

// A draft whose expressions are wrong can be held and asked; it says so.
func TestAnExpressionThatIsWrongIsNoAnswer(t *testing.T) {
	t.Parallel()
	g, problems := Salvage([]byte(graphWith(`"when":"params.n >","scatter":{"over":"nobody.knows"}`)))
	if len(problems) == 0 {
		t.Fatal("it is accepted")
	}
	n, _ := g.Node("c")
	if _, err := g.EvalWhen(n, Scope{}); err == nil || !strings.Contains(err.Error(), "`when`: the expression is malformed") {
		t.Error(err)
	}
	if _, err := g.EvalOver(n, Scope{}); err == nil || !strings.Contains(err.Error(), "`scatter.over`: the expression is malformed") {
		t.Error(err)
	}
	a, _ := g.Node("a")
	if _, err := g.EvalOver(a, Scope{}); err == nil || !strings.Contains(err.Error(), "it is not scattered over anything") {
		t.Error(err)
	}
}

// Where a run has no files, outputs or parameters, an expression finds none.
func TestAnExpressionOverNothing(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		`has(params.n)`: "false", `size(inputs.reads) == 0`: "true", `nodes.a.outputs.one == ""`: "true", `size(nodes.b.outputs.each) == 0`: "true",
		`has(nodes.a.outputs.one)`: "false", `params.n > 0`: "the parameter `n` has no value", `[1][1] == 1`: "index out of bounds", `params.o.none == 1`: "the parameter `o` has no value",
	} {
		g := parsed(t, choosing(when))
		n, _ := g.Node("c")
		got, err := g.EvalWhen(n, Scope{})
		if text := fmt.Sprint(got, err); !strings.Contains(text, want) {
			t.Errorf("%s is %s, want %s", when, text, want)
		}
	}
}

// Whoever carries a graph out needs nothing of what its author wrote beside it.
func TestAGraphWithoutItsSourceDoesTheSame(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{`"when":"params.n > 2 && params.o.k[1].z > 1"`, `"when":"has(inputs.ref)"`, `"scatter":{"over":"params.l.map(x, x * params.n)"}`, `"scatter":{"over":"nodes.b.outputs.each"}`} {
		whole := parsed(t, graphWith(fields))
		slim := whole.WithoutSource()
		n, _ := whole.Node("c")
		if whole.Nodes[0] != slim.Nodes[0] || len(slim.Order()) != len(whole.Order()) || len(slim.Outgoing("a")) != 1 || len(slim.Incoming("c")) != 1 || len(whole.JSON()) == 0 {
			t.Error("it is another graph")
		}
		did, err := whole.EvalWhen(n, scope(t, whole))
		does, again := slim.EvalWhen(n, scope(t, slim))
		if did != does || fmt.Sprint(err) != fmt.Sprint(again) {
			t.Errorf("%s is %v, %v; without the source %v, %v", fields, did, err, does, again)
		}
		if n.Scatter == nil {
			continue
		}
		items, err := whole.EvalOver(n, scope(t, whole))
		others, again := slim.EvalOver(n, scope(t, slim))
		if items.Len() != others.Len() || items.Len() == 0 || items.JSON(0) != others.JSON(0) || err != nil || again != nil {
			t.Errorf("%s has %d items, %v; without the source %d, %v", fields, items.Len(), err, others.Len(), again)
		}
	}
}

func TestChangesAreCountedWhereTheyAreMany(t *testing.T) {
	t.Parallel()
	nodes := func(ids []int, command string) (all []string) {
		for _, i := range ids {
			all = append(all, fmt.Sprintf(`{"id":"node_with_a_long_name_%d","command":"%s"}`, i, command))
		}
		return all
	}
	seq := func(from, to int) (ids []int) {
		for i := from; i < to; i++ {
			ids = append(ids, i)
		}
		return ids
	}
	graph := func(rest string, parts ...[]string) *Graph {
		return parsed(t, `{`+rest+`"nodes":[`+strings.Join(slices.Concat(parts...), ",")+`]}`)
	}
	before := graph("", nodes(seq(0, 40), "x"))
	for want, after := range map[string]*Graph{
		"changed 40 steps":                             graph("", nodes(seq(0, 40), "y")),
		"removed 30 steps":                             graph("", nodes(seq(0, 10), "x")),
		"added 20 steps, changed 10, removed 30":       graph("", nodes(seq(0, 10), "y"), nodes(seq(40, 60), "x")),
		"added 1 step, changed 39, removed 1":          graph("", nodes(seq(1, 40), "y"), nodes([]int{77}, "x")),
		"changed 40 steps; changed parameters, inputs": graph(`"parameters":{"p":{}},"inputs":{"i":{}},`, nodes(seq(0, 40), "y")),
		"changed parameters, inputs":                   graph(`"parameters":{"p":{}},"inputs":{"i":{}},`, nodes(seq(0, 40), "x")),
		"changed node_with_a_long_name_3":              graph("", nodes(seq(0, 3), "x"), nodes([]int{3}, "y"), nodes(seq(4, 40), "x")),
	} {
		if got := Changes(before, after); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
