package graph

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schema is the JSON Schema of one parameter.
type schema struct {
	source   *value
	compiled *jsonschema.Schema // nil when it is malformed
	weight   int                // how many schemas it unfolds into
}

// effort is what validating may still cost, in schemas applied to values.
type effort int

const fullEffort effort = 1_000_000

// spend reports whether the rest is enough for v.
func (e *effort) spend(v *value, s schema) bool {
	*e -= effort(v.bulk() * s.weight)
	return *e >= 0
}

// bulk counts the values in v; a long text counts as several.
func (v *value) bulk() int {
	n := 1 + len(v.text)/10
	for i := range v.items {
		n += v.items[i].bulk()
	}
	return n
}

// errLoad keeps schemas from reaching for anything outside the definition.
var errLoad = errors.New("only `#/…` within the parameter itself can be referred to")

type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errLoad }

// pattern compiles a regular expression, unless it unfolds into a huge one.
func pattern(s string) (jsonschema.Regexp, error) {
	steps, err := patternSteps(s)
	if err != nil {
		return nil, err
	}
	if steps > maxWeight {
		return nil, errors.New("the pattern is too complex")
	}
	return regexp.Compile(s)
}

// patternSteps counts the instructions of a regular expression.
func patternSteps(s string) (int, error) {
	if len(s) > maxPattern {
		return 0, fmt.Errorf("a pattern has at most %d characters", maxPattern)
	}
	parsed, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}

func compile(compiler *jsonschema.Compiler, v *value, here *where, p *problems) *jsonschema.Schema {
	url := "parameter:///" + v.name
	err := compiler.AddResource(url, v.generic())
	if err == nil {
		var compiled *jsonschema.Schema
		if compiled, err = compiler.Compile(url); err == nil {
			return compiled
		}
	}
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		violations(invalid.Err, here, p)
		return nil
	}
	p.add(here, "not a usable JSON Schema: %s", short(strings.ReplaceAll(err.Error(), url, "")))
	return nil
}

// check notes how a value violates the schema.
func (s schema) check(v *value, here *where, p *problems, left *effort) {
	if s.compiled == nil {
		return
	}
	if !left.spend(v, s) {
		p.add(here, "the value is too large to be checked against its schema")
		return
	}
	if err := s.compiled.Validate(v.generic()); err != nil {
		violations(err, here, p)
		return
	}
	if t := s.source.member("type"); t.is("integer") && v.kind == number {
		if _, ok := integer(v.text); !ok {
			p.add(here, "the integer %s is beyond ±2^53, where not every one can be told apart", short(v.text))
		}
	}
}

// violations notes what the validator found, one problem for each place.
func violations(err error, here *where, p *problems) {
	const most = 20
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		p.add(here, "%s", short(err.Error()))
		return
	}
	units := causes(nil, invalid.DetailedOutput())
	for _, unit := range units[:min(len(units), most)] {
		p.add(walk(here, jsontext.Pointer(unit.InstanceLocation)), "%s", long(unit.Error.String()))
	}
	if len(units) == 0 {
		p.add(here, "does not match its schema")
	}
}

// causes collects what is behind a violation and has nothing further behind it.
func causes(found []*jsonschema.OutputUnit, unit *jsonschema.OutputUnit) []*jsonschema.OutputUnit {
	if len(unit.Errors) == 0 && unit.Error != nil {
		return append(found, unit)
	}
	for i := range unit.Errors {
		found = causes(found, &unit.Errors[i])
	}
	return found
}

// long bounds a message that may quote a whole value.
func long(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// schemaFault says why a schema is not accepted before it is compiled: what
// would reach outside, and what could take long to validate.
func schemaFault(v *value) (weight int, fault string) {
	w := weigher{root: v, done: map[*value]int{}}
	return w.weigh(v), w.fault
}

// weigher bounds the work of validating: references are followed and counted
// each time they are used, so that a small schema cannot unfold into a huge
// one, and none may lead back to itself.
type weigher struct {
	root  *value
	done  map[*value]int // what a schema weighs; 0 while it is being weighed
	fault string
}

const maxWeight = 2_000

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
	case "default", "const", "enum", "examples":
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
	steps, err := patternSteps(s)
	if err != nil {
		return 1
	}
	return 1 + steps
}

func (w *weigher) each(f *value) int {
	total := 1
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
