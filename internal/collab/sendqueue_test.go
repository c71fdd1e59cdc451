package collab

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/millrace/millrace/internal/socket"
	"github.com/millrace/millrace/internal/waittest"
)

// A line between two ends, neither of which reads or writes by itself.
func newTestLine(t *testing.T, secure bool) (client, server *websocket.Conn, l *sendQueue) {
	t.Helper()
	ready, over := make(chan struct{}), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := &hijacker{ResponseWriter: w}
		var err error
		if server, err = websocket.Accept(conn, r, nil); err != nil {
			t.Error(err)
		}
		l = conn.queue
		close(ready)
		<-over
	}))
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(over) })
	client, _, err := websocket.Dial(t.Context(), s.URL, &websocket.DialOptions{HTTPClient: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	client.SetReadLimit(-1)
	t.Cleanup(func() { _ = client.CloseNow() })
	<-ready
	return client, server, l
}

// A handshake that took longer than a plain request may is answered all the same.
func TestALateHandshakeIsAnswered(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(&hijacker{ResponseWriter: w}, r, nil)
		if err == nil {
			err = ws.Close(websocket.StatusNormalClosure, "")
		}
		if err != nil {
			t.Error(err)
		}
	}))
	s.Config.WriteTimeout = time.Nanosecond
	s.Start()
	defer s.Close()
	ws, _, err := websocket.Dial(t.Context(), s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Error(err)
	}
}

// Frames arrive whole and in their order, whatever their size, however slow
// the client is, and though the library pings meanwhile.
func TestALineIsNeverMixedUp(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "with TLS": true} {
		t.Run(name, func(t *testing.T) {
			client, server, l := newTestLine(t, secure)
			server.CloseRead(t.Context()) // hears the pongs
			sizes := []int{4, 125, 126, 1 << 10, 0xffff, 0x10000, 1 << 20}
			const rounds = 3
			for i := range rounds * len(sizes) {
				message := bytes.Repeat([]byte{byte(i)}, sizes[i%len(sizes)])
				binary.BigEndian.PutUint32(message, uint32(i))
				if err := l.put(framed(message)); err != nil {
					t.Fatal(err)
				}
				go func() { _ = server.Ping(t.Context()) }()
			}
			for i := range rounds * len(sizes) {
				kind, message, err := client.Read(t.Context())
				if err != nil || kind != websocket.MessageBinary {
					t.Fatal(kind, err)
				}
				if got := binary.BigEndian.Uint32(message); int(got) != i || len(message) != sizes[i%len(sizes)] {
					t.Fatalf("message %d is %d, of %d bytes", i, got, len(message))
				}
				if rest := bytes.Trim(message[4:], string([]byte{byte(i)})); len(rest) > 0 {
					t.Fatalf("message %d has something else in it: %x", i, rest)
				}
			}
		})
	}
}

// For a client that reads nothing only so much is kept, also of what it asks
// for with pings of its own; and the last word comes after what was begun.
func TestALineKeepsOnlySoMuch(t *testing.T) {
	client, server, l := newTestLine(t, false)
	frame := framed(make([]byte, maxWaiting/8))
	for name, write := range map[string]func() error{
		"put":   func() error { return l.put(frame) },
		"Write": func() error { _, err := l.Write(frame); return err },
	} {
		var err error
		for i := 0; i < 1000 && err == nil; i++ {
			err = write()
		}
		if !errors.Is(err, errSlow) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	l.drop()
	go func() { _ = server.Close(codeSlow, "too slow") }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, message, err := client.Read(ctx)
		if err != nil {
			if websocket.CloseStatus(err) != codeSlow {
				t.Fatal(err)
			}
			return
		}
		if len(message) != maxWaiting/8 {
			t.Fatalf("%d bytes of a message", len(message))
		}
	}
}

// A client that leaves is answered while others still write to it: browsers
// complain about what comes after the answer.
func TestNothingFollowsACloseFrame(t *testing.T) {
	client, server := net.Pipe()
	l := &sendQueue{Conn: socket.New(server)}
	answer := []byte{closeFrame, 2, 3, 0xe8}
	if _, err := l.Write(answer); err != nil {
		t.Fatal(err)
	}
	if err := l.put(framed([]byte("late"))); err != nil {
		t.Fatal(err)
	}
	go func() {
		waittest.Until(l.idle)
		_ = server.Close()
	}()
	if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, answer) {
		t.Errorf("%x was written, %v", got, err)
	}
}

func (l *sendQueue) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.waiting
}

// Once a slow client has caught up, it is written to at once again.
func TestALineRecovers(t *testing.T) {
	client, _, l := newTestLine(t, false)
	large := framed(make([]byte, 8<<20)) // more than a socket takes
	if err := l.put(large); err != nil {
		t.Fatal(err)
	}
	if _, _, err := client.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !waittest.Until(l.idle) {
		t.Fatal("it never catches up")
	}
	if err := l.put(framed([]byte("there"))); err != nil {
		t.Fatal(err)
	}
	if _, message, err := client.Read(t.Context()); err != nil || string(message) != "there" {
		t.Fatalf("%s, %v", message, err)
	}
}
