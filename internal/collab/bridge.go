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

// What servers tell one another of a room. Each message is the word, the
// server, the workflow, and what there is to say.
const (
	wordWrote = "wrote" // an update was stored
	wordHere  = "here"  // presences
	wordWho   = "who"   // asks who has the room open, and for their presences
	wordOpen  = "open"  // the answer
	wordShut  = "shut"
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

// tell sends who is where to the sockets of the room and to the other servers.
func (r *room) tell(ctx context.Context) {
	now := r.s.Now()
	r.mu.Lock()
	here, elsewhere := r.gather(now)
	if len(here) > 0 {
		r.told = now
	}
	if len(elsewhere) > 0 {
		r.bridged = now
	}
	r.mu.Unlock()
	if len(here) > 0 {
		frame := presenceFrame(here)
		for _, c := range r.audience(nil) {
			c.send(frame)
		}
	}
	for _, e := range elsewhere {
		if !r.hasOthers() {
			break
		}
		body := base64.RawStdEncoding.EncodeToString(presenceBody([]entry{e}))
		if len(body) <= maxBridged {
			r.send(ctx, wordHere, body)
		}
	}
}

// announce tells the other servers in this room that there is something to
// read. One that does not hear it looks by itself a moment later.
func (r *room) announce(ctx context.Context) {
	if r.hasOthers() {
		r.send(ctx, wordWrote, "")
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
		r.s.Log.WarnContext(ctx, "cannot tell the other servers", slog.Any("error", err))
	}
}

// listen hears what other servers say, until ctx ends.
func (s *Server) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.Bridge.Listen(ctx, func(m string) { s.heard(ctx, m) }, func() {
			for _, r := range s.all() {
				r.wroteElsewhere()
				r.send(ctx, wordWho, "")
			}
		})
		if ctx.Err() != nil {
			return
		}
		s.Log.WarnContext(ctx, "lost touch with the other servers; trying again", slog.Any("error", err))
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (s *Server) heard(ctx context.Context, message string) {
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
	case wordWrote:
		r.wroteElsewhere()
	case wordHere:
		body, err := base64.RawStdEncoding.DecodeString(parts[3])
		if err != nil {
			return
		}
		if list, err := readEntries(body); err == nil {
			r.hearOf(list)
		}
	case wordWho:
		r.shares(parts[1], true)
		r.send(ctx, wordOpen, "")
	case wordOpen:
		r.shares(parts[1], true)
	case wordShut:
		r.shares(parts[1], false)
	}
}

// shares notes whether another server has this room open. One that has is told
// who is here.
func (r *room) shares(server string, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !open {
		delete(r.others, server)
		return
	}
	r.others[server], r.tellAll = true, true
	r.stir()
}

func (r *room) wroteElsewhere() {
	r.mu.Lock()
	r.behind = true
	r.mu.Unlock()
	r.stir()
}
