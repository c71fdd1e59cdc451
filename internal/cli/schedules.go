package cli

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/definitions"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type schedulesCommand struct {
	List   schedulesList   `cmd:"" default:"withargs" aliases:"ls" help:"List the schedules of a workflow, with their next times."`
	Create schedulesCreate `cmd:"" help:"Start runs of a workflow at the times of five cron fields."`
	Pause  schedulesPause  `cmd:"" help:"Start no runs until it is resumed."`
	Resume schedulesResume `cmd:"" help:"Start runs again."`
	Delete schedulesDelete `cmd:"" aliases:"rm" help:"Delete a schedule."`
}

type schedulesList struct {
	session.Flags `embed:""`
	Workflow      string `arg:"" help:"Id or name of the workflow."`
}

// Run lists when what is due.
func (c *schedulesList) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	f, err := s.Workflow(c.Workflow)
	if err != nil {
		return err
	}
	r, err := s.API.ListSchedulesWithResponse(s.Ctx, f.ID, nil)
	if err != nil {
		return s.Explain(err)
	}
	list := r.JSON200.Data
	return s.Emit(list, func() {
		rows := [][]string{{"ID", "CRON", "TIME ZONE", "NEXT", "LAST", "BY"}}
		for _, x := range list {
			rows = append(rows, []string{x.ID, x.Cron, x.TimeZone, nextOf(x), lastOf(x), x.CreatedBy.Name})
		}
		s.Table(rows)
		for _, x := range list {
			if x.Paused != nil {
				s.Note("%s is paused: %s", x.ID, screen.Clean(x.Paused.Message))
			}
		}
	})
}

func nextOf(x api.Schedule) string {
	switch {
	case x.Paused != nil:
		return "paused"
	case len(x.NextTimes) == 0:
		return "off"
	}
	return x.NextTimes[0].Local().Format("2006-01-02 15:04")
}

func lastOf(x api.Schedule) string {
	if len(x.Firings) == 0 {
		return "never"
	}
	last := x.Firings[0]
	text := last.DueAt.Local().Format("2006-01-02 15:04") + " " + last.Outcome
	if last.RunID != nil {
		text += " " + *last.RunID
	}
	return text
}

type schedulesCreate struct {
	session.Flags            `embed:""`
	definitions.ComputeFlags `embed:""`
	Workflow                 string   `arg:"" help:"Id or name of the workflow."`
	Cron                     string   `arg:"" help:"Minute, hour, day of the month, month and day of the week, in one argument: '0 6 * * 1-5'."`
	TimeZone                 string   `env:"-" default:"UTC" help:"Whose clock counts, such as Europe/Berlin."`
	Overlap                  string   `env:"-" enum:"skip,queue" default:"skip" help:"While an earlier run goes on: skip the time, or queue it."`
	CatchUp                  bool     `env:"-" help:"Make up for times at which no server ran, by one run."`
	Param                    []string `short:"p" env:"-" sep:"none" placeholder:"NAME=VALUE" help:"Value of a parameter; may be given again."`
	Input                    []string `short:"i" env:"-" sep:"none" placeholder:"NAME=FILE" help:"Input: a local file or pattern, which is uploaded first, the key of a file, or an address such as 's3://lab/run7/*.fq.gz'; may be given again."`
	Connection               string   `env:"-" help:"Id or name of the connection that addresses are reached by."`
	OutputTo                 string   `env:"-" placeholder:"S3://BUCKET/PREFIX/" help:"Also copy the outputs of each run there, by --output-connection or --connection. {runId} in it stands for the id of the run."`
	OutputConnection         string   `env:"-" help:"Id or name of the connection that outputs are copied by, if it is another than --connection."`
}

// Run makes one and shows its next times.
func (c *schedulesCreate) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	size, profile, err := c.Size()
	if err != nil {
		return err
	}
	f, err := s.Workflow(c.Workflow)
	if err != nil {
		return err
	}
	g, err := definitions.ReadGraph(f.Definition)
	if err != nil {
		return err
	}
	in := api.NewSchedule{Cron: c.Cron, TimeZone: &c.TimeZone, Overlap: &c.Overlap, CatchUp: &c.CatchUp, Compute: size, ResourceProfile: profile}
	if in.Parameters, err = g.ReadParameters(c.Param); err != nil {
		return err
	}
	connection, err := s.ConnectionID(c.Connection)
	if err != nil {
		return err
	}
	if in.OutputTo, err = s.OutputTarget(c.OutputTo, c.OutputConnection, connection); err != nil {
		return err
	}
	if in.Inputs, err = g.ReadInputs(c.Input, connection, s.UploadKey); err != nil {
		return err
	}
	r, err := s.API.CreateScheduleWithResponse(s.Ctx, f.ID, nil, in)
	if err != nil {
		return s.Explain(err)
	}
	made := r.JSON201.Data
	return s.Emit(made, func() {
		s.Say("%s", made.ID)
		for _, at := range made.NextTimes {
			s.Note("%s", at.Local().Format("Mon 2006-01-02 15:04 MST"))
		}
	})
}

// oneSchedule names a schedule of a workflow.
type oneSchedule struct {
	session.Flags `embed:""`
	Workflow      string `arg:"" help:"Id or name of the workflow."`
	Schedule      string `arg:"" help:"Id of the schedule, as schedules list shows it."`
}

