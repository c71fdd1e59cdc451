package operate

import (
	"context"
	"fmt"
	"io"

	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/store"
)

// Lifetimes say how long something may still arrive for a team that is erased.
var Lifetimes = account.Lifetimes{UploadLink: files.PartLife, Transfer: files.TransferLife}

// deleter deletes accounts beside a server, which erases their teams.
func deleter(db *store.DB) func(context.Context, ids.User) ([]ids.Team, error) {
	return account.NewService(account.Options{People: db, Lifetimes: Lifetimes, Now: db.Now}).DeletePerson
}

// UserList lists accounts.
type UserList struct {
	installation.Settings `embed:""`
	Search                string `arg:"" optional:"" help:"Part of a name or an email address."`
}

const peopleAtOnce = 500

// Run prints a table, the newest first.
func (c *UserList) Run(w Console) error {
	return c.Beside(w.Ctx, func(db *store.DB) error {
		var failed error
		err := table(w.Out, "ID\tEMAIL\tNAME\tSTATE\tOPERATOR\tTWO-FACTOR\tTEAMS\tLAST SEEN", func(t io.Writer) {
			var before ids.User
			for more := true; more && failed == nil; {
				var list []operator.Person
				list, more, failed = Service(db).People(w.Ctx, c.Search, before, peopleAtOnce)
				for _, p := range list {
					fmt.Fprintf(t, "%s\t%s\t%q\t%s\t%s\t%s\t%d\t%s\n", p.ID, p.Email, p.Name, accountState(p), yesNo(p.Operator), yesNo(p.SecondFactor), len(p.Teams), at(p.SeenAt))
					before = p.ID
				}
			}
		})
		if failed != nil {
			return failed
		}
		return err
	})
}

func accountState(p operator.Person) string {
	switch {
	case !p.SuspendedAt.IsZero():
		return "suspended"
	case !p.EmailVerified:
		return "unverified"
	}
	return "active"
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// user is an account that a command names.
type user struct {
	installation.Settings `embed:""`
	Account               string `arg:"" help:"Email address or ID of the account."`
}

// change does something to the account and says what was done.
func (c *user) change(w Console, action, says string, do func(ctx context.Context, s *operator.Service, id ids.User) error) error {
	ctx := w.Audited(action, audit.Installation, c.Account)
	return c.Beside(ctx, func(db *store.DB) error {
		id, err := db.PersonID(ctx, c.Account)
		if err != nil {
			return err
		}
		if err := do(ctx, Service(db), id); err != nil {
			return err
		}
		_, err = fmt.Fprintf(w.Out, says, c.Account)
		return err
	})
}

// UserSuspend shuts somebody out.
type UserSuspend struct{ user }

// Run ends everything they are signed in with, too.
func (c *UserSuspend) Run(w Console) error {
	return c.change(w, "operator.account_suspended", "%s is suspended: all sessions and tokens have ended, schedules are paused\n",
		func(ctx context.Context, s *operator.Service, id ids.User) error {
			return s.SuspendPerson(ctx, "", id, true)
		})
}

// UserResume lets them sign in again.
type UserResume struct{ user }

// Run brings no session back, and resumes no schedule.
func (c *UserResume) Run(w Console) error {
	return c.change(w, "operator.account_resumed", "%s can sign in again\n",
		func(ctx context.Context, s *operator.Service, id ids.User) error {
			return s.SuspendPerson(ctx, "", id, false)
		})
}

// UserResetSecondFactor turns a second factor off.
type UserResetSecondFactor struct{ user }

// Run is for who has lost their app and the recovery codes.
func (c *UserResetSecondFactor) Run(w Console) error {
	return c.change(w, "operator.second_factor_reset", "two-factor authentication of %s is off\n",
		func(ctx context.Context, s *operator.Service, id ids.User) error { return s.ResetSecondFactor(ctx, id) })
}

// UserDelete deletes an account.
type UserDelete struct {
	user
	Yes bool `help:"Delete the account and its own teams. It can't be undone."`
}

// Run leaves the teams to be erased to the server.
func (c *UserDelete) Run(w Console) error {
	if !c.Yes {
		return fmt.Errorf("deleting %s and the teams that only they belong to can't be undone: add --yes to do it", c.Account)
	}
	return c.change(w, "operator.account_deleted", "%s is deleted\n",
		func(ctx context.Context, s *operator.Service, id ids.User) error {
			erased, err := s.DeletePerson(ctx, "", id)
			for _, team := range erased {
				fmt.Fprintf(w.Out, "a server erases the team %s\n", team)
			}
			return err
		})
}
