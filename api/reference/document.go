package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// document is the part of an OpenAPI 3.1 document that the page shows.
type document struct {
	Info struct {
		Title, Summary, Description, Version string
	}
	Tags       []struct{ Name, Description string }
	Paths      entries[json.RawMessage]
	Security   []map[string][]string
	Components struct {
		Parameters      map[string]parameter
		Responses       map[string]response
		Schemas         entries[*schema]
		Headers         map[string]header
		Examples        map[string]example
		SecuritySchemes entries[securityScheme]
	}
}

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Access                            string              `json:"x-access"`
	Codes                             map[string][]string `json:"x-codes"`
	Security                          *[]map[string][]string
	Parameters                        []parameter
	RequestBody                       *struct {
		Required bool
		Content  entries[media]
	}
	Responses entries[response]
}

type parameter struct {
	Ref               string `json:"$ref"`
	Name, Description string
	In                string
	Required          bool
	Schema            *schema
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Headers     entries[header]
	Content     entries[media]
}

type header struct {
	Ref         string `json:"$ref"`
	Description string
}

type media struct {
	Schema   *schema
	Example  json.RawMessage
	Examples entries[example]
}

type example struct {
	Ref   string `json:"$ref"`
	Value json.RawMessage
}

type securityScheme struct {
	Type, In, Name, Scheme, BearerFormat, Description string
}

type schema struct {
	Ref                                string `json:"$ref"`
	Type                               oneOrMore
	Format, Description, Pattern       string
	Enum                               []json.RawMessage
	Const, Default                     json.RawMessage
	Minimum, Maximum, ExclusiveMinimum json.Number
	MinLength, MaxLength, MaxItems     json.Number
	MinItems, MaxProperties            json.Number
	Properties                         entries[*schema]
	Required                           []string
	Items                              *schema
	AllOf, OneOf, AnyOf                []*schema
	AdditionalProperties               schemaOrBool
}

// entries is an object whose order counts: the page follows the document.
type entries[V any] []entry[V]

type entry[V any] struct {
	Key   string
	Value V
}

// UnmarshalJSON keeps the order of the keys.
func (e *entries[V]) UnmarshalJSON(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return fmt.Errorf("want an object, have %.20s", text)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value V
		if err := dec.Decode(&value); err != nil {
			return fmt.Errorf("%v: %w", key, err)
		}
		*e = append(*e, entry[V]{key.(string), value})
	}
	return nil
}

func (e entries[V]) named(key string) (V, bool) {
	for _, it := range e {
		if it.Key == key {
			return it.Value, true
		}
	}
	var none V
	return none, false
}

// oneOrMore is a type, or several.
type oneOrMore []string

// UnmarshalJSON takes a word or a list of words.
func (o *oneOrMore) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]string)(o))
	}
	*o = make(oneOrMore, 1)
	return json.Unmarshal(text, &(*o)[0])
}

// schemaOrBool is what additionalProperties may be. Closed is the false.
type schemaOrBool struct {
	Closed bool
	Schema *schema
}

// UnmarshalJSON takes a schema, true or false.
func (s *schemaOrBool) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "true":
		return nil
	case "false":
		s.Closed = true
		return nil
	default:
		return json.Unmarshal(text, &s.Schema)
	}
}

// last is the name that a reference ends in.
func last(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

func (d *document) parameter(p parameter) parameter {
	if p.Ref != "" {
		return d.Components.Parameters[last(p.Ref)]
	}
	return p
}

func (d *document) response(r response) response {
	if r.Ref != "" {
		return d.Components.Responses[last(r.Ref)]
	}
	return r
}

func (d *document) header(h header) header {
	if h.Ref != "" {
		return d.Components.Headers[last(h.Ref)]
	}
	return h
}

// example is the first example of a body; nil without one.
func (d *document) example(m media) json.RawMessage {
	if m.Example != nil || len(m.Examples) == 0 {
		return m.Example
	}
	e := m.Examples[0].Value
	if e.Ref != "" {
		e = d.Components.Examples[last(e.Ref)]
	}
	return e.Value
}

// resolved follows references and joins what allOf puts together.
func (d *document) resolved(s *schema) *schema {
	if s == nil {
		return &schema{}
	}
	if s.Ref != "" {
		target, ok := d.Components.Schemas.named(last(s.Ref))
		if !ok || target.Ref == s.Ref {
			return &schema{}
		}
		return d.resolved(target)
	}
	if len(s.AllOf) == 0 {
		return s
	}
	whole := *s
	whole.Type = oneOrMore{"object"}
	for _, part := range s.AllOf {
		p := d.resolved(part)
		whole.Properties = append(whole.Properties[:len(whole.Properties):len(whole.Properties)], p.Properties...)
		whole.Required = append(whole.Required[:len(whole.Required):len(whole.Required)], p.Required...)
	}
	return &whole
}
