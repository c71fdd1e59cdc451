package graph

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/spelling"
)

const maxName = 63

// validName reports whether s may be an id or a name.
func validName(s string) bool {
	if s == "" || len(s) > maxName || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return true
}

func nameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_'
}

const nameRule = "must start with a letter or `_` and hold only letters, digits and `_`, at most 63"

// at is the place of a member in what holds it.
func at(f *value, in *where) *where { return in.field(f.name) }

// kept reports whether a field is the author's own and stays as it is.
func kept(name string) bool { return name == "ui" || strings.HasPrefix(name, "x-") }

// unknown notes a field that is not one of the known, unless it is kept.
func (c *checker) unknown(f *value, in *where, known []string) {
	if !kept(f.name) {
		if c.unknownFields != nil {
			c.unknownFields[at(f, in).names()] = true
		}
		c.p.note(noted{
			Problem: Problem{Message: "unknown field `" + short(f.name) + "`" + spelling.DidYouMean(f.name, known), Code: UnknownField},
			at:      at(f, in),
			fix:     c.respell(f, in, spelling.Nearest(f.name, known)),
		})
	}
}

// maxRespelt bounds the value of a field that a fix renames: everybody who edits the
// definition is sent it.
const maxRespelt = 10_000

// respell makes the fix that gives a field the name that was meant; nil where there is
// none, or where the field of that name is there already.
func (c *checker) respell(f *value, in *where, meant string) func() *fault.Fix {
	text := f.appendJSON(nil)
	if in == nil || meant == "" || in.in(&c.g.root).member(meant) != nil || len(text) > maxRespelt || f.name == "" || strings.Contains(f.name, ".") {
		return nil
	}
	var plain any
	if json.Unmarshal(text, &plain) != nil {
		return nil
	}
	return func() *fault.Fix { // the id of a step may follow the field
		path := in.edited()
		return &fault.Fix{Label: "Rename the field to " + quote(meant), Edits: []fault.Edit{{Path: path + "." + f.name}, {Path: path + "." + meant, Value: plain}}}
	}
}

func (c *checker) wrong(f *value, in *where, want string) {
	c.p.addAbout(at(f, in), WrongType, "must be %s, not %s", want, kindNames[f.kind])
}

func (c *checker) text(f *value, in *where, most int) string {
	switch {
	case f.kind != text:
		c.wrong(f, in, "a string")
	case len(f.text) > most:
		c.p.addAbout(at(f, in), TooLong, "is longer than %d bytes", most)
	default:
		return f.text
	}
	return ""
}

// id reads an id or a name that points at something. What breaks the rule is
// still returned: another field may use the same text.
func (c *checker) id(f *value, in *where) string {
	if f.kind != text {
		c.wrong(f, in, "a string")
		return ""
	}
	if !validName(f.text) {
		c.p.add(at(f, in), InvalidName, "`%s` cannot be a name: it %s", short(f.text), nameRule)
	}
	return f.text
}

func (c *checker) boolean(f *value, in *where) bool {
	if f.kind != yes && f.kind != no {
		c.wrong(f, in, "true or false")
	}
	return f.kind == yes
}

// number reads a number from least to most.
func (c *checker) number(f *value, in *where, least, most float64) float64 {
	if f.kind != number {
		c.wrong(f, in, "a number")
		return least
	}
	n, err := strconv.ParseFloat(f.text, 64)
	if err != nil || n < least || n > most {
		c.p.addAbout(at(f, in), OutOfRange, "must be from %v to %v", plainNumber(least), plainNumber(most))
		return least
	}
	return n
}

// positive reads a number above 0.
func (c *checker) positive(f *value, in *where, most float64) float64 {
	if f.kind != number {
		c.wrong(f, in, "a number")
		return 0
	}
	n, err := strconv.ParseFloat(f.text, 64)
	if err != nil || n <= 0 || n > most {
		c.p.addAbout(at(f, in), OutOfRange, "must be above 0 and at most %v", plainNumber(most))
		return 0
	}
	return n
}

func (c *checker) whole(f *value, in *where, least, most int64) int {
	if f.kind != number {
		c.wrong(f, in, "a whole number")
		return int(least)
	}
	n, ok := integer(f.text)
	if !ok || n < least || n > most {
		c.p.addAbout(at(f, in), OutOfRange, "must be a whole number from %d to %d", least, most)
		return int(least)
	}
	return int(n)
}

// plainNumber writes a bound without an exponent.
func plainNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// entries walks an object whose keys are names and whose values are objects.
func (c *checker) entries(f *value, in *where, each func(v *value, in *where)) {
	if f.kind != object {
		c.wrong(f, in, "an object")
		return
	}
	here := at(f, in)
	if len(f.items) > maxEntries {
		c.p.add(here, TooMany, "there are %d entries; at most %d are allowed", len(f.items), maxEntries)
		return
	}
	for i := range f.items {
		v := &f.items[i]
		switch {
		case !validName(v.name):
			c.p.add(at(v, here), InvalidName, "`%s` cannot be a name: it %s", short(v.name), nameRule)
		case v.kind != object:
			c.wrong(v, here, "an object")
		default:
			each(v, here)
		}
	}
}
