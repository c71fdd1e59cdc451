// Package graphtest makes definitions of the kind that somebody writes who
// wants to take the server down.
package graphtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Hostile is a definition with parameters to go with it. Most can be saved, and
// many can be run.
func Hostile(r *rand.Rand) (definition, parameters string) {
	kinds := []func(*rand.Rand) (string, string){
		deep, manyShards, largeEnum, longTexts, unfoldingList, unfoldingText, comparing, patterns, references, wideObjects, crowded,
	}
	return kinds[r.IntN(len(kinds))](r)
}

func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a text always can be
	}
	return string(text)
}

// list repeats an item, or what each makes.
func list(n int, each func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = each(i)
	}
	return strings.Join(parts, ",")
}

func same(s string) func(int) string { return func(int) string { return s } }

func node(id int, fields string) string {
	return fmt.Sprintf(`{"id":"n%d","command":"true",%s}`, id, fields)
}

func over(expression string) string { return `"scatter":{"over":` + quoted(expression) + `}` }

func when(expression string) string { return `"when":` + quoted(expression) }

// deep nests lists and objects, sometimes far beyond what is allowed.
func deep(r *rand.Rand) (string, string) {
	n := 1 << r.IntN(18)
	open, shut := `[`, `]`
	if r.IntN(2) == 0 {
		open, shut = `{"a":`, `}`
	}
	nested := strings.Repeat(open, n) + "1" + strings.Repeat(shut, n)
	if r.IntN(2) == 0 {
		return `{"parameters":{"p":{}},"nodes":[` + node(0, when(`params.p == params.p`)) + `]}`, `{"p":` + nested + `}`
	}
	return `{"nodes":[` + node(0, `"x-own":`+nested) + `]}`, `{}`
}

// manyShards scatters many nodes over many items.
func manyShards(r *rand.Rand) (string, string) {
	nodes, items := 1+r.IntN(2_000), 1+r.IntN(12_000)
	expression := []string{`params.l`, `params.l.map(x, [x, x, x])`, `params.l.map(x, {"k": x})`, `params.l.map(x, string(x) + "-" + string(x))`}[r.IntN(4)]
	return `{"parameters":{"l":{"type":"array"}},"nodes":[` + list(nodes, func(i int) string { return node(i, over(expression)) }) + `]}`,
		`{"l":[` + list(items, func(i int) string { return fmt.Sprint(i) }) + `]}`
}

// largeEnum compares many items with many values.
func largeEnum(r *rand.Rand) (string, string) {
	spell := []string{"%d", `"t%d"`, "%de-300", "[%d]", `{"k":%d}`}[r.IntN(5)]
	values, items := 1+r.IntN(8_000), 1+r.IntN(60_000)
	return `{"parameters":{"p":{"items":{"enum":[` + list(values, func(i int) string { return fmt.Sprintf(spell, i) }) + `]}}},"nodes":[` + node(0, over("params.p")) + `]}`,
		`{"p":[` + list(items, same(fmt.Sprintf(spell, values-1))) + `]}`
}

// longTexts writes much of everything.
func longTexts(r *rand.Rand) (string, string) {
	long := strings.Repeat("x", 1<<(10+r.IntN(10)))
	return fmt.Sprintf(`{"parameters":{"p":{"type":"string","title":"%.50000s"}},"nodes":[%s]}`, long,
		list(1+r.IntN(40), func(i int) string {
			return node(i, fmt.Sprintf(`"name":"%.200s","env":{"A":"%.32000s"},%s`, long, long, over(`[params.p, params.p + params.p, string(size(params.p))]`)))
		})), `{"p":"` + long + `"}`
}

// unfoldingList makes a list of lists that hold one another.
func unfoldingList(r *rand.Rand) (string, string) {
	expression := "[[1]]"
	for range 1 + r.IntN(9) {
		width := 1 + r.IntN(24)
		expression += []string{
			`.map(a, [` + list(width, same("a")) + `])`,
			`.map(a, ` + strings.ReplaceAll(list(width, same("a")), ",", "+") + `)`,
			`.map(a, {"k": [` + list(width, same("a")) + `]})`,
		}[r.IntN(3)]
	}
	return `{"nodes":[` + list(1+r.IntN(50), func(i int) string { return node(i, over(expression)) }) + `]}`, `{}`
}

