package mask

import (
	"unicode/utf16"
	"unicode/utf8"
)

// decoders are all the ways in which a stream is read.
func decoders() []decoder {
	list := []decoder{plain{}, &percent{}, &percent{plus: true}, &backslash{}, &backslash{octal: true}}
	for phase := range 4 {
		list = append(list, &bits{width: 6, value: base64Value, apart: isLineEndByte, skip: phase, phase: phase})
	}
	for phase := range 2 {
		list = append(list, &bits{width: 4, value: hexValue, apart: isHexGap, skip: phase, phase: phase})
	}
	return list
}

// plain is the stream as it is.
type plain struct{}

func (plain) read(b byte, at int64, v *view) { v.put(b, at, at+1) }
func (plain) end(*view)                      {}
func (plain) waits(*[256]bool) int64         { return nowhere }

// escape is an escape of which not all has come.
type escape struct {
	text []byte
	from int64
}

// raw gives back what turned out to be no escape.
func (e *escape) raw(v *view) {
	for i, b := range e.text {
		v.put(b, e.from+int64(i), e.from+int64(i)+1)
	}
	e.text = e.text[:0]
}

// decoded puts what the escape stands for in its place.
func (e *escape) decoded(v *view, bytes ...byte) {
	to := e.from + int64(len(e.text))
	for _, b := range bytes {
		v.put(b, e.from, to)
	}
	e.text = e.text[:0]
}

func (e *escape) end(v *view) { e.raw(v) }

func (e *escape) waits(*[256]bool) int64 {
	if len(e.text) == 0 {
		return nowhere
	}
	return e.from
}

// percent reads the escapes of URLs; in forms a plus is a space.
type percent struct {
	escape
	plus bool
}

func (p *percent) read(b byte, at int64, v *view) {
	if len(p.text) > 0 && hexValue(b) < 0 {
		p.raw(v)
	}
	switch {
	case len(p.text) == 2:
		p.text = append(p.text, b)
		p.decoded(v, byte(hexValue(p.text[1])<<4|hexValue(p.text[2])))
	case len(p.text) == 1:
		p.text = append(p.text, b)
	case b == '%':
		p.text, p.from = append(p.text, b), at
	case b == '+' && p.plus:
		v.put(' ', at, at+1)
	default:
		v.put(b, at, at+1)
	}
}

// backslash reads the escapes of JSON, and those of shells and languages that
// look alike. Digits after a backslash are themselves, as a shell reads them, or the
// octal number of a byte, as in C.
type backslash struct {
	escape
	high  rune // the first half of a pair
	octal bool
}

var letters = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', 'a': '\a', 'v': '\v', 'e': 0x1b}

func (s *backslash) read(b byte, at int64, v *view) {
	switch {
	case len(s.text) == 0 && b == '\\':
		s.text, s.from = append(s.text, b), at
	case len(s.text) == 0:
		v.put(b, at, at+1)
	case len(s.text) == 1:
		s.text = append(s.text, b)
		if b == 'u' || b == 'x' || s.inOctal() {
			return
		}
		if letter, ok := letters[b]; ok {
			b = letter
		}
		s.decoded(v, b)
	case s.inOctal():
		s.octalDigit(b, at, v)
	default:
		s.digit(b, at, v)
	}
}

func (s *backslash) inOctal() bool {
	return s.octal && len(s.text) > 1 && isOctal(s.text[1])
}

// octalDigit goes on with \o, \oo or \ooo, or with \0ooo as echo reads it.
func (s *backslash) octalDigit(b byte, at int64, v *view) {
	most := 3
	if s.text[1] == '0' {
		most = 4
	}
	digits := s.text[1:]
	if len(digits) < most && isOctal(b) && octal(digits)<<3 <= 0xff {
		s.text = append(s.text, b)
		return
	}
	s.decoded(v, byte(octal(digits)))
	s.read(b, at, v)
}

// end takes digits for a number to which nothing more comes.
func (s *backslash) end(v *view) {
	if s.inOctal() {
		s.decoded(v, byte(octal(s.text[1:])))
	}
	s.raw(v)
}

func isOctal(b byte) bool { return b >= '0' && b <= '7' }

func octal(digits []byte) (n int) {
	for _, d := range digits {
		n = n<<3 | int(d-'0')
	}
	return n
}

// digit goes on with \xhh, \uhhhh or \uhhhh\uhhhh.
func (s *backslash) digit(b byte, at int64, v *view) {
	half := len(s.text) >= 6 // the second of a pair
	switch place := len(s.text) % 6; {
	case half && place == 0 && b == '\\', half && place == 1 && b == 'u', (!half || place > 1) && hexValue(b) >= 0:
		s.text = append(s.text, b)
	default:
		s.raw(v)
		s.read(b, at, v)
		return
	}
	switch {
	case s.text[1] == 'x' && len(s.text) == 4:
		s.decoded(v, byte(number(s.text[2:])))
	case s.text[1] == 'u' && len(s.text) == 6:
		if s.high = number(s.text[2:]); !utf16.IsSurrogate(s.high) {
			s.decoded(v, utf8.AppendRune(nil, s.high)...)
		}
	case len(s.text) == 12:
		s.decoded(v, utf8.AppendRune(nil, utf16.DecodeRune(s.high, number(s.text[8:])))...)
	}
}

func number(digits []byte) (n rune) {
	for _, d := range digits {
		n = n<<4 | rune(hexValue(d))
	}
	return n
}

// bits reads text of which each letter is some bits: base64 or hex, in one of
// the places in which a group of letters can begin.
type bits struct {
	width, phase int
	value        func(byte) int // of a letter; less than 0: it is none
	apart        func(byte) bool

	skip int // letters before the first group
	have int // bits that are no byte yet
	hold int
	from int64 // where the letter of the oldest of them is
}

func (d *bits) read(b byte, at int64, v *view) {
	n := d.value(b)
	switch {
	case n < 0 && d.apart(b):
		if !v.begun() { // a line is not kept waiting for its last letter
			d.restart()
		}
		return
	case n < 0:
		d.restart()
		v.cut()
		return
	case d.skip > 0:
		d.skip--
		return
	}
	if d.have == 0 {
		d.from = at
	}
	d.hold, d.have = d.hold<<d.width|n, d.have+d.width
	if d.have >= 8 {
		d.have -= 8
		v.put(byte(d.hold>>d.have), d.from, at+1)
		d.from = at // what is left of it is in this letter
		d.hold &= 1<<d.have - 1
	}
}

// restart begins anew: whatever comes first may be anywhere in a group.
func (d *bits) restart() { d.skip, d.have, d.hold = d.phase, 0, 0 }

func (d *bits) end(*view) {}

// waits holds a letter back that says half of a secret's first byte or more.
func (d *bits) waits(heads *[256]bool) int64 {
	if d.have < 4 {
		return nowhere
	}
	for rest := range 1 << (8 - d.have) {
		if heads[d.hold<<(8-d.have)|rest] {
			return d.from
		}
	}
	return nowhere
}

func base64Value(b byte) int {
	switch {
	case b >= 'A' && b <= 'Z':
		return int(b - 'A')
	case b >= 'a' && b <= 'z':
		return int(b-'a') + 26
	case b >= '0' && b <= '9':
		return int(b-'0') + 52
	case b == '+' || b == '-':
		return 62
	case b == '/' || b == '_':
		return 63
	}
	return -1
}

func hexValue(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}

func isLineEndByte(b byte) bool { return b == '\n' || b == '\r' }

func isHexGap(b byte) bool { return isLineEndByte(b) || b == ' ' || b == ':' }
