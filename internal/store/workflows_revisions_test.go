package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/workflows"
)

// edited is a workflow with another definition in its current revision.
func edited(w workflows.Workflow, definition string) (workflows.Workflow, *workflows.Revision) {
	w.Definition, w.Fingerprint, w.UpdatedAt = []byte(definition), "of "+definition, august.Add(time.Minute)
	return w, &workflows.Revision{Number: w.Revision, CreatedBy: w.CreatedBy, CreatedAt: august, UpdatedAt: w.UpdatedAt, Summary: "changed"}
}

// A run may close a revision between the moment an editor has read it and the one
// in which they save: what was run stays as it was.
func TestARevisionThatWasRunIsNotChanged(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		w, rev := edited(w, `{"version":1,"a":1}`)
		if saved, err := db.SaveWorkflow(ctx, w, rev); err != nil || !saved {
			t.Fatalf("one that nobody ran: %v, %v", saved, err)
		}
		w.Version++
		r := newRun(team)
		r.Workflow = w.ID
		must(t, db.SubmitRun(ctx, r, 60*r.Price, nil))
		late, rev := edited(w, `{"version":1,"a":2}`)
		late.Name = "another"
		if saved, err := db.SaveWorkflow(ctx, late, rev); err != nil || saved {
			t.Errorf("saved: %v, %v", saved, err)
		}
		got, err := db.Workflow(ctx, team, w.ID)
		if err != nil || string(got.Definition) != string(w.Definition) || got.Name != w.Name || got.Version != w.Version {
			t.Errorf("%s, version %d, %s; %v", got.Name, got.Version, got.Definition, err)
		}
		late.Revision, rev.Number = 2, 2
		if saved, err := db.SaveWorkflow(ctx, late, rev); err != nil || !saved {
			t.Errorf("as the next one: %v, %v", saved, err)
		}
		list, err := db.Revisions(ctx, team, w.ID, 10, 10)
		if err != nil || len(list) != 2 || list[0].Closed || !list[1].Closed {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// What a guest has drawn counts for members when one of them has confirmed it.
func TestWhatGuestsDrawIsConfirmedByMembers(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		other, _ := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		must(t, db.SeedDocument(ctx, team, w.ID, 1, []byte("seed"), august))
		w.Version = 2
		draw := func(guest bool) {
			t.Helper()
			u := sharing.Update{Data: []byte("u"), Guests: guest}
			seq, err := db.AppendUpdate(ctx, w.ID, 1, u, august)
			must(t, err)
			w.SyncedSeq = seq
		}
		sync := func(definition string) {
			t.Helper()
			after, rev := edited(w, definition)
			after.Revision, rev.Number = w.Revision+1, w.Revision+1
			if saved, err := db.SaveSynced(ctx, after, rev); err != nil || !saved {
				t.Fatalf("%v, %v", saved, err)
			}
			w = after
			w.Version++
		}
		confirmed := func(want int) {
			t.Helper()
			if s, err := db.ConfirmedSource(ctx, team, w.ID); err != nil || s.Revision != want {
				t.Errorf("revision %d is the newest that is confirmed, %v; want %d", s.Revision, err, want)
			}
			if s, err := db.RunSource(ctx, team, w.ID); err != nil || s.Revision != w.Revision {
				t.Errorf("revision %d is the current one, %v; want %d", s.Revision, err, w.Revision)
			}
		}
		draw(false)
		sync(`{"version":1,"by":"a member"}`)
		confirmed(2)
		draw(true)
		sync(`{"version":1,"by":"a guest"}`)
		confirmed(2)
		draw(false)
		sync(`{"version":1,"by":"a member, with what the guest drew"}`)
		confirmed(2)
		confirm := func(number int, fingerprint string) bool {
			t.Helper()
			ok, err := db.ConfirmRevision(ctx, team, w.ID, number, fingerprint, true)
			must(t, err)
			return ok
		}
		if confirm(3, "of another") || confirm(3, `of {"version":1,"by":"a guest"}`) || confirm(4, "of another") {
			t.Error("what is not the current one as they have seen it is confirmed")
		}
		if ok, err := db.ConfirmRevision(ctx, other, w.ID, 4, w.Fingerprint, true); err != nil || ok {
			t.Errorf("by another team: %v, %v", ok, err)
		}
		draw(true)    // not in the definition yet
		for range 2 { // as often as one likes
			if !confirm(4, w.Fingerprint) {
				t.Error("the current one is not confirmed")
			}
		}
		confirmed(4)
		sync(`{"version":1,"by":"the guest again"}`)
		confirmed(4)
		if !confirm(5, w.Fingerprint) {
			t.Error("not confirmed")
		}
		draw(false)
		sync(`{"version":1,"by":"a member alone"}`)
		confirmed(6)
	})
}

