// Package runs is the commands for runs: start, follow, compare, share, fetch.
package runs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

// Command is what one does with runs.
type Command struct {
	List        runsList        `cmd:"" default:"withargs" aliases:"ls" help:"List the newest runs."`
	View        runsView        `cmd:"" help:"Show a run with its steps."`
	Watch       runsWatch       `cmd:"" help:"Follow a run until it ends; the exit status shows how it ended."`
	Logs        Logs            `cmd:"" help:"Print a run's log."`
	Items       runsItems       `cmd:"" help:"List the items of a step that runs once per item, failed ones first."`
	Tasks       runsTasks       `cmd:"" help:"List each attempt of each task, also those of a launched or reported pipeline."`
	Events      runsEvents      `cmd:"" help:"List a run's events."`
	Rename      runsRename      `cmd:"" help:"Give a run a name, a note or tags."`
	Compare     runsCompare     `cmd:"" help:"Compare two runs."`
	Sweep       runsSweep       `cmd:"" help:"Show the runs of a sweep as a table (run --vary starts one)."`
	Share       runsShare       `cmd:"" help:"Create a link to a run's results, for people without an account."`
	Explain     runsExplain     `cmd:"" help:"Have the model of the server explain why a run failed."`
	Links       runsLinks       `cmd:"" help:"List links to a run's results."`
	Unshare     runsUnshare     `cmd:"" help:"Revoke a link to a run's results."`
	Environment runsEnvironment `cmd:"" help:"Show the packages installed for a step, the lock file, or the installation log."`
	Kept        runsKept        `cmd:"" help:"Show or download the kept folder of a failed step."`
	Reproduce   runsReproduce   `cmd:"" help:"Download a step's inputs and command to run it on your own machine."`
	Cancel      runsCancel      `cmd:"" help:"Cancel a run."`
	Delete      runsDelete      `cmd:"" help:"Delete ended runs with their logs, events and outputs."`
	Favorite    runsFavorite    `cmd:"" aliases:"star" help:"Mark runs as favorites, or remove the mark."`
	Retry       runsRetry       `cmd:"" help:"Retry a run; completed steps are reused."`
	Outputs     outputsCommand  `cmd:"" help:"Outputs of a run: list, download."`
	Crate       runsCrate       `cmd:"" help:"Download a run with its outputs as a Workflow Run RO-Crate."`
}

type runsList struct {
	session.Flags `embed:""`
	Status        string        `env:"-" help:"Only runs in this state."`
	Workflow      string        `env:"-" help:"Only runs of this workflow, by ID or name."`
	Since         time.Duration `env:"-" help:"Only runs started within, such as 24h."`
	Until         time.Duration `env:"-" help:"Only runs older than this, such as 24h."`
	Tag           string        `env:"-" help:"Only runs with this tag."`
	StartedBy     string        `aliases:"by" env:"-" placeholder:"ID" help:"Only runs started by this person; me: your own."`
	Q             string        `aliases:"search" short:"s" env:"-" placeholder:"WORDS" help:"Only runs with these words in their name, note, tags, error or parameters; #12: runs with that number."`
	Favorite      bool          `env:"-" help:"Only your favorites."`
	Limit         int           `short:"n" env:"-" default:"20" help:"Maximum number to list."`
}

// Run lists the newest first.
func (c *runsList) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	if c.Limit < 1 {
		return errors.New("--limit must be at least 1")
	}
	if c.Since < 0 || c.Until < 0 {
		return errors.New("--since and --until say how long ago, such as 24h")
	}
	params := api.ListRunsParams{}
	if c.Status != "" {
		status := api.RunStatus(c.Status)
		params.Status = &status
	}
	if c.Workflow != "" {
		id, err := s.WorkflowID(c.Workflow)
		if err != nil {
			return err
		}
		params.WorkflowID = &id
	}
	if err := c.narrow(s, &params); err != nil {
		return err
	}
	free := s.Free()
	list, err := runs(s, params, c.Limit)
	if err != nil {
		return err
	}
	return s.Emit(list, func() { showRuns(s, list, free) })
}

// narrow adds what the flags ask for.
func (c *runsList) narrow(s *session.Session, params *api.ListRunsParams) error {
	params.Favorite = &c.Favorite
	if c.Since > 0 {
		since := s.Now().Add(-c.Since).UTC()
		params.Since = &since
	}
	if c.Until > 0 {
		until := s.Now().Add(-c.Until).UTC()
		params.Until = &until
	}
	if c.StartedBy == "me" {
		me, err := s.API.GetMeWithResponse(s.Ctx, nil)
		if err != nil {
			return s.Explain(err)
		}
		c.StartedBy = me.JSON200.Data.ID
	}
	params.Tag, params.StartedBy, params.Q = given(c.Tag), given(c.StartedBy), given(c.Q)
	return nil
}

