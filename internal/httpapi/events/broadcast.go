package events

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/live"
)

// Runs knows how a run stands, and what is new of it.
type Runs interface {
	Changes(ctx context.Context, team ids.Team, id ids.Run, seq, log, most int64) (runs.Changes, error)
	Snapshot(ctx context.Context, team ids.Team, id ids.Run, log int64) (runs.Changes, error)
}

// Feed tells when a run has moved, and what it uses.
type Feed interface {
	Watch(id ids.Run) (moved <-chan live.Change, stop func())
	Usage(id ids.Run) live.Usage
}

// Messages are what is sent, as clients know it.
type Messages interface {
	Snapshot(n runs.Changes) map[string]any
	// Progress is what happened between two places.
	Progress(n runs.Changes, from, to Place, pulse live.Usage) map[string]any
}

// Options are what streams are made of.
type Options struct {
	Runs     Runs
	Feed     Feed
	Messages Messages
	MayWatch func(ctx context.Context, w Watcher, team ids.Team) bool
	Log      *slog.Logger
	Now      func() time.Time
	Life     context.Context // ends when the server is told to stop
}

// Streams are the runs that somebody watches.
type Streams struct {
	Options
	permits permits
	looking sync.Mutex // held by who looks without having been told of a change
	mu      sync.Mutex
	all     map[ids.Run]*broadcast
}

// New makes streams that nobody watches yet.
func New(o Options) *Streams {
	return &Streams{Options: o, all: map[ids.Run]*broadcast{}, permits: permits{known: map[permit]*permitted{}}}
}

// looksPerSecond bounds how many runs a server looks at though it was told of no change.
const looksPerSecond = 100

// lookEvery is how often it looks at each.
func (w *Streams) lookEvery() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(presenceLook, time.Duration(len(w.all))*time.Second/looksPerSecond)
}

// broadcast follows one run for everybody who watches it: it looks once and
// writes a frame once, however many there are.
type broadcast struct {
	all  *Streams
	team ids.Team
	id   ids.Run

	mu       sync.Mutex
	clients  map[*client]bool
	place    Place
	snapshot *frame       // of this place, once somebody needs it
	waiting  runs.Waiting // as it was last told
	over     bool
}

// Place is how far a client has been told: to which event, and which byte of
// the log.
type Place struct{ Seq, Log int64 }

var nowhereYet = Place{-1, -1}

func (p Place) String() string { return fmt.Sprintf("%d:%d", p.Seq, p.Log) }

// frame is a message as it goes over the wire, and how far it tells.
type frame struct {
	text []byte
	to   Place
	last bool
}

func newFrame(to Place, v any) (*frame, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &frame{text: fmt.Appendf(nil, "id: %s\ndata: %s\n\n", to, text), to: to}, nil
}

// join adds a client to those who watch a run. What it has to be told first is
// how the run stands at that place.
func (w *Streams) join(ctx context.Context, team ids.Team, id ids.Run, c *client) (*broadcast, *frame, error) {
	b := w.broadcastOf(team, id)
	defer b.mu.Unlock()
	f, err := b.stand(ctx)
	if err == nil {
		b.clients[c] = true
	}
	return b, f, err
}

// broadcastOf is the one of a run, locked. One that has told its end serves
// nobody any more. Nobody waits for one run's news with all runs locked.
func (w *Streams) broadcastOf(team ids.Team, id ids.Run) *broadcast {
	for {
		b := w.of(id, func() *broadcast {
			b := &broadcast{all: w, team: team, id: id, clients: map[*client]bool{}, place: nowhereYet}
			go b.followGuarded(w.Life)
			return b
		})
		b.mu.Lock()
		if !b.over {
			return b
		}
		b.mu.Unlock()
		w.forget(b)
	}
}

// of is a run's broadcast, a new one if there is none.
func (w *Streams) of(id ids.Run, begin func() *broadcast) *broadcast {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all[id] == nil {
		w.all[id] = begin()
	}
	return w.all[id]
}

func (w *Streams) forget(b *broadcast) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all[b.id] == b {
		delete(w.all, b.id)
	}
}

// stand is a frame with how the run stands, at the place where the next frame
// goes on. The run may have moved on since; those who are there already are
// told in their own time, and so is who comes. It is made once for all who
// come before that.
func (b *broadcast) stand(ctx context.Context) (*frame, error) {
	if len(b.clients) == 0 { // nobody goes on from there
		b.place, b.snapshot = nowhereYet, nil
	}
	if b.snapshot != nil {
		return b.snapshot, nil
	}
	n, err := b.all.Runs.Snapshot(ctx, b.team, b.id, b.place.Log)
	if err != nil {
		return nil, err
	}
	first := b.place == nowhereYet
	if first {
		b.place = Place{n.Run.Seq, n.Log.Size}
	}
	n.Run.Seq = b.place.Seq
	f, err := newFrame(b.place, b.all.Messages.Snapshot(n))
	if err != nil {
		return nil, err
	}
	f.last = first && n.Run.Status.Terminal() // else the end is still to be told
	b.snapshot = f
	return f, nil
}

// leave ends a client's part in it. The last one takes the broadcast along.
func (b *broadcast) leave(c *client) {
	b.mu.Lock()
	delete(b.clients, c)
	b.mu.Unlock()
}

// followGuarded is follow. A panic ends the broadcast: clients come back, and hear why.
func (b *broadcast) followGuarded(ctx context.Context) {
	err := panics.Catch(func() error { b.follow(ctx); return nil })
	if err != nil {
		b.all.Log.ErrorContext(ctx, "cannot tell what is new of a run", append(panics.About(err), slog.String("run", string(b.id)))...)
	}
}

