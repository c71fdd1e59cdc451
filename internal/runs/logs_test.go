package runs_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
)

// written is a run whose two shards wrote pieces by turns.
func (b *bench) written(first, second []string) ids.Run {
	b.t.Helper()
	r := b.start(b.owner, b.workflow(`{"nodes":[{"id":"a","command":"true","scatter":{"over":"[1, 2]"}}]}`))
	fence := b.claim(r.ID)
	at := [2]int64{}
	for i := range max(len(first), len(second)) {
		var step runs.Step
		for shard, texts := range [][]string{first, second} {
			if i < len(texts) {
				n := int64(len(texts[i]))
				step.Logs = append(step.Logs, runs.LogPiece{Node: "a", Shard: shard, Attempt: 1, NodeStart: at[shard], Size: n, Text: []byte(texts[i])})
				at[shard] += n
			}
		}
		if err := b.db.Advance(b.t.Context(), r.ID, fence, step, b.clock.Now()); err != nil {
			b.t.Fatal(err)
		}
	}
	return r.ID
}

func TestALogIsReadInPagesOfWholeCharacters(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.kept()
		ctx := t.Context()
		first, second := []string{"one é\n", "🧬🧬\n", "語"}, []string{"zwei\n", "ü"}
		id := b.written(first, second)
		for name, tt := range map[string]struct {
			node  string
			shard int
			want  string
		}{
			"the run":         {"", 0, "one é\nzwei\n🧬🧬\nü語"},
			"one shard":       {"a", 0, strings.Join(first, "")},
			"the other":       {"a", 1, strings.Join(second, "")},
			"one without any": {"a", 2, ""},
		} {
			for most := int64(4); most < 30; most++ {
				var got strings.Builder
				for offset, pages := int64(0), 0; ; pages++ {
					p, err := b.Log(ctx, b.owner, id, tt.node, tt.shard, offset, most)
					if err != nil || p.Offset != offset || p.Size != int64(len(tt.want)) || int64(len(p.Text)) > most || p.Complete || !utf8.Valid(p.Text) || pages > len(tt.want) {
						t.Fatalf("%s by %d at %d: %+v, %v", name, most, offset, p, err)
					}
					if len(p.Text) == 0 {
						break
					}
					got.Write(p.Text)
					offset += int64(len(p.Text))
				}
				if got.String() != tt.want {
					t.Errorf("%s by %d: %q, want %q", name, most, got.String(), tt.want)
				}
			}
		}
		p, err := b.Log(ctx, b.owner, id, "", 0, 1000, 10)
		if err != nil || len(p.Text) != 0 || p.Complete {
			t.Errorf("beyond the end: %+v, %v", p, err)
		}
		if p, err := b.Log(ctx, b.owner, id, "", 0, 4, 1); err != nil || len(p.Text) != 1 {
			t.Errorf("a page smaller than a character stands still: %+v, %v", p, err)
		}
		if _, err := b.Cancel(ctx, b.owner, id); err != nil {
			t.Fatal(err)
		}
		_, err = b.Log(ctx, storetest.Owner(t, b.db, "mia"), id, "", 0, 0, 10)
		storetest.Refused(t, "another team's", err, fault.KindNotFound)
		_, err = b.Log(ctx, access.Caller{Team: b.owner.Team, Role: access.GuestEditor}, id, "", 0, 0, 10)
		storetest.Refused(t, "a guest", err, fault.KindForbidden)
	})
}

