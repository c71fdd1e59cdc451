package collab

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/socket"
)

// How much may wait for a client, and for how long.
const (
	maxQueue   = 256 // frames
	maxWaiting = 4 << 20
	sendTime   = 20 * time.Second // in which a client must take a frame
)

const closeFrame = 0x88 // how one begins

var errSlow = errors.New("too much waits for this client")

// sendQueue is what is written to a socket. Who has a frame writes it there
// and then: nobody is woken for that. Only for what a client does not take at
// once is there a goroutine. The library behind the socket sends its pings and
// its farewell here, too, so that no frame breaks into another.
type sendQueue struct {
	socket.Conn

	mu      sync.Mutex
	rest    []byte // of a frame that was begun
	queue   [][]byte
	size    int
	waiting bool // a goroutine waits for the client
	ended   bool // a close frame was put: nothing may follow it
}

// hijacker is a ResponseWriter whose connection becomes a line.
type hijacker struct {
	http.ResponseWriter
	queue *sendQueue
}

func (t *hijacker) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// Hijack is for who speaks WebSocket on it. All that they write themselves are
// control frames.
func (t *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	control := http.NewResponseController(t.ResponseWriter)
	// What answers the handshake is written now. Past the time of a plain request it would
	// be left out, without an error, and frames would come in its place.
	_ = control.SetWriteDeadline(time.Now().Add(sendTime))
	conn, rw, err := control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	t.queue = &sendQueue{Conn: socket.New(conn)}
	const controlFrame = 256 // and some more
	return t.queue, bufio.NewReadWriter(rw.Reader, bufio.NewWriterSize(t.queue, controlFrame)), nil
}

// put sends a frame, or has it sent as soon as the client takes it. It fails
// when too much waits already. After a close frame it sends nothing: the library
// answers a client that leaves before anybody here knows that it has left.
func (l *sendQueue) put(frame []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	l.ended = frame[0] == closeFrame
	if l.waiting {
		if len(l.queue) >= maxQueue || l.size+len(frame) > maxWaiting && len(l.queue) > 0 {
			return errSlow
		}
		l.queue, l.size = append(l.queue, frame), l.size+len(frame)
		return nil
	}
	if l.rest = l.try(frame); len(l.rest) > 0 {
		l.waiting = true
		go l.wait()
	}
	return nil
}

// Write is put for what the caller goes on to use.
func (l *sendQueue) Write(frame []byte) (int, error) {
	if err := l.put(append([]byte(nil), frame...)); err != nil {
		return 0, err
	}
	return len(frame), nil
}

// drop forgets what waits, but for what was begun.
func (l *sendQueue) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue, l.size = nil, 0
}

// try writes as much as the client takes, and returns the rest.
func (l *sendQueue) try(frame []byte) []byte {
	rest, err := l.Try(frame)
	if err != nil {
		_ = l.Close() // reading from it fails then
		return nil
	}
	return rest
}

// wait writes what waits, in the time that a client has for it.
func (l *sendQueue) wait() {
	for {
		l.mu.Lock()
		frames := l.queue
		if l.rest != nil {
			frames = append([][]byte{l.rest}, frames...)
		}
		l.rest, l.queue, l.size = nil, nil, 0
		if len(frames) == 0 {
			_ = l.SetWriteDeadline(time.Time{})
			l.waiting = false
		}
		l.mu.Unlock()
		for _, frame := range frames {
			_ = l.SetWriteDeadline(time.Now().Add(sendTime))
			if _, err := l.Conn.Write(frame); err != nil {
				_ = l.Close()
				return // stays marked waiting: the connection is dead
			}
		}
		if len(frames) == 0 {
			return
		}
	}
}
