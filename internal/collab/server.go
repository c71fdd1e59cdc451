// Package collab is the host of the editor rooms: people who edit one workflow
// together, over the protocol that y-websocket clients speak. A change is
// stored before anybody else sees it. What a document looks like inside is
// ydoc's business; who may enter is decided in sharing.
package collab

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/document"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/ydoc"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/workflows"
)

// Passes says who may be in a room.
type Passes interface {
	Verify(token string) (sharing.Pass, error)
	// Lost are those of the passes that no longer hold.
	Lost(ctx context.Context, passes []sharing.Pass) ([]sharing.Pass, error)
}

// Definitions keeps what the documents come to.
type Definitions interface {
	Stored(ctx context.Context, team ids.Team, id ids.Workflow) (workflows.Workflow, error)
	SaveFromDocument(ctx context.Context, d workflows.LiveDefinition) (workflows.Workflow, error)
}

// Times are the rhythm of the rooms. Zero means the default.
type Times struct {
	KeepAlive time.Duration // a client gets a message at least this often
	Watch     time.Duration // how often passes are looked at
	SyncQuiet time.Duration // the definition follows after this much quiet,
	SyncMax   time.Duration // and after this long at the latest
	KeepEmpty time.Duration // an empty room stays in memory
	Presence  time.Duration // between two messages about who is where
}

// Options are what the host is made of.
type Options struct {
	Documents   sharing.Documents
	Definitions Definitions
	Passes      Passes
	Bridge      sharing.Bridge // nil: there are no other servers
	Times       Times
	Limits      ydoc.Limits
	Full        func(context.Context) error // whether there is no room for edits; nil: there always is
	Log         *slog.Logger
	Now         func() time.Time
}

// Server is the host of the rooms.
type Server struct {
	Options
	name string // among the servers

	mu      sync.Mutex
	rooms   map[ids.Workflow]*room
	closing bool
	loops   sync.WaitGroup
	counts  counts
}

var _ workflows.Live = (*Server)(nil)

// New makes the host. Run it, or access is never taken back.
func New(o Options) *Server {
	for _, t := range []struct {
		set *time.Duration
		or  time.Duration
	}{
		// A y-websocket client gives up after 30 seconds of silence.
		{&o.Times.KeepAlive, 15 * time.Second},
		{&o.Times.Watch, 400 * time.Millisecond},
		{&o.Times.SyncQuiet, time.Second},
		{&o.Times.SyncMax, 5 * time.Second},
		{&o.Times.KeepEmpty, 30 * time.Second},
		{&o.Times.Presence, 25 * time.Millisecond},
	} {
		if *t.set == 0 {
			*t.set = t.or
		}
	}
	o.Limits.Roots = document.Roots
	return &Server{Options: o, name: newName(), rooms: map[ids.Workflow]*room{}}
}

// Admit lets somebody into a room, or says why not, before anything is
// upgraded.
func (s *Server) Admit(r *http.Request, name string) (func(http.ResponseWriter, *http.Request), error) {
	pass, err := s.Passes.Verify(r.URL.Query().Get("token"))
	if err != nil {
		return nil, err
	}
	if pass.Room() != name {
		return nil, fault.Forbidden("this room token is for another room")
	}
	lost, err := s.Passes.Lost(r.Context(), []sharing.Pass{pass})
	if err != nil {
		return nil, err
	}
	if len(lost) > 0 {
		return nil, fault.Forbidden("you may not be in this room any more").WithCode("revoked")
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return nil, fault.Invalid("this address speaks WebSocket only")
	}
	if s.isClosing() {
		return nil, errClosing
	}
	room, err := s.enter(r.Context(), pass.Team, pass.Workflow)
	if err != nil {
		return nil, err
	}
	return func(w http.ResponseWriter, r *http.Request) {
		defer room.release()
		conn := &hijacker{ResponseWriter: w}
		ws, err := websocket.Accept(conn, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // the Origin was checked
		if err != nil {
			return // it has been answered
		}
		ws.SetReadLimit(maxFrame + 16)
		newConn(room, ws, conn.queue, pass, r.URL.Query().Get("ack") != "").serve()
	}, nil
}

var errClosing = fault.Unavailable("the server is shutting down; try again")

// enter finds or opens a room and holds it open until release. A server that is shutting
// down opens none.
func (s *Server) enter(ctx context.Context, team ids.Team, id ids.Workflow) (*room, error) {
	for {
		s.mu.Lock()
		r := s.rooms[id]
		if r == nil && s.closing {
			s.mu.Unlock()
			return nil, errClosing
		}
		if r == nil {
			r = newRoom(s, team, id)
			s.rooms[id] = r
			s.loops.Go(func() { r.run(context.WithoutCancel(ctx)) }) // it outlives who opened it
		}
		r.users++
		s.mu.Unlock()
		select {
		case <-r.loaded:
		case <-ctx.Done():
			r.release()
			return nil, ctx.Err()
		}
		if r.loadErr == nil && !r.closed() {
			return r, nil
		}
		r.release()
		if r.loadErr != nil {
			return nil, r.loadErr
		}
		r.drop() // somebody was a moment too late for the last one
	}
}

// isClosing reports whether all rooms are being closed.
func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// isOpen reports whether a room is open here.
func (s *Server) isOpen(id ids.Workflow) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rooms[id] != nil
}

