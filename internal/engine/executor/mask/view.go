package mask

// view is the stream as one decoder sees it.
type view struct {
	st      *Stream
	set     *Set
	decoder decoder
	state   int32
	starts  []int64 // where in the stream each byte of the beginning at hand began
}

// decoder turns a stream into what it may be an encoding of.
type decoder interface {
	// read takes the next byte of the stream.
	read(b byte, at int64, v *view)
	// end takes what waits for more as it is.
	end(v *view)
	// waits is where what is not decoded yet begins, if it may be the first of
	// a secret; later than all there is if nothing is.
	waits(heads *[256]bool) int64
}

const nowhere = int64(1) << 62

// put takes a decoded byte that stands in the stream from one place to another.
func (v *view) put(b byte, from, to int64) {
	values := v.set.values
	if v.state == 0 && values.first[b] == 0 {
		return // most of all bytes
	}
	v.state = values.step(v.state, b)
	n := &values.nodes[v.state]
	v.starts = append(v.starts, from)
	v.starts = v.starts[len(v.starts)-int(n.depth):]
	if n.match > 0 {
		v.st.note(span{v.starts[len(v.starts)-int(n.match)], to})
	}
}

// cut says that what follows is not joined to what was before.
func (v *view) cut() { v.state, v.starts = 0, v.starts[:0] }

// begun reports whether a beginning of a secret is at hand.
func (v *view) begun() bool { return v.state != 0 }

// holds is where that begins which must wait for more.
func (v *view) holds(read int64) int64 {
	from := min(read, v.decoder.waits(&v.set.heads))
	if len(v.starts) > 0 {
		from = min(from, v.starts[0])
	}
	return from
}