// Of two servers that write down what a document came to, the one that knows less
// of it changes nothing.
func TestWhatIsSyncedNeverGoesBack(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		must(t, db.SeedDocument(ctx, team, w.ID, 1, []byte("seed"), august))
		w.Version = 2
		for range 3 {
			_, err := db.AppendUpdate(ctx, w.ID, 1, sharing.Update{Data: []byte("u")}, august)
			must(t, err)
		}
		done, errs := atOnce(3, func(i int) error {
			after, rev := edited(w, fmt.Sprintf(`{"version":1,"seq":%d}`, i+2))
			after.SyncedSeq = int64(i + 2)
			for {
				if saved, err := db.SaveSynced(ctx, after, rev); err != nil || saved {
					return err
				}
				now, err := db.Workflow(ctx, team, w.ID)
				if err != nil {
					return err
				}
				after.Version = now.Version
			}
		})
		got, err := db.Workflow(ctx, team, w.ID)
		if done != 3 || err != nil || string(got.Definition) != `{"version":1,"seq":4}` || got.SyncedSeq != 4 {
			t.Errorf("%s of %d, %v, %v", got.Definition, got.SyncedSeq, err, errs)
		}
		// Older by then, without a definition, and of a stale version.
		older, rev := edited(got, `{"version":1,"seq":"old"}`)
		older.SyncedSeq = 3
		if saved, err := db.SaveSynced(ctx, older, rev); err != nil || !saved {
			t.Errorf("%v, %v", saved, err)
		}
		stale, rev := edited(got, `{"version":1,"seq":"stale"}`)
		stale.SyncedSeq, stale.Version = 9, 1
		if saved, err := db.SaveSynced(ctx, stale, rev); err != nil || saved {
			t.Errorf("%v, %v", saved, err)
		}
		again, err := db.Workflow(ctx, team, w.ID)
		if err != nil || string(again.Definition) != string(got.Definition) || again.SyncedSeq != 4 {
			t.Errorf("%s of %d, %v", again.Definition, again.SyncedSeq, err)
		}
	})
}

func TestRevisionsAreListedInPages(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		other, _ := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		for n := 2; n <= 5; n++ {
			next, rev := edited(w, fmt.Sprintf(`{"version":1,"n":%d}`, n))
			next.Revision, rev.Number = n, n
			if saved, err := db.SaveWorkflow(ctx, next, rev); err != nil || !saved {
				t.Fatal(saved, err)
			}
			w.Version++
		}
		numbers := func(before, limit int) string {
			list, err := db.Revisions(ctx, team, w.ID, before, limit)
			must(t, err)
			var got []int
			for _, r := range list {
				got = append(got, r.Number)
			}
			return fmt.Sprint(got)
		}
		for want, got := range map[string]string{"[5 4]": numbers(100, 2), "[3 2]": numbers(4, 2), "[1]": numbers(2, 2), "[]": numbers(1, 2)} {
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		if list, err := db.Revisions(ctx, other, w.ID, 100, 10); err != nil || len(list) != 0 {
			t.Errorf("another team sees %+v, %v", list, err)
		}
		if rev, err := db.Revision(ctx, team, w.ID, 3); err != nil || string(rev.Definition) != `{"version":1,"n":3}` {
			t.Errorf("%s, %v", rev.Definition, err)
		}
		_, err := db.Revision(ctx, team, w.ID, 6)
		refused(t, "one that is not there", err, fault.KindNotFound, "")
	})
}
