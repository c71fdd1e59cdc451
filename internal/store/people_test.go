package store

import (
	"errors"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/workflows"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused fails the test unless an error is of this kind and has this code, if one
// is named.
func refused(t *testing.T, what string, err error, kind fault.Kind, code string) {
	t.Helper()
	e, _ := errors.AsType[*fault.Error](err)
	if !fault.Is(err, kind) || code != "" && e.Code != code {
		t.Errorf("%s: %v, want kind %q and code %q", what, err, kind, code)
	}
}

// signedUp is somebody with a team of their own, whose address is confirmed.
func signedUp(t *testing.T, db *DB, email string) builtin.NewAccount {
	t.Helper()
	a := builtin.NewAccount{
		Account: builtin.Account{User: identity.User{ID: ids.NewUser(), Email: email, EmailVerified: true, Name: email}, PasswordHash: "hash"},
		Team:    identity.Team{ID: ids.NewTeam(), Name: "the team of " + email, Plan: "free"}, CreatedAt: august,
	}
	must(t, db.SignUp(t.Context(), a))
	return a
}

// memberOf is somebody who has joined a team.
func memberOf(t *testing.T, db *DB, team ids.Team, role access.Role, email string) builtin.NewAccount {
	t.Helper()
	a := signedUp(t, db, email)
	must(t, db.inTx(t.Context(), func(tx *DB) error { return tx.insertMember(t.Context(), team, a.ID, role, august) }))
	return a
}

// newWorkflow is a workflow with one revision.
func newWorkflow(t *testing.T, db *DB, team ids.Team, by ids.User) workflows.Workflow {
	t.Helper()
	w := workflows.Workflow{Row: workflows.Row{
		ID: ids.NewWorkflow(), Team: team, Name: "align", Revision: 1, NodeCount: 1, Tags: []string{}, CreatedBy: by, CreatedAt: august, UpdatedAt: august,
	}, Definition: []byte(`{"version":1}`), Fingerprint: "f1", Version: 1}
	must(t, db.InsertWorkflow(t.Context(), w, workflows.Revision{Number: 1, CreatedBy: by, CreatedAt: august, UpdatedAt: august, Summary: "created"}, nil))
	return w
}

// atOnce calls a function several times at once, and counts the calls that were
// not refused.
func atOnce(n int, call func(i int) error) (done int, errs []error) {
	errs = make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = call(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err == nil {
			done++
		}
	}
	return done, errs
}
