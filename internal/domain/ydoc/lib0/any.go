package lib0

import (
	"encoding/binary"
	"math"
)

// Any reads one any value as encoding/json would have made it: nil, bool,
// float64, string, []any or map[string]any, and []byte for bytes, which JSON
// has not. Numbers without a JSON form become nil, as do undefined elements;
// undefined fields are left out, and of a field given twice the last counts.
// It reports false for undefined itself.
func (r *Reader) Any() (v any, defined bool) { return r.any(maxAnyDepth) }

func (r *Reader) any(depth int) (any, bool) {
	if depth == 0 {
		r.Fail()
		return nil, false
	}
	switch tag := r.Byte(); tag {
	case tagUndefined:
		return nil, false
	case tagNull:
		return nil, true
	case tagFalse, tagTrue:
		return tag == tagTrue, true
	case tagString:
		return r.String(), true
	case tagBytes:
		return append([]byte{}, r.Bytes()...), true
	case tagArray:
		return r.array(depth), true
	case tagObject:
		return r.object(depth), true
	default:
		f := r.number(tag)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, true
		}
		return f, true
	}
}

func (r *Reader) array(depth int) []any {
	values := []any{} // a count is a claim: it allocates nothing
	for n := r.Count(); n > 0 && r.err == nil; n-- {
		v, _ := r.any(depth - 1)
		values = append(values, v)
	}
	return values
}

func (r *Reader) object(depth int) map[string]any {
	fields := map[string]any{}
	for n := r.Count(); n > 0 && r.err == nil; n-- {
		key := r.String()
		delete(fields, key)
		if v, defined := r.any(depth - 1); defined {
			fields[key] = v
		}
	}
	return fields
}

// number reads the number that follows its tag. A zero loses its sign, and an
// int64 the digits that no float64 holds, as in every reader of their JSON.
func (r *Reader) number(tag byte) float64 {
	switch tag {
	case tagInt:
		magnitude, negative := r.Int()
		if negative && magnitude > 0 {
			return -float64(magnitude)
		}
		return float64(magnitude)
	case tagFloat32:
		if b := r.take(4); b != nil {
			return float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
		}
	case tagFloat64:
		if b := r.take(8); b != nil {
			return math.Float64frombits(binary.BigEndian.Uint64(b))
		}
	case tagInt64:
		if b := r.take(8); b != nil {
			return float64(int64(binary.BigEndian.Uint64(b)))
		}
	default:
		r.Fail()
	}
	return 0
}
