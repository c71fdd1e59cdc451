package identity

import (
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/identity/builtin"
)

func apiToken(t builtin.APIToken) api.APIToken {
	out := api.APIToken{
		ID: t.ID, Name: t.Name, Team: api.InvitingTeam{ID: string(t.Team.ID), Name: t.Team.Name}, Role: api.Role(t.Role), Scopes: []api.Scope{},
		TokenHint: t.Hint, CreatedAt: api.At(t.CreatedAt), ExpiresAt: api.At(t.ExpiresAt), LastUsedAt: kernel.TimeOrNull(t.LastUsedAt), LastUsedFrom: kernel.OrNull(t.LastUsedFrom),
	}
	for _, s := range t.Scopes {
		out.Scopes = append(out.Scopes, api.Scope(s))
	}
	return out
}

// createdToken shows a token this once.
func createdToken(t builtin.APIToken, secret string) kernel.Answer {
	shown := apiToken(t)
	return kernel.Answer{Status: http.StatusCreated, Data: api.CreatedAPIToken{
		ID: shown.ID, Name: shown.Name, Team: shown.Team, Role: shown.Role, Scopes: shown.Scopes, TokenHint: shown.TokenHint,
		CreatedAt: shown.CreatedAt, ExpiresAt: shown.ExpiresAt, Token: secret,
	}}
}

// newToken reads what a token is to be.
func newToken(x *kernel.Exchange) (builtin.NewAPIToken, error) {
	in, err := kernel.Decode[api.NewAPIToken](x)
	if err != nil {
		return builtin.NewAPIToken{}, err
	}
	n := builtin.NewAPIToken{Name: in.Name, Role: access.Role(kernel.Value(in.Role)), Days: 90}
	if in.ExpiresInDays != nil {
		n.Days = *in.ExpiresInDays
	}
	for _, s := range in.Scopes {
		n.Scopes = append(n.Scopes, access.Scope(s))
	}
	if in.Scopes != nil && len(n.Scopes) == 0 { // none is no bound, which nobody means by it
		d := fault.Detail{Path: "scopes", Message: "name at least one, or leave the field out for all of the role"}
		return n, fault.Problems([]fault.Detail{d}, "%s", kernel.Sentence(d))
	}
	return n, nil
}

// overlap reads how long an old token works on.
func overlap(x *kernel.Exchange) (time.Duration, error) {
	in, err := kernel.Decode[api.TokenRotation](x)
	hours := 24
	if in.OverlapHours != nil {
		hours = *in.OverlapHours
	}
	return time.Duration(min(max(hours, -1), 1<<20)) * time.Hour, err
}

// ListAPITokens answers GET /auth/api-tokens.
func (a *API) ListAPITokens(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.BuiltIn.APITokens.APITokens(x.Context(), x.Presence)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.APIToken, len(list))
	for i, t := range list {
		out[i] = apiToken(t)
	}
	return kernel.OK(out)
}

