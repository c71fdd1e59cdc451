package graph

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// value is one JSON value as the author wrote it: members in their order,
// numbers in their spelling.
type value struct {
	kind  jsontext.Kind
	name  string  // its name, as a member of an object
	text  string  // the content of a string, the spelling of a number
	items []value // the members of an object, the elements of an array
}

const (
	null   jsontext.Kind = 'n'
	no     jsontext.Kind = 'f'
	yes    jsontext.Kind = 't'
	text   jsontext.Kind = '"'
	number jsontext.Kind = '0'
	object jsontext.Kind = '{'
	array  jsontext.Kind = '['
)

// kindNames are the words for a kind in a message.
var kindNames = map[jsontext.Kind]string{
	null: "null", no: "a boolean", yes: "a boolean", text: "a string",
	number: "a number", object: "an object", array: "an array",
}

// member finds a member of an object by name.
func (v *value) member(name string) *value {
	if v == nil || v.kind != object {
		return nil
	}
	for i := range v.items {
		if v.items[i].name == name {
			return &v.items[i]
		}
	}
	return nil
}

// is reports whether v is this string.
func (v *value) is(s string) bool { return v != nil && v.kind == text && v.text == s }

// appendJSON writes v as it was written, without white space.
func (v *value) appendJSON(dst []byte) []byte {
	switch v.kind {
	case text:
		return appendQuoted(dst, v.text)
	case number:
		return append(dst, v.text...)
	case array, object:
		dst = append(dst, byte(v.kind))
		for i := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			if v.kind == object {
				dst = append(appendQuoted(dst, v.items[i].name), ':')
			}
			dst = v.items[i].appendJSON(dst)
		}
		return append(dst, byte(v.kind)+2) // '{'+2 is '}', '['+2 is ']'
	}
	return append(dst, v.literal()...)
}

func (v *value) literal() string {
	switch v.kind {
	case yes:
		return "true"
	case no:
		return "false"
	}
	return "null"
}

func appendQuoted(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			// Only UTF-8 gets past the reader, so quoting cannot fail.
			dst, _ = jsontext.AppendQuote(dst, s)
			return dst
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// generic is v as the JSON Schema compiler wants it. Numbers stay exact.
func (v *value) generic() any {
	switch v.kind {
	case text:
		return v.text
	case number:
		return json.Number(v.text)
	case yes, no:
		return v.kind == yes
	case array:
		list := make([]any, len(v.items))
		for i := range v.items {
			list[i] = v.items[i].generic()
		}
		return list
	case object:
		m := make(map[string]any, len(v.items))
		for i := range v.items {
			m[v.items[i].name] = v.items[i].generic()
		}
		return m
	}
	return nil
}

// canonicalNumber is the one spelling of a number, which is not rounded: 10e-1 is 1.
func canonicalNumber(lit string) string {
	mantissa, negative := strings.CutPrefix(lit, "-")
	exponent := 0
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		exponent, _ = strconv.Atoi(strings.TrimPrefix(mantissa[i+1:], "+"))
		mantissa = mantissa[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	if trimmed == "" {
		return "0"
	}
	s := spell(trimmed, exponent)
	if negative {
		return "-" + s
	}
	return s
}

// spell writes digits × 10^exponent.
func spell(digits string, exponent int) string {
	point := len(digits) + exponent // how many digits stand before the point
	switch {
	case exponent >= 0 && point <= 21:
		return digits + strings.Repeat("0", exponent)
	case point > 0 && point <= 21:
		return digits[:point] + "." + digits[point:]
	case point <= 0 && point > -6:
		return "0." + strings.Repeat("0", -point) + digits
	}
	s := digits[:1]
	if len(digits) > 1 {
		s += "." + digits[1:]
	}
	return s + "e" + strconv.Itoa(point-1)
}

// integer is the value of a number that is a whole one and exact everywhere.
func integer(lit string) (int64, bool) {
	n, err := strconv.ParseInt(canonicalNumber(lit), 10, 64)
	if err != nil || n > maxExact || n < -maxExact {
		return 0, false
	}
	return n, true
}
