package collab

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/sharing"
)

// What a client may send.
const (
	perSecond  = 500 // messages; who wants more is read more slowly
	burst      = 1000
	perMessage = 8 << 10 // bytes, sent or asked for, that count as another message
)

// conn is one socket.
type conn struct {
	r     *room
	ws    *websocket.Conn
	queue *sendQueue
	pass  sharing.Pass
	user  json.RawMessage // who they are, as others see them
	acks  bool            // understands our own messages

	stored  uint64          // changes of this client that are stored; under the room's mu
	acked   uint64          // of those, how many were acknowledged; under the room's mu
	clients map[uint64]bool // presences it has introduced; under the room's mu

	mu             sync.Mutex
	answered       int // bytes sent because it asked, not yet counted
	closed         bool
	keepAliveTimer *time.Timer
	closing        sync.WaitGroup
}

func newConn(r *room, ws *websocket.Conn, line *sendQueue, pass sharing.Pass, acks bool) *conn {
	user, err := json.Marshal(map[string]string{"id": pass.Subject(), "name": pass.Name, "color": pass.Color, "role": string(pass.Role)})
	if err != nil { // strings can always be written
		panic(err)
	}
	return &conn{r: r, ws: ws, queue: line, pass: pass, user: user, acks: acks, clients: map[uint64]bool{}}
}

// serve speaks with the client until one of them leaves.
func (c *conn) serve() {
	c.mu.Lock()
	c.keepAliveTimer = time.AfterFunc(c.r.s.Times.KeepAlive, func() {
		_ = c.r.closeOnPanic(context.Background(), func() error { c.keepAlive(); return nil })
	})
	c.mu.Unlock()
	if c.r.join(c) {
		if c.acks {
			c.closing.Go(func() {
				err := panics.Catch(func() error { return c.r.sendDefinition(c) })
				c.r.logError(context.Background(), err) // the client may leave meanwhile
			})
		}
		c.listen()
	}
	c.r.leave(c)
	c.mu.Lock()
	was := c.closed
	c.closed = true // nothing more is begun
	c.keepAliveTimer.Stop()
	c.mu.Unlock()
	if !was {
		_ = c.ws.CloseNow() // it has left
	}
	c.closing.Wait()
}

// listen reads what the client says.
func (c *conn) listen() {
	ctx := context.Background() // it ends with the connection
	left, seen := float64(burst), c.r.s.Now()
	for {
		kind, frame, err := c.ws.Read(ctx)
		if err != nil || c.isClosed() { // closed meanwhile
			return
		}
		m, err := read(frame)
		if kind != websocket.MessageBinary || err != nil {
			c.close(codeBad, "this is no message of the protocol")
			return
		}
		if c.r.closeOnPanic(ctx, func() error { c.handle(m); return nil }) != nil {
			return
		}
		now := c.r.s.Now()
		left = min(burst, left+now.Sub(seen).Seconds()*perSecond) - 1 - float64(len(frame)+c.takeCharged())/perMessage
		seen = now
		if left < 0 {
			time.Sleep(time.Duration(-left / perSecond * float64(time.Second))) // who wants too much at once
		}
	}
}

// takeCharged is how much was sent because the client asked since it was last counted.
func (c *conn) takeCharged() (bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes, c.answered = c.answered, 0
	return bytes
}

func (c *conn) handle(m message) {
	switch {
	case m.kind == kindAwareness:
		c.r.updatePresence(c, m.entries)
	case m.kind == kindAsk:
		c.r.introduce(c)
	case m.kind == kindRename:
		c.r.rename(c, m.body)
	case m.part == syncStep1:
		c.r.ask(question{from: c, state: append([]byte(nil), m.body...)})
	case c.pass.Role != sharing.Editor:
		c.r.s.counts.refused.Add(1) // viewers may not write
	default:
		c.r.take(c, m.body)
	}
}

// send queues a frame for the client. One that does not keep up is closed: it
// comes back and asks what it lacks.
func (c *conn) send(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && c.queue.put(frame) != nil {
		c.r.s.counts.slow.Add(1)
		c.closeLocked(codeSlow, "too much waits for you; come back")
	}
}

// reply is send for what the client asked for.
func (c *conn) reply(frame []byte) {
	c.mu.Lock()
	c.answered += len(frame)
	c.mu.Unlock()
	c.send(frame)
}

// acknowledge sends the client how many of its changes are stored, if it wants
// to know. The room's mu is held.
func (c *conn) acknowledge() {
	if c.acks && c.stored > c.acked {
		c.acked = c.stored
		c.send(storedFrame(c.stored))
	}
}

// close ends the socket with a code that says why.
func (c *conn) close(code websocket.StatusCode, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(code, reason)
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// closeLocked is close for who holds mu. The handshake may take its time.
func (c *conn) closeLocked(code websocket.StatusCode, reason string) {
	if c.closed {
		return
	}
	c.closed = true
	c.queue.drop()
	c.closing.Go(func() { _ = c.ws.Close(code, reason) })
}

// keepAlive says something small now and then: browsers hide the protocol's own
// pings from the client, which gives up after half a minute without a message.
// The ping finds out whether anybody is still there.
func (c *conn) keepAlive() {
	c.send(framed([]byte(emptyEntries)))
	c.mu.Lock()
	if !c.closed {
		c.keepAliveTimer.Reset(c.r.s.Times.KeepAlive)
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*sendTime)
	defer cancel()
	if c.ws.Ping(ctx) != nil {
		_ = c.ws.CloseNow()
	}
}
