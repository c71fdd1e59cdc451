package lib0

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The tags of any values.
const (
	tagBytes = 116 + iota
	tagArray
	tagObject
	tagString
	tagTrue
	tagFalse
	tagInt64
	tagFloat64
	tagFloat32
	tagInt
	tagNull
	tagUndefined
)

// Writer appends one value after another. Its zero value is ready.
type Writer struct {
	buf []byte
}

// Bytes returns what was written. It is the writer's own until the next write.
func (w *Writer) Bytes() []byte { return w.buf }

// Reset forgets what was written and keeps the room it took.
func (w *Writer) Reset() { w.buf = w.buf[:0] }

// Byte writes one byte.
func (w *Writer) Byte(b byte) { w.buf = append(w.buf, b) }

// Raw writes bytes as they are, such as values that a Reader skipped.
func (w *Writer) Raw(s string) { w.buf = append(w.buf, s...) }

// Append writes bytes as they are, such as what another Writer wrote.
func (w *Writer) Append(b []byte) { w.buf = append(w.buf, b...) }

// Uint writes a varUint.
func (w *Writer) Uint(n uint64) { w.buf = binary.AppendUvarint(w.buf, n) }

// Buffer writes a varBuf.
func (w *Writer) Buffer(b []byte) {
	w.Uint(uint64(len(b)))
	w.buf = append(w.buf, b...)
}

// String writes a varString. What is not valid UTF-8 becomes so, as no client
// could read it.
func (w *Writer) String(s string) {
	s = strings.ToValidUTF8(s, "\ufffd")
	w.Uint(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *Writer) int(magnitude uint64, negative bool) {
	b := byte(magnitude & 0x3f)
	if negative {
		b |= 0x40
	}
	if magnitude >>= 6; magnitude == 0 {
		w.Byte(b)
		return
	}
	w.Byte(b | 0x80)
	w.Uint(magnitude)
}

// Any writes a JSON-like value: nil, a boolean, a string, an int, a float64,
// bytes, or a list or map of such. Keys are written in order, so that equal
// values are equal bytes.
func (w *Writer) Any(v any) error { return w.any(v, maxAnyDepth) }

func (w *Writer) any(v any, depth int) error {
	if depth == 0 {
		return fmt.Errorf("a value is nested more than %d deep", maxAnyDepth)
	}
	switch v := v.(type) {
	case nil:
		w.Byte(tagNull)
	case bool:
		if v {
			w.Byte(tagTrue)
		} else {
			w.Byte(tagFalse)
		}
	case string:
		w.Byte(tagString)
		w.String(v)
	case int:
		w.number(float64(v))
	case float64:
		w.number(v)
	case []byte:
		w.Byte(tagBytes)
		w.Buffer(v)
	case []any:
		w.Byte(tagArray)
		w.Uint(uint64(len(v)))
		for _, e := range v {
			if err := w.any(e, depth-1); err != nil {
				return err
			}
		}
	case map[string]any:
		w.Byte(tagObject)
		w.Uint(uint64(len(v)))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			w.String(key)
			if err := w.any(v[key], depth-1); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("a %T is no value of a document", v)
	}
	return nil
}

// number chooses the encoding as JavaScript does.
func (w *Writer) number(f float64) {
	switch {
	case f == math.Trunc(f) && math.Abs(f) <= math.MaxInt32:
		w.Byte(tagInt)
		w.int(uint64(math.Abs(f)), math.Signbit(f))
	case float64(float32(f)) == f:
		w.Byte(tagFloat32)
		w.buf = binary.BigEndian.AppendUint32(w.buf, math.Float32bits(float32(f)))
	default:
		w.Byte(tagFloat64)
		w.buf = binary.BigEndian.AppendUint64(w.buf, math.Float64bits(f))
	}
}
