package store

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/finding"
)

func TestFavoritesAreEverybodysOwn(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		bob := memberOf(t, db, ada.Team.ID, access.Viewer, "bob@example.org")
		team := ada.Team.ID
		var list []ids.Run
		for range 5 {
			list = append(list, submit(t, db, team).ID)
		}
		w := newWorkflow(t, db, team, ada.ID)
		theirs := submit(t, db, bob.Team.ID)
		mark := func(id string) error { return db.AddFavorite(ctx, team, ada.ID, id, 3) }
		if done, errs := atOnce(5, func(i int) error { return mark(string(list[i])) }); done != 3 {
			t.Errorf("%d were marked: %v", done, errs)
		}
		must(t, mark(string(w.ID))) // of another kind
		got, err := db.Favorites(ctx, team, ada.ID)
		if err != nil || len(got.Runs) != 3 || got.Runs[0] <= got.Runs[1] || len(got.Workflows) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		must(t, mark(string(got.Runs[0]))) // it is one of them
		refused(t, "another team's run", mark(string(theirs.ID)), fault.KindNotFound, "")
		refused(t, "what is not there", mark("run_nothing"), fault.KindNotFound, "")
		found, err := db.Runs(ctx, team, runs.Filter{FavoriteOf: ada.ID}, "", 10)
		if err != nil || len(found) != 3 {
			t.Errorf("%d runs, %v", len(found), err)
		}
		must(t, db.RemoveFavorite(ctx, team, bob.ID, string(got.Runs[0])))
		must(t, db.RemoveFavorite(ctx, bob.Team.ID, ada.ID, string(got.Runs[0])))
		if now, err := db.Favorites(ctx, team, ada.ID); err != nil || len(now.Runs) != 3 {
			t.Errorf("%+v, %v", now, err)
		}
		if his, err := db.Favorites(ctx, team, bob.ID); err != nil || len(his.Runs)+len(his.Workflows) != 0 {
			t.Errorf("%+v, %v", his, err)
		}
		for range 2 {
			must(t, db.RemoveFavorite(ctx, team, ada.ID, string(got.Runs[0])))
		}
		must(t, db.DeleteWorkflow(ctx, team, w.ID, "Ada", august))
		if now, err := db.Favorites(ctx, team, ada.ID); err != nil || len(now.Runs) != 2 || len(now.Workflows) != 0 {
			t.Errorf("%+v, %v", now, err)
		}
		must(t, db.CloseTeam(ctx, team, account.Lifetimes{}, august))
		refused(t, "in a team that is being erased", mark(string(list[0])), fault.KindForbidden, "not_a_member")
	})
}

func TestAFilterTakesThePlaceOfThatOfItsName(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		bob := memberOf(t, db, ada.Team.ID, access.Viewer, "bob@example.org")
		team := ada.Team.ID
		save := func(user ids.User, name string, days int) (finding.SavedFilter, error) {
			return db.SaveFilter(ctx, team, user, finding.SavedFilter{ID: ids.NewBudget(), Name: name, Filter: runs.Filter{Status: lifecycle.Failed, Tag: "t", Text: "x"}, Days: days, CreatedAt: august}, 2)
		}
		first, err := save(ada.ID, "Ü", 1)
		must(t, err)
		again, err := save(ada.ID, "Ü", 7)
		if err != nil || again.ID != first.ID {
			t.Errorf("%s, %s, %v", first.ID, again.ID, err)
		}
		if done, errs := atOnce(4, func(i int) error { return second(save(ada.ID, fmt.Sprint(i), 0)) }); done != 1 {
			t.Errorf("%d more were kept: %v", done, errs)
		}
		_, err = save(ada.ID, "Ü", 30) // at the limit, in the place of itself
		must(t, err)
		_, err = save(bob.ID, "Ü", 2)
		must(t, err)
		list, err := db.SavedFilters(ctx, team, ada.ID)
		if err != nil || len(list) != 2 || list[1].Name != "Ü" || list[1].Days != 30 || list[1].Filter.Status != lifecycle.Failed || list[1].Filter.Tag != "t" || list[1].Filter.Text != "x" {
			t.Errorf("%+v, %v", list, err)
		}
		refused(t, "another's", db.DeleteFilter(ctx, team, bob.ID, first.ID), fault.KindNotFound, "")
		must(t, db.DeleteFilter(ctx, team, ada.ID, first.ID))
		refused(t, "twice", db.DeleteFilter(ctx, team, ada.ID, first.ID), fault.KindNotFound, "")
	})
}
