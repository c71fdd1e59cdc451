package collab

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/document"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/workflows"
)

// syncIfDue has the definition and the snapshot follow the document, where that is
// due. Nobody who types waits for it.
func (r *room) syncIfDue(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.s.Now()
	settle := !r.since.IsZero() && (now.Sub(r.latest) >= r.s.Times.SyncQuiet || now.Sub(r.since) >= r.s.Times.SyncMax)
	snapshot := r.rows >= snapshotRows || r.bytes >= snapshotBytes
	if r.syncing || !settle && !snapshot {
		return
	}
	r.syncing = true
	r.s.loops.Go(func() {
		err := panics.Catch(func() error {
			if _, err := r.syncDefinition(ctx, ""); err != nil || !snapshot {
				return err
			}
			return r.snapshot(ctx)
		})
		r.logError(ctx, err)
		r.mu.Lock()
		if r.syncing = false; err != nil {
			r.rows, r.bytes = 1, 0 // a snapshot after as much more
		}
		r.mu.Unlock()
		r.wakeUp()
	})
}

// syncDefinition makes the definition say what is stored of the document.
func (r *room) syncDefinition(ctx context.Context, summary string) (moved bool, err error) {
	r.syncMu.Lock()
	defer r.syncMu.Unlock()
	began := r.s.Now()
	var d workflows.LiveDefinition
	var w workflows.Workflow
	err = panics.Catch(func() (err error) {
		if d, err = r.unsynced(summary); err == nil && d.Seq > 0 {
			w, err = r.s.Definitions.SaveFromDocument(ctx, d)
		}
		return err
	})
	if err == nil && d.Seq == 0 {
		return false, nil
	}
	r.noteSynced(began, d.Seq, w.Definition, err)
	if err != nil {
		return false, err
	}
	frame, err := syncedFrame(w)
	for _, c := range r.recipients(nil) {
		if c.acks {
			c.send(frame)
		}
	}
	return true, err
}

// sendDefinition sends a client what the definition has become, as everybody got it
// when it last followed the document.
func (r *room) sendDefinition(c *conn) error {
	r.syncMu.Lock() // so that nothing newer overtakes it
	defer r.syncMu.Unlock()
	ctx := context.Background() // the client may leave meanwhile
	w, err := r.s.Definitions.Stored(ctx, r.team, r.id)
	if err != nil {
		return err
	}
	frame, err := syncedFrame(w)
	c.send(frame)
	return err
}

// noteSynced decides when the next time is due.
func (r *room) noteSynced(began time.Time, seq int64, definition []byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.latest, r.since = r.s.Now(), r.s.Now() // again, after a while
		return
	}
	r.lastDefinition = definition
	r.head.Synced = max(r.head.Synced, seq)
	r.since = began // somebody has written meanwhile
	if r.head.Synced == r.head.Seq {
		r.since = time.Time{}
	}
}

// unsynced is what there is to sync; its number is 0 when there is nothing.
func (r *room) unsynced(summary string) (workflows.LiveDefinition, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.head.Seq <= r.head.Synced {
		return workflows.LiveDefinition{}, nil
	}
	definition, err := r.definition(r.lastDefinition)
	if err == nil {
		err = r.setIDs()
	}
	return workflows.LiveDefinition{Team: r.team, Workflow: r.id, Definition: definition, Seq: r.head.Seq, Author: r.author, Summary: summary}, err
}

// definition returns the document as a definition. Its parts are in the same order as in
// the definition prior. The caller holds mu.
func (r *room) definition(prior []byte) ([]byte, error) {
	return document.Read(r.doc, document.IDs(r.doc, r.ids), prior)
}

// setIDs writes the ids that steps have into the document, as an edit that
// everybody sees, where two have asked for the same. mu is held.
func (r *room) setIDs() error {
	r.ids = document.IDs(r.doc, r.ids)
	update, err := document.SetIDs(r.doc, r.ids)
	if err != nil || update == nil {
		return err
	}
	r.pending = append(r.pending, change{data: update, author: r.author})
	r.wakeUp()
	return nil
}

// snapshot replaces many updates by what they came to, as far as they are
// synced: they name who wrote them. Another server may have synced more than
// has come here, so it is as far as we know them, too. What came later may be
// in it: to take in an update twice changes nothing.
func (r *room) snapshot(ctx context.Context) error {
	epoch, seq, data := r.encoded()
	if data == nil {
		return nil
	}
	return r.s.Documents.SaveSnapshot(ctx, r.id, epoch, seq, data)
}

// encoded is the document as a snapshot; nil if none is due.
func (r *room) encoded() (epoch, seq int64, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == 0 || r.ended {
		return 0, 0, nil
	}
	r.doc.Compact()
	epoch, seq, data = r.head.Epoch, min(r.head.Seq, r.head.Synced), r.doc.Encode()
	r.rows, r.bytes = int(r.head.Seq-seq), 0
	return epoch, seq, data
}

// compact leaves a document behind in few bytes: as a snapshot, or afresh where
// the traces of what was deleted outweigh what is there.
func (r *room) compact(ctx context.Context) error {
	if err := r.snapshot(ctx); err != nil {
		return err
	}
	head, size, definition, err := r.outgrown()
	if err != nil || definition == nil {
		return err
	}
	fresh, err := document.Seed(definition)
	if err != nil || size < growth*len(fresh) {
		return err
	}
	return r.s.Documents.ResetDocument(ctx, r.id, head, fresh, r.s.Now())
}

// outgrown is the definition with which the document could start afresh, and how large
// the document is; nil if it is to stay as it is.
func (r *room) outgrown() (head sharing.Head, size int, definition []byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	head, size = r.head, len(r.doc.Encode())
	if size < growthFrom || r.doc.Pending() || head.Seq != head.Synced || len(r.others) > 0 {
		return head, size, nil, nil
	}
	definition, err = r.definition(r.lastDefinition)
	return head, size, definition, err
}
