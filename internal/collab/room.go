package collab

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/document"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/ydoc"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/sharing"
)

// The codes with which sockets are closed. A client comes back by itself from
// all but those between 4400 and 4499.
const (
	codeBad         websocket.StatusCode = 4400 // no client sends this
	codeStorageFull websocket.StatusCode = 4402 // the team's storage has no room for edits
	codeRevoked     websocket.StatusCode = 4403 // access was taken back
	codeGone        websocket.StatusCode = 4404 // the workflow was deleted
	codeReset       websocket.StatusCode = 4409 // the document started afresh: throw the copy away
	codeTooLarge    websocket.StatusCode = 4413 // the document would be too large
	codeExpired     websocket.StatusCode = 4500 // the room token expired: come back with another
	codeRestart                          = websocket.StatusServiceRestart
	codeSlow                             = websocket.StatusTryAgainLater
)

// Compared with what a document holds, this is when its history is dropped.
const (
	growth     = 4
	growthFrom = 64 << 10 // bytes
)

// A snapshot is taken after so much.
const (
	snapshotRows  = 1000
	snapshotBytes = 256 << 10
)

const maxConns = 500 // in a room

// Where so many changes came at once, more are on their way: after a moment
// they go out in one frame, not in several.
const (
	manyChanges = 16
	manyPause   = time.Millisecond
)

// room is one document and the people at it. Everything under mu is quick:
// nobody waits for the database or the network there.
type room struct {
	s    *Server
	team ids.Team
	id   ids.Workflow

	loaded  chan struct{} // closed once it is open, or has failed to
	loadErr error
	wake    chan struct{}
	users   int // who hold it open; under the server's mu

	storeMu sync.Mutex   // one stores at a time
	atOnce  atomic.Int64 // changes in the last batch
	syncMu  sync.Mutex

	mu              sync.Mutex
	doc             *ydoc.Doc
	head            sharing.Head      // what is stored, and in doc
	author          access.Author     // of the newest update
	lastDefinition  []byte            // the definition as it was last synced
	ids             map[string]string // of steps by key, as they were then
	guard           guard
	pending         []change // in doc, not stored
	busy            bool     // some of doc is being stored
	syncing         bool     // the definition or a snapshot is being written
	asked           []question
	behind          bool // others have written
	rows            int  // since the snapshot
	bytes           int
	since           time.Time // the first unsettled update
	latest          time.Time // the newest
	emptied         time.Time // nobody has been here since
	conns           map[*conn]bool
	people          map[uint64]*person
	changedPresence map[uint64]bool // whose presence is to be sent
	presenceSentAt  time.Time       // when presence was last sent
	leaving         bool            // all sockets were closed, and new ones are
	ended           bool            // closed; whoever comes opens another
	others          map[string]bool // servers that have this room open, too
	sendAllPresence bool            // one of them asked who is here
	toBridge        map[uint64]bool
	bridged         time.Time
}

// change is an update that has been applied and waits to be stored.
type change struct {
	from   *conn // nil: the server itself
	data   []byte
	waits  bool // for updates still to come; it is not sent to others yet
	author access.Author
}

// question is a client that wants to know what it lacks.
type question struct {
	from  *conn
	state []byte
}

func newRoom(s *Server, team ids.Team, id ids.Workflow) *room {
	return &room{
		s: s, team: team, id: id, loaded: make(chan struct{}), wake: make(chan struct{}, 1), emptied: s.Now(),
		conns: map[*conn]bool{}, people: map[uint64]*person{}, changedPresence: map[uint64]bool{}, toBridge: map[uint64]bool{}, others: map[string]bool{},
	}
}

func newName() string { return strings.ToLower(rand.Text())[:12] }

// newClient is a client number for what a server writes, never used before.
func newClient() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])>>32 | 1<<31
}

// load reads the document, or makes the first one of the definition.
func (r *room) load(ctx context.Context) error {
	for range tries { // somebody may save, or seed, at the same time
		w, err := r.s.Definitions.Stored(ctx, r.team, r.id)
		if err != nil {
			return err
		}
		d, err := r.s.Documents.Document(ctx, r.id, 0)
		if err == nil {
			r.doc, r.lastDefinition = ydoc.New(newClient(), r.s.Limits), w.Definition
			r.head = sharing.Head{Epoch: d.Epoch, Synced: d.Synced}
			_, err = r.apply(d)
			return err
		}
		if !fault.Is(err, fault.KindNotFound) {
			return err
		}
		seed, err := document.Seed(w.Definition)
		if err != nil {
			return err
		}
		if err := r.s.Documents.SeedDocument(ctx, r.team, r.id, w.Version, seed, r.s.Now()); err != nil {
			return err
		}
	}
	return errors.New("the document could not be made: the workflow is saved all the time")
}

// apply takes in what was stored, and returns what of it is new, in our own
// writing.
func (r *room) apply(d sharing.Document) (news [][]byte, err error) {
	take := func(data []byte) error {
		changes, err := r.doc.Take(data)
		if changes != nil {
			news = append(news, changes)
		}
		return err
	}
	if d.Snapshot != nil {
		if err := take(d.Snapshot); err != nil {
			return nil, err
		}
	}
	for _, u := range d.Updates {
		if err := take(u.Data); err != nil {
			return nil, err
		}
		r.author = u.Author
		r.rows, r.bytes = r.rows+1, r.bytes+len(u.Data)
	}
	r.head.Seq = max(r.head.Seq, d.Seq)
	if r.head.Seq > r.head.Synced {
		r.noteUpdate()
	}
	return news, nil
}

