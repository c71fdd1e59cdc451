package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
)

// bench is the room on a real database, with a team.
type bench struct {
	*workflows.Service
	t     *testing.T
	db    *store.DB
	clock *storetest.Clock
	owner access.Caller
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := storetest.NewClock()
		test(t, &bench{workflows.NewService(db.WorkflowStores(), clock.Now), t, db, clock, storetest.Owner(t, db, "ada")})
	})
}

// steps is a definition of n nodes.
func steps(n int) []byte {
	var nodes []string
	for i := range n {
		nodes = append(nodes, fmt.Sprintf(`{"id":"n%d","command":"true"}`, i))
	}
	return fmt.Appendf(nil, `{"nodes":[%s]}`, strings.Join(nodes, ","))
}

func (b *bench) create(as access.Caller) workflows.Workflow {
	b.t.Helper()
	w, err := b.Create(b.t.Context(), as, workflows.New{Name: "align", Definition: steps(1)})
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

func (b *bench) define(as access.Caller, id ids.Workflow, n int) workflows.Workflow {
	b.t.Helper()
	w, err := b.Update(b.t.Context(), as, id, workflows.Edit{Definition: steps(n)})
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

func text(s string) *string { return &s }

func TestEachRoleDoesWhatItMay(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		member, viewer := storetest.Join(t, b.db, b.owner, "eve", access.Member), storetest.Join(t, b.db, b.owner, "bob", access.Viewer)
		stranger := storetest.Owner(t, b.db, "mia")
		for name, tt := range map[string]struct {
			as           access.Caller
			read, change fault.Kind
			remove       fault.Kind // of what the owner made
		}{
			"an owner":          {b.owner, "", "", ""},
			"a member":          {member, "", "", fault.KindForbidden},
			"a viewer":          {viewer, "", fault.KindForbidden, fault.KindForbidden},
			"a guest":           {access.Caller{Team: b.owner.Team, Role: access.GuestEditor}, fault.KindForbidden, fault.KindForbidden, fault.KindForbidden},
			"another team":      {stranger, fault.KindNotFound, fault.KindNotFound, fault.KindNotFound},
			"another's viewers": {access.Caller{Team: stranger.Team, Role: access.Viewer}, fault.KindNotFound, fault.KindForbidden, fault.KindNotFound},
		} {
			w := b.create(b.owner)
			_, err := b.Workflow(ctx, tt.as, w.ID)
			storetest.Refused(t, name+" reads", err, tt.read)
			_, _, err = b.Revisions(ctx, tt.as, w.ID, 0, 10)
			storetest.Refused(t, name+" lists revisions", err, tt.read)
			_, err = b.Revision(ctx, tt.as, w.ID, 1)
			storetest.Refused(t, name+" reads a revision", err, tt.read)
			_, err = b.Update(ctx, tt.as, w.ID, workflows.Edit{Name: text("other")})
			storetest.Refused(t, name+" edits", err, tt.change)
			_, err = b.Restore(ctx, tt.as, w.ID, 1)
			storetest.Refused(t, name+" restores", err, tt.change)
			storetest.Refused(t, name+" deletes", b.Delete(ctx, tt.as, w.ID), tt.remove)
		}
		_, err := b.Create(ctx, viewer, workflows.New{Name: "a"})
		storetest.Refused(t, "a viewer creates", err, fault.KindForbidden)
		storetest.Refused(t, "a member deletes their own", b.Delete(ctx, member, b.create(member).ID), "")
		w := b.create(member)
		member.Role = access.Viewer
		storetest.Refused(t, "who is a viewer by now deletes their own", b.Delete(ctx, member, w.ID), fault.KindForbidden)
	})
}

