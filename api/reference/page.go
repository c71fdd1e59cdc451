// Package reference renders the API description as a page for people: plain
// HTML and one stylesheet, no script. Serving both is left to others.
package reference

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// CSS is the page's stylesheet. The page links it as /docs/reference.css.
//
//go:embed reference.css
var CSS []byte

//go:embed reference.html
var layout string

var page = template.Must(template.New("reference").Parse(layout))

// Page renders the OpenAPI document, given as JSON. It has no inline style or
// script, so it works under a content security policy of default-src 'self'.
func Page(doc []byte) ([]byte, error) {
	var d document
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, fmt.Errorf("read the API description: %w", err)
	}
	view, err := d.view()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := page.Execute(&out, view); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

type view struct {
	Title, Summary, Version string
	Intro                   [][]span
	Ways                    []way
	Rooms                   []room
	Shapes                  []shape
}

// way is one way to say who is calling.
type way struct {
	Name, Send string
	Text       []span
}

// room is a tag with its operations.
type room struct {
	Name       string
	Text       []span
	Operations []call
}

// Heading is the tag as a title; two letters are an abbreviation.
func (r room) Heading() string {
	if len(r.Name) <= 2 {
		return strings.ToUpper(r.Name)
	}
	return strings.ToUpper(r.Name[:1]) + r.Name[1:]
}

// shape is a schema with a table of its own.
type shape struct {
	Name   string
	Text   []span
	Fields []field
}

func (d *document) view() (view, error) {
	v := view{Title: d.Info.Title, Summary: d.Info.Summary, Version: d.Info.Version, Intro: paragraphs(d.Info.Description)}
	for _, s := range d.Components.SecuritySchemes {
		v.Ways = append(v.Ways, way{Name: wayName(s.Key), Send: sent(s.Value), Text: spans(s.Value.Description)})
	}
	for _, tag := range d.Tags {
		v.Rooms = append(v.Rooms, room{Name: tag.Name, Text: spans(tag.Description)})
	}
	for _, path := range d.Paths {
		var methods entries[json.RawMessage]
		if err := json.Unmarshal(path.Value, &methods); err != nil {
			return v, fmt.Errorf("%s: %w", path.Key, err)
		}
		for _, m := range methods {
			if !slices.Contains([]string{"get", "post", "put", "patch", "delete"}, m.Key) {
				continue
			}
			var op operation
			if err := json.Unmarshal(m.Value, &op); err != nil {
				return v, fmt.Errorf("%s %s: %w", m.Key, path.Key, err)
			}
			v.place(op.Tags, d.call(strings.ToUpper(m.Key), path.Key, op))
		}
	}
	for _, s := range d.Components.Schemas {
		if fields := d.fields(s.Value, 0); len(fields) > 0 {
			v.Shapes = append(v.Shapes, shape{Name: s.Key, Text: spans(s.Value.Description), Fields: fields})
		}
	}
	return v, nil
}

// place puts the call into its room; one without a known tag gets a room of
// its own at the end, so that nothing is lost.
func (v *view) place(tags []string, c call) {
	name := "other"
	if len(tags) > 0 {
		name = tags[0]
	}
	i := slices.IndexFunc(v.Rooms, func(r room) bool { return r.Name == name })
	if i < 0 {
		v.Rooms = append(v.Rooms, room{Name: name})
		i = len(v.Rooms) - 1
	}
	v.Rooms[i].Operations = append(v.Rooms[i].Operations, c)
}

// wayName turns a scheme's key into words: sessionToken, session token.
func wayName(key string) string {
	var words strings.Builder
	for _, r := range key {
		if r >= 'A' && r <= 'Z' {
			words.WriteByte(' ')
		}
		words.WriteString(strings.ToLower(string(r)))
	}
	return words.String()
}

func sent(s securityScheme) string {
	if s.In == "cookie" {
		return "Cookie: " + s.Name + "=…"
	}
	if strings.HasSuffix(s.BearerFormat, "_") {
		return "Authorization: Bearer " + s.BearerFormat + "…"
	}
	return "Authorization: Bearer …"
}