// unfoldingText makes a text of copies of itself.
func unfoldingText(r *rand.Rand) (string, string) {
	expression := `["0123456789"]`
	for range 1 + r.IntN(9) {
		expression += `.map(a, ` + strings.ReplaceAll(list(1+r.IntN(24), same("a")), ",", "+") + `)`
	}
	expression += []string{``, `.map(a, [a,a,a,a])`, `.map(a, {a: a})`, `.map(a, int(a))`, `.map(a, size(a))`}[r.IntN(5)]
	return `{"nodes":[` + list(1+r.IntN(50), func(i int) string { return node(i, over(expression)) }) + `]}`, `{}`
}

// comparing looks through what unfolds.
func comparing(r *rand.Rand) (string, string) {
	expression := "[[1]]"
	for range 1 + r.IntN(7) {
		expression += `.map(a, [` + list(1+r.IntN(16), same("a")) + `])`
	}
	expression += []string{`.exists(a, a == a)`, `.all(a, dyn(a) in dyn([[a], a]))`, `.exists(a, [a, a].all(b, [b, b] != [b, a]))`, `.exists(a, size(a) > 1 && a == [a])`}[r.IntN(4)]
	return `{"nodes":[` + list(1+r.IntN(50), func(i int) string { return node(i, when(expression)) }) + `]}`, `{}`
}

// patterns asks for regular expressions that are larger than they look.
func patterns(r *rand.Rand) (string, string) {
	pattern := func() string {
		switch r.IntN(4) {
		case 0:
			return strings.Repeat("(", 4) + "a" + strings.Repeat(fmt.Sprintf("{%d})", 2+r.IntN(9)), 4)
		case 1:
			return strings.Repeat(`(?i)[B-\x{1e943}]`, 1+r.IntN(50))
		case 2:
			return strings.Repeat("(a?)", 1+r.IntN(200)) + "b"
		}
		return strings.Repeat(`\pL`, 1+r.IntN(300))
	}
	return `{"parameters":{` + list(1+r.IntN(50), func(i int) string {
			return fmt.Sprintf(`"p%d":{"type":"string","default":"a","pattern":%s}`, i, quoted(pattern()))
		}) + `},"nodes":[` + node(0, when(`[params.p0].exists(s, s.matches(`+quoted(pattern())+`) || [1,2,3,4,5,6,7,8].exists(i, s.matches(string(i) + params.p0)))`)) + `]}`,
		`{"p0":"` + strings.Repeat("a", r.IntN(100_000)) + `"}`
}

// references unfolds a schema.
func references(r *rand.Rand) (string, string) {
	width := 1 + r.IntN(5)
	defs := `"d0":{"type":"integer","maximum":5}`
	depth := 1 + r.IntN(12)
	for i := range depth {
		defs += fmt.Sprintf(`,"d%d":{%s:[%s]}`, i+1, []string{`"allOf"`, `"anyOf"`, `"oneOf"`}[r.IntN(3)], list(width, same(fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i))))
	}
	return fmt.Sprintf(`{"parameters":{"p":{"$defs":{%s},"items":{"$ref":"#/$defs/d%d"}}},"nodes":[%s]}`, defs, depth, node(0, over("params.p"))),
		`{"p":[` + list(1+r.IntN(30_000), func(i int) string { return fmt.Sprint(i) }) + `]}`
}

// wideObjects has many members, and a schema for each.
func wideObjects(r *rand.Rand) (string, string) {
	n := 1 + r.IntN(1_500)
	return `{"parameters":{"p":{"unevaluatedProperties":false,"anyOf":[` + list(n, func(i int) string { return fmt.Sprintf(`{"properties":{"k%d":true}}`, i) }) + `]}},"nodes":[` +
			node(0, when(`params.p == params.p`)) + `]}`,
		`{"p":{` + list(1+r.IntN(20_000), func(i int) string { return fmt.Sprintf(`"k%d":1`, i) }) + `}}`
}

// crowded has many nodes, many edges and an expression each.
func crowded(r *rand.Rand) (string, string) {
	nodes := 2 + r.IntN(1_999)
	return `{"nodes":[` + list(nodes, func(i int) string {
		return node(i, `"outputs":{"o":{"path":"o"}},`+when(fmt.Sprintf(`[1,2,3].map(x, x * %d).exists(x, x > %d)`, i, i)))
	}) + `],"edges":[` + list(min(10_000, nodes*5), func(i int) string {
		a := r.IntN(nodes - 1)
		return fmt.Sprintf(`{"id":"e%d","source":"n%d","target":"n%d"}`, i, a, a+1+r.IntN(nodes-a-1))
	}) + `]}`, `{}`
}
