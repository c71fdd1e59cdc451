package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// call is one operation as the page shows it.
type call struct {
	ID, Method, Path, Summary string
	Text                      [][]span
	Access                    string
	SignIn                    string
	Parameters                []field
	Places                    []string // where each parameter goes, beside Parameters
	Body                      *body
	Successes                 []answer
	Failures                  []refusal
	Curl                      string
}

type body struct {
	Kind     string
	Optional bool
	Shape    string // the schema's name, where it has a table of its own
	Fields   []field
	Example  string
}

type answer struct {
	Status  string
	Text    []span
	Headers []namedHeader
	Bodies  []body
}

type namedHeader struct {
	Name string
	Text []span
}

type refusal struct {
	Status string
	Text   []span
	Codes  []string
}

func (d *document) call(method, path string, op operation) call {
	c := call{
		ID: op.OperationID, Method: method, Path: path, Summary: op.Summary,
		Text: paragraphs(op.Description), Access: op.Access, SignIn: d.signIn(op),
	}
	for _, ref := range op.Parameters {
		p := d.parameter(ref)
		row := d.row(p.Name, p.Schema, p.Required, 0)
		row.Text = spans(p.Description)
		c.Parameters = append(c.Parameters, row)
		c.Places = append(c.Places, p.In)
	}
	if op.RequestBody != nil && len(op.RequestBody.Content) > 0 {
		b := d.body(op.RequestBody.Content[0])
		b.Fields = d.fields(op.RequestBody.Content[0].Value.Schema, 0)
		b.Optional = !op.RequestBody.Required
		c.Body = &b
	}
	for _, r := range op.Responses {
		if r.Key < "400" {
			c.Successes = append(c.Successes, d.answer(r.Key, d.response(r.Value)))
		} else {
			c.Failures = append(c.Failures, d.refusal(r.Key, d.response(r.Value), op.Codes[r.Key]))
		}
	}
	c.Curl = d.curl(c, op)
	return c
}

func (d *document) signIn(op operation) string {
	needs := d.Security
	if op.Security != nil {
		needs = *op.Security
	}
	var ways []string
	optional := len(needs) == 0
	for _, need := range needs {
		if len(need) == 0 {
			optional = true
		}
		for name := range need {
			ways = append(ways, wayName(name))
		}
	}
	switch {
	case len(ways) == 0:
		return "No sign-in."
	case optional:
		return "Optional: " + strings.Join(ways, ", ") + "."
	default:
		return "By " + strings.Join(ways, ", ") + "."
	}
}

func (d *document) body(m entry[media]) body {
	b := body{Kind: m.Key, Example: pretty(d.example(m.Value))}
	payload := m.Value.Schema
	// What matters of an envelope is what it carries.
	if data, ok := d.resolved(payload).Properties.named("data"); ok {
		payload = data
	}
	if inner := d.objectWithin(payload); inner != nil && inner.Ref != "" {
		b.Shape = last(inner.Ref)
	}
	return b
}

func (d *document) answer(status string, r response) answer {
	a := answer{Status: status, Text: spans(r.Description)}
	for _, h := range r.Headers {
		a.Headers = append(a.Headers, namedHeader{h.Key, spans(d.header(h.Value).Description)})
	}
	for _, m := range r.Content {
		a.Bodies = append(a.Bodies, d.body(m))
	}
	return a
}

// refusal lists the operation's own codes, else the one that the shared
// answer shows.
func (d *document) refusal(status string, r response, codes []string) refusal {
	f := refusal{Status: status, Text: spans(r.Description), Codes: codes}
	if len(codes) > 0 || len(r.Content) == 0 {
		return f
	}
	var shown struct{ Code string }
	if json.Unmarshal(d.example(r.Content[0].Value), &shown) == nil && shown.Code != "" {
		f.Codes = []string{shown.Code}
	}
	return f
}

// pretty indents JSON; an example that is one string is shown as the text
// that it is.
func pretty(example json.RawMessage) string {
	if example == nil {
		return ""
	}
	var text string
	if json.Unmarshal(example, &text) == nil {
		return strings.TrimSpace(text)
	}
	var out bytes.Buffer
	if json.Indent(&out, example, "", "  ") != nil {
		return string(example)
	}
	return out.String()
}

// curl is a command line that makes the call.
func (d *document) curl(c call, op operation) string {
	target := c.Path
	var query []string
	for i, p := range c.Parameters {
		switch {
		case c.Places[i] == "path":
			target = strings.ReplaceAll(target, "{"+p.Name+"}", "$"+strings.ToUpper(p.Name))
		case c.Places[i] == "query" && p.Required:
			query = append(query, p.Name+"=$"+strings.ToUpper(p.Name))
		}
	}
	if len(query) > 0 {
		target += "?" + strings.Join(query, "&")
	}
	lines := []string{`curl "$MILLRACE` + target + `"`}
	if c.Method != "GET" {
		lines = []string{"curl -X " + c.Method + ` "$MILLRACE` + target + `"`}
	}
	if !strings.HasPrefix(c.SignIn, "No ") && !strings.HasPrefix(c.SignIn, "Optional") {
		lines = append(lines, authorization(c.SignIn))
	}
	if c.Body != nil {
		lines = append(lines, payload(op.RequestBody.Content[0], d.example(op.RequestBody.Content[0].Value))...)
	}
	return strings.Join(lines, " \\\n  ")
}

func authorization(signIn string) string {
	if signIn == "By session cookie." {
		return `-b "millrace_session=$SESSION"`
	}
	return `-H "Authorization: Bearer $TOKEN"`
}

func payload(m entry[media], example json.RawMessage) []string {
	switch m.Key {
	case "multipart/form-data":
		return []string{"-F file=@paper.pdf"}
	case "application/x-www-form-urlencoded":
		var values entries[any]
		if json.Unmarshal(example, &values) != nil {
			return nil
		}
		var lines []string
		for _, v := range values {
			lines = append(lines, "-d "+quoted(v.Key+"="+url.QueryEscape(fmt.Sprint(v.Value))))
		}
		return lines
	default:
		return []string{"-H 'Content-Type: " + m.Key + "'", "-d " + quoted(string(example))}
	}
}

// quoted makes one word of the text for a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
