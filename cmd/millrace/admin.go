package main

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/millrace/millrace/cmd/millrace/operate"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/store"
)

// adminCommand works beside a running server, on the same database.
type adminCommand struct {
	Init      initCommand      `cmd:"" help:"Write a settings file with defaults."`
	User      userCommand      `cmd:"" help:"Accounts: list, create, set-password, set-operator, suspend, resume, reset-second-factor, delete."`
	Team      teamCommand      `cmd:"" help:"Teams: list, usage, set-plan, set-quota, grant, suspend, resume."`
	Worker    operate.Workers  `cmd:"" help:"Workers: list, drain, undrain."`
	Runs      runsCommand      `cmd:"" help:"Runs that have not ended: list, why, requeue, end."`
	Client    clientCommand    `cmd:"" help:"OAuth clients: add, list, remove."`
	Groups    operate.Groups   `cmd:"" name:"group-mapping" help:"Groups at providers that give roles in teams: list, set."`
	Mail      operate.Mail     `cmd:"" help:"Mail: test."`
	Status    operate.Status   `cmd:"" help:"Show the state of the installation: queue, files, background jobs, failed requests."`
	Ready     operate.Ready    `cmd:"" help:"Check that a server or worker responds; for health checks of containers."`
	Usage     operate.Usage    `cmd:"" help:"List what was used in a month, by team, person and executor."`
	Audit     auditCommand     `cmd:"" help:"The audit log: verify."`
	Bundle    bundleCommand    `cmd:"" help:"Write what workflows need into a folder, and load it on a machine without network."`
	RotateKey rotateKeyCommand `cmd:"" help:"Encrypt stored secrets with a new secret key, while no server runs."`
	Move      moveCommand      `cmd:"" help:"Move the installation in --data to PostgreSQL and to a bucket, while no server runs."`
	Doctor    doctorCommand    `cmd:"" help:"Check the settings and everything they point to, and report problems."`

	Notice      operate.Notice      `cmd:"" help:"The notice that everybody is shown: set, clear, show."`
	Maintenance operate.Maintenance `cmd:"" help:"Maintenance mode, in which new runs wait: on, off, show."`
}

type userCommand struct {
	List        operate.UserList `cmd:"" help:"List all accounts."`
	Create      userCreate       `cmd:"" help:"Create an account with its own team."`
	SetPassword userSetPassword  `cmd:"" help:"Set an account's password and end its sessions."`
	SetOperator userSetOperator  `cmd:"" help:"Make an account an operator of the installation, or remove that."`

	Suspend           operate.UserSuspend           `cmd:"" aliases:"disable" help:"Suspend an account: its sessions, tokens and schedules end immediately."`
	Resume            operate.UserResume            `cmd:"" aliases:"enable" help:"Lift the suspension of an account."`
	ResetSecondFactor operate.UserResetSecondFactor `cmd:"" help:"Turn off the two-factor authentication of an account."`
	Delete            operate.UserDelete            `cmd:"" help:"Delete an account, and the teams that only its person belongs to."`
}

type userCreate struct {
	databaseSettings `embed:""`
	Email            string `arg:"" help:"Email address."`
	Name             string `required:"" help:"The person's name."`
}

// Run reads the password from standard input, so that it stays out of the
// shell's history.
func (c *userCreate) Run(w console) error {
	w = w.audited("operator.account_created", audit.Installation, c.Email)
	password, err := askPassword(w)
	if err != nil {
		return err
	}
	return c.Beside(w.ctx, func(db *store.DB) error {
		system := builtin.New(builtin.Options{
			Stores: db.Identity(), Passwords: builtin.NewPasswords(), Origins: []string{"admin"},
			FirstPlan: string(credits.Free), Now: db.Now,
		})
		u, err := system.Accounts.Create(w.ctx, builtin.SignUp{Email: c.Email, Password: password, Name: c.Name})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w.out, "created account %s for %s\n", u.ID, u.Email)
		return err
	})
}

func askPassword(w console) (string, error) {
	fmt.Fprint(w.errOut, "Password (at least 10 characters): ")
	line, err := bufio.NewReader(w.in).ReadString('\n')
	password := strings.TrimRight(line, "\r\n")
	if password == "" {
		return "", fmt.Errorf("enter the password on standard input: %w", err)
	}
	return password, nil
}

type userSetPassword struct {
	databaseSettings `embed:""`
	Email            string `arg:"" help:"Email address."`
}

// Run reads the new password from standard input.
func (c *userSetPassword) Run(w console) error {
	w = w.audited("operator.password_set", audit.Installation, c.Email)
	password, err := askPassword(w)
	if err != nil {
		return err
	}
	if err := builtin.CheckPassword(password); err != nil {
		return err
	}
	return c.Beside(w.ctx, func(db *store.DB) error {
		if err := db.SetPassword(w.ctx, strings.ToLower(c.Email), builtin.NewPasswords().Hash(password)); err != nil {
			return err
		}
		_, err := fmt.Fprintln(w.out, "password set; all sessions of the account have ended")
		return err
	})
}

