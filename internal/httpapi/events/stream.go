// Package events sends what happens to a run to everybody who watches it, as
// server-sent events: it looks once, however many there are, and waits for none
// of them.
package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/live"
)

// Pause is how long a stream is silent before a heartbeat.
const Pause = 25 * time.Second

// The rhythm of a stream.
const (
	framePause   = time.Second / 3 // three frames a second, and a fourth for the end
	presenceLook = 3 * time.Second / 2
	permitLasts  = time.Second / 2  // whoever may watch no more hears nothing two seconds later
	frameTime    = 20 * time.Second // in which a client must take a frame
	maxBehind    = 1 << 20          // bytes of log; beyond that a fresh snapshot is shorter
	frameLog     = 256 << 10        // bytes of log in a frame
	maxWaiting   = 16               // frames that one client may leave lying
)

// Watcher is who is behind a stream.
type Watcher struct {
	Session ids.Session
	May     access.Action
}

// client is what lies there for one stream. Frames are shared between clients;
// one that does not keep up is given a fresh snapshot in place of those it
// missed.
type client struct {
	who  Watcher
	wake chan struct{} // for who waits for frames

	mu      sync.Mutex
	seized  *Stream // where nobody waits
	waiting []*frame
	lagging bool
	done    bool
	busy    bool // somebody is sending to it
}

// hand leaves a frame for the client, and reports whether nobody sends to it.
func (c *client) hand(f *frame) (idle bool) {
	return c.put(func() {
		switch {
		case len(c.waiting) < maxWaiting:
			c.waiting = append(c.waiting, f)
		case f.last: // how it ended is in the snapshot too, but this one closes the stream
			c.waiting[len(c.waiting)-1], c.lagging = f, true
		default:
			c.lagging = true
		}
	})
}

// put changes what lies there.
func (c *client) put(change func()) (idle bool) {
	c.mu.Lock()
	change()
	idle, c.busy = !c.busy && c.seized != nil, true
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return idle
}

// finish ends streams once what lies there is sent.
func finish(clients []*client) {
	sendAll(slices.DeleteFunc(clients, func(c *client) bool {
		return !c.put(func() { c.done = true })
	}))
}

// take is what lies there for the client. If it is nothing, who asks is free.
func (c *client) take() (frames []*frame, lagging, done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	frames, lagging, done = c.waiting, c.lagging, c.done
	c.waiting, c.lagging = nil, false
	c.busy = len(frames) > 0 || lagging || done
	return frames, lagging, done
}

// giveBack undoes a take.
func (c *client) giveBack(frames []*frame, lagging bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting, c.lagging = append(frames, c.waiting...), c.lagging || lagging
}

// Join adds somebody to those who watch a run, who goes on after the event they
// heard last. The stream must be served.
func (w *Streams) Join(ctx context.Context, team ids.Team, id ids.Run, who Watcher, lastEvent string) (*Stream, error) {
	c := &client{who: who, wake: make(chan struct{}, 1), busy: true}
	b, first, err := w.join(ctx, team, id, c)
	if err != nil {
		return nil, err
	}
	return &Stream{b: b, c: c, first: first, since: lastPlace(lastEvent, first.to)}, nil
}

// lastPlace is where an earlier stream of this client ended, or where this one
// begins.
func lastPlace(last string, now Place) Place {
	seq, log, _ := strings.Cut(last, ":")
	n, seqErr := strconv.ParseInt(seq, 10, 64)
	o, logErr := strconv.ParseInt(log, 10, 64)
	if seqErr == nil && logErr == nil && n >= 0 && o >= 0 && n <= now.Seq && o <= now.Log && now.Log-o <= maxBehind {
		return Place{n, o}
	}
	return now
}

// Stream sends to one client.
type Stream struct {
	b     *broadcast
	c     *client
	first *frame
	since Place
	write func([]byte) error // and wait until it is written
	line  *line              // the bare connection, if we have it
}

// Serve takes the connection over where it can: nobody has to wait for a client
// then, and it costs little more than its socket.
func (s *Stream) Serve(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			s.seize(s.b.all.Life, conn, w)
			return
		}
	}
	s.write = Open(w).Write
	defer s.b.leave(s.c)
	for err := s.begin(r.Context()); err == nil; err = s.drain(r.Context(), true) {
		select {
		case <-r.Context().Done():
			return
		case <-s.c.wake:
		}
	}
}

