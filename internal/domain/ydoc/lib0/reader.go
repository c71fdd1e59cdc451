// Package lib0 reads and writes the primitives that Yjs documents and the
// messages of the editor socket are made of: variable-length integers,
// strings, buffers, and the tagged values called "any". What they mean is
// left to the document and to the socket.
package lib0

import (
	"errors"
	"unicode/utf8"
)

// ErrMalformed is what a Reader reports for bytes that end early, count more
// than they hold, or are no value at all.
var ErrMalformed = errors.New("malformed bytes")

// MaxUint is the largest integer JavaScript counts exactly. Nothing larger is
// read, so that sums of two never overflow.
const MaxUint = 1<<53 - 1

const maxAnyDepth = 64

// Reader reads one value after another. After the first failure every further
// value is zero and Err says why, so a caller may read a whole message and ask
// once.
type Reader struct {
	rest []byte
	err  error
}

// NewReader reads from b, which must not change meanwhile.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

// Err returns ErrMalformed if anything read so far was not there.
func (r *Reader) Err() error { return r.err }

// Len returns how many bytes are left to read. It is 0 after a failure.
func (r *Reader) Len() int { return len(r.rest) }

// Rest returns what is left to read, a part of the buffer that is read.
func (r *Reader) Rest() []byte { return r.rest }

// Fail makes the reader fail: what was read was well-formed and means nothing.
func (r *Reader) Fail() { r.err, r.rest = ErrMalformed, nil }

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.rest) == 0 {
		r.Fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// Uint reads a varUint of at most MaxUint.
func (r *Reader) Uint() uint64 {
	return r.more(0, 0)
}

// Int reads a varInt and returns its magnitude and its sign: JavaScript has
// a zero of either sign.
func (r *Reader) Int() (magnitude uint64, negative bool) {
	b := r.Byte()
	magnitude = uint64(b & 0x3f)
	if b&0x80 != 0 {
		magnitude = r.more(magnitude, 6)
	}
	return magnitude, b&0x40 != 0
}

// more reads groups of seven bits, the lowest first, onto n.
func (r *Reader) more(n uint64, shift uint) uint64 {
	for i, b := range r.rest {
		if shift > 49 {
			break
		}
		n |= uint64(b&0x7f) << shift
		shift += 7
		if b < 0x80 && n <= MaxUint {
			r.rest = r.rest[i+1:]
			return n
		}
	}
	r.Fail()
	return 0
}

// Count reads the number of things that follow. As each takes a byte at
// least, a count beyond the bytes left is malformed.
func (r *Reader) Count() int {
	n := r.Uint()
	if n > uint64(len(r.rest)) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Bytes reads a varBuf. The result is a part of the buffer that is read.
func (r *Reader) Bytes() []byte { return r.take(r.Count()) }

// String reads a varString, which has to be valid UTF-8.
func (r *Reader) String() string {
	b := r.Bytes()
	if !utf8.Valid(b) {
		r.Fail()
		return ""
	}
	return string(b)
}

// SkipAny passes over one any value. What Rest returned before it, less what
// Rest returns after it, is the value as it was written.
func (r *Reader) SkipAny() { r.skipAny(maxAnyDepth) }

func (r *Reader) skipAny(depth int) {
	if depth == 0 {
		r.Fail()
		return
	}
	switch r.Byte() {
	case tagUndefined, tagNull, tagFalse, tagTrue:
	case tagInt:
		r.Int()
	case tagFloat32:
		r.take(4)
	case tagFloat64, tagInt64:
		r.take(8)
	case tagString:
		if !utf8.Valid(r.Bytes()) {
			r.Fail()
		}
	case tagBytes:
		r.Bytes()
	case tagArray:
		for n := r.Count(); n > 0 && r.err == nil; n-- {
			r.skipAny(depth - 1)
		}
	case tagObject:
		for n := r.Count(); n > 0 && r.err == nil; n-- {
			if !utf8.Valid(r.Bytes()) {
				r.Fail()
			}
			r.skipAny(depth - 1)
		}
	default:
		r.Fail()
	}
}

func (r *Reader) take(n int) []byte {
	if n > len(r.rest) {
		r.Fail()
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}
