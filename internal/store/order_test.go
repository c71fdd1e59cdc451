package store

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/freshtest"
)

// Most servers sort text as a language does. Lists are the same there, page by page.
func TestListsAreWholeHoweverADatabaseSorts(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en-US", "et", "ru"} { // in Estonian z comes before t, in Russian Cyrillic before Latin
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			url := freshtest.OfLanguage(t, language)
			_, err := Migrate(t.Context(), url)
			must(t, err)
			listsAreWhole(t, openLedger(t, url))
		})
	}
	eachLedger(t, listsAreWhole)
}

func listsAreWhole(t *testing.T, db *DB) {
	team, owner := newTeam(t, db)
	var made, ran, sent []string
	for i := range 3 {
		made = append([]string{string(newWorkflow(t, db, team, owner).ID)}, made...)
		ran = append([]string{string(failedRun(t, db, team, owner))}, ran...)
		name := fmt.Sprint("file ", i)
		uploaded(t, db, team, owner, name, 1)
		sent = append([]string{name}, sent...)
	}
	for what, list := range map[string]struct {
		want []string
		page func(before string) (id, shown string, err error)
	}{
		"workflows": {made, func(before string) (string, string, error) {
			l, err := db.Workflows(t.Context(), team, ids.Workflow(before), 1)
			if len(l) == 0 {
				return "", "", err
			}
			return string(l[0].ID), string(l[0].ID), err
		}},
		"runs": {ran, func(before string) (string, string, error) {
			l, err := db.Runs(t.Context(), team, runs.Filter{}, ids.Run(before), 1)
			if len(l) == 0 {
				return "", "", err
			}
			return string(l[0].ID), string(l[0].ID), err
		}},
		"files": {sent, func(before string) (string, string, error) {
			l, err := db.Files(t.Context(), team, files.Filter{}, files.Place{ID: before}, 1)
			if len(l) == 0 {
				return "", "", err
			}
			return l[0].ID, l[0].Name, err
		}},
	} {
		var got []string
		before := ""
		for range len(list.want) + 1 {
			id, shown, err := list.page(before)
			must(t, err)
			if id == "" {
				break
			}
			got, before = append(got, shown), id
		}
		if fmt.Sprint(got) != fmt.Sprint(list.want) {
			t.Errorf("%s: %v, want %v", what, got, list.want)
		}
	}
	if entries, err := db.Entries(t.Context(), team, "", 100); err != nil || len(entries) == 0 {
		t.Errorf("the ledger: %v, %v", entries, err)
	}
	if n, _ := inbox(t, db, team, owner); n == 0 {
		t.Error("no notifications")
	}
}
