package store_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
)

func workflow(by builtin.NewAccount) workflows.Workflow {
	return workflows.Workflow{Row: workflows.Row{
		ID: ids.NewWorkflow(), Team: by.Team.ID, Name: "align", Revision: 1, NodeCount: 2, Tags: []string{},
		CreatedBy: by.ID, CreatedByName: by.Name, CreatedAt: noon, UpdatedAt: noon,
	}, Definition: []byte(`{"version":1}`), Fingerprint: "f", Version: 1}
}

var firstRevision = workflows.Revision{Number: 1, CreatedAt: noon, UpdatedAt: noon, Summary: "created"}

func insert(t *testing.T, db *store.DB, by builtin.NewAccount, r *access.IdempotencyRecord) (workflows.Workflow, error) {
	t.Helper()
	w, rev := workflow(by), firstRevision
	rev.CreatedBy = by.ID
	return w, db.InsertWorkflow(t.Context(), w, rev, r)
}

func TestWorkflowsStayInTheirTeam(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, bob := person(t, db, "ada@example.org"), person(t, db, "bob@example.org")
		w, err := insert(t, db, ada, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.Confirmed = true // by who made it
		got, err := db.Workflow(ctx, ada.Team.ID, w.ID)
		if diff := cmp.Diff(w, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
		notFound := func(what string, err error) {
			if !fault.Is(err, fault.KindNotFound) {
				t.Errorf("%s another team's workflow gives %v", what, err)
			}
		}
		_, err = db.Workflow(ctx, bob.Team.ID, w.ID)
		notFound("reading", err)
		_, err = db.Revision(ctx, bob.Team.ID, w.ID, 1)
		notFound("reading a revision of", err)
		notFound("deleting", db.DeleteWorkflow(ctx, bob.Team.ID, w.ID, "Bob", noon))
		theirs := w
		theirs.Team = bob.Team.ID
		if saved, err := db.SaveWorkflow(ctx, theirs, nil); saved || err != nil {
			t.Errorf("saving it: %v, %v", saved, err)
		}
		rows, err := db.Workflows(ctx, bob.Team.ID, "", 10)
		if err != nil || len(rows) != 0 {
			t.Errorf("their list shows %v, %v", rows, err)
		}
	})
}

func TestTheSecondOfTwoSavesIsTold(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := person(t, db, "ada@example.org")
		w, err := insert(t, db, ada, nil)
		if err != nil {
			t.Fatal(err)
		}
		saved := parallel(t, 20, func(i int) (bool, error) {
			mine := w
			mine.Name = fmt.Sprint("name ", i)
			return db.SaveWorkflow(ctx, mine, nil)
		})
		var n int
		for _, s := range saved {
			if s {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d of 20 saves of one version went through", n)
		}
	})
}
