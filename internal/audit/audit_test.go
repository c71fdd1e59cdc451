package audit_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

var noon = time.Date(2026, 8, 22, 12, 0, 0, 123_000, time.UTC)

// Whatever an entry says is in its hash, so that none of it can be changed
// unnoticed, nor moved from one field to the next.
func TestTheHashIsOfAllThatAnEntrySays(t *testing.T) {
	t.Parallel()
	base := audit.Entry{
		Chain: "c", Seq: 1, At: noon, Actor: audit.Actor{Type: "t", ID: "i", Name: "n"}, Action: "a", Target: "x", Via: "v", Address: "d", RequestID: "r", Prev: "p",
	}
	sums := map[string]string{base.Sum(): "the entry itself"}
	if older := "66e66d37d0f7298ee8eb33b3f91951f13665bde8c863ad7afe0bc567cd3250e2"; base.Sum() != older {
		t.Errorf("an entry from before names were recorded has the hash %s", base.Sum())
	}
	differs := func(what string, e audit.Entry) {
		t.Helper()
		if same, there := sums[e.Sum()]; there {
			t.Errorf("%s has the hash of %s", what, same)
		}
		sums[e.Sum()] = what
	}
	for i := range reflect.TypeFor[audit.Entry]().NumField() {
		f := reflect.TypeFor[audit.Entry]().Field(i)
		changed := base
		at := reflect.ValueOf(&changed).Elem().Field(i)
		switch v := at.Addr().Interface().(type) {
		case *string:
			*v += "'"
		case *int64:
			*v++
		case *bool:
			*v = !*v
		case *time.Time:
			*v = v.Add(time.Microsecond)
		case *audit.Actor:
			for n, part := range []*string{&v.Type, &v.ID, &v.Name} {
				before := *part
				*part += "'"
				differs(fmt.Sprint("part ", n, " of the actor"), changed)
				*part = before
			}
			continue
		default:
			t.Fatalf("a field %s of a new type", f.Name)
		}
		if f.Name == "Hash" || f.Name == "TargetExists" { // which changes
			if changed.Sum() != base.Sum() {
				t.Errorf("%s is in the hash", f.Name)
			}
			continue
		}
		differs(f.Name, changed)
	}
	moved := base
	moved.Action, moved.Target = "ax", ""
	differs("a letter in the next field", moved)
	elsewhere := base
	elsewhere.At = noon.In(time.FixedZone("", 7200))
	if elsewhere.Sum() != base.Sum() {
		t.Error("the hash depends on the time zone")
	}
}

func TestAnEntryTravelsInItsContextUntilItIsWritten(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	audit.On(ctx, ids.Run("run_x")) // nobody is listening
	if audit.From(ctx) != nil || audit.Without(ctx) != ctx {
		t.Error("an entry out of nowhere")
	}
	p := &audit.Pending{Entry: audit.Entry{Action: "run.started"}}
	with := audit.With(ctx, p)
	audit.On(with, ids.Run("run_a"))
	if audit.From(with) != p || p.Target != "run_a" {
		t.Errorf("%+v", p)
	}
	inner := audit.Without(with)
	audit.On(inner, ids.Run("run_b"))
	if audit.From(inner) != nil || p.Target != "run_a" || audit.From(with) != p {
		t.Errorf("what is no entry changes %+v", p)
	}
	p.Written = true
	audit.On(with, ids.Run("run_c"))
	if audit.From(with) != nil || p.Target != "run_a" {
		t.Errorf("it is written twice: %+v", p)
	}
}

// note writes an entry of a chain by itself.
func note(t *testing.T, s *audit.Service, e audit.Entry) {
	t.Helper()
	p := &audit.Pending{Entry: e}
	if err := s.Note(audit.With(t.Context(), p)); err != nil || !p.Written {
		t.Fatalf("%+v, %v", p, err)
	}
}

func TestTheLogIsReadByWhoMayAndAsTheyAsk(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := audit.NewService(db)
		ada, eve := storetest.Owner(t, db, "ada"), storetest.Owner(t, db, "eve")
		for i, action := range []string{"run.started", "run.deleted", "runner.added", "file.deleted", "run.started"} {
			who := audit.Actor{Type: "user", ID: fmt.Sprint("user_", i%2), Name: "A"}
			note(t, s, audit.Entry{Chain: audit.ChainOf(ada.Team), At: noon.Add(time.Duration(i) * time.Hour), Actor: who, Action: action, Target: fmt.Sprint(i)})
		}
		note(t, s, audit.Entry{Chain: audit.ChainOf(eve.Team), At: noon, Action: "run.started", Target: "hers"})
		for _, role := range []access.Role{access.Viewer, access.Member, access.GuestEditor, ""} {
			as := ada
			as.Role = role
			_, _, err := s.Entries(t.Context(), as, audit.Filter{}, 10)
			storetest.Refused(t, string(role), err, fault.KindForbidden)
		}
		admin := ada
		admin.Role = access.Admin
		for name, tt := range map[string]struct {
			f     audit.Filter
			limit int
			want  string
			more  bool
		}{
			"all":                    {audit.Filter{}, 5, "43210", false},
			"a page":                 {audit.Filter{}, 4, "4321", true},
			"the next":               {audit.Filter{Before: 2}, 4, "0", false},
			"before the first":       {audit.Filter{Before: 1}, 4, "", false},
			"one action":             {audit.Filter{Action: "run.started"}, 9, "40", false},
			"actions of a kind":      {audit.Filter{Action: "run."}, 9, "410", false},
			"no wildcards":           {audit.Filter{Action: "r%."}, 9, "", false},
			"nor this one":           {audit.Filter{Action: "run_started"}, 9, "", false},
			"of an actor":            {audit.Filter{Actor: "user_1"}, 9, "31", false},
			"since":                  {audit.Filter{Since: noon.Add(3 * time.Hour)}, 9, "43", false},
			"until":                  {audit.Filter{Until: noon.Add(time.Hour)}, 9, "0", false},
			"within":                 {audit.Filter{Since: noon.Add(time.Hour), Until: noon.Add(3 * time.Hour), Action: "run."}, 9, "1", false},
			"what is not text":       {audit.Filter{Actor: "'; DROP TABLE audit; --"}, 9, "", false},
			"nothing of others":      {audit.Filter{Actor: "user_9"}, 9, "", false},
			"of an actor, in a page": {audit.Filter{Actor: "user_0"}, 2, "42", true},
		} {
			list, more, err := s.Entries(t.Context(), admin, tt.f, tt.limit)
			got := ""
			for _, e := range list {
				got += e.Target
				if e.Sum() != e.Hash {
					t.Errorf("%s: %+v has another hash", name, e)
				}
			}
			if err != nil || got != tt.want || more != tt.more {
				t.Errorf("%s: %q, more: %v, %v", name, got, more, err)
			}
		}
		if err := s.Note(context.Background()); err != nil {
			t.Errorf("nothing to note: %v", err)
		}
	})
}
