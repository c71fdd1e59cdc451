package events

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/live"
)

func TestNobodyJoinsABroadcastThatHasToldItsEnd(t *testing.T) {
	t.Parallel()
	a := New(Options{Feed: &live.Hub{}, Life: t.Context()})
	over := &broadcast{all: a, id: "run", over: true}
	a.all = map[ids.Run]*broadcast{"run": over}
	b := a.broadcastOf("team", "run")
	defer b.mu.Unlock()
	if b == over || b.over || a.all["run"] != b {
		t.Fatal("a client waits for what nobody will tell")
	}
	over.close()
	if a.all["run"] != b {
		t.Error("a broadcast that ends takes another one along")
	}
}

func TestFramesThatAreNotTakenAtOnceArriveWhole(t *testing.T) {
	t.Parallel()
	near, far := connection(t)
	c := &client{wake: make(chan struct{}, 1)}
	s := &Stream{c: c, line: newLine(near), b: &broadcast{all: New(Options{Life: t.Context()}), clients: map[*client]bool{c: true}}}
	s.write, c.seized = s.line.wait, s
	var want []byte
	for i := range 12 {
		f := &frame{text: bytes.Repeat([]byte{'a' + byte(i)}, 1<<20), last: i == 11}
		want = append(want, f.text...)
		s.b.tell(f)
	}
	got, err := io.ReadAll(far)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d arrived, or in another order", len(got), len(want))
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if len(s.b.clients) > 0 {
		t.Error("a client that has been told the end is still there")
	}
}

// connection is both ends of one that holds little on its way.
func connection(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	near, far = in.(*net.TCPConn), out.(*net.TCPConn)
	t.Cleanup(func() { near.Close(); far.Close() })
	_ = far.SetDeadline(time.Now().Add(time.Minute))
	_ = near.SetWriteBuffer(16 << 10)
	_ = far.SetReadBuffer(16 << 10)
	return near, far
}
