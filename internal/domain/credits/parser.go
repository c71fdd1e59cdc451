package credits

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// parser reads a plans file and goes on after a mistake, so that the operator
// hears of all of them at once. It is stricter than encoding/json: no name
// twice, none that is unknown, nothing after the end.
type parser struct {
	catalog  Catalog
	problems []string
}

func (p *parser) note(path, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = path + ": " + message
	}
	p.problems = append(p.problems, message)
}

// object reads the named fields of an object and says which were there; nil
// means that it was no object.
func (p *parser) object(path string, value []byte, fields map[string]func(path string, value []byte)) map[string]bool {
	given := map[string]bool{}
	ok := p.members(path, value, func(name, path string, value []byte) {
		given[name] = true
		read, known := fields[name]
		if !known {
			p.note(path, "is not a field of the plans file")
			return
		}
		read(path, value)
	})
	if !ok {
		return nil
	}
	return given
}

// members calls each for the members of an object, in their order.
func (p *parser) members(path string, value []byte, each func(name, path string, value []byte)) bool {
	dec, ok := p.open(path, value, '{', "an object")
	if !ok {
		return false
	}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return p.broken(path, value, dec, err)
		}
		name, _ := token.(string) // in an object nothing else stands here
		var member json.RawMessage
		if err := dec.Decode(&member); err != nil {
			return p.broken(path, value, dec, err)
		}
		at := name
		if path != "" {
			at = path + "." + name
		}
		if seen[name] {
			p.note(at, "is there twice")
			continue
		}
		seen[name] = true
		each(name, at, member)
	}
	return p.close(path, value, dec)
}

// items calls each for the items of an array, in their order.
func (p *parser) items(path string, value []byte, each func(i int, path string, value []byte)) {
	dec, ok := p.open(path, value, '[', "a list")
	if !ok {
		return
	}
	for i := 0; dec.More(); i++ {
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			p.broken(path, value, dec, err)
			return
		}
		each(i, path+"["+strconv.Itoa(i)+"]", item)
	}
	p.close(path, value, dec)
}

func (p *parser) open(path string, value []byte, bracket json.Delim, what string) (*json.Decoder, bool) {
	dec := json.NewDecoder(bytes.NewReader(value))
	token, err := dec.Token()
	if err != nil {
		return nil, p.broken(path, value, dec, err)
	}
	if token != bracket {
		p.note(path, "must be %s", what)
		return nil, false
	}
	return dec, true
}

// close reads the closing bracket and makes sure that nothing follows it.
func (p *parser) close(path string, value []byte, dec *json.Decoder) bool {
	if _, err := dec.Token(); err != nil {
		return p.broken(path, value, dec, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		p.note(path, "something follows the end of the JSON value")
		return false
	}
	return true
}

func (p *parser) broken(path string, value []byte, dec *json.Decoder, err error) bool {
	line := 1 + bytes.Count(value[:min(int(dec.InputOffset()), len(value))], []byte("\n"))
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	p.note(path, "not valid JSON near line %d: %v", line, err)
	return false
}

func (p *parser) whole(least, most int64, set func(int64)) func(string, []byte) {
	return func(path string, value []byte) {
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || n < least || n > most {
			p.note(path, "must be a whole number from %d to %d", least, most)
			return
		}
		set(n)
	}
}

func (p *parser) flag(into *bool) func(string, []byte) {
	return func(path string, value []byte) {
		switch string(value) {
		case "true", "false":
			*into = string(value) == "true"
		default:
			p.note(path, "must be true or false")
		}
	}
}

func (p *parser) text(into *string, valid func(string) bool, what string) func(string, []byte) {
	return func(path string, value []byte) {
		var text string
		isString := len(value) > 0 && value[0] == '"'
		if !isString || !utf8.Valid(value) || json.Unmarshal(value, &text) != nil || !valid(text) {
			p.note(path, "must be %s", what)
			return
		}
		*into = text
	}
}