// What lies in an object is read from there, in its place among what does not, and
// the last page of a run that has ended says that it is.
func TestALogThatWasMovedIsReadOn(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		all := b.kept()
		ctx := t.Context()
		id := b.start(b.owner, b.workflow(simple)).ID
		folder := fmt.Sprintf("teams/%s/runs/%s/log/", b.owner.Team, id)
		key := folder + "0"
		b.put(all, key, "xxmoved away\n")
		b.carryOut(id, lifecycle.Completed, runs.Step{Logs: []runs.LogPiece{
			{Node: "a", Attempt: 1, NodeStart: 0, Size: 6, Text: []byte("first\n")},
			{Node: "a", Attempt: 1, NodeStart: 6, Size: 11, Object: key, ObjectStart: 2},
			{Node: "a", Attempt: 1, NodeStart: 17, Size: 5, Text: []byte("last\n")},
		}})
		const want = "first\nmoved away\nlast\n"
		for _, node := range []string{"", "a"} {
			for offset := range int64(len(want) + 1) {
				p, err := b.Log(ctx, b.owner, id, node, 0, offset, 100)
				if err != nil || string(p.Text) != want[offset:] || !p.Complete || p.Size != int64(len(want)) {
					t.Fatalf("%q from %d: %q, complete %v: %v", node, offset, p.Text, p.Complete, err)
				}
			}
			if p, err := b.Log(ctx, b.owner, id, node, 0, 8, 4); err != nil || string(p.Text) != want[8:12] || p.Complete {
				t.Errorf("%q within: %q, complete %v: %v", node, p.Text, p.Complete, err)
			}
		}
		if d, err := b.Detailed(ctx, b.owner, id); err != nil || string(d.Log.Text) != want || len(d.Nodes) != 1 {
			t.Errorf("%q, %v", d.Log.Text, err)
		}
		if _, err := all.DeletePrefix(ctx, folder); err != nil {
			t.Fatal(err)
		}
		if p, err := b.Log(ctx, b.owner, id, "", 0, 0, 100); err == nil {
			t.Errorf("without its object it is %q", p.Text)
		}
	})
}

// Offsets are those of the whole log. Within what is missing there is the line that says
// so, and the next page begins behind it.
func TestLogIsReadPastWhatIsMissing(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.kept()
		ctx := t.Context()
		id := b.start(b.owner, b.workflow(simple)).ID
		b.carryOut(id, lifecycle.Completed, runs.Step{Logs: []runs.LogPiece{
			{Node: "a", Attempt: 1, NodeStart: 0, Size: 6, Text: []byte("first\n")},
			{Node: "a", Attempt: 1, NodeStart: 6, Size: 5, Missing: 89, Text: []byte("[cut]")},
			{Node: "a", Attempt: 1, NodeStart: 100, Size: 5, Text: []byte("last\n")},
		}})
		for _, node := range []string{"", "a"} {
			for _, want := range []struct {
				offset, next int64
				text         string
			}{
				{0, 100, "first\n[cut]"},
				{3, 100, "st\n[cut]"},
				{6, 100, "[cut]"},
				{8, 100, "[cut]"},
				{50, 100, "[cut]"},
				{99, 100, "[cut]"},
				{100, 105, "last\n"},
				{103, 105, "t\n"},
				{105, 105, ""},
			} {
				p, err := b.Log(ctx, b.owner, id, node, 0, want.offset, 1000)
				if err != nil || string(p.Text) != want.text || p.Offset != want.offset || p.Next != want.next || p.Missing != map[int64]int64{100: 94}[want.next] || p.Size != 105 || p.Complete != (want.next == 105) {
					t.Errorf("%q from %d: %q, %+v, %v", node, want.offset, p.Text, p, err)
				}
			}
			if p, err := b.Log(ctx, b.owner, id, node, 0, 0, 6); err != nil || string(p.Text) != "first\n" || p.Next != 6 {
				t.Errorf("%q before what is missing: %q up to %d, %v", node, p.Text, p.Next, err)
			}
		}
		if d, err := b.Detailed(ctx, b.owner, id); err != nil || string(d.Log.Text) != "first\n[cut]last\n" {
			t.Errorf("the run shows %q, %v", d.Log.Text, err)
		}
		if n, err := b.Changes(ctx, b.owner.Team, id, 0, 50, 1000); err != nil || string(n.Log.Text) != "[cut]" || n.Log.Next != 100 {
			t.Errorf("%q up to %d, %v", n.Log.Text, n.Log.Next, err)
		}
	})
}
