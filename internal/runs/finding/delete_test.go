package finding_test

import (
	"context"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/finding"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
)

// idle takes runs and does nothing with them.
type idle struct{}

func (idle) Choose(context.Context, runs.Wanted) (runs.Chosen, error) {
	return runs.Chosen{PricePercent: 100}, nil
}
func (idle) Offers(context.Context) ([]runs.Worker, error) { return nil, nil }
func (idle) Wake()                                         {}
func (idle) Cancel(ids.Run)                                {}

func TestWhoDeletesWhichRun(t *testing.T) {
	each(t, func(t *testing.T, db *store.DB, s *finding.Service, ada access.Caller) {
		ctx, clock := t.Context(), storetest.NewClock()
		eve, bob, mia := storetest.Join(t, db, ada, "eve", access.Member), storetest.Join(t, db, ada, "bob", access.Viewer), storetest.Owner(t, db, "mia")
		edit := workflows.NewService(db.WorkflowStores(), clock.Now)
		w, err := edit.Create(ctx, ada, workflows.New{Name: "w", Definition: []byte(`{"nodes":[{"id":"a","command":"true"}]}`)})
		if err != nil {
			t.Fatal(err)
		}
		room := runs.NewService(runs.Options{Store: db, Details: db, Submit: db, Known: db, Engine: idle{}, Catalog: credits.DefaultCatalog(), Now: clock.Now})
		start := func(as access.Caller) ids.Run {
			t.Helper()
			r, err := room.Submit(ctx, as, runs.New{Workflow: w.ID, Label: runs.Label{Tags: []string{"grant"}}})
			if err != nil {
				t.Fatal(err)
			}
			return r.ID
		}
		ended := func(as access.Caller) ids.Run {
			t.Helper()
			id := start(as)
			if _, err := room.Cancel(ctx, ada, id); err != nil {
				t.Fatal(err)
			}
			return id
		}
		token := ada
		token.Scopes = access.ScopeSet{access.ScopeRead, access.ScopeRun}
		for name, tt := range map[string]struct {
			as   access.Caller
			id   ids.Run
			kind fault.Kind
		}{
			"one's own":                      {eve, ended(eve), ""},
			"an owner, another's":            {ada, ended(eve), ""},
			"a member, another's":            {eve, ended(ada), fault.KindForbidden},
			"a viewer":                       {bob, ended(ada), fault.KindForbidden},
			"another team's":                 {mia, ended(ada), fault.KindNotFound},
			"a guest":                        {access.Caller{Team: ada.Team, Role: access.GuestEditor, Guest: &access.Guest{ID: "g", Workflow: w.ID}}, ended(ada), fault.KindForbidden},
			"a token that starts runs alone": {token, ended(ada), fault.KindForbidden},
			"one that has not ended":         {eve, start(eve), fault.KindConflict},
			"none":                           {ada, "run_none", fault.KindNotFound},
		} {
			storetest.Refused(t, name, s.DeleteRun(ctx, tt.as, tt.id), tt.kind)
			_, err := room.Run(ctx, ada, tt.id)
			if there := err == nil; there != (tt.kind != "" && tt.id != "run_none") {
				t.Errorf("%s: it is there is %v", name, there)
			}
			if tt.kind == "" {
				storetest.Refused(t, name+", again", s.DeleteRun(ctx, tt.as, tt.id), fault.KindNotFound)
			}
		}
		list, err := s.DeletedRuns(ctx, ada, "", 10)
		if err != nil || len(list) != 2 || len(list[0].Tags) != 1 || list[0].Tags[0] != "grant" {
			t.Errorf("%+v, %v", list, err)
		}
		_, err = s.DeletedRuns(ctx, eve, "", 10)
		storetest.Refused(t, "a member exports", err, fault.KindForbidden)
		if list, err := s.DeletedRuns(ctx, mia, "", 10); err != nil || len(list) > 0 {
			t.Errorf("another team has %d, %v", len(list), err)
		}
	})
}

// What somebody marked is not marked any more when it is deleted.
func TestADeletedRunIsNobodysFavorite(t *testing.T) {
	each(t, func(t *testing.T, db *store.DB, s *finding.Service, ada access.Caller) {
		ctx, clock := t.Context(), storetest.NewClock()
		eve := storetest.Join(t, db, ada, "eve", access.Viewer)
		edit := workflows.NewService(db.WorkflowStores(), clock.Now)
		w, err := edit.Create(ctx, ada, workflows.New{Name: "w", Definition: []byte(`{"nodes":[{"id":"a","command":"true"}]}`)})
		if err != nil {
			t.Fatal(err)
		}
		room := runs.NewService(runs.Options{Store: db, Details: db, Submit: db, Known: db, Engine: idle{}, Catalog: credits.DefaultCatalog(), Now: clock.Now})
		r, err := room.Submit(ctx, ada, runs.New{Workflow: w.ID})
		if err != nil {
			t.Fatal(err)
		}
		for _, who := range []access.Caller{ada, eve} {
			for _, id := range []string{string(r.ID), string(w.ID)} {
				if err := s.AddFavorite(ctx, who, id); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := room.Cancel(ctx, ada, r.ID); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteRun(ctx, ada, r.ID); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Favorites(ctx, eve); err != nil || len(got.Runs) != 0 || len(got.Workflows) != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		if err := edit.Delete(ctx, ada, w.ID); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Favorites(ctx, eve); err != nil || len(got.Runs)+len(got.Workflows) != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
