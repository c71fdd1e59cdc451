package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"sync"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Measured hashes and counts what is read through it. It is for the stores.
type Measured struct {
	read func([]byte) (int, error)
	want int64 // negative: any length
	size int64
	hash hash.Hash
	err  error
}

// Measure wraps r, which must have size bytes unless size is negative, until
// ctx ends.
func Measure(ctx context.Context, r io.Reader, size int64) *Measured {
	return &Measured{want: size, hash: sha256.New(), read: func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	}}
}

// Count is Measure without a hash.
func Count(ctx context.Context, r io.Reader, size int64) *Measured {
	m := Measure(ctx, r, size)
	m.hash = nothing{}
	return m
}

// nothing is the hash of those who need none.
type nothing struct{ hash.Hash }

func (nothing) Write(p []byte) (int, error) { return len(p), nil }

// Read gives the last byte only when it has seen that none follows. A store
// that reads just as much as was announced so never completes an object whose
// source is longer.
func (m *Measured) Read(p []byte) (int, error) {
	n, err := m.next(p)
	m.hash.Write(p[:n])
	return n, err
}

// WriteTo copies everything, and hashes each piece while the next one is read
// and written. What w gets when reading fails is incomplete.
func (m *Measured) WriteTo(w io.Writer) (int64, error) {
	const pieces = 4
	size := int64(256 << 10)
	if m.want >= 0 {
		size = min(size, max(m.want, 1))
	}
	full, empty := make(chan []byte, pieces), make(chan []byte, pieces)
	for range pieces {
		empty <- make([]byte, size)
	}
	var hashing sync.WaitGroup
	hashing.Go(func() {
		for piece := range full {
			m.hash.Write(piece)
			empty <- piece[:size]
		}
	})
	defer hashing.Wait()
	defer close(full)
	var written int64
	for {
		piece := <-empty
		n, err := m.fill(piece)
		full <- piece[:n]
		k, failed := w.Write(piece[:n])
		written += int64(k)
		if failed != nil {
			return written, failed
		}
		if err != nil {
			return written, m.Err()
		}
	}
}

// fill reads until the piece is full, as writing many small ones is slow.
func (m *Measured) fill(piece []byte) (n int, err error) {
	for n < len(piece) && err == nil {
		var read int
		read, err = m.next(piece[n:])
		n += read
	}
	return n, err
}

// next reads without hashing.
func (m *Measured) next(p []byte) (int, error) {
	if m.err != nil || len(p) == 0 {
		return 0, m.err
	}
	n, err := m.read(p)
	m.size += int64(n)
	if err == nil && m.size == m.want {
		err = m.peek()
	}
	if tooLong := m.want >= 0 && m.size > m.want; tooLong || (errors.Is(err, io.EOF) && m.want >= 0 && m.size < m.want) {
		err = fault.Invalid("the size does not match the %d bytes announced", m.want)
	}
	m.err = err
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return n, err
}

// peek looks for a byte too many.
func (m *Measured) peek() error {
	var one [1]byte
	for {
		n, err := m.read(one[:])
		m.size += int64(n)
		if n > 0 || err != nil {
			return err
		}
	}
}

// Err is why reading ended early, or nil.
func (m *Measured) Err() error {
	if errors.Is(m.err, io.EOF) {
		return nil
	}
	return m.err
}

// Object describes what was read.
func (m *Measured) Object(key, contentType string) Object {
	return Object{Key: key, Size: m.size, ContentType: contentType, SHA256: hex.EncodeToString(m.hash.Sum(nil))}
}
