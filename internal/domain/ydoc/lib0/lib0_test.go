package lib0

import (
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestAnyValuesAreWrittenAsJavaScriptDoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value any
		want  string
	}{
		{nil, "7e"},
		{true, "78"},
		{false, "79"},
		{0, "7d00"},
		{-5, "7d45"},
		{63, "7d3f"},
		{64, "7d8001"},
		{300, "7dac04"},
		{math.MaxInt32, "7dbfffffff0f"},
		{-math.MaxInt32, "7dffffffff0f"},
		{math.MaxInt32 + 1, "7c4f000000"},
		{0.5, "7c3f000000"},
		{0.1, "7b3fb999999999999a"},
		{"hi", "77026869"},
		{"\xff", "7703efbfbd"},
		{[]byte{1, 2}, "74020102"},
		{[]any{1, []any{}}, "7502" + "7d01" + "7500"},
		{map[string]any{"b": 1, "a": "x"}, "7602" + "0161" + "770178" + "0162" + "7d01"},
	} {
		var w Writer
		if err := w.Any(tt.value); err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(w.Bytes()); got != tt.want {
			t.Errorf("%v is written %s, not %s", tt.value, got, tt.want)
		}
	}
	var w Writer
	if w.Any(struct{}{}) == nil || w.Any(nested(maxAnyDepth)) == nil || w.Any(nested(maxAnyDepth-1)) != nil {
		t.Error("what no document can hold is written, or what it can hold is not")
	}
}

func nested(depth int) any {
	var v any
	for range depth {
		v = []any{v}
	}
	return v
}

func TestAnyValuesAreReadAsJSONWouldBe(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		bytes   string
		want    any
		defined bool
	}{
		{"7f", nil, false},
		{"7e", nil, true},
		{"7d45", -5.0, true},
		{"7d40", 0.0, true},
		{"7bfff0000000000000", nil, true},
		{"7affffffffffffffff", -1.0, true},
		{"75027f78", []any{nil, true}, true},
		{"7603016178016279016178", map[string]any{"a": true, "b": false}, true},
		{"7602016178" + "01617f", map[string]any{}, true},
		{"740100", []byte{0}, true},
	} {
		b, err := hex.DecodeString(tt.bytes)
		if err != nil {
			t.Fatal(err)
		}
		r := NewReader(b)
		if got, defined := r.Any(); !reflect.DeepEqual(got, tt.want) || defined != tt.defined || r.Err() != nil || r.Len() > 0 {
			t.Errorf("%s reads %#v, %v, %v", tt.bytes, got, defined, r.Err())
		}
		r = NewReader(b)
		if r.SkipAny(); r.Err() != nil || r.Len() > 0 {
			t.Errorf("%s is not skipped: %v", tt.bytes, r.Err())
		}
	}
}

func TestMalformedBytesFailOnceAndForAll(t *testing.T) {
	t.Parallel()
	value := func(r *Reader) { r.Any() }
	skip := func(r *Reader) { r.SkipAny() }
	for name, tt := range map[string]struct {
		bytes string
		read  func(*Reader)
	}{
		"no byte":                {"", func(r *Reader) { r.Byte() }},
		"an endless integer":     {strings.Repeat("\xff", 20), func(r *Reader) { r.Uint() }},
		"an integer beyond 2^53": {"\xff\xff\xff\xff\xff\xff\xff\x1f", func(r *Reader) { r.Uint() }},
		"half an integer":        {"\x80", func(r *Reader) { r.Int() }},
		"half a string":          {"\x05abc", func(r *Reader) { _ = r.String() }},
		"a string of no UTF-8":   {"\x01\xff", func(r *Reader) { _ = r.String() }},
		"a count of more bytes":  {"\x05abc", func(r *Reader) { r.Count() }},
		"an unknown tag":         {"\x00", value},
		"an unknown tag skipped": {"\x80", skip},
		"half a float":           {"\x7b\x00", value},
		"half an array":          {"\x75\x02\x7e", value},
		"half an array skipped":  {"\x75\x02\x7e", skip},
		"a key of no UTF-8":      {"\x76\x01\x01\xff\x7e", skip},
		"nested too deep":        {strings.Repeat("\x75\x01", 100) + "\x7e", value},
		"skipped too deep":       {strings.Repeat("\x75\x01", 100) + "\x7e", skip},
	} {
		r := NewReader([]byte(tt.bytes))
		if tt.read(r); r.Err() == nil || r.Len() > 0 || r.Byte() != 0 || r.Uint() != 0 {
			t.Errorf("%s: %v", name, r.Err())
		}
	}
}

func TestIntegersAreReadBack(t *testing.T) {
	t.Parallel()
	var w Writer
	numbers := []uint64{0, 1, 63, 64, 127, 128, 1 << 32, MaxUint}
	for _, n := range numbers {
		w.Uint(n)
		w.int(n, true)
		w.Buffer([]byte("buf"))
	}
	r := NewReader(w.Bytes())
	for _, n := range numbers {
		u, b := r.Uint(), byte(0)
		i, negative := r.Int()
		if s := r.Bytes(); len(s) == 3 {
			b = s[0]
		}
		if u != n || i != n || !negative || b != 'b' {
			t.Errorf("%d is read %d and %d", n, u, i)
		}
	}
	if r.Err() != nil || r.Len() > 0 {
		t.Error(r.Err())
	}
}
