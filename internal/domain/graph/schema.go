package graph

import (
	"errors"
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

// errLoad keeps schemas from reaching for anything outside the definition.
var errLoad = errors.New("only `#/…` within the parameter itself can be referred to")

type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errLoad }

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
	p.add(here, InvalidSchema, "not a usable JSON Schema: %s", short(strings.ReplaceAll(err.Error(), url, "")))
	return nil
}

// check notes how a value violates the schema. One that takes long to check is
// only said to do so: what the validator notes of it would take up memory.
func (s schema) check(v *value, here *where, p *problems, r *room) {
	if !r.admit(v, here, p) || s.compiled == nil {
		return
	}
	effort := v.bulk() * s.weight
	if r.effort -= effort; r.effort < 0 {
		p.add(here, TooMany, "the value is too large to be checked against its schema")
		return
	}
	sound := v.generic()
	if effort > quickEffort {
		denied := jsonschema.Schema{DraftVersion: s.compiled.DraftVersion, Not: s.compiled}
		if denied.Validate(sound) == nil {
			p.addAbout(here, SchemaMismatch, "does not match its schema")
			return
		}
	} else if err := s.compiled.Validate(sound); err != nil {
		violations(err, here, p)
		return
	}
	if t := s.source.member("type"); t.is("integer") && v.kind == number {
		if _, ok := integer(v.text); !ok {
			p.add(here, OutOfRange, "the integer %s is beyond ±2^53, where not every one can be told apart", short(v.text))
		}
	}
}

// violations notes what the validator found, one problem for each place.
func violations(err error, here *where, p *problems) {
	const most = 20
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		p.add(here, SchemaMismatch, "%s", short(err.Error()))
		return
	}
	units := causes(nil, invalid.DetailedOutput())
	for _, unit := range units[:min(len(units), most)] {
		p.add(walk(here, jsontext.Pointer(unit.InstanceLocation)), SchemaMismatch, "%s", long(unit.Error.String()))
	}
	if len(units) == 0 {
		p.addAbout(here, SchemaMismatch, "does not match its schema")
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
