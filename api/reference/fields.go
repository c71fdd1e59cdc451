package reference

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// field is one row of a table of fields.
type field struct {
	Name     string
	Depth    int
	Type     string
	Link     string // the schema's own table, where it is not spelled out here
	Required bool
	Rules    []string
	Text     []span
}

const (
	deepest = 2 // levels below the first that are spelled out in place
	widest  = 8 // fields an object may have to be spelled out in place
)

// fields lists the fields of an object, nested ones right below their owner.
func (d *document) fields(s *schema, depth int) []field {
	whole := d.resolved(s)
	var rows []field
	for _, p := range whole.Properties {
		rows = append(rows, d.row(p.Key, p.Value, slices.Contains(whole.Required, p.Key), depth))
		inner := d.objectWithin(p.Value)
		if inner == nil || rows[len(rows)-1].Link != "" {
			continue
		}
		rows = append(rows, d.fields(inner, depth+1)...)
	}
	return rows
}

func (d *document) row(name string, s *schema, required bool, depth int) field {
	whole := d.resolved(s)
	text := whole.Description
	if s != nil && s.Description != "" { // beside a reference, its own words count
		text = s.Description
	}
	row := field{Name: name, Depth: depth, Type: d.typeName(s), Required: required, Rules: d.rules(whole), Text: spans(text)}
	if inner := d.objectWithin(s); inner != nil && inner.Ref != "" {
		if depth >= deepest || len(d.resolved(inner).Properties) > widest {
			row.Link = last(inner.Ref)
		}
	}
	return row
}

// objectWithin is the object that a field holds, by itself, in a list, as the
// values of a map, or where it is not null; nil when it holds none.
func (d *document) objectWithin(s *schema) *schema {
	whole := d.resolved(s)
	switch {
	case len(whole.Properties) > 0:
		return s
	case whole.Items != nil:
		return d.objectWithin(whole.Items)
	case whole.AdditionalProperties.Schema != nil:
		return d.objectWithin(whole.AdditionalProperties.Schema)
	}
	for _, choice := range slices.Concat(whole.OneOf, whole.AnyOf) {
		if inner := d.objectWithin(choice); inner != nil {
			return inner
		}
	}
	return nil
}

// typeName says in a few words what a value is.
func (d *document) typeName(s *schema) string {
	whole := d.resolved(s)
	if choices := slices.Concat(whole.OneOf, whole.AnyOf); len(choices) > 0 {
		var names []string
		for _, c := range choices {
			names = append(names, d.typeName(c))
		}
		return strings.Join(names, " or ")
	}
	if whole.Items != nil {
		return "list of " + d.typeName(whole.Items)
	}
	if whole.AdditionalProperties.Schema != nil {
		return "map of " + d.typeName(whole.AdditionalProperties.Schema)
	}
	if len(whole.Type) == 0 {
		return "any"
	}
	name := strings.Join(whole.Type, " or ")
	if named := map[string]string{"date-time": "time", "date": "day", "uri": "URL", "email": "email address", "password": "password"}[whole.Format]; named != "" {
		name = strings.Replace(name, "string", named, 1)
	}
	return name
}

// rules words the constraints.
func (d *document) rules(s *schema) []string {
	var rules []string
	say := func(format string, value json.Number) {
		if value != "" {
			rules = append(rules, fmt.Sprintf(format, value))
		}
	}
	if s.Const != nil {
		rules = append(rules, "always "+string(s.Const))
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, strings.Trim(string(v), `"`))
		}
		rules = append(rules, "one of "+strings.Join(values, ", "))
	}
	say("at least %s", s.Minimum)
	say("more than %s", s.ExclusiveMinimum)
	say("at most %s", s.Maximum)
	if s.MinLength != "1" {
		say("at least %s characters", s.MinLength)
	} else {
		rules = append(rules, "not empty")
	}
	say("at most %s characters", s.MaxLength)
	say("at least %s items", s.MinItems)
	say("at most %s items", s.MaxItems)
	say("at most %s entries", s.MaxProperties)
	if s.Pattern != "" {
		rules = append(rules, "matches "+s.Pattern)
	}
	if s.Default != nil && string(s.Default) != `""` {
		rules = append(rules, "default "+strings.Trim(string(s.Default), `"`))
	}
	return rules
}

// span is a piece of text, set as code or not.
type span struct {
	Text string
	Code bool
}

// spans reads the one mark that descriptions use: backquotes around code.
func spans(text string) []span {
	var all []span
	for i, piece := range strings.Split(text, "`") {
		if piece != "" {
			all = append(all, span{piece, i%2 == 1})
		}
	}
	return all
}

func paragraphs(text string) [][]span {
	var all [][]span
	for p := range strings.SplitSeq(text, "\n\n") {
		if p = strings.TrimSpace(p); p != "" {
			all = append(all, spans(p))
		}
	}
	return all
}
