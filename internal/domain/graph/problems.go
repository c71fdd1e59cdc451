package graph

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Problem is one thing wrong, at a path such as `nodes[2].inputs.reads`.
type Problem = fault.Detail

// problems collects what is wrong, up to a bound: beyond it they are counted.
type problems struct {
	list []Problem
	more int
}

func (p *problems) add(at *where, format string, args ...any) {
	if len(p.list) >= maxProblems {
		p.more++
		return
	}
	p.list = append(p.list, Problem{Path: at.String(), Message: fmt.Sprintf(format, args...)})
}

func (p *problems) none() bool { return len(p.list) == 0 }

func (p *problems) all() []Problem {
	if p.more == 0 {
		return p.list
	}
	return append(p.list[:len(p.list):len(p.list)], Problem{Message: fmt.Sprintf("and %d more problems", p.more)})
}

// where is a place in the definition. It becomes text only when something is
// wrong there, which keeps a sound definition free of that work. Nil is the
// definition itself.
type where struct {
	up    *where
	name  string
	index int // counts when name is empty
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
