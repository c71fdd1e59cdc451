package runs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
)

// Who watches a run is told what is new after a place: no event and no byte twice, none
// left out, and of another team's run nothing at all.
func TestWhatIsNewOfARunIsToldOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.kept()
		ctx, text := t.Context(), "one é\nzwei\n🧬🧬\n"
		id := b.written([]string{"one é\n", "🧬🧬\n"}, []string{"zwei\n"})
		var events []runs.Event
		for i := range 7 {
			events = append(events, runs.Event{Type: lifecycle.NodeStarted, At: b.clock.Now(), Node: "a", Message: fmt.Sprint(i)})
		}
		if err := b.db.Advance(ctx, id, b.fences[id], runs.Step{Events: events}, b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		whole, err := b.Changes(ctx, b.owner.Team, id, 0, 0, 1<<20)
		if err != nil || string(whole.Log.Text) != text || int64(len(whole.Events)) != whole.Run.Seq || len(whole.Run.Definition) > 0 {
			t.Fatalf("%+v, %v", whole, err)
		}
		for i := range int64(len(text)) + 1 {
			seq, offset := i%(whole.Run.Seq+2), i
			n, err := b.Changes(ctx, b.owner.Team, id, seq, offset, 1<<20)
			if err != nil || int64(len(n.Events)) != max(0, whole.Run.Seq-seq) || string(n.Log.Text) != text[offset:] || n.Log.Size != int64(len(text)) {
				t.Fatalf("after %d and %d: %d events, %q, %v", seq, offset, len(n.Events), n.Log.Text, err)
			}
			if len(n.Events) > 0 && n.Events[0].Seq != seq+1 {
				t.Errorf("after %d comes %d", seq, n.Events[0].Seq)
			}
		}
		if n, err := b.Changes(ctx, b.owner.Team, id, 0, int64(len(text))+5, 10); err != nil || len(n.Log.Text) > 0 {
			t.Errorf("beyond the end: %q, %v", n.Log.Text, err)
		}
		for end, want := range map[int64]string{-1: text, 0: "", 7: text[:7], int64(len(text)): text} {
			if n, err := b.Snapshot(ctx, b.owner.Team, id, end); err != nil || string(n.Log.Text) != want || n.Run.Seq != whole.Run.Seq {
				t.Errorf("up to %d: %q, %v", end, n.Log.Text, err)
			}
		}
		mia := storetest.Owner(t, b.db, "mia")
		_, err = b.Changes(ctx, mia.Team, id, 0, 0, 10)
		storetest.Refused(t, "another team's changes", err, fault.KindNotFound)
		_, err = b.Snapshot(ctx, mia.Team, id, -1)
		storetest.Refused(t, "another team's snapshot", err, fault.KindNotFound)
		for name, tt := range map[string]struct {
			as   access.Caller
			kind fault.Kind
		}{
			"the owner":    {b.owner, ""},
			"a viewer":     {storetest.Join(t, b.db, b.owner, "bob", access.Viewer), ""},
			"another team": {mia, fault.KindNotFound},
			"a guest":      {access.Caller{Team: b.owner.Team, Role: access.GuestEditor}, fault.KindForbidden},
			"a reporter":   {access.Caller{Team: b.owner.Team, Role: access.Owner, Scopes: access.ScopeSet{access.ScopeReport}}, fault.KindForbidden},
		} {
			storetest.Refused(t, name+" watches", b.MayWatch(ctx, tt.as, id), tt.kind)
		}
	})
}

// Of a long log a snapshot has the end.
func TestASnapshotHasTheEndOfALongLog(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.kept()
		var pieces []string
		for i := range 6 {
			pieces = append(pieces, strings.Repeat(fmt.Sprint(i), 64<<10))
		}
		id := b.written(pieces, nil)
		all := strings.Join(pieces, "")
		n, err := b.Snapshot(t.Context(), b.owner.Team, id, -1)
		if err != nil || string(n.Log.Text) != all[len(all)-256<<10:] || n.Log.Offset != int64(len(all)-256<<10) || n.Log.Size != int64(len(all)) {
			t.Errorf("%d bytes from %d of %d, %v", len(n.Log.Text), n.Log.Offset, n.Log.Size, err)
		}
		d, err := b.Detailed(t.Context(), b.owner, id)
		if err != nil || len(d.Log.Text) != 256<<10 || len(d.Nodes) != 1 {
			t.Errorf("%d bytes, %d nodes, %v", len(d.Log.Text), len(d.Nodes), err)
		}
	})
}
