// Package mask takes secrets out of text on its way to a log. It finds them as
// they are and as programs like to write them: in base64 at any offset, wrapped
// or not, in hex, escaped for a URL, for JSON or with backslashes. It reads a
// stream, so that a secret in two pieces is found, too.
//
// Encoded text is decoded on the fly and compared with the one set of values,
// rather than with a list of their encodings: that finds every mixture of
// escapes, and costs memory for the values alone.
package mask

import "strings"

// Shown is what stands for a secret.
const Shown = "***"

// Shortest is the length of the shortest text that is masked, in bytes: a
// shorter one would be found everywhere.
const Shortest = 8

// Set is the secrets of one command. It may be used by several streams.
type Set struct {
	values *automaton
	heads  [256]bool // the first byte of a secret, by its value
}

// New makes a set of values: each as a whole, and each of its lines that is
// long enough. It is nil where there is nothing to mask.
func New(values []string) *Set {
	var patterns []string
	for _, v := range values {
		for _, text := range append(strings.FieldsFunc(v, isLineEnd), v, strings.TrimSpace(v)) {
			if len(text) >= Shortest {
				patterns = append(patterns, text)
			}
		}
	}
	if len(patterns) == 0 {
		return nil
	}
	s := &Set{values: newAutomaton(patterns)}
	for _, p := range patterns {
		s.heads[p[0]] = true
	}
	return s
}

func isLineEnd(r rune) bool { return r == '\n' || r == '\r' }

// Text is a text without the secrets; that of no set is the text itself.
func (s *Set) Text(text string) string {
	if s == nil {
		return text
	}
	stream := s.Stream()
	return string(stream.Write([]byte(text))) + string(stream.End())
}

// Stream masks one stream of text. It is not safe for several goroutines.
type Stream struct {
	views []*view
	raw   []byte // what was read and not given out
	at    int64  // the place of raw in the stream
	read  int64
	found []span // in order, and apart
	open  bool   // what was given out last stands for a secret that may go on
}

// span is a part of the stream.
type span struct{ from, to int64 }

// Stream begins one.
func (s *Set) Stream() *Stream {
	st := &Stream{}
	for _, d := range decoders() {
		st.views = append(st.views, &view{st: st, set: s, decoder: d})
	}
	return st
}

// Write takes text in and returns what of all text can be given out: what may
// be the beginning of a secret waits for what follows.
func (st *Stream) Write(text []byte) []byte {
	st.raw = append(st.raw, text...)
	for _, b := range text {
		for _, v := range st.views {
			v.decoder.read(b, st.read, v)
		}
		st.read++
	}
	safe := st.read
	for _, v := range st.views {
		safe = min(safe, v.holds(st.read))
	}
	// A letter of which a secret has a few bits may have been given out.
	return st.give(max(safe, st.at))
}

// End returns the rest. A beginning that is long enough to be worth something
// is masked like the whole.
func (st *Stream) End() []byte {
	for _, v := range st.views {
		v.decoder.end(v)
		if len(v.starts) >= Shortest {
			st.note(span{v.starts[0], st.read})
		}
	}
	return st.give(st.read)
}

// note takes in where a secret is. They are found in the order of their ends.
func (st *Stream) note(s span) {
	for len(st.found) > 0 && st.found[len(st.found)-1].to >= s.from {
		s.from = min(s.from, st.found[len(st.found)-1].from)
		s.to = max(s.to, st.found[len(st.found)-1].to)
		st.found = st.found[:len(st.found)-1]
	}
	st.found = append(st.found, s)
}

// give returns the text before safe, with its secrets masked.
func (st *Stream) give(safe int64) []byte {
	out := make([]byte, 0, safe-st.at)
	plain := func(to int64) {
		if to > st.at {
			out = append(out, st.raw[:to-st.at]...)
			st.skip(to)
			st.open = false
		}
	}
	for len(st.found) > 0 && st.found[0].from < safe {
		s := st.found[0]
		plain(s.from)
		if !st.open {
			out = append(out, Shown...)
			st.open = true
		}
		if s.to > safe { // the rest of it is still to be given out
			st.skip(safe)
			return out
		}
		st.skip(s.to)
		st.found = st.found[1:]
	}
	plain(safe)
	return out
}

// skip drops text up to a place.
func (st *Stream) skip(to int64) {
	if to > st.at {
		st.raw = append(st.raw[:0], st.raw[to-st.at:]...)
		st.at = to
	}
}