func (c oneSchedule) change(w screen.Console, enabled bool, done string) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	f, err := s.Workflow(c.Workflow)
	if err != nil {
		return err
	}
	r, err := s.API.ChangeScheduleWithResponse(s.Ctx, f.ID, c.Schedule, nil, api.ScheduleEdit{Enabled: &enabled})
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("%s is %s", c.Schedule, done) })
}

type schedulesPause struct{ oneSchedule }

// Run switches it off.
func (c *schedulesPause) Run(w screen.Console) error { return c.change(w, false, "paused") }

type schedulesResume struct{ oneSchedule }

// Run switches it on.
func (c *schedulesResume) Run(w screen.Console) error { return c.change(w, true, "resumed") }

type schedulesDelete struct{ oneSchedule }

// Run leaves the runs that it started.
func (c *schedulesDelete) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	f, err := s.Workflow(c.Workflow)
	if err != nil {
		return err
	}
	r, err := s.API.DeleteScheduleWithResponse(s.Ctx, f.ID, c.Schedule, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("deleted %s", c.Schedule) })
}

type triggersCommand struct {
	List   triggersList   `cmd:"" default:"withargs" aliases:"ls" help:"List the triggers of a workflow."`
	Create triggersCreate `cmd:"" help:"Make a secret address that starts a run when it is called."`
	Delete triggersDelete `cmd:"" aliases:"rm" help:"Delete a trigger: its address stops working."`
}

type triggersList struct {
	session.Flags `embed:""`
	Workflow      string `arg:"" help:"Id or name of the workflow."`
}

// Run never shows addresses: they are not kept.
func (c *triggersList) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	f, err := s.Workflow(c.Workflow)
	if err != nil {
		return err
	}
	r, err := s.API.ListTriggersWithResponse(s.Ctx, f.ID, nil)
	if err != nil {
		return s.Explain(err)
	}
	list := r.JSON200.Data
	return s.Emit(list, func() {
		rows := [][]string{{"ID", "ENDS IN", "SIGNED", "LAST CALLED", "BY"}}
		for _, x := range list {
			used, signed := "never", "no"
			if x.LastUsedAt != nil {
				used = s.Ago(x.LastUsedAt.Time)
			}
			if x.Signed {
				signed = "yes"
			}
			rows = append(rows, []string{x.ID, x.TokenHint, signed, used, x.CreatedBy.Name})
		}
		s.Table(rows)
	})
}

type triggersCreate struct {
	session.Flags            `embed:""`
	definitions.ComputeFlags `embed:""`
	Workflow                 string   `arg:"" help:"Id or name of the workflow."`
	Map                      []string `env:"-" sep:"none" placeholder:"NAME=/POINTER" help:"Take a parameter from this place of the body; may be given again. Default: the body's members are the parameters."`
	Refresh                  bool     `env:"-" help:"Have the workflow refreshed from Git instead of starting a run: for a push webhook."`
	Signed                   bool     `env:"-" help:"Callers sign the body with a secret, which is read from standard input."`
	Param                    []string `short:"p" env:"-" sep:"none" placeholder:"NAME=VALUE" help:"Value of a parameter of every run; may be given again."`
	Input                    []string `short:"i" env:"-" sep:"none" placeholder:"NAME=FILE" help:"Input of every run; may be given again."`
	Connection               string   `env:"-" help:"Id or name of the connection that addresses are reached by."`
}

// Run shows the address this once.
func (c *triggersCreate) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	size, profile, err := c.Size()
	if err != nil {
		return err
	}
	f, err := s.Workflow(c.Workflow)
	if err != nil {
		return err
	}
	g, err := definitions.ReadGraph(f.Definition)
	if err != nil {
		return err
	}
	in := api.NewTrigger{Compute: size, ResourceProfile: profile}
	does := "starts runs in your name"
	if c.Refresh {
		in.Action, does = orNil("refresh"), "has the workflow refreshed"
	}
	for _, text := range c.Map {
		name, pointer, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return fmt.Errorf("--map %s: write name=/pointer", text)
		}
		if in.Map == nil {
			in.Map = map[string]string{}
		}
		in.Map[name] = pointer
	}
	if in.Parameters, err = g.ReadParameters(c.Param); err != nil {
		return err
	}
	connection, err := s.ConnectionID(c.Connection)
	if err != nil {
		return err
	}
	if c.Signed {
		secret, err := s.SecretText("Secret: ", maxSecret)
		if err != nil {
			return err
		}
		in.Secret = &secret
	}
	if in.Inputs, err = g.ReadInputs(c.Input, connection, s.UploadKey); err != nil {
		return err
	}
	r, err := s.API.CreateTriggerWithResponse(s.Ctx, f.ID, nil, in)
	if err != nil {
		return s.Explain(err)
	}
	made := r.JSON201.Data
	return s.Emit(made, func() {
		s.Say("%s", made.URL)
		s.Note("Whoever has the address %s. It is shown this once; end it with: millrace triggers delete %s %s", does, f.ID, made.ID)
	})
}

type triggersDelete struct {
	session.Flags `embed:""`
	Workflow      string `arg:"" help:"Id or name of the workflow."`
	Trigger       string `arg:"" help:"Id of the trigger, as triggers list shows it."`
}

// Run ends it at once.
func (c *triggersDelete) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	f, err := s.Workflow(c.Workflow)
	if err != nil {
		return err
	}
	r, err := s.API.DeleteTriggerWithResponse(s.Ctx, f.ID, c.Trigger, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("deleted %s", c.Trigger) })
}
