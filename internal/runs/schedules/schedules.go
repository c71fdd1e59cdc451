// Package schedules starts runs that nobody starts by hand: at the times of a
// schedule, or when somebody calls a secret address. Both run what a member
// last confirmed of a workflow, in the name of who made them, and only while
// that person may start runs.
package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/cron"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// Given is what the runs of a schedule or trigger are started with.
type Given struct {
	Parameters json.RawMessage            `json:"parameters,omitempty"` // an object
	Inputs     map[string]json.RawMessage `json:"inputs,omitempty"`
	Custom     *credits.Custom            `json:"custom,omitempty"`
	Profile    string                     `json:"profile,omitempty"`
	OutputTo   *outputto.Target           `json:"outputTo,omitempty"`
}

func (g Given) of(workflow ids.Workflow) runs.New {
	return runs.New{Workflow: workflow, Parameters: g.Parameters, Inputs: g.Inputs, Custom: g.Custom, Profile: g.Profile, OutputTo: g.OutputTo}
}

// any reports whether there is something.
func (g Given) any() bool {
	return len(g.Parameters) > len("{}") || len(g.Inputs) > 0 || g.Custom != nil || g.Profile != "" || g.OutputTo != nil
}

// Overlap is what happens to a time that comes while an earlier run of the
// schedule has not ended.
type Overlap string

// The kinds of Overlap.
const (
	Skip  Overlap = "skip"  // it is left out
	Queue Overlap = "queue" // its run starts when the earlier one has ended
)

// Outcome is what became of a due time.
type Outcome string

// The outcomes.
const (
	Started Outcome = "started"
	Waiting Outcome = "waiting" // for an earlier run
	Skipped Outcome = "skipped" // because of one
	Missed  Outcome = "missed"  // no server ran, or hosts of its data were away
	Refused Outcome = "refused" // the run could not start, and the schedule is paused
)

// Firing is a due time and what became of it.
type Firing struct {
	Due     time.Time
	Outcome Outcome
	Run     ids.Run
	Message string
	Times   int // how many due times it stands for
}

// Pause is why we paused a schedule.
type Pause struct {
	At      time.Time
	Code    string
	Message string
}

// Schedule starts runs of a workflow at its times.
type Schedule struct {
	ID            ids.Schedule
	Team          ids.Team
	Workflow      ids.Workflow
	WorkflowName  string
	Cron          string
	TimeZone      string
	Given         Given
	Overlap       Overlap
	CatchUp       bool      // make up for times at which no server ran
	NextAt        time.Time // zero: it is not enabled
	Retries       int       // how often its time was tried, and could not be started for a reason of ours
	Paused        *Pause    // why not, if it is our doing
	CreatedBy     ids.User
	CreatedByName string
	CreatedAt     time.Time
	UpdatedAt     time.Time
	Firings       []Firing // the newest, newest first
}

// Enabled reports whether it starts runs.
func (s Schedule) Enabled() bool { return !s.NextAt.IsZero() }

// shownTimes is how many of its next times a schedule shows.
const shownTimes = 5

// NextTimes are when it is due.
func (s Schedule) NextTimes() []time.Time {
	times, err := s.times()
	if err != nil || !s.Enabled() {
		return nil
	}
	return append([]time.Time{s.NextAt.UTC()}, times.After(s.NextAt, shownTimes-1)...)
}

func (s Schedule) times() (cron.Schedule, error) {
	zone, err := cron.Zone(s.TimeZone)
	if err != nil {
		return cron.Schedule{}, err
	}
	return cron.Parse(s.Cron, zone)
}