// all are the open rooms.
func (s *Server) all() []*room {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*room, 0, len(s.rooms))
	for _, r := range s.rooms {
		list = append(list, r)
	}
	return list
}

// SyncDefinition brings a workflow's definition up to what its document says.
func (s *Server) SyncDefinition(ctx context.Context, team ids.Team, id ids.Workflow) (moved bool, err error) {
	ctx = audit.Without(ctx) // it was drawn by others, before
	if !s.isOpen(id) {
		if synced, err := s.isSynced(ctx, id); err != nil || synced {
			return false, err
		}
	}
	err = s.within(ctx, team, id, func(ctx context.Context, r *room) error {
		if err := r.current(ctx); err != nil {
			return err
		}
		moved, err = r.syncDefinition(ctx, "")
		return err
	})
	if errors.Is(err, errClosing) { // the room may have been synced as it was closed
		if synced, err := s.isSynced(ctx, id); err != nil || synced {
			return synced, err
		}
	}
	return moved, err
}

// isSynced reports whether the definition has all that is stored of the document.
func (s *Server) isSynced(ctx context.Context, id ids.Workflow) (bool, error) {
	heads, err := s.Documents.Heads(ctx, []ids.Workflow{id})
	return heads[id].Seq == heads[id].Synced, err
}

// ApplyDefinition makes a document say a definition, as an edit that everybody sees.
func (s *Server) ApplyDefinition(ctx context.Context, d workflows.LiveDefinition) (done bool, err error) {
	err = s.within(ctx, d.Team, d.Workflow, func(ctx context.Context, r *room) error {
		if err := r.current(ctx); err != nil {
			return err
		}
		if done, err = r.writeDefinition(d); err != nil || !done {
			return err
		}
		if err := r.store(ctx); err != nil {
			return err
		}
		_, err = r.syncDefinition(ctx, d.Summary)
		return err
	})
	return done, err
}

// within does something in a room, in another one if that is closed meanwhile.
// Who asked may leave: what others have written is not given up for that.
func (s *Server) within(ctx context.Context, team ids.Team, id ids.Workflow, do func(context.Context, *room) error) error {
	var err error
	for range tries {
		var r *room
		if r, err = s.enter(ctx, team, id); err != nil {
			return err
		}
		err = r.closeOnPanic(ctx, func() error { return do(context.WithoutCancel(ctx), r) })
		r.release()
		if !errors.Is(err, errRoomClosed) {
			return err
		}
	}
	return err
}

// Run watches over the rooms until ctx ends, then sends everybody away and
// stores what is left.
func (s *Server) Run(ctx context.Context) error {
	var listening sync.WaitGroup
	if s.Bridge != nil {
		listening.Go(func() { panics.Restart(ctx, s.Log, s.listen) })
	}
	tick := time.NewTicker(s.Times.Watch)
	defer tick.Stop()
	var trouble error // said once
	for ctx.Err() == nil {
		err := panics.Catch(func() error { return s.watch(ctx) })
		if err != nil && trouble == nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "cannot look after the editor rooms; trying on", panics.About(err)...)
		}
		trouble = err
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	for _, r := range s.all() {
		r.closeAll(codeRestart, "the server is restarting")
	}
	s.loops.Wait()
	listening.Wait()
	return nil
}

// watch sends away whoever may not be where they are, and wakes rooms that
// other servers have written to.
func (s *Server) watch(ctx context.Context) error {
	rooms := s.all()
	if len(rooms) == 0 {
		return nil
	}
	open := make([]ids.Workflow, len(rooms))
	var passes []sharing.Pass
	for i, r := range rooms {
		open[i] = r.id
		passes = append(passes, r.passes()...)
	}
	now := s.Now()
	lost, err := s.Passes.Lost(ctx, passes)
	if err != nil {
		return err
	}
	gone := make(map[sharing.Pass]bool, len(lost))
	for _, p := range lost {
		gone[p] = true
	}
	heads, err := s.Documents.Heads(ctx, open)
	if err != nil {
		return err
	}
	for _, r := range rooms {
		head, there := heads[r.id]
		r.checkConns(head, there, gone, now)
	}
	return nil
}

// failed is the code and reason with which a failed room closes its sockets.
func failed(err error) (code websocket.StatusCode, reason string) {
	switch {
	case fault.Is(err, fault.KindNotFound):
		return codeGone, "the workflow is gone"
	case fault.Is(err, fault.KindStale):
		return codeReset, "the document has started afresh: join anew"
	case errors.Is(err, context.Canceled):
		return codeRestart, "the server is restarting"
	case fault.Is(err, fault.KindPayment):
		return codeStorageFull, "the team's storage is full: delete files, runs or workflows"
	case fault.Is(err, fault.KindUnavailable):
		return codeSlow, "the server's disk is nearly full: come back later"
	default:
		return websocket.StatusInternalError, "this could not be stored; try again"
	}
}
