package identity

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// Where the links in our mails lead.
func verifyLink(x *kernel.Exchange) func(token string) string {
	return func(token string) string { return x.Base() + "/verify/" + token }
}

func resetLink(x *kernel.Exchange) func(token string) string {
	return func(token string) string { return x.Base() + "/reset/" + token }
}

// VerifyEmail answers POST /auth/verify.
func (a *API) VerifyEmail(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.EmailVerification](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if in.Token != nil {
		err := a.BuiltIn.Recovery.Verify(x.Context(), *in.Token)
		return kernel.Answer{Data: api.EmailVerified{Verified: true}}, err
	}
	if !x.SignedIn() {
		return kernel.Answer{}, fault.Unauthenticated("sign in to request an email, or send the token from one").WithCode("not_signed_in")
	}
	sent, err := a.BuiltIn.Recovery.SendVerification(x.Context(), x.Presence, visit(x), verifyLink(x))
	return kernel.Answer{Data: api.EmailVerified{Verified: x.Presence.User.EmailVerified, Sent: sent}}, err
}

// RequestReset answers POST /auth/reset.
func (a *API) RequestReset(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.ResetRequest](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	err = a.BuiltIn.Recovery.RequestReset(x.Context(), string(in.Email), visit(x), resetLink(x))
	return kernel.Answer{Data: api.ResetSent{Sent: true}}, err
}

// ResetPassword answers POST /auth/reset/{token}.
func (a *API) ResetPassword(x *kernel.Exchange) (kernel.Answer, error) {
	token := x.Request.PathValue("token")
	if err := a.BuiltIn.Recovery.MayReset(x.Context(), token); err != nil {
		return kernel.Answer{}, err
	}
	in, err := kernel.Decode[api.PasswordReset](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	err = a.BuiltIn.Recovery.ResetPassword(x.Context(), token, string(in.Password))
	return kernel.Answer{Data: api.PasswordChanged{Changed: true}}, err
}

// ChangePassword answers POST /auth/password.
func (a *API) ChangePassword(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.PasswordChange](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	err = a.BuiltIn.Recovery.ChangePassword(x.Context(), x.Presence, in.CurrentPassword, string(in.NewPassword), x.ClientPrefix())
	return kernel.Answer{Data: api.PasswordChanged{Changed: true}}, err
}

// GetSecondFactor answers GET /auth/second-factor.
func (a *API) GetSecondFactor(x *kernel.Exchange) (kernel.Answer, error) {
	on, err := a.BuiltIn.SecondFactors.Enabled(x.Context(), x.Presence)
	return kernel.Answer{Data: api.SecondFactor{Enabled: on, RecoveryCodes: []string{}}}, err
}

// ChangeSecondFactor answers POST /auth/second-factor.
func (a *API) ChangeSecondFactor(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.SecondFactorChange](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := api.SecondFactor{RecoveryCodes: []string{}}
	switch in.Action {
	case "begin":
		begun, err := a.BuiltIn.SecondFactors.Begin(x.Context(), x.Presence, kernel.Value(in.Password), x.ClientPrefix())
		out.Secret, out.OtpauthURL = &begun.Secret, &begun.URL
		return kernel.Answer{Data: out}, err
	case "confirm":
		out.Enabled = true
		out.RecoveryCodes, err = a.BuiltIn.SecondFactors.Confirm(x.Context(), x.Presence, kernel.Value(in.Code), x.ClientPrefix())
		return kernel.Answer{Data: out}, err
	case "disable":
		err := a.BuiltIn.SecondFactors.Disable(x.Context(), x.Presence, kernel.Value(in.Password), kernel.Value(in.Code), x.ClientPrefix())
		return kernel.Answer{Data: out}, err
	}
	d := fault.Detail{Path: "action", Message: "is none of begin, confirm, disable"}
	return kernel.Answer{}, fault.Problems([]fault.Detail{d}, "%s", kernel.Sentence(d))
}
