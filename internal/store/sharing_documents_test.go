package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/workflows"
)

// seeded is a workflow with a document.
func seeded(t *testing.T, db *DB) workflows.Workflow {
	t.Helper()
	team, owner := newTeam(t, db)
	w := newWorkflow(t, db, team, owner)
	must(t, db.SeedDocument(t.Context(), team, w.ID, 1, []byte("seed"), august))
	return w
}

// docText is what a reader gets who knows a document up to a number.
func docText(t *testing.T, db *DB, id ids.Workflow, after int64) string {
	t.Helper()
	d, err := db.Document(t.Context(), id, after)
	must(t, err)
	text := fmt.Sprintf("%d/%d:%s", d.Epoch, d.Seq, d.Snapshot)
	for _, u := range d.Updates {
		text += fmt.Sprintf(" %d=%s", u.Seq, u.Data)
	}
	return text
}

func TestADocumentHasOneBeginning(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		other, _ := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		refused(t, "before it has one", second(db.Document(ctx, w.ID, 0)), fault.KindNotFound, "")
		_, err := db.AppendUpdate(ctx, w.ID, 1, sharing.Update{Data: []byte("u")}, august)
		refused(t, "before it has one", err, fault.KindNotFound, "")
		must(t, db.SeedDocument(ctx, other, w.ID, 1, []byte("another team's"), august))
		must(t, db.SeedDocument(ctx, team, w.ID, 7, []byte("of another version"), august))
		refused(t, "by whom it is not", second(db.Document(ctx, w.ID, 0)), fault.KindNotFound, "")
		if epoch, readOnly, err := db.Epoch(ctx, team, w.ID); err != nil || epoch != 1 || readOnly {
			t.Errorf("%d, %v, %v", epoch, readOnly, err)
		}
		_, errs := atOnce(5, func(i int) error { return db.SeedDocument(ctx, team, w.ID, 1, fmt.Appendf(nil, "seed%d", i), august) })
		for _, err := range errs {
			must(t, err)
		}
		first := docText(t, db, w.ID, 0)
		must(t, db.SeedDocument(ctx, team, w.ID, 2, []byte("late"), august))
		if now := docText(t, db, w.ID, 0); now != first || len(first) != len("1/1:seed0") {
			t.Errorf("%s became %s", first, now)
		}
		// Whoever saves a definition in that moment looks again.
		if saved, err := db.SaveWorkflow(ctx, w, nil); err != nil || saved {
			t.Errorf("%v, %v", saved, err)
		}
		if _, _, err := db.Epoch(ctx, other, w.ID); !fault.Is(err, fault.KindNotFound) {
			t.Error(err)
		}
	})
}

func TestUpdatesAreNumberedWithoutAGap(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		w := seeded(t, db)
		seqs := make([]int64, 12)
		_, errs := atOnce(len(seqs), func(i int) (err error) {
			seqs[i], err = db.AppendUpdate(ctx, w.ID, 1, sharing.Update{Data: []byte{byte(i)}, Author: access.Author{User: w.CreatedBy, Guest: "g", GuestName: "Eve"}}, august)
			return err
		})
		for _, err := range errs {
			must(t, err)
		}
		slices.Sort(seqs)
		for i, seq := range seqs {
			if seq != int64(i+2) {
				t.Fatalf("%v", seqs)
			}
		}
		d, err := db.Document(ctx, w.ID, 0)
		if err != nil || len(d.Updates) != 12 || d.Updates[3].Seq != 5 || d.Updates[3].Author.GuestName != "Eve" || d.Seq != 13 || d.Synced != 1 {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

func TestAReaderGetsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		w := seeded(t, db)
		for _, text := range []string{"b", "c", "d"} {
			_, err := db.AppendUpdate(ctx, w.ID, 1, sharing.Update{Data: []byte(text)}, august)
			must(t, err)
		}
		reads := func(want map[int64]string) {
			t.Helper()
			for after, text := range want {
				if got := docText(t, db, w.ID, after); got != text {
					t.Errorf("after %d: %s, want %s", after, got, text)
				}
			}
		}
		reads(map[int64]string{0: "1/4:seed 2=b 3=c 4=d", 1: "1/4: 2=b 3=c 4=d", 3: "1/4: 4=d", 4: "1/4:"})
		must(t, db.SaveSnapshot(ctx, w.ID, 1, 9, []byte("of what has not come"))) // changes nothing, as do
		must(t, db.SaveSnapshot(ctx, w.ID, 2, 3, []byte("of another epoch")))
		must(t, db.SaveSnapshot(ctx, w.ID, 1, 3, []byte("abc")))
		must(t, db.SaveSnapshot(ctx, w.ID, 1, 2, []byte("of less")))
		must(t, db.SaveSnapshot(ctx, w.ID, 1, 3, []byte("of the same")))
		reads(map[int64]string{0: "1/4:abc 4=d", 2: "1/4:abc 4=d", 3: "1/4: 4=d", 4: "1/4:"})
		// It starts afresh only where the one who asks has seen it, and all of it is synced.
		head := func() sharing.Head {
			t.Helper()
			heads, err := db.Heads(ctx, []ids.Workflow{w.ID, "wf_nothing"})
			if err != nil || len(heads) != 1 {
				t.Fatalf("%+v, %v", heads, err)
			}
			return heads[w.ID]
		}
		must(t, db.ResetDocument(ctx, w.ID, head(), []byte("fresh"), august))
		reads(map[int64]string{0: "1/4:abc 4=d"})
		w.Version, w.SyncedSeq = 2, 4
		if saved, err := db.SaveSynced(ctx, w, nil); err != nil || !saved {
			t.Fatal(saved, err)
		}
		old := head()
		must(t, db.ResetDocument(ctx, w.ID, old, []byte("fresh"), august))
		must(t, db.ResetDocument(ctx, w.ID, old, []byte("afresh"), august))
		reads(map[int64]string{0: "2/5:fresh", 4: "2/5:fresh", 5: "2/5:"})
		_, err := db.AppendUpdate(ctx, w.ID, 1, sharing.Update{Data: []byte("late")}, august)
		refused(t, "an update of the old one", err, fault.KindStale, "")
		must(t, db.DeleteWorkflow(ctx, w.Team, w.ID, "Ada", august))
		_, err = db.AppendUpdate(ctx, w.ID, 2, sharing.Update{Data: []byte("late")}, august)
		refused(t, "of a workflow that is gone", err, fault.KindNotFound, "")
		if heads, err := db.Heads(ctx, make([]ids.Workflow, headsAtOnce+1)); err != nil || len(heads) != 0 {
			t.Errorf("%+v, %v", heads, err)
		}
	})
}