// CreateAPIToken answers POST /auth/api-tokens.
func (a *API) CreateAPIToken(x *kernel.Exchange) (kernel.Answer, error) {
	m, err := x.Presence.Place(ids.Team(x.Request.Header.Get("X-Team-Id")))
	if err != nil {
		return kernel.Answer{}, err
	}
	in, err := newToken(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	t, secret, err := a.BuiltIn.APITokens.CreateAPIToken(x.Context(), x.Presence, m, in)
	return createdToken(t, secret), err
}

// oneOf refuses a token that is not among them, before the body is looked at.
func oneOf(list []builtin.APIToken, id string) error {
	if !slices.ContainsFunc(list, func(t builtin.APIToken) bool { return t.ID == id }) {
		return fault.NotFound("no such API token")
	}
	return nil
}

// RotateAPIToken answers POST /auth/api-tokens/{id}/rotate.
func (a *API) RotateAPIToken(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.BuiltIn.APITokens.APITokens(x.Context(), x.Presence)
	if err == nil {
		err = oneOf(list, x.Request.PathValue("id"))
	}
	if err != nil {
		return kernel.Answer{}, err
	}
	still, err := overlap(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	t, secret, err := a.BuiltIn.APITokens.RotateAPIToken(x.Context(), x.Presence, x.Request.PathValue("id"), still)
	return createdToken(t, secret), err
}

// RevokeAPIToken answers DELETE /auth/api-tokens.
func (a *API) RevokeAPIToken(x *kernel.Exchange) (kernel.Answer, error) {
	id, err := x.InQuery("id")
	if err != nil {
		return kernel.Answer{}, err
	}
	err = a.BuiltIn.APITokens.RevokeAPIToken(x.Context(), x.Presence, id)
	return kernel.Answer{Data: api.Revoked{Revoked: true, ID: id}}, err
}

func serviceAccountOut(s builtin.ServiceAccount) api.ServiceAccount {
	out := api.ServiceAccount{ID: string(s.ID), Name: s.Name, Role: api.Role(s.Role), CreatedBy: s.MadeBy, CreatedAt: api.At(s.CreatedAt), Tokens: []api.APIToken{}}
	for _, t := range s.Tokens {
		out.Tokens = append(out.Tokens, apiToken(t))
	}
	return out
}

// ListServiceAccounts answers GET /api/service-accounts.
func (a *API) ListServiceAccounts(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.BuiltIn.Programs.ServiceAccounts(x.Context(), x.Caller)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.ServiceAccount, len(list))
	for i, s := range list {
		out[i] = serviceAccountOut(s)
	}
	return kernel.OK(out)
}

// CreateServiceAccount answers POST /api/service-accounts.
func (a *API) CreateServiceAccount(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NewServiceAccount](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	s, err := a.BuiltIn.Programs.CreateServiceAccount(x.Context(), x.Caller, in.Name, access.Role(kernel.Value(in.Role)))
	return kernel.Answer{Status: http.StatusCreated, Data: serviceAccountOut(s)}, err
}

// serviceAccount is the one that the path names.
func serviceAccount(x *kernel.Exchange) ids.User { return ids.User(x.Request.PathValue("id")) }

// DeleteServiceAccount answers DELETE /api/service-accounts/{id}.
func (a *API) DeleteServiceAccount(x *kernel.Exchange) (kernel.Answer, error) {
	err := a.BuiltIn.Programs.DeleteServiceAccount(x.Context(), x.Caller, serviceAccount(x))
	return kernel.Answer{Data: api.Revoked{Revoked: true, ID: x.Request.PathValue("id")}}, err
}

// CreateServiceToken answers POST /api/service-accounts/{id}/tokens.
func (a *API) CreateServiceToken(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.BuiltIn.Programs.ServiceAccount(x.Context(), x.Caller, serviceAccount(x)); err != nil {
		return kernel.Answer{}, err
	}
	in, err := newToken(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	t, secret, err := a.BuiltIn.Programs.CreateServiceToken(x.Context(), x.Caller, x.Membership.Team, serviceAccount(x), in)
	return createdToken(t, secret), err
}

// RevokeServiceToken answers DELETE /api/service-accounts/{id}/tokens/{tokenId}.
func (a *API) RevokeServiceToken(x *kernel.Exchange) (kernel.Answer, error) {
	id := x.Request.PathValue("tokenId")
	err := a.BuiltIn.Programs.RevokeServiceToken(x.Context(), x.Caller, serviceAccount(x), id)
	return kernel.Answer{Data: api.Revoked{Revoked: true, ID: id}}, err
}

// RotateServiceToken answers POST /api/service-accounts/{id}/tokens/{tokenId}/rotate.
func (a *API) RotateServiceToken(x *kernel.Exchange) (kernel.Answer, error) {
	account, err := a.BuiltIn.Programs.ServiceAccount(x.Context(), x.Caller, serviceAccount(x))
	if err == nil {
		err = oneOf(account.Tokens, x.Request.PathValue("tokenId"))
	}
	if err != nil {
		return kernel.Answer{}, err
	}
	still, err := overlap(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	t, secret, err := a.BuiltIn.Programs.RotateServiceToken(x.Context(), x.Caller, serviceAccount(x), x.Request.PathValue("tokenId"), still)
	return createdToken(t, secret), err
}
