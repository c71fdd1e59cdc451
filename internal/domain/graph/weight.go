package graph

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/internal/domain/bounds"
)

// room is what values may still take up while the parameters of one definition
// or one run are checked.
type room struct {
	gate   bounds.Gate
	effort int // in schemas applied to values, each one or two microseconds
}

const (
	fullEffort  = 400_000
	quickEffort = 20_000 // up to it, every violation is named
	maxWeight   = 30_000 // of one schema
)

func newRoom() room { return room{effort: fullEffort} }

// admit lets a value pass the gate, or says why it does not.
func (r *room) admit(v *value, here *where, p *problems) bool {
	r.gate.Next()
	if err := admit(&r.gate, v, 1); err != nil {
		p.add(here, TooMany, "%s", err)
		return false
	}
	return true
}

// admit lets a value pass with all that is in it.
func admit(g *bounds.Gate, v *value, depth int) error {
	if err := g.Element(depth); err != nil {
		return err
	}
	if v.kind == text {
		return g.Text(v.text)
	}
	for i := range v.items {
		if err := g.Text(v.items[i].name); err != nil {
			return err
		}
		if err := admit(g, &v.items[i], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// each calls fn with v and all that is in it.
func (v *value) each(fn func(*value)) {
	fn(v)
	for i := range v.items {
		v.items[i].each(fn)
	}
}

// bulk counts the values in v; a long text counts as several, and so does a
// number that takes long to compute with.
func (v *value) bulk() (n int) {
	v.each(func(v *value) {
		if v.kind == number {
			n += v.digits() / 2
		} else {
			n += 1 + len(v.text)/10
		}
	})
	return n
}

// digits is what a number costs that is compared exactly: 1e-300 has as many
// digits as if they were written out.
func (v *value) digits() int {
	n := 2 + len(v.text)/10
	if i := strings.IndexAny(v.text, "eE"); i >= 0 {
		exponent, _ := strconv.Atoi(strings.TrimLeft(v.text[i+1:], "+-"))
		n += exponent / 10
	}
	return n
}

// schemaFault says why a schema is not accepted before it is compiled: what
// would reach outside, and what could take long to validate.
func schemaFault(v *value, p *bounds.Patterns) (weight int, fault string) {
	w := weigher{root: v, patterns: p, done: map[*value]int{}}
	return w.weigh(v), w.fault
}

// weigher bounds the work of validating: references are followed and counted
// each time they are used, so that a small schema cannot unfold into a huge
// one, and none may lead back to itself.
type weigher struct {
	root     *value
	patterns *bounds.Patterns
	done     map[*value]int // what a schema weighs; 0 while it is being weighed
	fault    string
}

func (w *weigher) weigh(v *value) int {
	if known, seen := w.done[v]; seen || w.fault != "" {
		if known == 0 {
			w.blame("the schema refers to itself")
		}
		return known
	}
	w.done[v] = 0
	total := 1
	for i := range v.items {
		total += w.keyword(&v.items[i])
		if total > maxWeight {
			w.blame("the schema is too complex")
			return total
		}
	}
	w.done[v] = total
	return total
}

func (w *weigher) blame(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
	}
}

// keyword weighs one member of a schema.
func (w *weigher) keyword(f *value) int {
	switch f.name {
	case "$schema":
		if url := strings.TrimSuffix(f.text, "#"); url != "https://json-schema.org/draft/2020-12/schema" {
			w.blame("`$schema` must be JSON Schema 2020-12, or left out")
		}
	case "$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor", "$vocabulary":
		w.blame("`%s` is not supported in a parameter", f.name)
	case "$ref":
		return w.reference(f)
	case "default", "examples":
	case "const", "enum":
		return listed(f)
	case "uniqueItems":
		return 10 // a short list is compared each with each
	case "pattern":
		return w.pattern(f.text)
	case "patternProperties":
		total := w.each(f)
		for i := range f.items {
			total += w.pattern(f.items[i].name)
		}
		return total
	case "properties", "dependentSchemas", "$defs", "definitions":
		return w.each(f)
	default:
		if f.kind == object {
			return w.weigh(f)
		}
		if f.kind == array {
			return w.each(f)
		}
	}
	return 1
}

// pattern weighs a regular expression, whose every step may be taken for every
// character. The compiler reports one that is malformed.
func (w *weigher) pattern(s string) int {
	p, err := w.patterns.Compile(s)
	var malformed *syntax.Error
	if errors.As(err, &malformed) {
		return 1
	}
	if err != nil {
		w.blame("%s", err)
		return 1
	}
	return 1 + p.Steps/5
}

// listed weighs values that another one is compared with: of texts many take as
// long as one schema, of numbers each does.
func listed(v *value) int {
	texts, numbers := 0, 0
	v.each(func(v *value) {
		if v.kind == number {
			numbers += v.digits()
		} else {
			texts++
		}
	})
	return 1 + texts/20 + numbers
}

func (w *weigher) each(f *value) int {
	total := 1 + len(f.items)/20
	for i := range f.items {
		if f.items[i].kind == object {
			total += w.weigh(&f.items[i])
		}
	}
	return total
}

func (w *weigher) reference(f *value) int {
	pointer, local := strings.CutPrefix(f.text, "#")
	if f.kind != text || !local || strings.Contains(pointer, "%") || pointer != "" && pointer[0] != '/' {
		w.blame("`$ref` may only lead to `#/…` within the parameter itself")
		return 1
	}
	target := w.root
	for token := range jsontext.Pointer(pointer).Tokens() {
		if target = child(target, token); target == nil {
			w.blame("`$ref` leads to `%s`, which is not there", short(f.text))
			return 1
		}
	}
	if target.kind != object {
		return 1
	}
	return 1 + w.weigh(target)
}

func child(v *value, token string) *value {
	if v.kind == array {
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= len(v.items) {
			return nil
		}
		return &v.items[i]
	}
	return v.member(token)
}
