package collab

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/millrace/millrace/internal/sharing"
)

// What a client may send, and how much may wait for it.
const (
	perSecond  = 500 // messages; who wants more is read more slowly
	burst      = 1000
	perMessage = 8 << 10 // bytes, sent or asked for, that count as another message
	maxQueue   = 256     // messages
	maxWaiting = 4 << 20
	sendTime   = 20 * time.Second // in which a client must take a message
)

// conn is one socket.
type conn struct {
	r    *room
	ws   *websocket.Conn
	pass sharing.Pass
	user json.RawMessage // who they are, as others see them
	acks bool            // understands our own messages

	stored  uint64          // changes of this client that are stored; under the room's mu
	acked   uint64          // of those, how many it was told; under the room's mu
	clients map[uint64]bool // presences it has introduced; under the room's mu

	mu       sync.Mutex
	queue    [][]byte
	size     int
	answered int // bytes sent because it asked, not yet counted
	closed   bool
	ready    chan struct{} // something waits to be sent
	work     sync.WaitGroup
	farewell sync.WaitGroup
}

func newConn(r *room, ws *websocket.Conn, pass sharing.Pass, acks bool) *conn {
	user, err := json.Marshal(map[string]string{"id": pass.Subject(), "name": pass.Name, "color": pass.Color, "role": string(pass.Role)})
	if err != nil { // strings can always be written
		panic(err)
	}
	return &conn{r: r, ws: ws, pass: pass, user: user, acks: acks, clients: map[uint64]bool{}, ready: make(chan struct{}, 1)}
}

// serve speaks with the client until one of them leaves.
func (c *conn) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	c.work.Go(func() { c.write(ctx) })
	if c.r.join(c) {
		c.listen(ctx)
	}
	c.r.leave(c)
	c.mu.Lock()
	told := c.closed
	c.closed = true // nothing more is begun
	c.mu.Unlock()
	if !told {
		_ = c.ws.CloseNow() // it has left
	}
	// A write that is cut short takes the connection with it, and what was to
	// be said last.
	c.farewell.Wait()
	cancel()
	c.work.Wait()
}

// listen reads what the client says.
func (c *conn) listen(ctx context.Context) {
	left, seen := float64(burst), c.r.s.Now()
	for {
		kind, frame, err := c.ws.Read(ctx)
		if err != nil || c.isClosed() { // who was sent away is not heard any more
			return
		}
		m, err := read(frame)
		if kind != websocket.MessageBinary || err != nil {
			c.close(codeBad, "this is no message of the protocol")
			return
		}
		c.hear(m)
		now := c.r.s.Now()
		left = min(burst, left+now.Sub(seen).Seconds()*perSecond) - 1 - float64(len(frame)+c.owes())/perMessage
		seen = now
		if left < 0 {
			c.rest(ctx, time.Duration(-left/perSecond*float64(time.Second)))
		}
	}
}

// owes is how much was sent because the client asked since it was last counted.
func (c *conn) owes() (bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes, c.answered = c.answered, 0
	return bytes
}

// rest lets a client wait that wants too much at once.
func (c *conn) rest(ctx context.Context, d time.Duration) {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-ctx.Done():
	case <-pause.C:
	}
}

func (c *conn) hear(m message) {
	switch {
	case m.kind == kindAwareness:
		c.r.meet(c, m.entries)
	case m.kind == kindAsk:
		c.r.introduce(c)
	case m.part == syncStep1:
		c.r.ask(question{from: c, state: append([]byte(nil), m.body...)})
	case c.pass.Role != sharing.Editor:
		c.r.s.counts.refused.Add(1) // who only reads is not heard
	default:
		c.r.take(c, m.body)
	}
}

// send queues a message. A client that does not keep up is sent away: it comes
// back and asks what it lacks.
func (c *conn) send(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if len(c.queue) >= maxQueue || c.size+len(frame) > maxWaiting && len(c.queue) > 0 {
		c.r.s.counts.slow.Add(1)
		c.shut(codeSlow, "too much waits for you; come back")
		return
	}
	c.queue, c.size = append(c.queue, frame), c.size+len(frame)
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// reply is send for what the client asked for.
func (c *conn) reply(frame []byte) {
	c.mu.Lock()
	c.answered += len(frame)
	c.mu.Unlock()
	c.send(frame)
}

// acknowledge tells the client how many of its changes are stored, if it wants
// to know. The room's mu is held.
func (c *conn) acknowledge() {
	if c.acks && c.stored > c.acked {
		c.acked = c.stored
		c.send(storedFrame(c.stored))
	}
}

// close ends the socket with a code that tells why.
func (c *conn) close(code websocket.StatusCode, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut(code, reason)
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// shut is close for who holds mu. The handshake may take its time.
func (c *conn) shut(code websocket.StatusCode, reason string) {
	if c.closed {
		return
	}
	c.closed, c.queue = true, nil
	c.farewell.Go(func() { _ = c.ws.Close(code, reason) })
}

// write sends what is queued, and something small whenever there was silence:
// browsers hide the protocol's own pings from the client, which gives up after
// half a minute without a message.
func (c *conn) write(ctx context.Context) {
	silence := time.NewTimer(c.r.s.Times.KeepAlive)
	defer silence.Stop()
	for {
		var frames [][]byte
		select {
		case <-ctx.Done():
			return
		case <-c.ready:
			c.mu.Lock()
			frames, c.queue, c.size = c.queue, nil, 0
			c.mu.Unlock()
		case <-silence.C:
			frames = [][]byte{[]byte(emptyEntries)}
			c.work.Go(func() { c.ping(ctx) })
		}
		for _, frame := range frames {
			if c.writeOne(ctx, frame) != nil {
				_ = c.ws.CloseNow()
				return
			}
		}
		silence.Reset(c.r.s.Times.KeepAlive)
	}
}

func (c *conn) writeOne(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return c.ws.Write(ctx, websocket.MessageBinary, frame)
}

// ping finds out whether anybody is still there.
func (c *conn) ping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*sendTime)
	defer cancel()
	if c.ws.Ping(ctx) != nil {
		_ = c.ws.CloseNow()
	}
}