func runs(s *session.Session, params api.ListRunsParams, most int) ([]api.RunRow, error) {
	return session.Pages(most, func(cursor *string) ([]api.RunRow, api.Page, error) {
		params.Cursor = cursor
		r, err := s.API.ListRunsWithResponse(s.Ctx, &params)
		if err != nil {
			return nil, api.Page{}, s.Explain(err)
		}
		return r.JSON200.Data, r.JSON200.Page, nil
	})
}

func showRuns(s *session.Session, list []api.RunRow, free bool) {
	if len(list) == 0 {
		s.Note("No runs. Start one with millrace run <workflow> --watch")
		return
	}
	rows := [][]string{{"ID", "WORKFLOW", "NAME", "STATUS", "PROGRESS", "SIZE", "DURATION", "CREDITS", "STARTED"}}
	for _, r := range list {
		rows = append(rows, []string{
			r.ID, fmt.Sprintf("%s #%d", r.WorkflowName, r.Number), nameText(r.Name, r.Tags), string(r.Status), fmt.Sprintf("%.0f %%", r.ProgressPercent), ComputeText(r.Compute),
			screen.Milliseconds(r.DurationMs), screen.Amount(r.CreditsUsed), s.Ago(r.CreatedAt.Time),
		})
	}
	if free {
		at := slices.Index(rows[0], "CREDITS")
		for i := range rows {
			rows[i] = slices.Delete(rows[i], at, at+1)
		}
	}
	s.Table(rows)
}

// creditsText is what a run cost, or nothing where nothing is charged.
func creditsText(credits float64, free bool) string {
	if free {
		return ""
	}
	return screen.Amount(credits)
}

// ComputeText is a size in words.
func ComputeText(c api.Compute) string {
	text := fmt.Sprintf("%dx%d", c.Vcpu, c.RAMGb)
	if c.Gpu > 0 {
		text += " gpu"
	}
	return text
}

// runArg names a run.
type runArg struct {
	Run string `arg:"" optional:"" help:"ID of the run. Default: the newest."`
}

// id is the run that was named, or the team's newest.
func (a runArg) id(s *session.Session) (string, error) {
	if a.Run != "" {
		return a.Run, nil
	}
	list, err := runs(s, api.ListRunsParams{}, 1)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", errors.New("the team has no runs yet: start one with millrace run <workflow>")
	}
	return list[0].ID, nil
}

// at opens a session and finds the run.
func (a runArg) at(c session.Flags, w screen.Console) (*session.Session, string, error) {
	s, err := c.Open(w)
	if err != nil {
		return nil, "", err
	}
	id, err := a.id(s)
	return s, id, err
}

type runsView struct {
	session.Flags `embed:""`
	runArg        `embed:""`
}

// Run shows the run as it is now.
func (c *runsView) Run(w screen.Console) error {
	s, id, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	free := s.Free()
	got, err := s.API.GetRunWithResponse(s.Ctx, id, nil)
	if err != nil {
		return s.Explain(err)
	}
	r := got.JSON200
	return s.Emit(r, func() { showRun(s, *r, free) })
}

func showRun(s *session.Session, r api.Run, free bool) {
	failed, lines := reasonOf(r)
	s.Facts(
		"run", r.ID, "number", strconv.FormatInt(r.Number, 10), "name", text(r.Name), "tags", strings.Join(r.Tags, " "), "note", text(r.Note),
		"workflow", fmt.Sprintf("%s (%s, revision %d)", r.WorkflowName, r.WorkflowID, r.WorkflowRevision),
		"status", string(r.Status), "waiting", waitingText(r.Waiting), "reason", failed, "progress", fmt.Sprintf("%.0f %%", r.ProgressPercent),
		"size", ComputeText(r.Compute), "started by", r.StartedBy.Name, "created", s.Ago(r.CreatedAt.Time),
		"duration", screen.Milliseconds(r.DurationMs), "credits", creditsText(r.CreditsUsed, free), "reused", reusedText(r),
		"copied to", copyText(r.OutputTo),
	)
	if lines != "" {
		s.Say("\n%s", screen.CleanLines(lines))
	}
	if r.Failure != nil && len(r.Failure.Suggestions) > 0 {
		s.Say("")
		for _, each := range r.Failure.Suggestions {
			s.Say("Suggestion: %s", screen.Clean(each.Message))
		}
	}
	rows := [][]string{{"STEP", "NAME", "STATUS", "ATTEMPT", "ITEMS", "DURATION", "PEAK MEMORY", "EXIT"}}
	for _, n := range r.Nodes {
		items, memory, exit := "–", "–", "–"
		if n.Shards != nil {
			items = fmt.Sprintf("%d of %d", n.Shards.Done, n.Shards.Total)
		}
		if n.PeakMemBytes != nil {
			memory = screen.Size(*n.PeakMemBytes)
		}
		if n.ExitCode != nil {
			exit = strconv.Itoa(*n.ExitCode)
		}
		rows = append(rows, []string{n.ID, n.Name, stepStatus(n.Status, n.Cached), strconv.Itoa(n.Attempt), items, screen.Milliseconds(n.DurationMs), memory, exit})
	}
	s.Say("")
	s.Table(rows)
}

