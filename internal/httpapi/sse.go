package httpapi

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
	"github.com/millrace/millrace/internal/runs"
)

// Feed tells when a run has moved, and what it uses.
type Feed interface {
	Watch(id ids.Run) (moved <-chan runs.Move, stop func())
	Pulse(id ids.Run) runs.Pulse
}

// The rhythm of a stream.
const (
	heartbeat    = 25 * time.Second
	framePause   = time.Second / 3 // three frames a second, and a fourth for the end
	presenceLook = 2 * time.Second
	frameTime    = 20 * time.Second // in which a client must take a frame
	maxBehind    = 1 << 20          // bytes of log; beyond that a fresh snapshot is shorter
	maxWaiting   = 16               // frames that one client may leave lying
)

// watcher is who is behind a stream.
type watcher struct {
	session ids.Session
	may     access.Action
}

// client is what lies there for one stream. Frames are shared between clients;
// one that does not keep up is given a fresh snapshot in place of those it
// missed.
type client struct {
	who  watcher
	wake chan struct{} // for who waits for frames

	mu      sync.Mutex
	seized  *stream // where nobody waits
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

// streamRun follows a run until it ends, or until the caller may not watch any
// more.
func (a *API) streamRun(x *exchange) (answer, error) {
	if err := a.Runs.MayWatch(x.ctx(), x.caller, x.runID()); err != nil {
		return answer{}, err
	}
	c := &client{who: watcher{x.presence.By(), x.rt.may}, wake: make(chan struct{}, 1), busy: true}
	b, first, err := a.join(x.ctx(), x.caller.Team, x.runID(), c)
	if err != nil {
		return answer{}, err
	}
	s := &stream{b: b, c: c, first: first, since: lastPlace(x.r.Header.Get("Last-Event-ID"), first.to)}
	return answer{stream: func(w http.ResponseWriter, r *http.Request) { s.serve(a.life(), w, r) }}, nil
}

// lastPlace is where an earlier stream of this client ended, or where this one
// begins.
func lastPlace(last string, now place) place {
	seq, log, _ := strings.Cut(last, ":")
	n, seqErr := strconv.ParseInt(seq, 10, 64)
	o, logErr := strconv.ParseInt(log, 10, 64)
	if seqErr == nil && logErr == nil && n >= 0 && o >= 0 && n <= now.seq && o <= now.log && now.log-o <= maxBehind {
		return place{n, o}
	}
	return now
}

// stream sends to one client.
type stream struct {
	b     *broadcast
	c     *client
	first *frame
	since place
	write func([]byte) error // and wait until it is written
	line  *line              // the bare connection, if we have it
}

// serve takes the connection over where it can: nobody has to wait for a client
// then, and it costs little more than its socket.
func (s *stream) serve(life context.Context, w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			s.seize(life, conn, w)
			return
		}
	}
	s.write = openStream(w).write
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
func (s *stream) drain(ctx context.Context, patient bool) error {
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
func (s *stream) send(f *frame, patient bool) error {
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
func (s *stream) begin(ctx context.Context) error {
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
func (s *stream) replay(ctx context.Context, from, to place) error {
	for from.seq < to.seq || from.log < to.log {
		n, err := s.b.api.Runs.News(ctx, s.b.team, s.b.id, from.seq, from.log, min(logDefault, max(1, to.log-from.log)))
		if err != nil {
			return err
		}
		next := from
		for k := 0; k < len(n.Events) && n.Events[k].Seq <= to.seq; k++ {
			next.seq = n.Events[k].Seq
		}
		n.Events = n.Events[:next.seq-from.seq]
		if from.log < to.log {
			next.log += int64(len(n.Log.Text))
		} else {
			n.Log.Text = nil
		}
		if next == from {
			return nil
		}
		f, err := newFrame(next, s.b.api.progressOf(n, from, next, runs.Pulse{}))
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
func (s *stream) bid(ctx context.Context, at place) error {
	n, err := s.b.api.Runs.Standing(ctx, s.b.team, s.b.id, 0)
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
func (s *stream) catchUp(ctx context.Context, frames []*frame) []*frame {
	s.b.mu.Lock()
	now, err := s.b.stand(ctx)
	s.b.mu.Unlock()
	if err != nil {
		return frames
	}
	fresh := []*frame{{text: now.text, to: now.to}}
	for _, f := range frames {
		if f.last || f.to.seq > now.to.seq || f.to.log > now.to.log {
			fresh = append(fresh, f)
		}
	}
	return fresh
}

// mayWatch asks again who is watching; a token that has run out does not end a
// stream.
func (a *API) mayWatch(ctx context.Context, w watcher, team ids.Team) bool {
	p, err := a.Identity.Present(ctx, w.session)
	if err != nil {
		return ctx.Err() != nil
	}
	m, err := p.In(team)
	return err == nil && m.Role.May(w.may)
}