// Store keeps schedules. Each method takes the team.
type Store interface {
	// InsertSchedule adds one, unless the workflow has most of them.
	InsertSchedule(ctx context.Context, s Schedule, most int) error
	// Schedules are those of a workflow, newest first, with their newest firings.
	Schedules(ctx context.Context, team ids.Team, workflow ids.Workflow) ([]Schedule, error)
	Schedule(ctx context.Context, team ids.Team, workflow ids.Workflow, id ids.Schedule) (Schedule, error)
	// SchedulesOfTeam are those of all workflows before one, newest first.
	SchedulesOfTeam(ctx context.Context, team ids.Team, before ids.Schedule, limit int) ([]Schedule, error)
	// SaveSchedule writes s unless somebody changed it, or it fired, since before
	// was read.
	SaveSchedule(ctx context.Context, s, before Schedule) (saved bool, err error)
	DeleteSchedule(ctx context.Context, team ids.Team, workflow ids.Workflow, id ids.Schedule) error
}

// Runs starts runs.
type Runs interface {
	CheckGiven(ctx context.Context, team ids.Team, in runs.New) error
	SubmitAutomatic(ctx context.Context, team ids.Team, in runs.New, a runs.Automatic) (runs.Run, error)
}

// Service answers a team's questions about what starts by itself.
type Service struct {
	store    Store
	triggers TriggerStore
	runs     Runs
	now      func() time.Time
	full     func(context.Context) error // whether there is no room for more
}

// NewService makes the room.
func NewService(store Store, triggers TriggerStore, runs Runs, now func() time.Time) *Service {
	return &Service{store: store, triggers: triggers, runs: runs, now: now, full: func(context.Context) error { return nil }}
}

// RefuseWhile has schedules neither made nor changed, and triggers not made, while a check
// returns an error, such as that of a full disk. Schedules can be paused all the same.
func (s *Service) RefuseWhile(full func(context.Context) error) { s.full = full }

// Most is how many schedules, and how many triggers, a workflow has.
const Most = 20

// Edit is what a schedule is to be; nil stays as it is, or is the default of a
// new one.
type Edit struct {
	Cron     *string
	TimeZone *string
	Given    *Given
	Enabled  *bool
	Overlap  *string
	CatchUp  *bool
}

// Schedules lists those of a workflow, newest first.
func (s *Service) Schedules(ctx context.Context, caller access.Caller, workflow ids.Workflow) ([]Schedule, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	return s.store.Schedules(ctx, caller.Team, workflow)
}

// AllSchedules lists those of all the team's workflows before one of them.
func (s *Service) AllSchedules(ctx context.Context, caller access.Caller, before ids.Schedule, limit int) ([]Schedule, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	return s.store.SchedulesOfTeam(ctx, caller.Team, before, limit)
}

// Create makes a schedule, in the caller's name.
func (s *Service) Create(ctx context.Context, caller access.Caller, workflow ids.Workflow, e Edit) (Schedule, error) {
	if err := mayHaveRun(caller); err != nil {
		return Schedule{}, err
	}
	now := s.now()
	made := Schedule{
		ID: ids.NewSchedule(), Team: caller.Team, Workflow: workflow, TimeZone: "UTC", Overlap: Skip,
		CreatedBy: caller.User, CreatedByName: caller.Name, CreatedAt: now, UpdatedAt: now,
	}
	if e.Enabled == nil {
		yes := true
		e.Enabled = &yes
	}
	if err := s.full(ctx); err != nil {
		return Schedule{}, err
	}
	if err := s.apply(ctx, &made, e); err != nil {
		return Schedule{}, err
	}
	return made, s.store.InsertSchedule(ctx, made, Most)
}

// mayHaveRun is nil for who may make what starts runs: a token that may not start
// them itself may not have them started either.
func mayHaveRun(caller access.Caller) error {
	if err := caller.Must(access.ManageSchedules); err != nil {
		return err
	}
	return caller.Must(access.StartRuns)
}

// onlyPauses reports whether all that an edit does is to start no more runs.
func (e Edit) onlyPauses() bool {
	return e.Enabled != nil && !*e.Enabled && e == Edit{Enabled: e.Enabled}
}