// noteUpdate starts the clock for the next sync. mu is held, or nobody else has r.
func (r *room) noteUpdate() {
	r.latest = r.s.Now()
	if r.since.IsZero() {
		r.since = r.latest
	}
}

// release undoes enter: without anybody in it the room may close.
func (r *room) release() {
	r.s.mu.Lock()
	r.users--
	r.s.mu.Unlock()
	r.wakeUp()
}

// wakeUp makes the room look at what there is to do.
func (r *room) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run is the room's own goroutine: it loads the document, and works until the room is
// closed.
func (r *room) run(ctx context.Context) {
	if r.loadErr = panics.Catch(func() error { return r.load(ctx) }); panics.Is(r.loadErr) {
		r.logError(ctx, r.loadErr)
	}
	if r.loadErr != nil {
		r.drop() // before the callers hear of it, so that the next request opens another room
	}
	close(r.loaded)
	if r.loadErr != nil {
		return
	}
	_ = r.closeOnPanic(ctx, func() error { r.work(ctx); return nil })
}

// work stores, sends who is here, has the definition follow, and closes the room when
// nobody has been in it for a while.
func (r *room) work(ctx context.Context) {
	r.send(ctx, messageWho, "")
	defer r.send(ctx, messageClosed, "")
	timer := time.NewTimer(r.s.Times.KeepEmpty)
	defer timer.Stop()
	for {
		select {
		case <-r.wake:
		case <-timer.C:
		}
		if r.atOnce.Load() >= manyChanges {
			time.Sleep(manyPause)
		}
		if r.store(ctx) != nil {
			return // all sockets are closed
		}
		r.publishPresence(ctx)
		r.syncIfDue(ctx)
		if r.closeIfIdle(ctx) {
			return
		}
		timer.Reset(r.pause())
	}
}

// closeOnPanic calls a function. A panic of it closes the room, because nobody knows what it left
// of the document in memory. Clients come back to a room that is loaded anew.
func (r *room) closeOnPanic(ctx context.Context, f func() error) error {
	err := panics.Catch(f)
	if panics.Is(err) && !r.closed() {
		r.fail(ctx, err)
	}
	return err
}

// logError notes what went wrong with what is tried again anyway.
func (r *room) logError(ctx context.Context, err error) {
	if err != nil && !fault.Is(err, fault.KindNotFound) {
		r.s.Log.ErrorContext(ctx, "cannot keep a document in order", append(panics.About(err), slog.String("workflow", string(r.id)))...)
	}
}

// pause is how long nothing is due.
func (r *room) pause() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, t := r.s.Now(), r.s.Times
	until := t.KeepEmpty
	if len(r.changedPresence) > 0 {
		until = min(until, r.presenceSentAt.Add(t.Presence).Sub(now))
	}
	if len(r.toBridge) > 0 || r.sendAllPresence {
		until = min(until, r.bridged.Add(bridgePause).Sub(now))
	}
	if !r.since.IsZero() && !r.syncing {
		until = min(until, r.latest.Add(t.SyncQuiet).Sub(now), r.since.Add(t.SyncMax).Sub(now))
	}
	if !r.emptied.IsZero() {
		until = min(until, r.emptied.Add(t.KeepEmpty).Sub(now))
	}
	return max(until, time.Millisecond)
}

// closed reports whether the room has had its time.
func (r *room) closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// drop removes the room from the server.
func (r *room) drop() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.s.mu.Lock()
	if r.s.rooms[r.id] == r {
		delete(r.s.rooms, r.id)
	}
	r.s.mu.Unlock()
}

// closeIfIdle reports whether the room has been empty for long enough, or the server
// is closing, and then closes it: definition synced, snapshot taken, history dropped
// where it has grown.
func (r *room) closeIfIdle(ctx context.Context) bool {
	if !r.idle() {
		return false
	}
	_, err := r.syncDefinition(ctx, "")
	if err == nil {
		err = r.compact(ctx)
	}
	r.logError(ctx, err)
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users > 0 || len(r.pending) > 0 {
		return false
	}
	r.ended = true
	if r.s.rooms[r.id] == r {
		delete(r.s.rooms, r.id)
	}
	return true
}

func (r *room) idle() bool {
	r.s.mu.Lock()
	users, closing := r.users, r.s.closing
	r.s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return users == 0 && len(r.pending) == 0 && (closing || r.s.Now().Sub(r.emptied) >= r.s.Times.KeepEmpty)
}

// closeAll closes every socket, and has no more to do with what they know.
func (r *room) closeAll(code websocket.StatusCode, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving = true
	for c := range r.conns {
		c.close(code, reason)
	}
	r.wakeUp()
}

func (r *room) passes() []sharing.Pass {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]sharing.Pass, 0, len(r.conns))
	for c := range r.conns {
		list = append(list, c.pass)
	}
	return list
}

// checkConns compares the room with what the database says of it.
func (r *room) checkConns(head sharing.Head, there bool, gone map[sharing.Pass]bool, now time.Time) {
	select {
	case <-r.loaded:
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.doc == nil {
		return
	}
	for c := range r.conns {
		switch {
		case !there:
			c.close(codeGone, "the workflow is gone")
		case head.Epoch != r.head.Epoch:
			c.close(codeReset, "the document has started afresh: join anew")
		case gone[c.pass]:
			c.close(codeRevoked, "your access was taken back")
		case !now.Before(c.pass.ExpiresAt()):
			c.close(codeExpired, "the room token has expired: come back with another one")
		}
	}
	if !there || head.Epoch != r.head.Epoch {
		r.ended = true // what is in memory fits nothing any more
		r.wakeUp()
		return
	}
	if head.Seq > r.head.Seq && !r.busy {
		r.behind = true
		r.wakeUp()
	}
}
