package finding_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/finding"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
)

func each(t *testing.T, test func(t *testing.T, db *store.DB, s *finding.Service, ada access.Caller)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		test(t, db, finding.NewService(db, db, db, db, storetest.NewClock().Now), storetest.Owner(t, db, "ada"))
	})
}

func TestAFilterIsItsMakersAlone(t *testing.T) {
	each(t, func(t *testing.T, db *store.DB, s *finding.Service, ada access.Caller) {
		ctx, eve := t.Context(), storetest.Join(t, db, ada, "eve", access.Viewer)
		failed := runs.Filter{Status: lifecycle.Failed}
		first, err := s.Save(ctx, ada, finding.SavedFilter{Name: " Failed ", Filter: failed})
		if err != nil || first.Name != "Failed" {
			t.Fatalf("%+v, %v", first, err)
		}
		again, err := s.Save(ctx, ada, finding.SavedFilter{Name: "Failed", Filter: failed, Days: 7})
		if err != nil || again.ID != first.ID {
			t.Errorf("one of the same name is %+v, %v", again, err)
		}
		if _, err := s.Save(ctx, eve, finding.SavedFilter{Name: "Failed", Filter: failed}); err != nil {
			t.Errorf("a viewer's own: %v", err)
		}
		for who, caller := range map[string]access.Caller{"ada": ada, "eve": eve} {
			list, err := s.Filters(ctx, caller)
			if err != nil || len(list) != 1 || (list[0].Days == 7) != (who == "ada") || list[0].Filter != failed {
				t.Errorf("%s has %+v, %v", who, list, err)
			}
		}
		storetest.Refused(t, "another's filter", s.Delete(ctx, eve, first.ID), fault.KindNotFound)
		storetest.Refused(t, "one's own", s.Delete(ctx, ada, first.ID), "")
		storetest.Refused(t, "one that is gone", s.Delete(ctx, ada, first.ID), fault.KindNotFound)
		nobody := access.Caller{User: ada.User, Team: ada.Team}
		_, err = s.Filters(ctx, nobody)
		storetest.Refused(t, "without a role", err, fault.KindForbidden)
		_, err = s.Save(ctx, nobody, finding.SavedFilter{Name: "x", Days: 1})
		storetest.Refused(t, "to save without a role", err, fault.KindForbidden)
	})
}

func TestFiltersAreFewNamedAndNotEmpty(t *testing.T) {
	each(t, func(t *testing.T, _ *store.DB, s *finding.Service, ada access.Caller) {
		for name, tt := range map[string]struct {
			filter finding.SavedFilter
			paths  string
		}{
			"no name":        {finding.SavedFilter{Name: " ", Days: 1}, "name"},
			"a long name":    {finding.SavedFilter{Name: strings.Repeat("é", 101), Days: 1}, "name"},
			"no filter":      {finding.SavedFilter{Name: "x"}, "filter"},
			"days before":    {finding.SavedFilter{Name: "x", Days: -1}, "filter.days"},
			"too many days":  {finding.SavedFilter{Name: "x", Days: 3651}, "filter.days"},
			"nothing of all": {finding.SavedFilter{}, "name filter"},
		} {
			_, err := s.Save(t.Context(), ada, tt.filter)
			var paths []string
			if f, ok := errors.AsType[*fault.Error](err); ok {
				for _, d := range f.Details {
					paths = append(paths, d.Path)
				}
			}
			if !fault.Is(err, fault.KindInvalid) || strings.Join(paths, " ") != tt.paths {
				t.Errorf("%s: %v about %v", name, err, paths)
			}
		}
		for i := range finding.MaxFilters {
			if _, err := s.Save(t.Context(), ada, finding.SavedFilter{Name: strings.Repeat("é", 90) + fmt.Sprint(i), Days: 3650}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Save(t.Context(), ada, finding.SavedFilter{Name: "one more", Days: 1})
		storetest.Refused(t, "one too many", err, fault.KindConflict)
		_, err = s.Save(t.Context(), ada, finding.SavedFilter{Name: strings.Repeat("é", 90) + "0", Days: 1})
		storetest.Refused(t, "one in place of another", err, "")
	})
}

func TestFavoritesAreOfTheTeamAndOnesOwn(t *testing.T) {
	each(t, func(t *testing.T, db *store.DB, s *finding.Service, ada access.Caller) {
		ctx, eve, mia := t.Context(), storetest.Join(t, db, ada, "eve", access.Viewer), storetest.Owner(t, db, "mia")
		edit := workflows.NewService(db.WorkflowStores(), storetest.NewClock().Now)
		w, err := edit.Create(ctx, ada, workflows.New{Name: "w", Definition: []byte(`{"nodes":[]}`)})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{s.AddFavorite(ctx, ada, string(w.ID)), s.AddFavorite(ctx, ada, string(w.ID)), s.RemoveFavorite(ctx, eve, string(w.ID))} {
			if err != nil {
				t.Error(err)
			}
		}
		for _, id := range []string{"wf_nothing", "run_nothing", "", "team_1", string(ada.User)} {
			storetest.Refused(t, "to mark "+id, s.AddFavorite(ctx, ada, id), fault.KindNotFound)
		}
		storetest.Refused(t, "another team's", s.AddFavorite(ctx, mia, string(w.ID)), fault.KindNotFound)
		for who, tt := range map[string]struct {
			caller access.Caller
			want   int
		}{"ada": {ada, 1}, "eve": {eve, 0}, "mia": {mia, 0}} {
			if got, err := s.Favorites(ctx, tt.caller); err != nil || len(got.Workflows) != tt.want || len(got.Runs) != 0 {
				t.Errorf("%s has %+v, %v", who, got, err)
			}
		}
		if err := s.RemoveFavorite(ctx, ada, string(w.ID)); err != nil {
			t.Error(err)
		}
		if got, err := s.Favorites(ctx, ada); err != nil || len(got.Workflows) != 0 {
			t.Errorf("afterwards %+v, %v", got, err)
		}
	})
}

func TestARunIsFoundByWhatPeopleKnowOfIt(t *testing.T) {
	t.Parallel()
	r := runs.Run{
		ID: "run_1", Number: 12, WorkflowName: "Align reads", Status: lifecycle.Failed, ErrorMessage: "Step sort exited", Parameters: []byte(`{"genome":"hg38","n":[7,{"deep":"x9"}],"flag":true}`),
		Starter: runs.Starter{Name: "Ada"}, Label: runs.Label{Name: "Pilot", Note: "see plots", Tags: []string{"grant:4"}},
	}
	for _, word := range []string{"pilot", "align", "exited", "ada", "plots", "grant", "hg38", "genome", "7", "x9", "deep"} {
		if !slices.Contains(finding.Words(r), word) {
			t.Errorf("not by %s: %q", word, finding.Words(r))
		}
	}
	r.Status = lifecycle.Completed
	if slices.Contains(finding.Words(r), "exited") {
		t.Error("a completed run is found by an error that nobody sees")
	}
	for _, cut := range []string{`{"genome":"hg38","n":[7,`, `{"genome":"hg38","rest":"not clo`} {
		r.Parameters = []byte(cut)
		if !slices.Contains(finding.Words(r), "hg38") {
			t.Errorf("%s is not read as far as it goes: %q", cut, finding.Words(r))
		}
	}
}