// drain sends what lies there until that is nothing. Without patience, it stops
// with errWait where it would have to wait.
func (s *Stream) drain(ctx context.Context, patient bool) error {
	for {
		frames, lagging, done := s.c.take()
		if lagging && !patient {
			s.c.giveBack(frames, lagging)
			return errWait
		}
		if lagging {
			frames = s.catchUp(ctx, frames)
		}
		for i, f := range frames {
			if err := s.send(f, patient); err != nil {
				s.c.giveBack(frames[i+1:], false)
				return err
			}
		}
		if done {
			return io.EOF
		}
		if len(frames) == 0 && !lagging {
			return nil
		}
	}
}

// send sends a frame, and is done with the client after the last one.
func (s *Stream) send(f *frame, patient bool) error {
	write := s.write
	if !patient {
		write = s.line.try
	}
	err := write(f.text)
	switch {
	case errors.Is(err, errWait):
		s.line.last = f.last
	case err == nil && f.last:
		return io.EOF
	}
	return err
}

// begin greets a client, and replays what it missed since its last stream. Of
// a run that had ended before, it tells the end.
func (s *Stream) begin(ctx context.Context) error {
	hello, err := newFrame(s.since, map[string]any{"type": "connected", "runId": s.b.id})
	if err != nil {
		return err
	}
	first := s.first
	s.first = nil // it is large
	// A client that leaves before the replay has still missed what it missed, so
	// the snapshot comes under the id of that place. How long to wait before a
	// reconnect stands in the first event: alone, some clients take it for one.
	if err := s.write(fmt.Appendf(nil, "retry: 3000\n%sid: %s\n", hello.text, s.since)); err != nil {
		return err
	}
	if err := s.write(first.text[bytes.IndexByte(first.text, '\n')+1:]); err != nil {
		return err
	}
	if err := s.replay(ctx, s.since, first.to); err != nil || !first.last {
		return err
	}
	if err := s.bid(ctx, first.to); err != nil {
		return err
	}
	return io.EOF
}

// replay sends what happened between two places.
func (s *Stream) replay(ctx context.Context, from, to Place) error {
	for from.Seq < to.Seq || from.Log < to.Log {
		n, err := s.b.all.Runs.Changes(ctx, s.b.team, s.b.id, from.Seq, from.Log, min(frameLog, max(1, to.Log-from.Log)))
		if err != nil {
			return err
		}
		next, k := from, 0 // old runs have lost events: numbers are left out
		for ; k < len(n.Events) && n.Events[k].Seq <= to.Seq; k++ {
			next.Seq = n.Events[k].Seq
		}
		n.Events = n.Events[:k]
		if from.Log < to.Log {
			next.Log = n.Log.Next
		} else {
			n.Log.Text = nil
		}
		if next == from {
			return nil
		}
		f, err := newFrame(next, s.b.all.Messages.Progress(n, from, next, live.Usage{}))
		if err != nil {
			return err
		}
		if err := s.write(f.text); err != nil {
			return err
		}
		from = next
	}
	return nil
}

// bid ends the stream of a run that had ended before it began.
func (s *Stream) bid(ctx context.Context, at Place) error {
	n, err := s.b.all.Runs.Snapshot(ctx, s.b.team, s.b.id, 0)
	if err != nil {
		return err
	}
	f, err := newFrame(at, map[string]any{"type": "done", "runId": s.b.id, "status": n.Run.Status})
	if err != nil {
		return err
	}
	return s.write(f.text)
}

// catchUp replaces what a slow client has missed by how the run stands.
func (s *Stream) catchUp(ctx context.Context, frames []*frame) []*frame {
	s.b.mu.Lock()
	now, err := s.b.stand(ctx)
	s.b.mu.Unlock()
	if err != nil {
		return frames
	}
	fresh := []*frame{{text: now.text, to: now.to}}
	for _, f := range frames {
		if f.last || f.to.Seq > now.to.Seq || f.to.Log > now.to.Log {
			fresh = append(fresh, f)
		}
	}
	return fresh
}
