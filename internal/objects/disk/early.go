package disk

import "os"

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