// reusedText is how much of a run that has ended earlier ones had computed.
func reusedText(r api.Run) string {
	if r.Reused == nil {
		return ""
	}
	said, items := fmt.Sprintf("%d of %d steps", r.Reused.Steps, len(r.Nodes)), 0
	for _, n := range r.Nodes {
		if n.Shards != nil {
			items += n.Shards.Total
		}
	}
	if items > 0 {
		said += fmt.Sprintf(", %d of %d items", r.Reused.Items, items)
	}
	return said
}

// completed is what people call the end of a step, as that of a run. The API's word for
// a step is "succeeded".
const completed = "completed"

// stepStatus is the state of a step or of an item for people.
func stepStatus(status api.NodeStatus, cached bool) string {
	text := string(status)
	if status == api.NodeStatusSucceeded {
		text = completed
	}
	if cached {
		text += " (cached)"
	}
	return text
}

// copyText is where outputs are copied to, and how far that has come.
func copyText(c *api.OutputCopy) string {
	if c == nil {
		return ""
	}
	said := c.URL + " (" + c.State
	if c.State == "copying" {
		said += fmt.Sprintf(", %s of %s", screen.Size(c.CopiedBytes), screen.Size(c.Bytes))
	}
	said += ")"
	if c.Message != nil {
		said += ": " + *c.Message
	}
	if c.NextAttemptAt != nil {
		said += "; next attempt: " + c.NextAttemptAt.Local().Format(time.TimeOnly)
	}
	return said
}

type runsWatch struct {
	session.Flags `embed:""`
	runArg        `embed:""`
	Logs          bool `short:"l" env:"-" help:"Also print the log."`
}

// Run exits as run --watch does.
func (c *runsWatch) Run(w screen.Console) error {
	s, id, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	return watch(s, id, c.Logs)
}

type runsEvents struct {
	session.Flags `embed:""`
	runArg        `embed:""`
	After         int64 `env:"-" placeholder:"SEQ" help:"Only events after this number."`
}

// Run lists the durable events, all of them.
func (c *runsEvents) Run(w screen.Console) error {
	s, id, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	all := []api.RunEvent{}
	if err := events(s, id, c.After, func(e api.RunEvent) { all = append(all, e) }); err != nil {
		return err
	}
	return s.Emit(all, func() {
		rows := [][]string{{"SEQ", "TIME", "TYPE", "STEP", "MESSAGE"}}
		for _, e := range all {
			rows = append(rows, []string{strconv.FormatInt(e.Seq, 10), e.At.Local().Format(time.DateTime), e.Type, eventStep(e), e.Message})
		}
		s.Table(rows)
	})
}

// eventStep is the step of an event, or the item where one is named.
func eventStep(e api.RunEvent) string {
	if e.NodeID == nil || e.Shard == nil {
		return screen.OrDash(e.NodeID)
	}
	return itemID(*e.NodeID, *e.Shard)
}

type runsCancel struct {
	session.Flags `embed:""`
	Run_          []string `arg:"" name:"run" help:"IDs of the runs."`
}

// Run asks for the end of each; a run that has ended stays as it is.
func (c *runsCancel) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	return session.Each(s, c.Run_, func(id string) (api.CancelledRun, error) {
		r, err := s.API.CancelRunWithResponse(s.Ctx, id, nil)
		if err != nil {
			return api.CancelledRun{}, s.Explain(err)
		}
		return r.JSON200.Data, nil
	}, func(d api.CancelledRun) {
		verb := "is being cancelled"
		switch d.Status {
		case api.RunStatusQueued, api.RunStatusRunning:
		case api.RunStatusCancelled:
			verb = "is cancelled"
		default:
			verb = "had already ended: " + string(d.Status)
		}
		s.Say("%s %s", d.RunID, verb)
	})
}
