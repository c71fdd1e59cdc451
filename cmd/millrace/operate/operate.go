// Package operate are the commands about an installation that do what the
// operators' page does, for whoever has a shell on the server.
package operate

import (
	"context"
	"fmt"
	"io"
	"net/mail"
	"text/tabwriter"
	"time"

	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/store"
)

// Console is what a command may touch besides its settings.
type Console struct {
	Ctx     context.Context
	In      io.Reader
	Out     io.Writer
	Version string
	Audited func(action, chain, target string) context.Context // a context in which a change is put on record
}

// Service is the operators' room beside a server, which sees for itself what
// changed.
func Service(db *store.DB) *operator.Service {
	return operator.NewService(operator.Options{
		Operators: db, Runs: db, Keeping: db, Changes: db, Notices: db, Mailbox: db, People: db, Delete: deleter(db), SendSoon: func() {}, Wake: func() {}, Cancel: func(ids.Run) {},
		Catalog: credits.DefaultCatalog(), Now: db.Now,
	})
}

// table prints rows under their heads.
func table(out io.Writer, heads string, print func(w io.Writer)) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, heads)
	print(t)
	return t.Flush()
}

func at(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

// TeamSuspend has a team start nothing.
type TeamSuspend struct {
	installation.Settings `embed:""`
	Team                  string `arg:"" help:"ID of the team."`
}

// Run suspends it.
func (c *TeamSuspend) Run(w Console) error {
	return suspend(w, &c.Settings, c.Team, true, "%s can't start runs; its active runs continue\n")
}

// TeamResume lifts that.
type TeamResume struct {
	installation.Settings `embed:""`
	Team                  string `arg:"" help:"ID of the team."`
}

// Run lifts it.
func (c *TeamResume) Run(w Console) error {
	return suspend(w, &c.Settings, c.Team, false, "%s can start runs again\n")
}

func suspend(w Console, s *installation.Settings, team string, yes bool, says string) error {
	ctx := w.Audited("operator.team_suspension", team, team)
	return s.Beside(ctx, func(db *store.DB) error {
		if err := Service(db).Suspend(ctx, ids.Team(team), yes); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w.Out, says, team)
		return err
	})
}

// TeamUsage lists what teams use.
type TeamUsage struct {
	installation.Settings `embed:""`
}

const teamsAtOnce = 500

// Run prints a table, in the order in which teams were made.
func (c *TeamUsage) Run(w Console) error {
	return c.Beside(w.Ctx, func(db *store.DB) error {
		var failed error
		err := table(w.Out, "ID\tNAME\tPLAN\tMEMBERS\tFILES\tSPENT\tLEFT\tSUSPENDED", func(t io.Writer) {
			var after ids.Team
			for more := true; more && failed == nil; {
				var list []operator.Team
				list, more, failed = Service(db).Teams(w.Ctx, after, teamsAtOnce)
				for _, team := range list {
					suspended := "-"
					if !team.SuspendedAt.IsZero() {
						suspended = at(team.SuspendedAt)
					}
					fmt.Fprintf(t, "%s\t%q\t%s\t%d\t%s\t%s\t%s\t%s\n", team.ID, team.Name, team.Plan, team.Members, size(team.Storage), team.Spent, team.Left, suspended)
					after = team.ID
				}
			}
		})
		if failed != nil {
			return failed
		}
		return err
	})
}

// Mail is about mail.
type Mail struct {
	Test MailTest `cmd:"" help:"Send a test email to an address."`
}

// MailTest sends one.
type MailTest struct {
	installation.Settings `embed:""`
	Address               string `arg:"" help:"Email address."`
}

// Run leaves the mail for the server, as everything that sends mail does.
func (c *MailTest) Run(w Console) error {
	to, err := mail.ParseAddress(c.Address)
	if err != nil || to.Address != c.Address {
		return fmt.Errorf("%q is not an email address", c.Address)
	}
	ctx := w.Audited("operator.mail_tested", audit.Installation, c.Address)
	return c.Beside(ctx, func(db *store.DB) error {
		if err := Service(db).TestMail(ctx, c.Address); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w.Out, "the server will send an email to %s within a minute; its log shows the result\n", c.Address)
		return err
	})
}
