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
	List   schedulesList   `cmd:"" default:"withargs" aliases:"ls" help:"List a workflow's schedules with their next runs."`
	Create schedulesCreate `cmd:"" help:"Create a schedule from a cron expression."`
	Pause  schedulesPause  `cmd:"" help:"Pause a schedule."`
	Resume schedulesResume `cmd:"" help:"Resume a schedule."`
	Delete schedulesDelete `cmd:"" aliases:"rm" help:"Delete a schedule."`
}

type schedulesList struct {
	session.Flags `embed:""`
	Workflow      string `arg:"" help:"ID or name of the workflow."`
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
	Workflow                 string   `arg:"" help:"ID or name of the workflow."`
	Cron                     string   `arg:"" help:"Minute, hour, day of the month, month and day of the week, in one argument: '0 6 * * 1-5'."`
	TimeZone                 string   `env:"-" default:"UTC" help:"Time zone, such as Europe/Berlin. Daylight saving time is applied."`
	Overlap                  string   `env:"-" enum:"skip,queue" default:"skip" help:"If the previous run is still going: skip this run, or queue it."`
	CatchUp                  bool     `env:"-" help:"Run once to catch up after downtime."`
	Param                    []string `short:"p" env:"-" sep:"none" placeholder:"NAME=VALUE" help:"Value of a parameter; repeatable."`
	Input                    []string `short:"i" env:"-" sep:"none" placeholder:"NAME=FILE" help:"Input: a local file, pattern or folder (uploaded first), the key of a file or folder, or an address such as 's3://lab/run7/*.fq.gz'; repeatable."`
	Connection               string   `env:"-" help:"ID or name of the connection to use for addresses."`
	OutputTo                 string   `env:"-" placeholder:"S3://BUCKET/PREFIX/" help:"Also copy the outputs of each run there, using --output-connection or --connection. {runId} is replaced by the run ID."`
	OutputConnection         string   `env:"-" help:"ID or name of the connection for copying outputs, if different from --connection."`
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
	if in.Inputs, err = g.ReadInputs(c.Input, connection, s.UploadKeys); err != nil {
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
	Workflow      string `arg:"" help:"ID or name of the workflow."`
	Schedule      string `arg:"" help:"ID of the schedule, from schedules list."`
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
	List   triggersList   `cmd:"" default:"withargs" aliases:"ls" help:"List a workflow's triggers."`
	Create triggersCreate `cmd:"" help:"Create a secret URL that starts a run when it receives a request."`
	Delete triggersDelete `cmd:"" aliases:"rm" help:"Delete a trigger; its URL stops working."`
}

type triggersList struct {
	session.Flags `embed:""`
	Workflow      string `arg:"" help:"ID or name of the workflow."`
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
		rows := [][]string{{"ID", "ENDS IN", "SIGNED", "LAST USED", "BY"}}
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
	Workflow                 string   `arg:"" help:"ID or name of the workflow."`
	Map                      []string `env:"-" sep:"none" placeholder:"NAME=/POINTER" help:"Take a parameter from this place in the body; repeatable. Default: the body's fields are the parameters."`
	Refresh                  bool     `env:"-" help:"Refresh the workflow from Git instead of starting a run; for a push webhook."`
	Signed                   bool     `env:"-" help:"Requests must be signed with a secret, which is read from standard input."`
	Param                    []string `short:"p" env:"-" sep:"none" placeholder:"NAME=VALUE" help:"Value of a parameter for every run; repeatable."`
	Input                    []string `short:"i" env:"-" sep:"none" placeholder:"NAME=FILE" help:"Input for every run; repeatable."`
	Connection               string   `env:"-" help:"ID or name of the connection to use for addresses."`
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
	does := "can start runs as you"
	if c.Refresh {
		in.Action, does = orNil("refresh"), "can refresh the workflow"
	}
	for _, text := range c.Map {
		name, pointer, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return fmt.Errorf("--map %s: enter name=/pointer", text)
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
	if in.Inputs, err = g.ReadInputs(c.Input, connection, s.UploadKeys); err != nil {
		return err
	}
	r, err := s.API.CreateTriggerWithResponse(s.Ctx, f.ID, nil, in)
	if err != nil {
		return s.Explain(err)
	}
	made := r.JSON201.Data
	return s.Emit(made, func() {
		s.Say("%s", made.URL)
		s.Note("Anyone with the URL %s. It is shown only once. Delete it with: millrace triggers delete %s %s", does, f.ID, made.ID)
	})
}

type triggersDelete struct {
	session.Flags `embed:""`
	Workflow      string `arg:"" help:"ID or name of the workflow."`
	Trigger       string `arg:"" help:"ID of the trigger, from triggers list."`
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
