package graph

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// errStop ends reading after the problem has been noted.
var errStop = errors.New("stop")

// reader turns bytes into a value. It is stricter than JSON: no name twice in
// an object, no invalid UTF-8, no NUL, no number that a float cannot hold.
type reader struct {
	dec   *jsontext.Decoder
	src   string
	p     *problems
	base  *where // where the value stands
	count int
	parts []value // the parts of the objects and arrays not yet closed
	block []value // room for those of the closed ones
}

// read returns the one value in data. When it cannot, it has said why in p.
func read(data []byte, base *where, p *problems) (value, bool) {
	if len(data) > maxBytes {
		p.addAbout(base, TooMany, "is larger than %d MB", maxBytes>>20)
		return value{}, false
	}
	r := &reader{
		// Names that occur twice are found here rather than by the decoder,
		// which would stop at the first.
		dec: jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true)),
		src: string(data),
		p:   p, base: base,
	}
	err := r.value("")
	if err == nil {
		err = r.end()
	}
	if err != nil {
		r.explain(err)
		return value{}, false
	}
	return r.parts[0], true
}

// end makes sure that nothing follows the value.
func (r *reader) end() error {
	_, err := r.dec.ReadToken()
	switch {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	}
	r.p.add(r.base, InvalidJSON, "something follows the end of the JSON value")
	return errStop
}

func (r *reader) explain(err error) {
	if err == errStop {
		return
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax):
		before := r.src[:min(int(syntax.ByteOffset), len(r.src))]
		line := 1 + strings.Count(before, "\n")
		column := len(before) - strings.LastIndexByte(before, '\n')
		r.p.add(r.place(syntax.JSONPointer), InvalidJSON, "not valid JSON at line %d, column %d: %s", line, column, short(reason(syntax)))
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		r.p.add(r.base, InvalidJSON, "not valid JSON: it ends too early")
	default:
		r.p.add(r.base, InvalidJSON, "not valid JSON: %s", short(err.Error()))
	}
}

func reason(err *jsontext.SyntacticError) string {
	if err.Err == nil {
		return "syntax error"
	}
	return strings.TrimPrefix(err.Err.Error(), "jsontext: ")
}

// value reads one value and leaves it on the stack under this name.
func (r *reader) value(name string) error {
	r.count++
	if r.count > maxValues {
		r.p.addAbout(r.base, TooMany, "holds more than %d values", maxValues)
		return errStop
	}
	switch r.dec.PeekKind() {
	case object:
		return r.object(name)
	case array:
		return r.array(name)
	}
	kind, content, err := r.scalar()
	r.parts = append(r.parts, value{kind: kind, name: name, text: content})
	return err
}

// open steps into an object or array, unless that is too deep.
func (r *reader) open() error {
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	if r.dec.StackDepth() > maxDepth {
		r.p.addAbout(r.base, TooMany, "is nested more than %d deep", maxDepth)
		return errStop
	}
	return nil
}

func (r *reader) array(name string) error {
	first := len(r.parts)
	if err := r.open(); err != nil {
		return err
	}
	for r.dec.PeekKind() != ']' {
		if err := r.value(""); err != nil {
			return err
		}
	}
	return r.close(array, name, first)
}

func (r *reader) object(name string) error {
	first := len(r.parts)
	if err := r.open(); err != nil {
		return err
	}
	seen := names{}
	for r.dec.PeekKind() != '}' {
		_, member, err := r.scalar()
		if err != nil {
			return err
		}
		twice := seen.has(r.parts[first:], member)
		if twice {
			r.p.add(r.place(r.dec.StackPointer()), Duplicate, "`%s` occurs twice in the same object", short(member))
		}
		if err := r.value(member); err != nil {
			return err
		}
		if twice {
			r.parts = r.parts[:len(r.parts)-1]
		}
	}
	return r.close(object, name, first)
}

// close replaces the parts of an object or array on the stack by itself. They
// are kept in blocks, because one allocation for each would cost more than all
// the rest of reading.
func (r *reader) close(kind jsontext.Kind, name string, first int) error {
	const room = 1_024
	closed := r.parts[first:]
	if len(closed) > cap(r.block)-len(r.block) {
		r.block = make([]value, 0, max(room, len(closed)))
	}
	start := len(r.block)
	r.block = append(r.block, closed...)
	items := r.block[start:len(r.block):len(r.block)]
	r.parts = append(r.parts[:first], value{kind: kind, name: name, items: items})
	_, err := r.dec.ReadToken()
	return err
}

// scalar reads a string, number, boolean or null, or the name of a member.
func (r *reader) scalar() (kind jsontext.Kind, content string, err error) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return 0, "", err
	}
	end := int(r.dec.InputOffset())
	kind = raw.Kind()
	switch kind {
	case text:
		// A string without escapes is a piece of the source.
		content = r.src[end-len(raw)+1 : end-1]
		if strings.IndexByte(content, '\\') >= 0 {
			content, err = r.unquote(raw)
		}
	case number:
		content = r.fits(r.src[end-len(raw) : end])
	}
	return kind, content, err
}

func (r *reader) unquote(raw jsontext.Value) (string, error) {
	content, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(content, 0) >= 0 {
		r.p.add(r.place(r.dec.StackPointer()), InvalidValue, "a text must not contain the NUL character")
	}
	return string(content), nil
}

// fits is a number that can be computed with: 0 for one that is lost, which it notes, or that has an endless exponent.
func (r *reader) fits(lit string) string {
	if len(lit) < 16 && !strings.ContainsAny(lit, "eE") {
		return lit
	}
	f, err := strconv.ParseFloat(lit, 64)
	switch first := strings.IndexAny(lit, "123456789eE"); {
	case len(lit) > maxNumber:
		r.p.add(r.place(r.dec.StackPointer()), OutOfRange, "the number is longer than %d characters", maxNumber)
	case err != nil || f == 0 && first >= 0 && lit[first] <= '9':
		r.p.add(r.place(r.dec.StackPointer()), OutOfRange, "the number %s does not fit", short(lit))
	case f != 0:
		return lit
	}
	return "0"
}

// names finds members by name; objects are mostly small, and then no map is
// made.
type names struct{ set map[string]struct{} }

func (n *names) has(members []value, name string) bool {
	const few = 24
	if len(members) < few {
		for i := range members {
			if members[i].name == name {
				return true
			}
		}
		return false
	}
	if n.set == nil {
		n.set = make(map[string]struct{}, 2*few)
		for i := range members {
			n.set[members[i].name] = struct{}{}
		}
	}
	_, twice := n.set[name]
	n.set[name] = struct{}{}
	return twice
}

// place turns a JSON pointer into a path.
func (r *reader) place(p jsontext.Pointer) *where { return walk(r.base, p) }

func walk(at *where, p jsontext.Pointer) *where {
	for token := range p.Tokens() {
		if i, err := strconv.Atoi(token); err == nil && i >= 0 {
			at = at.item(i)
			continue
		}
		at = at.field(token)
	}
	return at
}
