package httpapi

import (
	"bytes"
	"context"
	"net"
	"net/http"
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
	Watch(id ids.Run) (moved <-chan struct{}, stop func())
	Pulse(id ids.Run) runs.Pulse
}

// The rhythm of a stream.
const (
	heartbeat    = 25 * time.Second
	framePause   = 250 * time.Millisecond // at most four frames a second
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

// client is one stream. Frames are shared between clients; one that does not
// keep up is given a fresh snapshot in place of those it missed.
type client struct {
	who  watcher
	wake chan struct{}

	mu      sync.Mutex
	waiting []*frame
	lagging bool
	done    bool
}

// hand leaves a frame for the client.
func (c *client) hand(f *frame) {
	c.mu.Lock()
	switch {
	case len(c.waiting) < maxWaiting:
		c.waiting = append(c.waiting, f)
	case f.last: // how it ended is in the snapshot too, but this one closes the stream
		c.waiting[len(c.waiting)-1], c.lagging = f, true
	default:
		c.lagging = true
	}
	c.mu.Unlock()
	c.nudge()
}

// finish ends the stream once what lies there is sent.
func (c *client) finish() {
	c.mu.Lock()
	c.done = true
	c.mu.Unlock()
	c.nudge()
}

func (c *client) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take is what lies there for the client.
func (c *client) take() (frames []*frame, lagging, done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	frames, lagging, done = c.waiting, c.lagging, c.done
	c.waiting, c.lagging = nil, false
	return frames, lagging, done
}

// streamRun follows a run until it ends, or until the caller may not watch any
// more.
func (a *API) streamRun(x *exchange) (answer, error) {
	if _, err := a.Runs.Run(x.ctx(), x.caller, x.runID()); err != nil {
		return answer{}, err
	}
	c := &client{who: watcher{x.presence.By(), x.rt.may}, wake: make(chan struct{}, 1)}
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
	write func([]byte) error
}

// serve takes the connection over where it can: a client then costs a small
// goroutine, and not the buffers of a whole request.
func (s *stream) serve(life context.Context, w http.ResponseWriter, r *http.Request) {
	streamHead(w.Header())
	out := http.NewResponseController(w)
	if r.ProtoMajor == 1 {
		if conn, buffered, err := out.Hijack(); err == nil && buffered.Reader.Buffered() == 0 {
			s.seize(life, conn, w)
			return
		}
	}
	_ = out.SetReadDeadline(time.Time{}) // it would end the request after a minute
	w.WriteHeader(http.StatusOK)
	s.write = func(text []byte) error {
		_ = out.SetWriteDeadline(time.Now().Add(frameTime))
		if _, err := w.Write(text); err != nil {
			return err
		}
		return out.Flush()
	}
	s.run(r.Context())
}

// seize goes on with the bare connection. Nothing more is read from it.
func (s *stream) seize(life context.Context, conn net.Conn, w http.ResponseWriter) {
	_ = conn.SetReadDeadline(time.Time{})
	if c, ok := w.(*counted); ok {
		c.status = http.StatusOK // for the log
	}
	h := w.Header()
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.Set("Connection", "close")
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.Write(&head)
	head.WriteString("\r\n")
	s.write = func(text []byte) error {
		_ = conn.SetWriteDeadline(time.Now().Add(frameTime))
		_, err := conn.Write(text)
		return err
	}
	go func(head []byte) {
		defer conn.Close()
		if s.write(head) == nil {
			s.run(life)
		}
	}(head.Bytes())
}

// run sends how the run stands, and then whatever is new.
func (s *stream) run(ctx context.Context) {
	defer s.b.leave(s.c)
	if s.begin(ctx) != nil {
		return
	}
	if s.first.last {
		_ = s.bid(ctx)
		return
	}
	s.first = nil
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.c.wake:
		}
		frames, lagging, done := s.c.take()
		if lagging {
			frames = s.catchUp(ctx, frames)
		}
		for _, f := range frames {
			if s.write(f.text) != nil || f.last {
				return
			}
		}
		if done {
			return
		}
	}
}

// begin greets a client, and replays what it missed since its last stream.
func (s *stream) begin(ctx context.Context) error {
	hello, err := newFrame(s.since, map[string]any{"type": "connected", "runId": s.b.id})
	if err != nil {
		return err
	}
	if err := s.write(append([]byte("retry: 3000\n\n"), hello.text...)); err != nil {
		return err
	}
	if err := s.write(s.first.text); err != nil {
		return err
	}
	return s.replay(ctx, s.since, s.first.to)
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
func (s *stream) bid(ctx context.Context) error {
	n, err := s.b.api.Runs.Standing(ctx, s.b.team, s.b.id, 0)
	if err != nil {
		return err
	}
	f, err := newFrame(s.first.to, map[string]any{"type": "done", "runId": s.b.id, "status": n.Run.Status})
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
