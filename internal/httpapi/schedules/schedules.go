package schedules

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/outputto"
	"github.com/millrace/millrace/internal/runs/schedules"
)

// ScheduleOut is a schedule as the API shows it.
func ScheduleOut(s schedules.Schedule) api.Schedule {
	out := api.Schedule{
		ID: string(s.ID), WorkflowID: string(s.Workflow), Cron: s.Cron, TimeZone: s.TimeZone, Enabled: s.Enabled(), Overlap: string(s.Overlap), CatchUp: s.CatchUp,
		NextTimes: []api.Time{}, CreatedBy: api.Person{ID: string(s.CreatedBy), Name: s.CreatedByName}, CreatedAt: api.At(s.CreatedAt), UpdatedAt: api.At(s.UpdatedAt),
		Firings: []api.ScheduleFiring{},
	}
	out.Parameters, out.Inputs, out.Compute, out.OutputTo = givenOut(s.Given)
	for _, at := range s.NextTimes() {
		out.NextTimes = append(out.NextTimes, api.At(at))
	}
	if p := s.Paused; p != nil {
		out.Paused = &api.SchedulePause{Code: p.Code, Message: p.Message, At: api.At(p.At)}
	}
	for _, f := range s.Firings {
		out.Firings = append(out.Firings, api.ScheduleFiring{
			DueAt: api.At(f.Due), Outcome: string(f.Outcome), RunID: kernel.OrNull(string(f.Run)), Message: kernel.OrNull(f.Message), Times: f.Times,
		})
	}
	return out
}

// givenOut shows what runs are given.
func givenOut(g schedules.Given) (p api.Parameters, inputs map[string]json.RawMessage, c api.Compute, to *api.OutputTarget) {
	p, inputs = api.Parameters{}, g.Inputs
	if inputs == nil {
		inputs = map[string]json.RawMessage{}
	}
	if len(g.Parameters) > 0 {
		_ = json.Unmarshal(g.Parameters, &p) // an object when it was taken
	}
	size, _ := credits.Resolve(g.Custom, g.Profile)
	if g.OutputTo != nil {
		to = &api.OutputTarget{URL: g.OutputTo.URL, Connection: string(g.OutputTo.Connection)}
	}
	return p, inputs, api.Compute{Vcpu: size.VCPU, RAMGb: size.RAMGB, Gpu: size.GPU}, to
}