// Change changes a schedule. Members change those that they made. Who enables
// one whose maker has gone takes it over.
func (s *Service) Change(ctx context.Context, caller access.Caller, workflow ids.Workflow, id ids.Schedule, e Edit) (Schedule, error) {
	if !e.onlyPauses() {
		if err := mayHaveRun(caller); err != nil {
			return Schedule{}, err
		}
		if err := s.full(ctx); err != nil {
			return Schedule{}, err
		}
	}
	const tries = 5
	for range tries {
		before, err := s.mine(ctx, caller, workflow, id)
		if err != nil {
			return Schedule{}, err
		}
		after := before
		if e.Enabled != nil && *e.Enabled && before.Paused != nil && before.Paused.Code == runs.MakerGone {
			after.CreatedBy, after.CreatedByName = caller.User, caller.Name
		}
		if err := s.apply(ctx, &after, e); err != nil {
			return Schedule{}, err
		}
		after.UpdatedAt = s.now()
		if saved, err := s.store.SaveSchedule(ctx, after, before); err != nil || saved {
			return after, err
		}
	}
	return Schedule{}, fault.Conflict("someone else changed the schedule: reload it and try again")
}

// Delete removes a schedule. Runs that it started go on.
func (s *Service) Delete(ctx context.Context, caller access.Caller, workflow ids.Workflow, id ids.Schedule) error {
	if _, err := s.mine(ctx, caller, workflow, id); err != nil {
		return err
	}
	return s.store.DeleteSchedule(ctx, caller.Team, workflow, id)
}

// mine is a schedule that the caller may change.
func (s *Service) mine(ctx context.Context, caller access.Caller, workflow ids.Workflow, id ids.Schedule) (Schedule, error) {
	if err := caller.Must(access.ManageSchedules); err != nil {
		return Schedule{}, err
	}
	found, err := s.store.Schedule(ctx, caller.Team, workflow, id)
	if err != nil {
		return Schedule{}, err
	}
	if found.CreatedBy != caller.User && !caller.May(access.ManageAnySchedule) {
		return Schedule{}, fault.Forbidden("only admins and owners can change someone else's schedule")
	}
	return found, nil
}

// apply makes a schedule what an edit says, or says all that is wrong with it.
func (s *Service) apply(ctx context.Context, to *Schedule, e Edit) error {
	var wrong []fault.Detail
	note := func(path, message string) { wrong = append(wrong, fault.Detail{Path: path, Message: message}) }
	timed := e.Cron != nil || e.TimeZone != nil
	setTo(&to.Cron, e.Cron)
	setTo(&to.TimeZone, e.TimeZone)
	setTo(&to.CatchUp, e.CatchUp)
	setTo(&to.Given, e.Given)
	if e.Overlap != nil {
		to.Overlap = Overlap(*e.Overlap)
	}
	if to.Overlap != Skip && to.Overlap != Queue {
		note("overlap", "must be skip or queue")
	}
	zone, err := cron.Zone(to.TimeZone)
	if err != nil {
		note("timeZone", err.Error())
		zone = time.UTC
	}
	times, err := cron.Parse(to.Cron, zone)
	if err != nil {
		note("cron", err.Error())
	}
	if to.TimeZone == "" {
		to.TimeZone = "UTC"
	}
	if err := s.checked(ctx, to.Team, to.Workflow, to.Given, wrong); err != nil {
		return err
	}
	switch enabled := to.Enabled() && e.Enabled == nil || e.Enabled != nil && *e.Enabled; {
	case !enabled:
		to.NextAt = time.Time{}
	case timed || !to.Enabled():
		to.NextAt = times.Next(s.now())
	}
	if to.Enabled() {
		to.Paused = nil
	}
	return nil
}

// checked joins what is wrong already with what is wrong with what runs are to
// be given.
func (s *Service) checked(ctx context.Context, team ids.Team, workflow ids.Workflow, g Given, wrong []fault.Detail) error {
	err := s.runs.CheckGiven(ctx, team, g.of(workflow))
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Kind == fault.KindInvalid && len(e.Details) > 0 {
		wrong = append(wrong, e.Details...)
	} else if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fault.Problems(wrong, "%s", wrong[0].Sentence())
	}
	return nil
}

func setTo[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}
