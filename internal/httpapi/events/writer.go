package events

import (
	"net/http"
	"time"
)

// streamHead says that events follow, and that nobody on the way may hold them
// back.
func streamHead(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
}

// Heartbeat is a comment, so that nobody on the way takes a silent stream
// for dead. No empty line follows it: some clients take that for the end of an
// event without data.
const Heartbeat = ": heartbeat\n"

// Writer is an open stream to one client, within its request.
type Writer struct {
	w   http.ResponseWriter
	out *http.ResponseController
}

// Open sends the head of a stream. The deadlines of a plain request go:
// past them, the server would take the client for gone.
func Open(w http.ResponseWriter) *Writer {
	s := &Writer{w: w, out: http.NewResponseController(w)}
	_ = s.out.SetReadDeadline(time.Time{}) // not every connection has one
	_ = s.out.SetWriteDeadline(time.Time{})
	streamHead(w.Header())
	w.WriteHeader(http.StatusOK)
	return s
}

// Line sends a line as it is.
func (s *Writer) Line(text string) error { return s.Write([]byte(text)) }

// Write sends text as it is; a client that does not take it in time is gone.
// The deadline goes with it: HTTP/2 ends streams that are silent beyond theirs.
func (s *Writer) Write(text []byte) error {
	_ = s.out.SetWriteDeadline(time.Now().Add(frameTime))
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	err := s.out.Flush()
	_ = s.out.SetWriteDeadline(time.Time{})
	return err
}