// ListSchedules answers GET /api/workflows/{id}/schedules.
func (a *API) ListSchedules(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.Workflows.Workflow(x.Context(), x.Caller, workflow(x)); err != nil {
		return kernel.Answer{}, err
	}
	list, err := a.Schedules.Schedules(x.Context(), x.Caller, workflow(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.Schedule, len(list))
	for i, s := range list {
		out[i] = ScheduleOut(s)
	}
	return kernel.OK(out)
}

// CreateSchedule answers POST /api/workflows/{id}/schedules.
func (a *API) CreateSchedule(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.Workflows.Workflow(x.Context(), x.Caller, workflow(x)); err != nil {
		return kernel.Answer{}, err
	}
	in, err := kernel.Decode[api.NewSchedule](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	given, err := givenIn(in.Parameters, in.Inputs, in.Compute, in.ResourceProfile, in.OutputTo)
	if err != nil {
		return kernel.Answer{}, err
	}
	s, err := a.Schedules.Create(x.Context(), x.Caller, workflow(x), schedules.Edit{
		Cron: &in.Cron, TimeZone: in.TimeZone, Given: &given, Enabled: in.Enabled, Overlap: in.Overlap, CatchUp: in.CatchUp,
	})
	return kernel.Answer{Status: http.StatusCreated, Data: ScheduleOut(s)}, err
}

// ChangeSchedule answers PATCH /api/workflows/{id}/schedules/{scheduleId}.
func (a *API) ChangeSchedule(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.Workflows.Workflow(x.Context(), x.Caller, workflow(x)); err != nil {
		return kernel.Answer{}, err
	}
	in, err := kernel.Decode[api.ScheduleEdit](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	e := schedules.Edit{Cron: in.Cron, TimeZone: in.TimeZone, Enabled: in.Enabled, Overlap: in.Overlap, CatchUp: in.CatchUp}
	if in.Parameters != nil || in.Inputs != nil || in.Compute != nil || in.ResourceProfile != nil || in.OutputTo != nil {
		given, err := givenIn(in.Parameters, in.Inputs, in.Compute, in.ResourceProfile, in.OutputTo)
		if err != nil {
			return kernel.Answer{}, err
		}
		e.Given = &given
	}
	s, err := a.Schedules.Change(x.Context(), x.Caller, workflow(x), ids.Schedule(x.Request.PathValue("scheduleId")), e)
	return kernel.Answer{Data: ScheduleOut(s)}, err
}

// DeleteSchedule answers DELETE /api/workflows/{id}/schedules/{scheduleId}.
func (a *API) DeleteSchedule(x *kernel.Exchange) (kernel.Answer, error) {
	id := x.Request.PathValue("scheduleId")
	err := a.Schedules.Delete(x.Context(), x.Caller, workflow(x), ids.Schedule(id))
	return kernel.Answer{Data: api.Deleted{Deleted: true, ID: id}}, err
}

// givenIn reads what runs are to be given.
func givenIn(p api.Parameters, inputs map[string]json.RawMessage, c *api.ComputeSize, profile *api.ResourceProfile, to *api.OutputTarget) (schedules.Given, error) {
	g := schedules.Given{Inputs: inputs, Parameters: []byte("{}")}
	if c != nil {
		g.Custom = &credits.Custom{VCPU: c.Vcpu, RAMGB: c.RAMGb}
	}
	if profile != nil {
		g.Profile = string(*profile)
	}
	if to != nil {
		g.OutputTo = &outputto.Target{URL: to.URL, Connection: ids.Connection(to.Connection)}
	}
	var err error
	if p != nil {
		g.Parameters, err = json.Marshal(p)
	}
	return g, err
}

// TriggerOut is a trigger, without its address, as the API shows it.
func TriggerOut(t schedules.Trigger) api.Trigger {
	out := api.Trigger{
		ID: string(t.ID), WorkflowID: string(t.Workflow), Action: t.Action, Map: t.Map, Signed: t.Signed, TokenHint: t.TokenHint,
		CreatedBy: api.Person{ID: string(t.CreatedBy), Name: t.CreatedByName}, CreatedAt: api.At(t.CreatedAt),
		LastUsedAt: kernel.TimeOrNull(t.LastUsedAt), LastRunID: kernel.OrNull(string(t.LastRun)),
	}
	out.Parameters, out.Inputs, out.Compute, out.OutputTo = givenOut(t.Given)
	return out
}

func createdTrigger(x *kernel.Exchange, t schedules.Trigger, token string) kernel.Answer {
	o := TriggerOut(t)
	return kernel.Answer{Status: http.StatusCreated, Data: api.CreatedTrigger{
		ID: o.ID, WorkflowID: o.WorkflowID, Action: o.Action, Parameters: o.Parameters, Inputs: o.Inputs, Compute: o.Compute, OutputTo: o.OutputTo, Map: o.Map, Signed: o.Signed,
		TokenHint: o.TokenHint, CreatedBy: o.CreatedBy, CreatedAt: o.CreatedAt, LastUsedAt: o.LastUsedAt, LastRunID: o.LastRunID,
		Token: token, URL: x.Base() + "/hooks/" + token,
	}}
}

// ListTriggers answers GET /api/workflows/{id}/triggers.
func (a *API) ListTriggers(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.Workflows.Workflow(x.Context(), x.Caller, workflow(x)); err != nil {
		return kernel.Answer{}, err
	}
	list, err := a.Schedules.Triggers(x.Context(), x.Caller, workflow(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.Trigger, len(list))
	for i, t := range list {
		out[i] = TriggerOut(t)
	}
	return kernel.OK(out)
}

// CreateTrigger answers POST /api/workflows/{id}/triggers.
func (a *API) CreateTrigger(x *kernel.Exchange) (kernel.Answer, error) {
	w, err := a.Workflows.Workflow(x.Context(), x.Caller, workflow(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	in, err := kernel.Decode[api.NewTrigger](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	given, err := givenIn(in.Parameters, in.Inputs, in.Compute, in.ResourceProfile, in.OutputTo)
	if err != nil {
		return kernel.Answer{}, err
	}
	t, token, err := a.Schedules.CreateTrigger(x.Context(), x.Caller, workflow(x), schedules.NewTrigger{
		Action: kernel.OrEmpty(in.Action), Given: given, Map: in.Map, Secret: kernel.OrEmpty(in.Secret), Git: w.Git != nil,
		Once: func(t schedules.Trigger, token string) (*access.IdempotencyRecord, error) {
			return x.Record(createdTrigger(x, t, token))
		},
	})
	return createdTrigger(x, t, token), err
}

// DeleteTrigger answers DELETE /api/workflows/{id}/triggers/{triggerId}.
func (a *API) DeleteTrigger(x *kernel.Exchange) (kernel.Answer, error) {
	id := x.Request.PathValue("triggerId")
	err := a.Schedules.DeleteTrigger(x.Context(), x.Caller, workflow(x), ids.Trigger(id))
	return kernel.Answer{Data: api.Deleted{Deleted: true, ID: id}}, err
}

func workflow(x *kernel.Exchange) ids.Workflow { return ids.Workflow(x.Request.PathValue("id")) }

// triggerWindow is how often one trigger may be called.
var triggerWindow = limits.Window{Most: 30, Per: time.Minute}

// CallTrigger answers POST /hooks/{token}: it starts a run, or has the workflow
// refreshed, for whoever has the address.
func (a *API) CallTrigger(x *kernel.Exchange) (kernel.Answer, error) {
	t, err := a.Schedules.Called(x.Context(), x.Request.PathValue("token"))
	if err != nil {
		return kernel.Answer{}, err
	}
	rule := limits.Rule{Name: "hooks", Bucket: "hook " + string(t.ID), Window: triggerWindow}
	s, err := a.Limiter.TakeHit(x.Context(), rule.Bucket, rule.Window, a.Now())
	if err != nil {
		return kernel.Answer{}, err
	}
	if x.CountedBy(rule, s); !s.Allowed {
		return kernel.Answer{}, fault.Limited(s.Reset, "a trigger is called at most %d times a minute; wait and try again", triggerWindow.Most)
	}
	if err := t.Verify(x.Body, x.Request.Header.Get("X-Hub-Signature-256")); err != nil {
		return kernel.Answer{}, err
	}
	if d := audit.From(x.Context()); d != nil {
		if t.Action == schedules.ActionRefresh {
			d.Action = "workflow.refresh_requested"
		}
		d.Actor = audit.Actor{Type: "system", ID: string(t.ID), Name: "a trigger of " + t.CreatedByName}
	}
	call := func(x *kernel.Exchange) (kernel.Answer, error) {
		if t.Action == schedules.ActionRefresh {
			return a.refresh(x, t)
		}
		r, err := a.Schedules.Fire(x.Context(), t, x.Body, func(r runs.Run) (*access.IdempotencyRecord, error) { return x.Record(triggered(r)) })
		return triggered(r), err
	}
	for _, header := range []string{"Idempotency-Key", "Webhook-Id"} {
		if values, given := x.Request.Header[header]; given {
			return x.OnceFor(string(t.ID)+" "+string(t.Team), header, values[0], call)
		}
	}
	return call(x)
}

func (a *API) refresh(x *kernel.Exchange, t schedules.Trigger) (kernel.Answer, error) {
	asked := triggered(runs.Run{})
	record, err := x.Record(asked)
	if err == nil {
		err = a.Schedules.Refresh(x.Context(), t, record)
	}
	return asked, err
}

// triggered is the answer to a call; what started no run has no id.
func triggered(r runs.Run) kernel.Answer {
	return kernel.Answer{Status: http.StatusAccepted, Data: api.TriggeredRun{RunID: kernel.OrNull(string(r.ID))}}
}
