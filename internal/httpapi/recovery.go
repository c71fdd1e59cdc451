package httpapi

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
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
