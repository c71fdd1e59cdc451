package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

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

// Read gives the last byte only when it has seen that none follows. A store
// that reads just as much as was announced so never completes an object whose
// source is longer.
func (m *Measured) Read(p []byte) (int, error) {
	if m.err != nil || len(p) == 0 {
		return 0, m.err
	}
	n, err := m.read(p)
	m.size += int64(n)
	m.hash.Write(p[:n])
	if err == nil && m.size == m.want {
		err = m.peek()
	}
	if tooLong := m.want >= 0 && m.size > m.want; tooLong || (errors.Is(err, io.EOF) && m.want >= 0 && m.size < m.want) {
		err = fault.Invalid("%d bytes were announced, and another number came", m.want)
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
