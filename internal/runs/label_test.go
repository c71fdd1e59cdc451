package runs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
)

func TestWhoMayNameARun(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		eve, bob := storetest.Join(t, b.db, b.owner, "eve", access.Member), storetest.Join(t, b.db, b.owner, "bob", access.Viewer)
		mia, ann := storetest.Owner(t, b.db, "mia"), storetest.Join(t, b.db, b.owner, "ann", access.Admin)
		w := b.workflow(simple)
		owners, eves := b.start(b.owner, w), b.start(eve, w)
		name := "named"
		for who, tt := range map[string]struct {
			as          access.Caller
			owners, own fault.Kind
		}{
			"the owner":     {b.owner, "", ""},
			"an admin":      {ann, "", ""},
			"who began it":  {eve, fault.KindForbidden, ""},
			"a viewer":      {bob, fault.KindForbidden, fault.KindForbidden},
			"another team":  {mia, fault.KindNotFound, fault.KindNotFound},
			"a token":       {access.Caller{User: b.owner.User, Team: b.owner.Team, Role: access.Owner, Scopes: access.ScopeSet{access.ScopeRead}}, fault.KindForbidden, fault.KindForbidden},
			"nobody's role": {access.Caller{User: eve.User, Team: b.owner.Team}, fault.KindForbidden, fault.KindForbidden},
		} {
			_, err := b.SetLabel(t.Context(), tt.as, owners.ID, runs.LabelEdit{Name: &name})
			storetest.Refused(t, who+" names the owner's", err, tt.owners)
			_, err = b.SetLabel(t.Context(), tt.as, eves.ID, runs.LabelEdit{Name: &name})
			storetest.Refused(t, who+" names eve's", err, tt.own)
		}
		_, err := b.SetLabel(t.Context(), b.owner, "run_nothing", runs.LabelEdit{Name: &name})
		storetest.Refused(t, "a run that is not there", err, fault.KindNotFound)
	})
}

func TestALabelIsChangedInPartAndWithinItsLimits(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		id := b.start(b.owner, b.workflow(simple)).ID
		text := func(s string) *string { return &s }
		set := func(e runs.LabelEdit) (runs.Run, error) { return b.SetLabel(t.Context(), b.owner, id, e) }
		is := func(r runs.Run, name, note string, tags ...string) {
			t.Helper()
			if r.Name != name || r.Note != note || !slices.Equal(r.Tags, tags) {
				t.Errorf("it is %q, %q, %q; want %q, %q, %q", r.Name, r.Note, r.Tags, name, note, tags)
			}
		}
		note := strings.Repeat("é", 10_000)
		for _, step := range []struct {
			edit       runs.LabelEdit
			name, note string
			tags       []string
		}{
			{runs.LabelEdit{Name: text("  first "), Note: text("a\nb"), Tags: []string{"x", "y", "x"}}, "first", "a\nb", []string{"x", "y"}},
			{runs.LabelEdit{}, "first", "a\nb", []string{"x", "y"}},
			{runs.LabelEdit{Note: &note}, "first", note, []string{"x", "y"}},
			{runs.LabelEdit{Tags: []string{}}, "first", note, nil},
			{runs.LabelEdit{Name: text(strings.Repeat("漢", 200)), Note: text("")}, strings.Repeat("漢", 200), "", nil},
			{runs.LabelEdit{Name: text("")}, "", "", nil},
		} {
			r, err := set(step.edit)
			if err != nil {
				t.Fatal(err)
			}
			is(r, step.name, step.note, step.tags...)
		}
		for name, tt := range map[string]struct {
			edit  runs.LabelEdit
			paths string
		}{
			"a long name":       {runs.LabelEdit{Name: text(strings.Repeat("x", 201))}, "name"},
			"two lines":         {runs.LabelEdit{Name: text("a\nb")}, "name"},
			"NUL":               {runs.LabelEdit{Name: text("a\x00b"), Note: text("\x00")}, "name note"},
			"an escape":         {runs.LabelEdit{Name: text("\x1b[31m")}, "name"},
			"no text":           {runs.LabelEdit{Name: text("\xff"), Note: text("\xff")}, "name note"},
			"a long note":       {runs.LabelEdit{Note: text(note + "é")}, "note"},
			"odd tags":          {runs.LabelEdit{Tags: []string{"ok", "not ok", ""}}, "tags[1] tags[2]"},
			"all of it at once": {runs.LabelEdit{Name: text("\n.\n."), Note: text("\x00"), Tags: []string{"ä"}}, "name note tags[0]"},
		} {
			_, err := set(tt.edit)
			f, _ := errors.AsType[*fault.Error](err)
			var paths []string
			if f != nil {
				for _, d := range f.Details {
					paths = append(paths, d.Path)
				}
			}
			if !fault.Is(err, fault.KindInvalid) || strings.Join(paths, " ") != tt.paths {
				t.Errorf("%s: %v about %v, want %s", name, err, paths, tt.paths)
			}
		}
		r, err := b.Run(t.Context(), b.owner, id)
		if err != nil {
			t.Fatal(err)
		}
		is(r, "", "") // what was refused changed nothing
	})
}
