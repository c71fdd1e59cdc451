package operator

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/operator"
)

func personOut(p operator.Person) api.OperatorUser {
	out := api.OperatorUser{
		ID: string(p.ID), Name: p.Name, Email: p.Email, EmailVerified: p.EmailVerified, Teams: make([]api.OperatorUserTeam, len(p.Teams)), Operator: p.Operator,
		SecondFactor: p.SecondFactor, CreatedAt: api.At(p.CreatedAt), SuspendedAt: kernel.TimeOrNull(p.SuspendedAt), LastSeenAt: kernel.TimeOrNull(p.SeenAt),
	}
	for i, t := range p.Teams {
		out.Teams[i] = api.OperatorUserTeam{ID: string(t.ID), Name: t.Name, Role: api.Role(t.Role)}
	}
	return out
}

// People answers GET /api/operator/users.
func (a *API) People(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, listMost, listDefault)
	if err != nil {
		return kernel.Answer{}, err
	}
	before, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	list, more, err := a.Operator.People(x.Context(), x.Request.URL.Query().Get("q"), ids.User(before), limit)
	out := make([]api.OperatorUser, len(list))
	for i, p := range list {
		out[i] = personOut(p)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = kernel.AsCursor(string(list[limit-1].ID))
	}
	return kernel.Answer{Data: out, Page: page}, err
}

// person is whom the path names.
func person(x *kernel.Exchange) (ids.User, error) {
	id := x.Request.PathValue("id")
	if !kernel.Printable(id) {
		return "", fault.NotFound("there is no such account")
	}
	return ids.User(id), nil
}

// SuspendPerson answers POST /api/operator/users/{id}/suspend.
func (a *API) SuspendPerson(x *kernel.Exchange) (kernel.Answer, error) {
	return a.setSuspended(x, true)
}

// ResumePerson answers POST /api/operator/users/{id}/resume.
func (a *API) ResumePerson(x *kernel.Exchange) (kernel.Answer, error) {
	return a.setSuspended(x, false)
}

func (a *API) setSuspended(x *kernel.Exchange, yes bool) (kernel.Answer, error) {
	id, err := person(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	return done, a.Operator.SuspendPerson(x.Context(), x.Presence.User.ID, id, yes)
}

// ResetSecondFactor answers POST /api/operator/users/{id}/reset-second-factor.
func (a *API) ResetSecondFactor(x *kernel.Exchange) (kernel.Answer, error) {
	id, err := person(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	return done, a.Operator.ResetSecondFactor(x.Context(), id)
}

// DeletePerson answers DELETE /api/operator/users/{id}.
func (a *API) DeletePerson(x *kernel.Exchange) (kernel.Answer, error) {
	id, err := person(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	erased, err := a.Operator.DeletePerson(x.Context(), x.Presence.User.ID, id)
	out := api.DeletedAccount{Deleted: true, ID: string(id), ErasedTeams: make([]string, len(erased))}
	for i, team := range erased {
		out.ErasedTeams[i] = string(team)
	}
	return kernel.Answer{Data: out}, err
}
