package operator

import (
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/operator"
)

// TestMailLimit keeps an operator from flooding themselves.
var TestMailLimit = &kernel.AddressLimit{Name: "test-mails", Window: limits.Window{Most: 10, Per: time.Minute}}

var done = kernel.Answer{Data: api.OperatorDone{Done: true}}

func team(x *kernel.Exchange) ids.Team { return ids.Team(x.Request.PathValue("id")) }

// Grant answers POST /api/operator/teams/{id}/grant.
func (a *API) Grant(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.OperatorGrant](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	amount, err := credits.FromFloat(in.Credits)
	if err != nil {
		return kernel.Answer{}, kernel.Wrong("credits", "is not a number of credits")
	}
	reason := kernel.OrEmpty(in.Reason)
	if !kernel.Printable(reason) {
		return kernel.Answer{}, kernel.Wrong("reason", "must be one line of text")
	}
	once, err := x.Record(done)
	if err != nil {
		return kernel.Answer{}, err
	}
	return done, a.Operator.Grant(x.Context(), operator.Grant{Team: team(x), Credits: amount, Reason: reason, Once: once})
}

// SetPlan answers POST /api/operator/teams/{id}/plan.
func (a *API) SetPlan(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.OperatorPlan](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	return done, a.Operator.SetPlan(x.Context(), team(x), credits.Plan(in.Plan))
}

// Suspend answers POST /api/operator/teams/{id}/suspend.
func (a *API) Suspend(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.OperatorSuspension](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	return done, a.Operator.Suspend(x.Context(), team(x), in.Suspended == nil || *in.Suspended)
}

// Drain answers POST /api/operator/workers/drain.
func (a *API) Drain(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.OperatorDrain](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if !kernel.Printable(in.Worker) {
		return kernel.Answer{}, fault.NotFound("there is no such worker")
	}
	return done, a.Operator.Drain(x.Context(), in.Worker, in.Draining == nil || *in.Draining)
}

// EndRun answers POST /api/operator/runs/{id}/end.
func (a *API) EndRun(x *kernel.Exchange) (kernel.Answer, error) {
	status, err := a.Operator.End(x.Context(), ids.Run(x.Request.PathValue("id")))
	return kernel.Answer{Data: api.OperatorEnded{ID: x.Request.PathValue("id"), Status: api.RunStatus(status)}}, err
}

// TestMail answers POST /api/operator/mail/test.
func (a *API) TestMail(x *kernel.Exchange) (kernel.Answer, error) {
	return done, a.Operator.TestMail(x.Context(), x.Presence.User.Email)
}
