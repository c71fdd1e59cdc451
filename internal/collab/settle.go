package collab

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/workflows"
)

// keepUp has the definition and the snapshot follow the document, where that is
// due. Nobody who types waits for it.
func (r *room) keepUp(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.s.Now()
	settle := !r.since.IsZero() && (now.Sub(r.latest) >= r.s.Times.SettleQuiet || now.Sub(r.since) >= r.s.Times.SettleMost)
	snapshot := r.rows >= snapshotRows || r.bytes >= snapshotBytes
	if r.keeping || !settle && !snapshot {
		return
	}
	r.keeping = true
	r.s.loops.Go(func() {
		_, err := r.settle(ctx, "")
		if err == nil && snapshot {
			err = r.snapshot(ctx)
		}
		r.complain(ctx, err)
		r.mu.Lock()
		if r.keeping = false; err != nil {
			r.rows, r.bytes = 1, 0 // a snapshot after as much more
		}
		r.mu.Unlock()
		r.stir()
	})
}

// settle makes the definition say what is stored of the document.
func (r *room) settle(ctx context.Context, summary string) (moved bool, err error) {
	r.settling.Lock()
	defer r.settling.Unlock()
	began := r.s.Now()
	d, err := r.drawing(summary)
	if err != nil || d.Seq == 0 {
		return false, err
	}
	w, err := r.s.Definitions.Settle(ctx, d)
	r.noteSettled(began, d.Seq, w.Definition, err)
	if err != nil {
		return false, err
	}
	frame, err := settledFrame(w)
	for _, c := range r.audience(nil) {
		if c.acks {
			c.send(frame)
		}
	}
	return true, err
}

// noteSettled decides when the next time is due.
func (r *room) noteSettled(began time.Time, seq int64, definition []byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.latest, r.since = r.s.Now(), r.s.Now() // again, after a while
		return
	}
	r.prior = definition
	r.head.Settled = max(r.head.Settled, seq)
	r.since = began // somebody has written meanwhile
	if r.head.Settled == r.head.Seq {
		r.since = time.Time{}
	}
}

// drawing is what there is to settle; its number is 0 when there is nothing.
func (r *room) drawing(summary string) (workflows.Drawing, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.head.Seq <= r.head.Settled {
		return workflows.Drawing{}, nil
	}
	definition, err := drawn(r.doc, r.prior)
	return workflows.Drawing{Team: r.team, Workflow: r.id, Definition: definition, Seq: r.head.Seq, Author: r.author, Summary: summary}, err
}

// snapshot replaces many updates by what they came to, as far as they are
// settled: they tell who wrote them. Another server may have settled more than
// has come here, so it is as far as we know them, too. What came later may be
// in it: to take in an update twice changes nothing.
func (r *room) snapshot(ctx context.Context) error {
	r.mu.Lock()
	if r.rows == 0 || r.over {
		r.mu.Unlock()
		return nil
	}
	r.doc.Compact()
	epoch, seq, data := r.head.Epoch, min(r.head.Seq, r.head.Settled), r.doc.Encode()
	r.rows, r.bytes = int(r.head.Seq-seq), 0
	r.mu.Unlock()
	return r.s.Documents.SaveSnapshot(ctx, r.id, epoch, seq, data)
}

// retire leaves a document behind in few bytes: as a snapshot, or afresh where
// the traces of what was deleted outweigh what is there.
func (r *room) retire(ctx context.Context) error {
	if err := r.snapshot(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	head, size := r.head, len(r.doc.Encode())
	stays := size < growthFrom || r.doc.Pending() || head.Seq != head.Settled || len(r.others) > 0
	definition, err := drawn(r.doc, r.prior)
	r.mu.Unlock()
	if err != nil || stays {
		return err
	}
	fresh, err := seeded(definition)
	if err != nil || size < growth*len(fresh) {
		return err
	}
	return r.s.Documents.ResetDocument(ctx, r.id, head, fresh, r.s.Now())
}
