package disk

import (
	"bytes"
	"io"
	"os"
)

// early is a file that goes to the disk while it is written, so that making
// it durable at the end does not have to wait for all of it.
type early struct {
	file    *os.File
	written int64
	begun   int64 // up to here
}

func (e *early) Write(p []byte) (int, error) {
	n, err := e.file.Write(p)
	e.written += int64(n)
	const step = 8 << 20
	if e.written-e.begun >= step {
		beginWriting(e.file, e.begun, e.written-e.begun)
		e.begun = e.written
	}
	return n, err
}

// sparse is a new file in which what is empty stays a hole, as it may have been
// where it comes from.
type sparse struct{ early }

func (s *sparse) Write(p []byte) (int, error) {
	if !empty(p) {
		return s.early.Write(p)
	}
	if _, err := s.file.Seek(int64(len(p)), io.SeekCurrent); err != nil {
		return 0, err
	}
	s.written += int64(len(p))
	return len(p), nil
}

// end gives the file its length: the last of it may be a hole.
func (s *sparse) end() error { return s.file.Truncate(s.written) }

// hole is the least that is worth leaving out.
const hole = 16 << 10

func empty(p []byte) bool {
	return len(p) >= hole && p[0] == 0 && bytes.Equal(p[1:], p[:len(p)-1])
}