func TestAGuestSeesTheOneWorkflowOfTheLink(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.create(b.owner)
		guest := access.Caller{Team: b.owner.Team, Role: access.GuestViewer, Guest: &access.Guest{Workflow: w.ID}}
		if got, err := b.Shared(t.Context(), guest); err != nil || got.ID != w.ID {
			t.Errorf("%s, %v", got.ID, err)
		}
		_, err := b.Shared(t.Context(), b.owner)
		storetest.Refused(t, "a member without a link", err, fault.KindForbidden)
		guest.Guest.Workflow = "wf_other"
		_, err = b.Shared(t.Context(), guest)
		storetest.Refused(t, "a link to nothing", err, fault.KindNotFound)
	})
}

func TestEverythingThatIsWrongIsSaidAtOnceAndNothingIsKept(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for name, tt := range map[string]struct {
			in    workflows.New
			paths []string
		}{
			"no name":            {workflows.New{}, []string{"name"}},
			"blanks":             {workflows.New{Name: " \t"}, []string{"name"}},
			"two lines":          {workflows.New{Name: "a\nb"}, []string{"name"}},
			"201 letters":        {workflows.New{Name: strings.Repeat("é", 201)}, []string{"name"}},
			"a NUL":              {workflows.New{Name: "a", Description: "\x00"}, []string{"description"}},
			"a long description": {workflows.New{Name: "a", Description: strings.Repeat("é", 10_001)}, []string{"description"}},
			"no license":         {workflows.New{Name: "a", License: "mine"}, []string{"license"}},
			"no JSON":            {workflows.New{Name: "a", Definition: []byte("{")}, []string{""}},
			"all together":       {workflows.New{Name: "", Description: "\x00", Definition: []byte(`{"nodes":[{"id":"a","comand":"x"}]}`)}, []string{"name", "description", "nodes[0].comand"}},
		} {
			_, err := b.Create(t.Context(), b.owner, tt.in)
			e, ok := errors.AsType[*fault.Error](err)
			if !ok || e.Kind != fault.KindInvalid || len(e.Details) < len(tt.paths) {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for i, path := range tt.paths {
				if e.Details[i].Path != path {
					t.Errorf("%s: %v, want %v", name, e.Details, tt.paths)
				}
			}
		}
		if rows, next, err := b.Workflows(t.Context(), b.owner, "", "", 10); err != nil || len(rows) != 0 || next != "" {
			t.Errorf("%v %v %v", rows, next, err)
		}
		w, err := b.Create(t.Context(), b.owner, workflows.New{Name: "  " + strings.Repeat("é", 200) + " "})
		if err != nil || w.Name != strings.Repeat("é", 200) {
			t.Errorf("%q %v", w.Name, err)
		}
	})
}

func TestTheListPagesNewestFirst(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		var made []ids.Workflow
		for range 5 {
			made = append([]ids.Workflow{b.create(b.owner).ID}, made...)
		}
		var seen []ids.Workflow
		before := ids.Workflow("")
		for more := true; more; more = before != "" {
			var rows []workflows.Row
			var err error
			if rows, before, err = b.Workflows(t.Context(), b.owner, "", before, 2); err != nil || len(rows) == 0 {
				t.Fatal(rows, err)
			}
			for _, r := range rows {
				seen = append(seen, r.ID)
			}
		}
		if fmt.Sprint(seen) != fmt.Sprint(made) {
			t.Errorf("%v, want %v", seen, made)
		}
	})
}

