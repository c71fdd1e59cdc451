package collab

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/document"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/ydoc"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/workflows"
)

var errRoomClosed = errors.New("the room was closed")

// store writes what waits, in one piece, and only then sends it to the others. Who
// asked what they lack is answered after that, so that nobody ever sees what
// could still be lost. An error, or a panic, closes the room.
func (r *room) store(ctx context.Context) error {
	r.storeMu.Lock()
	defer r.storeMu.Unlock()
	err := panics.Catch(func() error { return r.storePending(ctx) })
	if err != nil {
		r.fail(ctx, err)
	}
	return err
}

// storePending is store without closing the room. storeMu is held.
func (r *room) storePending(ctx context.Context) error {
	r.mu.Lock()
	batch, behind, over := r.pending, r.behind, r.ended
	r.pending, r.behind, r.busy = nil, false, len(r.pending) > 0
	r.mu.Unlock()
	r.atOnce.Store(int64(len(batch)))
	var err error
	switch {
	case over:
		err = errRoomClosed
	case len(batch) > 0:
		behind, err = r.append(ctx, batch, behind)
	}
	if err == nil && behind {
		err = r.catchUp(ctx)
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = false
	for _, q := range r.asked {
		r.answer(q)
	}
	r.asked = nil
	return nil
}

// tries of a write, and the wait between them.
const (
	tries    = 5
	tryPause = 200 * time.Millisecond
)

// append stores a batch as one update and fans it out.
func (r *room) append(ctx context.Context, batch []change, behind bool) (bool, error) {
	row, toSend, err := merged(batch)
	if err != nil {
		return false, err
	}
	if r.s.Full != nil {
		if err := r.s.Full(ctx); err != nil {
			return false, err
		}
	}
	u := sharing.Update{Data: row, Author: batch[len(batch)-1].author, Guests: slices.ContainsFunc(batch, change.byGuest)}
	var seq int64
	for i := range tries {
		if seq, err = r.s.Documents.AppendUpdate(ctx, r.id, r.head.Epoch, u, r.s.Now()); err == nil || fault.KindOf(err) != fault.KindInternal {
			break
		}
		r.s.Log.ErrorContext(ctx, "cannot store an edit", slog.String("workflow", string(r.id)), slog.Any("error", err))
		time.Sleep(tryPause << i)
	}
	if err != nil {
		return false, err
	}
	r.s.counts.stored.Add(int64(len(batch)))
	r.announce(ctx)
	r.mu.Lock()
	if seq == r.head.Seq+1 {
		r.head.Seq = seq
	} else {
		behind = true // others wrote before us
	}
	r.author = u.Author
	r.rows, r.bytes = r.rows+1, r.bytes+len(row)
	r.noteUpdate()
	r.mu.Unlock()
	r.fanOut(toSend, batch)
	return behind, nil
}

func (c change) byGuest() bool { return c.author.Guest != "" }

// merged is a batch as it is stored, and as the others get it.
func merged(batch []change) (row, toSend []byte, err error) {
	var rows, news [][]byte
	for _, c := range batch {
		if c.waits {
			rows = append(rows, c.data)
		} else {
			news = append(news, c.data)
		}
	}
	if len(news) > 0 {
		if toSend, err = ydoc.Merge(news...); err != nil {
			return nil, nil, err
		}
		rows = append(rows, toSend)
	}
	row, err = ydoc.Merge(rows...)
	return row, toSend, err
}

// fanOut gives an update to everybody but who alone made it, and acknowledges it to those
// who made it. Others may write meanwhile: what they write
// goes into the next batch.
func (r *room) fanOut(update []byte, batch []change) {
	if update != nil {
		frame := syncFrame(syncUpdate, update)
		for _, c := range r.recipients(batch) {
			c.send(frame)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range batch {
		if b.from != nil {
			b.from.stored++
		}
	}
	for _, b := range batch {
		if b.from != nil {
			b.from.acknowledge() // once, however much of it was theirs
		}
	}
}

// recipients is everybody but who alone made a batch.
func (r *room) recipients(batch []change) []*conn {
	var only *conn
	if len(batch) > 0 {
		only = batch[0].from
	}
	for _, c := range batch {
		if c.from != only {
			only = nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*conn, 0, len(r.conns))
	for c := range r.conns {
		if c != only {
			list = append(list, c)
		}
	}
	return list
}

// catchUp takes in what other servers stored.
func (r *room) catchUp(ctx context.Context) error {
	d, err := r.s.Documents.Document(ctx, r.id, r.head.Seq)
	if err != nil {
		return err
	}
	if d.Epoch != r.head.Epoch {
		return fault.Stale("the document has started afresh")
	}
	news, err := r.applyLocked(d)
	if err != nil || len(news) == 0 {
		return err
	}
	toSend, err := ydoc.Merge(news...)
	if err == nil {
		r.fanOut(toSend, nil)
	}
	return err
}

func (r *room) applyLocked(d sharing.Document) (news [][]byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock() // also after a panic, so that the room can be closed
	return r.apply(d)
}

// current makes the room know all that is stored anywhere.
func (r *room) current(ctx context.Context) error {
	if err := r.store(ctx); err != nil || r.s.Bridge == nil {
		return err
	}
	heads, err := r.s.Documents.Heads(ctx, []ids.Workflow{r.id})
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.behind = heads[r.id].Seq > r.head.Seq
	r.mu.Unlock()
	return r.store(ctx)
}

// fail sends everybody away: what is in memory cannot be trusted to be stored.
// They come back with what they have.
func (r *room) fail(ctx context.Context, err error) {
	if !errors.Is(err, errRoomClosed) && fault.KindOf(err) == fault.KindInternal {
		r.s.Log.ErrorContext(ctx, "an editor room has failed", append(panics.About(err), slog.String("workflow", string(r.id)))...)
	}
	code, reason := failed(err)
	r.closeAll(code, reason)
	r.drop()
}

// ask answers what a client lacks: at once, or once all that is in the
// document is stored.
func (r *room) ask(q question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy || len(r.pending) > 0 {
		r.asked = append(r.asked, q)
		r.wakeUp()
		return
	}
	r.answer(q)
}

// answer sends a client what it lacks. mu is held.
func (r *room) answer(q question) {
	diff, err := r.doc.Diff(q.state)
	if err != nil {
		q.from.close(codeBad, "this is no state vector")
		return
	}
	q.from.reply(syncFrame(syncStep2, diff))
}

// take applies a client's update. It is stored, sent to the others and
// acknowledged a moment later.
func (r *room) take(c *conn, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	before := r.doc.Version()
	news, err := r.takeFrom(c, data)
	switch {
	case errors.Is(err, errGuarded), errors.Is(err, errUnknownField):
		r.s.counts.refused.Add(1)
		c.close(codeReset, err.Error())
		return
	case errors.Is(err, ydoc.ErrTooLarge):
		c.close(codeTooLarge, "the document would be too large")
		return
	case err != nil:
		c.close(codeBad, "this is no update")
		return
	}
	if r.doc.Version() == before && !r.busy && len(r.pending) == 0 {
		c.stored++ // it was stored already
		c.acknowledge()
		return
	}
	taken := change{from: c, data: news, author: c.author()}
	if news == nil { // it waits for others, or is about to be stored already
		taken.data, taken.waits = append([]byte(nil), data...), true
	}
	r.pending = append(r.pending, taken)
	r.wakeUp()
}

// writeDefinition makes the document say a definition, unless it has moved on.
func (r *room) writeDefinition(d workflows.LiveDefinition) (done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.Seq > 0 && (r.head.Seq != d.Seq || len(r.pending) > 0) {
		return false, nil
	}
	update, err := document.Write(r.doc, d.Definition)
	if err != nil {
		if errors.Is(err, ydoc.ErrTooLarge) {
			err = fault.TooLarge("the definition is too large to be edited together").WithCause(err)
		}
		return false, err
	}
	if update != nil {
		r.pending = append(r.pending, change{data: update, author: d.Author})
	}
	return true, nil
}

// author is who answers for what comes over a socket.
func (c *conn) author() access.Author {
	a := access.Author{User: c.pass.User, Guest: c.pass.Guest}
	if a.Guest != "" {
		a.GuestName = c.pass.Name
	}
	return a
}
