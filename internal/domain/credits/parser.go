package credits

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// parser reads a plans file and goes on after a mistake, so that the operator
// hears of all of them at once.
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

// members calls each for the members of an object, by name.
func (p *parser) members(path string, value []byte, each func(name, path string, value []byte)) bool {
	var members map[string]jsontext.Value
	if jsontext.Value(value).Kind() != '{' || json.Unmarshal(value, &members) != nil {
		p.note(path, "must be an object")
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		at := name
		if path != "" {
			at = path + "." + name
		}
		each(name, at, members[name])
	}
	return true
}

// items calls each for the items of an array, in their order.
func (p *parser) items(path string, value []byte, each func(i int, path string, value []byte)) {
	var items []jsontext.Value
	if jsontext.Value(value).Kind() != '[' || json.Unmarshal(value, &items) != nil {
		p.note(path, "must be a list")
		return
	}
	for i, item := range items {
		each(i, path+"["+strconv.Itoa(i)+"]", item)
	}
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
		if jsontext.Value(value).Kind() != '"' || json.Unmarshal(value, &text) != nil || !valid(text) {
			p.note(path, "must be %s", what)
			return
		}
		*into = text
	}
}
