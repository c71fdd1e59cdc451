package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Problem is one thing wrong, at a path such as `nodes[2].inputs.reads`.
type Problem = fault.Detail

// The codes of problems, which clients may switch on.
const (
	InvalidJSON       = "invalid_json"
	WrongType         = "wrong_type"
	UnknownField      = "unknown_field"
	Missing           = "missing"
	Conflicting       = "conflicting"
	Duplicate         = "duplicate"
	InvalidName       = "invalid_name"
	InvalidValue      = "invalid_value"
	InvalidSchema     = "invalid_schema"
	SchemaMismatch    = "schema_mismatch"
	OutOfRange        = "out_of_range"
	TooLong           = "too_long"
	TooMany           = "too_many"
	NoSuchStep        = "no_such_step"
	NoSuchInput       = "no_such_input"
	NoSuchOutput      = "no_such_output"
	NoSuchParameter   = "no_such_parameter"
	InvalidExpression = "invalid_expression"
	NotBefore         = "not_before"
	Cycle             = "cycle"
	NoSteps           = "no_steps"
	NoCommand         = "no_command"
	NoItems           = "no_items"
	NotConnected      = "not_connected"
	UnusedInput       = "unused_input"
	UnknownVariable   = "unknown_variable"

	// These depend on the team and the server, so others find them.
	NoSuchSecret           = "no_such_secret"
	EnvironmentUnavailable = "environment_unavailable"
	SourceUnreachable      = "source_unreachable"
	ContainersUnused       = "containers_unused"
)

// problems collects what is wrong, up to a bound: beyond it they are counted.
type problems struct {
	list []noted
	more int
}

// noted is a problem whose place is named when everything has been read.
type noted struct {
	Problem
	at    *where
	about bool // the message says something about the place, without naming it
	fix   func() *fault.Fix
}

func (p *problems) add(at *where, code, format string, args ...any) {
	p.addFix(nil, at, code, format, args...)
}

// addFix adds a problem that fix would solve.
func (p *problems) addFix(fix *fault.Fix, at *where, code, format string, args ...any) {
	p.note(noted{Problem: Problem{Message: fmt.Sprintf(format, args...), Code: code, Fix: fix}, at: at})
}

// addAbout adds a problem whose message has no subject, such as "must be a number":
// the name of the place is put before it.
func (p *problems) addAbout(at *where, code, format string, args ...any) {
	p.note(noted{Problem: Problem{Message: fmt.Sprintf(format, args...), Code: code}, at: at, about: true})
}

func (p *problems) note(n noted) {
	if len(p.list) >= maxProblems {
		p.more++
		return
	}
	p.list = append(p.list, n)
}

func (p *problems) none() bool { return len(p.list) == 0 }

// all returns the problems. Each says where it is, and which step and line it is about.
func (p *problems) all() (list []Problem) {
	for _, n := range p.list {
		owner, field := n.at.split()
		n.Path, n.Field = n.at.String(), field
		switch {
		case owner == nil:
		case owner.node != nil:
			n.Node = owner.node.ID
		default:
			n.Edge, n.Field = owner.edge.ID, n.Path
			if step := cmp.Or(owner.edge.target, owner.edge.source); step != nil {
				n.Node = step.ID
			}
		}
		if n.fix != nil {
			n.Fix = n.fix()
		}
		if n.Fix != nil && slices.ContainsFunc(n.Fix.Edits, nameless) {
			n.Fix = nil
		}
		if n.about {
			n.Message = n.at.title() + " " + n.Message
		}
		if label := owner.label(); !strings.Contains(n.Message, label) {
			n.Subject = label
		}
		list = append(list, n.Problem)
	}
	if p.more > 0 {
		list = append(list, Problem{Message: fmt.Sprintf("and %d more problems", p.more), Code: TooMany})
	}
	return list
}

// nameless reports whether an edit is one of a step or line without an id.
func nameless(e fault.Edit) bool { return strings.Contains(e.Path, "..") }

// label names a node in a sentence.
func (n *Node) label() string {
	if n.Name == "" {
		return "step " + strconv.Itoa(n.Index+1)
	}
	return quote(n.Name)
}

// Label is how a sentence names a step: by its name, or by its id where it has none.
func Label(name, id string) string { return quote(cmp.Or(name, id)) }

// quote is what an author wrote, in quotes.
func quote(s string) string { return `"` + short(s) + `"` }

// removeEdge is the fix for an edge that cannot be.
func removeEdge(e *Edge) *fault.Fix {
	if e.ID == "" {
		return nil
	}
	return &fault.Fix{Label: "Remove the line", Edits: []fault.Edit{{Path: "edges." + e.ID}}}
}

// setFix is a fix that sets one field.
func setFix(path string, value any, label string, args ...any) *fault.Fix {
	return &fault.Fix{Label: fmt.Sprintf(label, args...), Edits: []fault.Edit{{Path: path, Value: value}}}
}

