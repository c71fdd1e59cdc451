package httpapi

import (
	"net/http"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// value is what a field holds, if it was sent.
func value[T any](sent *T) (v T) {
	if sent != nil {
		v = *sent
	}
	return v
}

// Where the links in our mails lead.
func (x *exchange) verifyLink(token string) string { return x.base() + "/verify/" + token }
func (x *exchange) resetLink(token string) string  { return x.base() + "/reset/" + token }

func (a *API) verifyEmail(x *exchange) (answer, error) {
	in, err := decode[api.EmailVerification](x)
	if err != nil {
		return answer{}, err
	}
	if in.Token != nil {
		err := a.BuiltIn.Recovery.Verify(x.ctx(), *in.Token)
		return answer{data: api.EmailVerified{Verified: true}}, err
	}
	if !x.signedIn() {
		return answer{}, fault.Unauthenticated("sign in to request an email, or send the token from one").WithCode("not_signed_in")
	}
	sent, err := a.BuiltIn.Recovery.SendVerification(x.ctx(), x.presence, x.visit(), x.verifyLink)
	return answer{data: api.EmailVerified{Verified: x.presence.User.EmailVerified, Sent: sent}}, err
}

func (a *API) requestReset(x *exchange) (answer, error) {
	in, err := decode[api.ResetRequest](x)
	if err != nil {
		return answer{}, err
	}
	err = a.BuiltIn.Recovery.RequestReset(x.ctx(), string(in.Email), x.visit(), x.resetLink)
	return answer{data: api.ResetSent{Sent: true}}, err
}

func (a *API) resetPassword(x *exchange) (answer, error) {
	token := x.r.PathValue("token")
	if err := a.BuiltIn.Recovery.MayReset(x.ctx(), token); err != nil {
		return answer{}, err
	}
	in, err := decode[api.PasswordReset](x)
	if err != nil {
		return answer{}, err
	}
	err = a.BuiltIn.Recovery.ResetPassword(x.ctx(), token, string(in.Password))
	return answer{data: api.PasswordChanged{Changed: true}}, err
}

func (a *API) changePassword(x *exchange) (answer, error) {
	in, err := decode[api.PasswordChange](x)
	if err != nil {
		return answer{}, err
	}
	err = a.BuiltIn.Recovery.ChangePassword(x.ctx(), x.presence, in.CurrentPassword, string(in.NewPassword), x.clientPrefix())
	return answer{data: api.PasswordChanged{Changed: true}}, err
}

func (a *API) changeSecondFactor(x *exchange) (answer, error) {
	in, err := decode[api.SecondFactorChange](x)
	if err != nil {
		return answer{}, err
	}
	out := api.SecondFactor{RecoveryCodes: []string{}}
	switch in.Action {
	case "begin":
		begun, err := a.BuiltIn.SecondFactors.Begin(x.ctx(), x.presence, value(in.Password), x.clientPrefix())
		out.Secret, out.OtpauthURL = &begun.Secret, &begun.URL
		return answer{data: out}, err
	case "confirm":
		out.Enabled = true
		out.RecoveryCodes, err = a.BuiltIn.SecondFactors.Confirm(x.ctx(), x.presence, value(in.Code), x.clientPrefix())
		return answer{data: out}, err
	case "disable":
		err := a.BuiltIn.SecondFactors.Disable(x.ctx(), x.presence, value(in.Password), value(in.Code), x.clientPrefix())
		return answer{data: out}, err
	}
	d := fault.Detail{Path: "action", Message: "is none of begin, confirm, disable"}
	return answer{}, fault.Problems([]fault.Detail{d}, "%s", sentence(d))
}

func apiToken(t builtin.APIToken) api.APIToken {
	out := api.APIToken{
		ID: t.ID, Name: t.Name, Team: api.InvitingTeam{ID: string(t.Team.ID), Name: t.Team.Name}, Role: api.Role(t.Role),
		TokenHint: t.Hint, CreatedAt: api.At(t.CreatedAt), ExpiresAt: api.At(t.ExpiresAt),
	}
	if !t.LastUsedAt.IsZero() {
		at := api.At(t.LastUsedAt)
		out.LastUsedAt = &at
	}
	return out
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
	in, err := decode[api.NewAPIToken](x)
	if err != nil {
		return answer{}, err
	}
	days := 90
	if in.ExpiresInDays != nil {
		days = *in.ExpiresInDays
	}
	t, secret, err := a.BuiltIn.APITokens.CreateAPIToken(x.ctx(), x.presence, m, builtin.NewAPIToken{
		Name: in.Name, Role: access.Role(value(in.Role)), Days: days,
	})
	shown := apiToken(t)
	return answer{status: http.StatusCreated, data: api.CreatedAPIToken{
		ID: shown.ID, Name: shown.Name, Team: shown.Team, Role: shown.Role, TokenHint: shown.TokenHint,
		CreatedAt: shown.CreatedAt, ExpiresAt: shown.ExpiresAt, Token: secret,
	}}, err
}

func (a *API) revokeAPIToken(x *exchange) (answer, error) {
	id, err := x.inQuery("id")
	if err != nil {
		return answer{}, err
	}
	err = a.BuiltIn.APITokens.RevokeAPIToken(x.ctx(), x.presence, id)
	return answer{data: api.Revoked{Revoked: true, ID: id}}, err
}
