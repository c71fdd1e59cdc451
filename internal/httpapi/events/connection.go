package events

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/socket"
)

// line is a connection that was taken over from the server. Nothing more is
// read from it.
type line struct {
	socket.Conn
	rest []byte // of a frame that was begun
	last bool   // it is the last one
}

func newLine(conn net.Conn) *line { return &line{Conn: socket.New(conn)} }

// errWait says that a client does not take more at once.
var errWait = errors.New("the client does not take more at once")

// seize goes on with the bare connection. What a client is told first is told
// by who let it in; from then on, nobody waits for it.
func (s *Stream) seize(life context.Context, conn net.Conn, w http.ResponseWriter) {
	if c, ok := w.(interface{ TakenOver(status int) }); ok {
		c.TakenOver(http.StatusOK) // for the log
	}
	h := w.Header()
	streamHead(h)
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.Set("Connection", "close")
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.Write(&head)
	head.WriteString("\r\n")

	s.line = newLine(conn)
	s.write = s.line.wait
	err := s.write(head.Bytes())
	if err == nil {
		err = s.begin(life)
	}
	if err != nil {
		s.hangUp()
		return
	}
	s.c.mu.Lock()
	s.c.seized = s
	s.c.mu.Unlock()
	s.flush()
}

// sendAll lets clients have what lies there for them: some at a time, so that
// every core has something to do until the last one is told.
func sendAll(idle []*client) {
	for some := range slices.Chunk(idle, 50) {
		go func() {
			for _, c := range some {
				c.seized.flush()
			}
		}()
	}
}

// flush sends what lies there. If the client does not take it at once, a
// goroutine of its own goes on.
func (s *Stream) flush() {
	switch err := s.drain(s.b.all.Life, false); {
	case errors.Is(err, errWait):
		go s.insist()
	case err != nil:
		s.hangUp()
	}
}

func (s *Stream) insist() {
	err := s.send(&frame{text: s.line.rest, last: s.line.last}, true)
	s.line.rest = nil
	if err == nil {
		err = s.drain(s.b.all.Life, true)
	}
	if err != nil {
		s.hangUp()
	}
}

func (s *Stream) hangUp() {
	s.b.leave(s.c)
	_ = s.line.Close()
}

// wait writes a text, within the time that a client has for it.
func (l *line) wait(text []byte) error {
	_ = l.SetWriteDeadline(time.Now().Add(frameTime))
	_, err := l.Write(text)
	_ = l.SetWriteDeadline(time.Time{})
	return err
}

// try writes as much as the socket takes; what it does not take is the rest.
func (l *line) try(text []byte) (err error) {
	l.rest, err = l.Try(text)
	if err == nil && len(l.rest) > 0 {
		err = errWait
	}
	return err
}