// label names a line in a sentence.
func (e *Edge) label() string {
	name := func(n *Node, id string) string {
		if n != nil {
			return n.label()
		}
		return quote(id)
	}
	return "the line from " + name(e.source, e.Source) + " to " + name(e.target, e.Target)
}

// where is a place in the definition. It becomes text only when something is
// wrong there, which keeps a sound definition free of that work. Nil is the
// definition itself.
type where struct {
	up    *where
	name  string
	index int   // counts when name is empty
	node  *Node // that the place is
	edge  *Edge // that the place is
}

func (w *where) field(name string) *where { return &where{up: w, name: name, index: -1} }
func (w *where) item(i int) *where        { return &where{up: w, index: i} }

func (w *where) String() string {
	if w == nil {
		return ""
	}
	above := w.up.String()
	switch {
	case w.index >= 0 && w.name == "":
		return above + "[" + strconv.Itoa(w.index) + "]"
	case !plain(w.name):
		return above + `["` + short(w.name) + `"]`
	case above == "":
		return w.name
	}
	return above + "." + w.name
}

// names are those on the way to the place, without the numbers of nodes and edges.
func (w *where) names() string {
	if w == nil {
		return ""
	}
	above := w.up.names()
	if above == "" || w.name == "" {
		return above + w.name
	}
	return above + "." + w.name
}

// split returns the place of the node or edge that a place is in, nil for none, and
// where in it, or in the definition, the place is.
func (w *where) split() (owner *where, field string) {
	for at := w; at != nil; at = at.up {
		if at.node != nil || at.edge != nil {
			return at, strings.TrimPrefix(w.String()[len(at.String()):], ".")
		}
	}
	return nil, w.String()
}

// in finds the value at a place; nil if there is none.
func (w *where) in(root *value) *value {
	if w == nil {
		return root
	}
	up := w.up.in(root)
	if w.name == "" && up != nil && w.index < len(up.items) {
		return &up.items[w.index]
	}
	return up.member(w.name)
}

// label names the node or edge of a place in a sentence; empty where it is neither.
func (w *where) label() string {
	switch {
	case w == nil:
		return ""
	case w.node != nil:
		return w.node.label()
	}
	return w.edge.label()
}

// edited is the path of a place as edits name it: steps and lines by their ids.
func (w *where) edited() string {
	owner, field := w.split()
	switch {
	case owner == nil:
		return field
	case owner.node != nil:
		return strings.TrimSuffix("nodes."+owner.node.ID+"."+field, ".")
	}
	return strings.TrimSuffix("edges."+owner.edge.ID+"."+field, ".")
}

// title names a place in a sentence, as the editor does: `"Trim reads": vCPU`.
func (w *where) title() string {
	owner, field := w.split()
	var parts []string
	if owner != nil {
		parts = append(parts, owner.label())
	}
	if entry := w.entry(owner); entry != nil {
		parts = append(parts, entries[entry.up.name]+" "+quote(entry.name))
		field = strings.TrimPrefix(w.String()[len(entry.String()):], ".")
	}
	if field != "" {
		parts = append(parts, cmp.Or(fieldNames[field], field))
	}
	switch last := len(parts) - 1; last {
	case -1:
		return "the definition"
	case 0:
		return parts[0]
	default:
		return strings.Join(parts[:last], ", ") + ": " + parts[last]
	}
}

// entry is the place of the input, output, parameter or variable that a place is in.
func (w *where) entry(owner *where) *where {
	for at := w; at != owner && at.up != owner; at = at.up {
		if at.up.up == owner && entries[at.up.name] != "" {
			return at
		}
	}
	return nil
}

// entries are what the members of an object are called.
var entries = map[string]string{"inputs": "the input", "outputs": "the output", "parameters": "the parameter", "env": "the variable"}

// fieldNames are what the editor calls fields of a step. Others are called as they are
// written.
var fieldNames = map[string]string{
	"resources.vcpu": "vCPU", "resources.ramGb": "memory", "resources.gpu": "GPU",
	"retries.max": "retries", "retries.backoffSeconds": "the wait before a retry", "retries.maxBackoffSeconds": "the longest wait before a retry",
	"timeoutSeconds": "the time limit", "scatter.over": "the list of items", "scatter.maxParallel": "max parallel", "when": "the condition",
}

// plain reports whether a name reads well in a path without quotes.
func plain(name string) bool {
	for i := range len(name) {
		if !nameByte(name[i]) && name[i] != '-' && name[i] != '$' {
			return false
		}
	}
	return name != "" && len(name) <= 80
}

// short makes what an author wrote fit to be quoted in a message.
func short(s string) string { return printable(s, 60) }

// long bounds a message that may quote a whole value.
func long(s string) string { return printable(s, 300) }

// printable is at most so many characters of s, each of which can be shown and
// stored.
func printable(s string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n == most {
			return b.String() + "…"
		}
		if !unicode.IsPrint(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
