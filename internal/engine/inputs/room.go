package inputs

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/millrace/millrace/internal/domain/fault"
)

// lookEvery is how many bytes are taken before the disk is looked at, so that a small
// input still comes to its task when the disk is low. A file takes a block at least.
const (
	lookEvery = 64 << 20
	block     = 4 << 10
)

// room is what the copies of a run take up on a disk that must not become full.
type room struct {
	low   func() bool
	taken atomic.Int64 // since the disk was last looked at
	moved atomic.Int64 // grows with all that is read, linked or copied
}

// take has the disk looked at when it is time. It is an error where there is no room for more.
func (r *room) take(bytes int64) error {
	r.moved.Add(1)
	if r.taken.Add(bytes) <= lookEvery {
		return nil
	}
	r.taken.Store(0)
	if r.low() {
		return fault.Conflict("the server's disk has no room for the inputs").WithCode("disk_full")
	}
	return nil
}

// copy is io.Copy as long as there is room.
func (r *room) copy(to io.Writer, from io.Reader) (copied int64, err error) {
	for {
		n, err := io.CopyN(to, from, lookEvery)
		copied += n
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return copied, err
		}
		if err := r.take(n); err != nil || ended {
			return copied, err
		}
	}
}

// copyAll is io.CopyN as long as there is room.
func (r *room) copyAll(to io.Writer, from io.Reader, size int64) error {
	n, err := r.copy(to, io.LimitReader(from, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	return err
}