type userSetOperator struct {
	databaseSettings `embed:""`
	Email            string `arg:"" help:"Email address."`
	Off              bool   `help:"Remove the account's operator rights."`
	Force            bool   `help:"Even if the address is not confirmed."`
}

// Run opens the operator's page to the person from their next request on.
func (c *userSetOperator) Run(w console) error {
	action, says := "operator.operator_set", "%s is an operator of the installation\n"
	if c.Off {
		action, says = "operator.operator_removed", "%s is not an operator of the installation\n"
	}
	w = w.audited(action, audit.Installation, c.Email)
	return c.Beside(w.ctx, func(db *store.DB) error {
		if err := db.SetOperator(w.ctx, strings.ToLower(c.Email), !c.Off, c.Force, db.Now()); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w.out, says, c.Email)
		return err
	})
}

type teamCommand struct {
	List    teamList    `cmd:"" help:"List all teams."`
	SetPlan teamSetPlan `cmd:"" help:"Change a team's plan."`
	Grant   teamGrant   `cmd:"" help:"Add credits that do not expire, or remove credits."`

	SetQuota operate.TeamSetQuota `cmd:"" help:"Set what a team can use: vCPU hours, storage, executors, its Slurm account."`

	Usage   operate.TeamUsage   `cmd:"" help:"List what all teams use: plan, members, storage, credits."`
	Suspend operate.TeamSuspend `cmd:"" help:"Suspend a team: it can't start runs. Active runs continue."`
	Resume  operate.TeamResume  `cmd:"" help:"Lift the suspension of a team."`
}

type teamList struct {
	databaseSettings `embed:""`
}

// Run prints a table.
func (c *teamList) Run(w console) error {
	return c.Beside(w.ctx, func(db *store.DB) error {
		list, err := db.Teams(w.ctx)
		if err != nil {
			return err
		}
		t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "ID\tNAME\tPLAN\tMEMBERS\tOWNERS")
		for _, team := range list {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", team.ID, team.Name, team.Plan, team.Members, team.Owners)
		}
		return t.Flush()
	})
}

type teamSetPlan struct {
	databaseSettings `embed:""`
	moneySettings    `embed:""`
	Team             string `arg:"" help:"ID or name of the team."`
	Plan             string `arg:"" help:"free, pro, team, or one of --plans-file."`
}

// Run checks the plan's name first.
func (c *teamSetPlan) Run(w console) error {
	catalog, err := c.catalog()
	if err != nil {
		return err
	}
	if _, ok := catalog.Terms(credits.Plan(c.Plan)); !ok {
		return fmt.Errorf("there is no plan %q; the plans are %v", c.Plan, catalog.PlanNames())
	}
	db, err := c.OpenBeside(w.ctx, catalog)
	if err != nil {
		return err
	}
	team, err := operate.TeamNamed(w.ctx, db, c.Team)
	if err == nil {
		w = w.audited("operator.plan_set", string(team), c.Plan)
		err = db.SetPlan(w.ctx, team, credits.Plan(c.Plan), db.Now())
	}
	if err == nil {
		_, err = fmt.Fprintf(w.out, "%s is on plan %s\n", team, c.Plan)
	}
	return errors.Join(err, db.Close())
}

type teamGrant struct {
	databaseSettings `embed:""`
	Team             string `arg:"" help:"ID of the team."`
	Credits          string `arg:"" help:"Number of credits; a negative number removes credits."`
	Reason           string `default:"granted by the operator" help:"Reason, shown to the team on its usage page."`
}

// takenBack lets a negative number stand as it is: the parser would take it
// for a flag.
func takenBack(args []string) []string {
	if len(args) < 3 || !slices.Equal(args[:3], []string{"admin", "team", "grant"}) {
		return args
	}
	i := slices.IndexFunc(args, func(a string) bool {
		_, err := credits.ParseAmount(a)
		return a == "--" || strings.HasPrefix(a, "-") && err == nil
	})
	if i < 0 || args[i] == "--" {
		return args
	}
	return append(slices.Concat(args[:i], args[i+1:]), "--", args[i])
}

// Run books credits that do not expire.
func (c *teamGrant) Run(w console) error {
	w = w.audited("operator.credits_granted", c.Team, c.Credits)
	amount, err := credits.ParseAmount(c.Credits)
	if err != nil {
		return fmt.Errorf("%q is not a number of credits", c.Credits)
	}
	return c.Beside(w.ctx, func(db *store.DB) error {
		g := operator.Grant{Team: ids.Team(c.Team), Credits: amount, Reason: c.Reason}
		if err := operate.Service(db).Grant(w.ctx, g); err != nil {
			return err
		}
		b, err := db.Balance(w.ctx, g.Team, db.Now())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w.out, "%s has %s credits\n", c.Team, b.Remaining())
		return err
	})
}
