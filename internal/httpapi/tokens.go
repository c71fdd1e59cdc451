package httpapi

import (
	"net/http"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/builtin"
)

func apiToken(t builtin.APIToken) api.APIToken {
	out := api.APIToken{
		ID: t.ID, Name: t.Name, Team: api.InvitingTeam{ID: string(t.Team.ID), Name: t.Team.Name}, Role: api.Role(t.Role), Scopes: []api.Scope{},
		TokenHint: t.Hint, CreatedAt: api.At(t.CreatedAt), ExpiresAt: api.At(t.ExpiresAt), LastUsedAt: timeOrNull(t.LastUsedAt), LastUsedFrom: orNull(t.LastUsedFrom),
	}
	for _, s := range t.Scopes {
		out.Scopes = append(out.Scopes, api.Scope(s))
	}
	return out
}

// createdToken shows a token this once.
func createdToken(t builtin.APIToken, secret string) answer {
	shown := apiToken(t)
	return answer{status: http.StatusCreated, data: api.CreatedAPIToken{
		ID: shown.ID, Name: shown.Name, Team: shown.Team, Role: shown.Role, Scopes: shown.Scopes, TokenHint: shown.TokenHint,
		CreatedAt: shown.CreatedAt, ExpiresAt: shown.ExpiresAt, Token: secret,
	}}
}

// newToken reads what a token is to be.
func newToken(x *exchange) (builtin.NewAPIToken, error) {
	in, err := decode[api.NewAPIToken](x)
	if err != nil {
		return builtin.NewAPIToken{}, err
	}
	n := builtin.NewAPIToken{Name: in.Name, Role: access.Role(value(in.Role)), Days: 90}
	if in.ExpiresInDays != nil {
		n.Days = *in.ExpiresInDays
	}
	for _, s := range in.Scopes {
		n.Scopes = append(n.Scopes, access.Scope(s))
	}
	if in.Scopes != nil && len(n.Scopes) == 0 { // none is no bound, which nobody means by it
		d := fault.Detail{Path: "scopes", Message: "name at least one, or leave the field out for all of the role"}
		return n, fault.Problems([]fault.Detail{d}, "%s", sentence(d))
	}
	return n, nil
}

// overlap reads how long an old token works on.
func overlap(x *exchange) (time.Duration, error) {
	in, err := decode[api.TokenRotation](x)
	hours := 24
	if in.OverlapHours != nil {
		hours = *in.OverlapHours
	}
	return time.Duration(min(max(hours, -1), 1<<20)) * time.Hour, err
}

func (a *API) listAPITokens(x *exchange) (answer, error) {
	list, err := a.BuiltIn.APITokens.APITokens(x.ctx(), x.presence)
	if err != nil {
		return answer{}, err
	}
	out := make([]api.APIToken, len(list))
	for i, t := range list {
		out[i] = apiToken(t)
	}
	return ok(out)
}

func (a *API) createAPIToken(x *exchange) (answer, error) {
	m, err := x.presence.Place(ids.Team(x.r.Header.Get("X-Team-Id")))
	if err != nil {
		return answer{}, err
	}
	in, err := newToken(x)
	if err != nil {
		return answer{}, err
	}
	t, secret, err := a.BuiltIn.APITokens.CreateAPIToken(x.ctx(), x.presence, m, in)
	return createdToken(t, secret), err
}

func (a *API) rotateAPIToken(x *exchange) (answer, error) {
	still, err := overlap(x)
	if err != nil {
		return answer{}, err
	}
	t, secret, err := a.BuiltIn.APITokens.RotateAPIToken(x.ctx(), x.presence, x.r.PathValue("id"), still)
	return createdToken(t, secret), err
}

func (a *API) revokeAPIToken(x *exchange) (answer, error) {
	id, err := x.inQuery("id")
	if err != nil {
		return answer{}, err
	}
	err = a.BuiltIn.APITokens.RevokeAPIToken(x.ctx(), x.presence, id)
	return answer{data: api.Revoked{Revoked: true, ID: id}}, err
}

func serviceAccountOut(s builtin.ServiceAccount) api.ServiceAccount {
	out := api.ServiceAccount{ID: string(s.ID), Name: s.Name, Role: api.Role(s.Role), CreatedBy: s.MadeBy, CreatedAt: api.At(s.CreatedAt), Tokens: []api.APIToken{}}
	for _, t := range s.Tokens {
		out.Tokens = append(out.Tokens, apiToken(t))
	}
	return out
}

func (a *API) listServiceAccounts(x *exchange) (answer, error) {
	list, err := a.BuiltIn.Programs.ServiceAccounts(x.ctx(), x.caller)
	if err != nil {
		return answer{}, err
	}
	out := make([]api.ServiceAccount, len(list))
	for i, s := range list {
		out[i] = serviceAccountOut(s)
	}
	return ok(out)
}

func (a *API) createServiceAccount(x *exchange) (answer, error) {
	in, err := decode[api.NewServiceAccount](x)
	if err != nil {
		return answer{}, err
	}
	s, err := a.BuiltIn.Programs.CreateServiceAccount(x.ctx(), x.caller, in.Name, access.Role(value(in.Role)))
	return answer{status: http.StatusCreated, data: serviceAccountOut(s)}, err
}

// serviceAccount is the one that the path names.
func (x *exchange) serviceAccount() ids.User { return ids.User(x.r.PathValue("id")) }

func (a *API) deleteServiceAccount(x *exchange) (answer, error) {
	err := a.BuiltIn.Programs.DeleteServiceAccount(x.ctx(), x.caller, x.serviceAccount())
	return answer{data: api.Revoked{Revoked: true, ID: x.r.PathValue("id")}}, err
}

func (a *API) createServiceToken(x *exchange) (answer, error) {
	in, err := newToken(x)
	if err != nil {
		return answer{}, err
	}
	t, secret, err := a.BuiltIn.Programs.CreateServiceToken(x.ctx(), x.caller, x.membership.Team, x.serviceAccount(), in)
	return createdToken(t, secret), err
}

func (a *API) revokeServiceToken(x *exchange) (answer, error) {
	id := x.r.PathValue("tokenId")
	err := a.BuiltIn.Programs.RevokeServiceToken(x.ctx(), x.caller, x.serviceAccount(), id)
	return answer{data: api.Revoked{Revoked: true, ID: id}}, err
}

func (a *API) rotateServiceToken(x *exchange) (answer, error) {
	still, err := overlap(x)
	if err != nil {
		return answer{}, err
	}
	t, secret, err := a.BuiltIn.Programs.RotateServiceToken(x.ctx(), x.caller, x.serviceAccount(), x.r.PathValue("tokenId"), still)
	return createdToken(t, secret), err
}