func TestWhoEditsOtherFieldsAtOnceBothWin(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.create(b.owner)
		var wg sync.WaitGroup
		for _, e := range []workflows.Edit{{Name: text("name")}, {Description: text("description")}, {Definition: steps(3)}, {Tags: []string{"tag"}}, {License: text("mit")}} {
			wg.Go(func() {
				if _, err := b.Update(t.Context(), b.owner, w.ID, e); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got, err := b.Workflow(t.Context(), b.owner, w.ID)
		if err != nil || got.Name != "name" || got.Description != "description" || got.NodeCount != 3 || fmt.Sprint(got.Tags) != "[tag]" || got.License != "MIT" {
			t.Errorf("%+v, %v", got.Row, err)
		}
	})
}

func TestWhoReadSomethingOlderIsToldSo(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.create(b.owner)
		read := w.ETag()
		b.define(b.owner, w.ID, 2)
		edit := func(tags ...string) error {
			_, err := b.Update(t.Context(), b.owner, w.ID, workflows.Edit{Name: text("other"), IfMatch: tags})
			return err
		}
		storetest.Refused(t, "an old tag", edit(read), fault.KindStale)
		storetest.Refused(t, "no tag that fits", edit(), "") // nil is any
		now, err := b.Workflow(t.Context(), b.owner, w.ID)
		if err != nil {
			t.Fatal(err)
		}
		storetest.Refused(t, "one of several", edit(read, now.ETag()), "")
		storetest.Refused(t, "any", edit("*"), "")
		if licensed, err := b.Update(t.Context(), b.owner, w.ID, workflows.Edit{License: text("MIT")}); err != nil || licensed.ETag() == now.ETag() {
			t.Errorf("another license leaves the tag as it is: %v", err)
		} else {
			now = licensed
		}
		moved, err := b.Update(t.Context(), b.owner, w.ID, workflows.Edit{Definition: []byte(`{"nodes":[{"id":"n0","command":"true","position":{"x":5,"y":5}},{"id":"n1","command":"true"}]}`)})
		if err != nil || moved.ETag() != now.ETag() {
			t.Errorf("where nodes are drawn changes the tag: %v", err)
		}
	})
}

func TestOneAuthorsSittingIsOneRevision(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		eve := storetest.Join(t, b.db, b.owner, "eve", access.Member)
		w := b.create(b.owner)
		want := func(what string, n int, w workflows.Workflow) {
			t.Helper()
			if w.Revision != n {
				t.Errorf("%s: revision %d, want %d", what, w.Revision, n)
			}
		}
		want("at once", 1, b.define(b.owner, w.ID, 2))
		want("the same again", 1, b.define(b.owner, w.ID, 2))
		want("another author", 2, b.define(eve, w.ID, 3))
		b.clock.Pass(4 * time.Minute)
		want("within five minutes", 2, b.define(eve, w.ID, 4))
		b.clock.Pass(time.Minute)
		want("after five minutes", 3, b.define(eve, w.ID, 5))
		named, err := b.Update(t.Context(), b.owner, w.ID, workflows.Edit{Name: text("other")})
		if err != nil {
			t.Fatal(err)
		}
		want("a name alone", 3, named)
		list, more, err := b.Revisions(t.Context(), b.owner, w.ID, 3, 1)
		if err != nil || len(list) != 1 || list[0].Number != 2 || !more || list[0].Summary == "" || list[0].CreatedBy != eve.User {
			t.Errorf("%+v %v %v", list, more, err)
		}
	})
}

func TestWhatIsRestoredIsARevisionOfItsOwn(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.create(b.owner)
		b.clock.Pass(time.Hour)
		b.define(b.owner, w.ID, 2)
		back, err := b.Restore(t.Context(), b.owner, w.ID, 1)
		if err != nil || back.Revision != 3 || back.NodeCount != 1 {
			t.Fatalf("%d nodes in revision %d, %v", back.NodeCount, back.Revision, err)
		}
		rev, err := b.Revision(t.Context(), b.owner, w.ID, 3)
		if err != nil || rev.Summary != "restored revision 1" || string(rev.Definition) != string(back.Definition) {
			t.Errorf("%+v %v", rev, err)
		}
		_, err = b.Restore(t.Context(), b.owner, w.ID, 9)
		storetest.Refused(t, "one that never was", err, fault.KindNotFound)
	})
}

// editors stands in for the place where people edit together.
type editors struct {
	b      *bench
	seq    int64
	missed int // so many drawings find that the document has moved on
	drawn  []workflows.LiveDefinition
	broken error
}

func (e *editors) SyncDefinition(ctx context.Context, team ids.Team, id ids.Workflow) (bool, error) {
	if e.broken != nil {
		return false, e.broken
	}
	w, err := e.b.Stored(ctx, team, id)
	return false, errors.Join(err, map[bool]error{true: errors.New("settled too much")}[w.SyncedSeq > e.seq])
}

