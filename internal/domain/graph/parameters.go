package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/spelling"
)

// parameters reads the declared parameters, each a JSON Schema.
func (c *checker) parameters(f *value) {
	s := schemas{compiler: jsonschema.NewCompiler(), room: newRoom()}
	s.compiler.UseLoader(noLoader{})
	s.compiler.UseRegexpEngine(s.pattern)
	c.entries(f, nil, func(v *value, in *where) { c.parameter(&s, v, in) })
	slices.SortFunc(c.g.Parameters, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
}

// schemas is what the parameters of one definition share while they are read.
type schemas struct {
	compiler *jsonschema.Compiler
	size     int
	patterns bounds.Patterns
	room     room
}

// pattern gives the validator its regular expressions.
func (s *schemas) pattern(text string) (jsonschema.Regexp, error) {
	compiled, err := s.patterns.Compile(text)
	if err != nil {
		return nil, err
	}
	return compiled, nil
}

func (c *checker) parameter(s *schemas, v *value, in *where) {
	here := at(v, in)
	p := Parameter{Name: v.name, Required: true, schema: schema{source: v}}
	if fault := s.admit(&p.schema); fault != "" {
		c.p.add(here, InvalidSchema, "%s", fault)
	} else {
		p.schema.compiled = compile(s.compiler, v, here, &c.p)
	}
	if def := v.member("default"); def != nil {
		p.Required = false
		p.schema.check(def, at(def, here), &c.p, &s.room)
	}
	c.g.Parameters = append(c.g.Parameters, p)
}

// admit says why a schema is not accepted, or weighs it.
func (s *schemas) admit(one *schema) (fault string) {
	size := len(one.source.appendJSON(nil))
	if s.size += size; size > maxSchema {
		return fmt.Sprintf("the schema is larger than %d KB", maxSchema>>10)
	}
	if s.size > maxSchemas {
		return fmt.Sprintf("the parameters are together larger than %d KB", maxSchemas>>10)
	}
	one.weight, fault = schemaFault(one.source, &s.patterns)
	return fault
}

// Values are the parameters of one run: checked, and complete with defaults.
type Values struct {
	all value // an object, its members sorted by name
}

// CheckParameters reads the parameters that a run was given, a JSON object or
// nothing, and completes them with the defaults. The problems are those of
// names that are not declared, of values that violate their schema, and of
// parameters that are missing.
func (g *Graph) CheckParameters(data []byte) (Values, []Problem) {
	var p problems
	base := (*where)(nil).field("parameters")
	given := value{kind: object}
	if len(data) > 0 && string(data) != "null" {
		var ok bool
		if given, ok = read(data, base, &p); !ok {
			return Values{}, p.all()
		}
	}
	if given.kind != object {
		p.addAbout(base, WrongType, "must be an object, not %s", kindNames[given.kind])
		return Values{}, p.all()
	}
	g.undeclared(&given, base, &p)
	resolved, room := value{kind: object}, newRoom()
	for _, param := range g.Parameters {
		v := given.member(param.Name)
		if v != nil {
			param.schema.check(v, at(v, base), &p, &room)
		} else if v = param.schema.source.member("default"); v == nil {
			p.addAbout(base.field(param.Name), Missing, "is required: it has no default")
			continue
		} else {
			room.admit(v, base.field(param.Name), &p) // it was checked when it was written
		}
		named := *v
		named.name = param.Name
		resolved.items = append(resolved.items, named)
	}
	if !p.none() {
		return Values{}, p.all()
	}
	return Values{all: resolved}, nil
}

// undeclared notes the given names that are not parameters.
func (g *Graph) undeclared(given *value, base *where, p *problems) {
	var known []string
	for i := range given.items {
		name := given.items[i].name
		if _, ok := g.Parameter(name); ok {
			continue
		}
		if known == nil {
			for _, param := range g.Parameters {
				known = append(known, param.Name)
			}
		}
		p.add(base.field(name), NoSuchParameter, "there is no parameter called %s%s", quote(name), spelling.DidYouMean(name, known))
	}
}

// JSON is the values as one object, with sorted names and canonical numbers.
// CheckParameters reads it back.
func (v Values) JSON() []byte {
	if v.all.kind != object {
		return []byte("{}")
	}
	return appendCanonical(nil, &v.all, nil)
}

// Text is what `PARAM_<name>` holds: a scalar as text, the rest as JSON.
func (v Values) Text(name string) (string, bool) {
	m := v.all.member(name)
	switch {
	case m == nil:
		return "", false
	case m.kind == text:
		return m.text, true
	}
	return string(appendCanonical(nil, m, nil)), true
}