// follow looks whenever the run has moved, but not all the time, until nobody
// watches or the run has ended.
func (b *broadcast) follow(ctx context.Context) {
	defer b.close()
	moved, stop := b.all.Feed.Watch(b.id)
	defer stop()
	beat, look := time.NewTicker(Pause), time.NewTicker(presenceLook)
	defer beat.Stop()
	defer look.Stop()
	var unlooked time.Duration // since the last look
	for {
		told := true
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			b.tell(&frame{text: []byte(Heartbeat)})
			continue
		case <-look.C: // at who watches, and for what other servers did
			if b.empty() {
				return
			}
			b.dismiss(ctx)
			// One at a time: those who were told of a change do not wait behind the rest.
			if unlooked += presenceLook; unlooked < b.all.lookEvery() || !b.all.looking.TryLock() {
				continue
			}
			told = false
		case <-moved:
		}
		unlooked = 0
		for more, over := true, false; more; {
			more, over = b.look(ctx, told)
			told = true
			if over {
				return
			}
			more = pause(ctx, moved) || more
		}
	}
}

// pause gives news the time to gather, and reports whether there are any. The
// end does not wait.
func pause(ctx context.Context, moved <-chan live.Change) (news bool) {
	t := time.NewTimer(framePause)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return news
		case <-t.C:
			return news
		case m := <-moved:
			if news = true; m.Last {
				return true
			}
		}
	}
}

// empty reports whether nobody watches any more; then nobody else can join.
func (b *broadcast) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.clients) == 0 {
		b.over = true
	}
	return b.over
}

// close lets the clients go when there is nothing more to tell.
func (b *broadcast) close() {
	b.mu.Lock()
	b.over = true
	clients := slices.Collect(maps.Keys(b.clients))
	b.mu.Unlock()
	b.all.forget(b)
	finish(clients)
}

// look tells what is new, and reports whether there is more and whether the broadcast is
// over. Who was not told of a change holds looking, which it unlocks.
func (b *broadcast) look(ctx context.Context, told bool) (more, over bool) {
	if !told {
		defer b.all.looking.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	more = b.news(ctx)
	return more, b.over
}

// news looks for what is new and tells it, and reports whether there is more.
func (b *broadcast) news(ctx context.Context) (more bool) {
	if b.over || len(b.clients) == 0 || b.place == nowhereYet {
		return false
	}
	n, err := b.all.Runs.Changes(ctx, b.team, b.id, b.place.Seq, b.place.Log, frameLog)
	if err != nil {
		b.over = ctx.Err() == nil // it is gone; a client that comes back hears why
		return false
	}
	if n.Log.Size-b.place.Log > maxBehind { // a flood: the end of it is what counts
		b.skip(ctx, n)
	} else if err := b.progress(n); err != nil {
		b.over = true
		return false
	}
	if n.Run.Seq > b.place.Seq || n.Log.Size > b.place.Log {
		return true
	}
	if n.Run.Status.Terminal() {
		b.done(n.Run)
	}
	return false
}

// progress passes on what is new, if anything is.
func (b *broadcast) progress(n runs.Changes) error {
	pulse := b.all.Feed.Usage(b.id)
	if len(n.Events) == 0 && len(n.Log.Text) == 0 && !b.fresh(pulse) && !b.waitsOtherwise(n.Run) {
		return nil
	}
	to := b.place
	if k := len(n.Events); k > 0 {
		to.Seq = n.Events[k-1].Seq
	}
	to.Log = n.Log.Next
	f, err := newFrame(to, b.all.Messages.Progress(n, b.place, to, pulse))
	if err != nil {
		return err
	}
	b.place, b.snapshot = to, nil
	b.pass(f)
	return nil
}

// skip goes to the end of what there is, by a fresh snapshot for everybody.
func (b *broadcast) skip(ctx context.Context, n runs.Changes) {
	b.place = Place{n.Run.Seq, n.Log.Size}
	now, err := b.all.Runs.Snapshot(ctx, b.team, b.id, b.place.Log)
	if err != nil {
		return
	}
	if f, err := newFrame(b.place, b.all.Messages.Snapshot(now)); err == nil {
		b.snapshot = f
		b.pass(f)
	}
}

// waitsOtherwise reports whether a queued run waits for something else than was
// last told.
func (b *broadcast) waitsOtherwise(r runs.Run) bool {
	if r.Waiting == nil || *r.Waiting == b.waiting {
		return false
	}
	b.waiting = *r.Waiting
	return true
}

// fresh reports whether a pulse was just taken.
func (b *broadcast) fresh(p live.Usage) bool {
	return !p.At.IsZero() && b.all.Now().Sub(p.At) < 2*framePause
}

// done tells the end, after everything before it.
func (b *broadcast) done(r runs.Run) {
	b.over = true
	if f, err := newFrame(b.place, map[string]any{"type": "done", "runId": r.ID, "status": r.Status}); err == nil {
		f.last = true
		b.pass(f)
	}
}

func (b *broadcast) tell(f *frame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(f)
}

// pass hands a frame to everybody, without waiting for anybody.
func (b *broadcast) pass(f *frame) {
	idle := make([]*client, 0, len(b.clients))
	for c := range b.clients {
		if c.hand(f) {
			idle = append(idle, c)
		}
	}
	sendAll(idle)
}

// dismiss ends the streams of those who may not watch any more: they signed
// out, or lost the membership or the role. Each is asked about once, however
// many windows they have open.
func (b *broadcast) dismiss(ctx context.Context) {
	b.mu.Lock()
	asked := map[Watcher][]*client{}
	for c := range b.clients {
		asked[c.who] = append(asked[c.who], c)
	}
	b.mu.Unlock()
	for who, clients := range asked {
		if b.all.mayWatch(ctx, who, b.team) {
			continue
		}
		finish(clients)
	}
}