func (e *editors) ApplyDefinition(ctx context.Context, d workflows.LiveDefinition) (bool, error) {
	e.drawn = append(e.drawn, d)
	if e.missed--; e.missed >= 0 {
		return false, nil
	}
	e.seq++
	d.Seq = e.seq
	_, err := e.b.Service.SaveFromDocument(ctx, d)
	return true, err
}

// live gives a workflow a document, as if somebody had opened it.
func (b *bench) live(w workflows.Workflow) *editors {
	b.t.Helper()
	if err := b.db.SeedDocument(b.t.Context(), w.Team, w.ID, w.Version, []byte("seed"), b.clock.Now()); err != nil {
		b.t.Fatal(err)
	}
	now, err := b.Stored(b.t.Context(), w.Team, w.ID)
	if err != nil || now.DocumentSeq == 0 {
		b.t.Fatal(now.DocumentSeq, err)
	}
	e := &editors{b: b, seq: now.DocumentSeq}
	b.GoLive(e)
	return e
}

func TestADefinitionIsAnEditOfWhoEditsTogether(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.create(b.owner)
		e := b.live(w)
		e.missed = 1
		got, err := b.Update(t.Context(), b.owner, w.ID, workflows.Edit{Name: text("other"), Definition: steps(4)})
		if err != nil || got.NodeCount != 4 || got.Name != "other" || len(e.drawn) != 2 {
			t.Errorf("%d nodes, %q, drawn %d times, %v", got.NodeCount, got.Name, len(e.drawn), err)
		}
		now, err := b.Workflow(t.Context(), b.owner, w.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Update(t.Context(), b.owner, w.ID, workflows.Edit{Definition: steps(5), IfMatch: []string{now.ETag()}}); err != nil {
			t.Fatal(err)
		}
		if last := e.drawn[len(e.drawn)-1]; last.Seq != now.DocumentSeq {
			t.Errorf("what must match %d is drawn at %d", now.DocumentSeq, last.Seq)
		}
		e.broken = fault.Unavailable("away")
		_, err = b.Workflow(t.Context(), b.owner, w.ID)
		storetest.Refused(t, "without its document", err, fault.KindUnavailable)
		_, err = b.Update(t.Context(), b.owner, w.ID, workflows.Edit{Definition: steps(6)})
		storetest.Refused(t, "an edit without its document", err, fault.KindUnavailable)
	})
}

func TestWhatADocumentSaysIsKeptWhateverItIs(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.create(b.owner)
		e := b.live(w)
		guest := access.Author{User: b.owner.User, Guest: "guest_1", GuestName: "Gus"}
		settle := func(seq int64, definition string, by access.Author) workflows.Workflow {
			t.Helper()
			got, err := b.SaveFromDocument(t.Context(), workflows.LiveDefinition{Team: w.Team, Workflow: w.ID, Definition: []byte(definition), Seq: seq, Author: by})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		got := settle(e.seq+1, `{"nodes":[{"id":"a","comand":"x"}]}`, guest)
		if len(got.Problems) == 0 || got.SyncedSeq != e.seq+1 || got.Revision != 2 {
			t.Errorf("%d problems, settled %d, revision %d", len(got.Problems), got.SyncedSeq, got.Revision)
		}
		if rev, err := b.Revision(t.Context(), b.owner, w.ID, 2); err != nil || rev.Guest != "guest_1" || rev.GuestName != "Gus" || rev.CreatedBy != b.owner.User {
			t.Errorf("%+v %v", rev, err)
		}
		if late := settle(e.seq, string(steps(9)), guest); late.NodeCount == 9 {
			t.Error("what is older replaces what is newer")
		}
		if mine := settle(e.seq+2, string(steps(2)), access.Author{User: b.owner.User}); mine.Revision != 3 || len(mine.Problems) != 0 {
			t.Errorf("revision %d with %v", mine.Revision, mine.Problems)
		}
	})
}
