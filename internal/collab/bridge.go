package collab

import (
	"context"
	"encoding/base64"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

// bridgePause is between two messages of one room to the other servers.
const bridgePause = 100 * time.Millisecond

// maxBridged bounds a message between servers; PostgreSQL takes 8,000 bytes.
const maxBridged = 7000

// What servers send one another about a room. Each message is its kind, the
// server, the workflow, and what there is to say.
const (
	messageUpdated  = "wrote" // an update was stored
	messagePresence = "here"  // presences
	messageWho      = "who"   // asks who has the room open, and for their presences
	messageOpen     = "open"  // the answer
	messageClosed   = "shut"
)

// counts are for the operator.
type counts struct {
	conns, stored, refused, slow atomic.Int64
}

// Measure is what the operator may want to know.
type Measure struct {
	Rooms, Conns, Stored, Refused, Slow int64
}

// Measure counts what is going on.
func (s *Server) Measure() Measure {
	s.mu.Lock()
	rooms := len(s.rooms)
	s.mu.Unlock()
	return Measure{Rooms: int64(rooms), Conns: s.counts.conns.Load(), Stored: s.counts.stored.Load(), Refused: s.counts.refused.Load(), Slow: s.counts.slow.Load()}
}

// publishPresence sends who is where to the sockets of the room and to the other servers.
func (r *room) publishPresence(ctx context.Context) {
	here, others := r.gather(r.s.Now())
	if len(here) > 0 {
		frame := presenceFrame(here)
		for _, c := range r.recipients(nil) {
			c.send(frame)
		}
	}
	for _, e := range others {
		if !r.hasOthers() {
			break
		}
		body := base64.RawStdEncoding.EncodeToString(presenceBody([]entry{e}))
		if len(body) <= maxBridged {
			r.send(ctx, messagePresence, body)
		}
	}
}

// announce notifies the other servers in this room that there is something to
// read. One that does not receive it polls a moment later.
func (r *room) announce(ctx context.Context) {
	if r.hasOthers() {
		r.send(ctx, messageUpdated, "")
	}
}

func (r *room) hasOthers() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.others) > 0
}

func (r *room) send(ctx context.Context, word, body string) {
	if r.s.Bridge == nil {
		return
	}
	if err := r.s.Bridge.Send(ctx, strings.Join([]string{word, r.s.name, string(r.id), body}, " ")); err != nil {
		// The others look by themselves, only later.
		r.s.Log.WarnContext(ctx, "cannot notify the other servers", slog.Any("error", err))
	}
}

// listen receives what other servers send, until ctx ends.
func (s *Server) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.Bridge.Listen(ctx, func(m string) { s.receive(ctx, m) }, func() {
			for _, r := range s.all() {
				r.noteRemoteUpdate()
				r.send(ctx, messageWho, "")
			}
		})
		if ctx.Err() != nil {
			return
		}
		s.Log.WarnContext(ctx, "lost the connection to the other servers; trying again", slog.Any("error", err))
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (s *Server) receive(ctx context.Context, message string) {
	parts := strings.SplitN(message, " ", 4)
	if len(parts) != 4 || parts[1] == s.name {
		return
	}
	s.mu.Lock()
	r := s.rooms[ids.Workflow(parts[2])]
	s.mu.Unlock()
	if r == nil {
		return
	}
	switch parts[0] {
	case messageUpdated:
		r.noteRemoteUpdate()
	case messagePresence:
		body, err := base64.RawStdEncoding.DecodeString(parts[3])
		if err != nil {
			return
		}
		if list, err := readEntries(body); err == nil {
			r.mergePresence(list)
		}
	case messageWho:
		r.noteServer(parts[1], true)
		r.send(ctx, messageOpen, "")
	case messageOpen:
		r.noteServer(parts[1], true)
	case messageClosed:
		r.noteServer(parts[1], false)
	}
}

// noteServer notes whether another server has this room open. One that has gets
// the presences of this one.
func (r *room) noteServer(server string, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !open {
		delete(r.others, server)
		return
	}
	r.others[server], r.sendAllPresence = true, true
	r.wakeUp()
}

func (r *room) noteRemoteUpdate() {
	r.mu.Lock()
	r.behind = true
	r.mu.Unlock()
	r.wakeUp()
}
