package httpapi

import (
	"net/url"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/pages"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// authorizeDevice gives a terminal the codes to show and to poll with.
func (a *API) authorizeDevice(x *exchange) (answer, error) {
	_, client, err := a.clientForm(x)
	if err != nil {
		return answer{}, err
	}
	codes, err := a.BuiltIn.Devices.Start(x.ctx(), client, x.clientPrefix())
	if err != nil {
		return answer{}, err
	}
	page := x.base() + "/device"
	return answer{bare: true, data: api.DeviceAuthorization{
		DeviceCode: codes.Device, UserCode: codes.User, VerificationURI: page,
		VerificationURIComplete: page + "?user_code=" + url.QueryEscape(codes.User),
		ExpiresIn:               int(codes.Life.Seconds()), Interval: int(codes.Pause.Seconds()),
	}}, nil
}

// showDevice asks for the code or, when it came along, whether the device may
// come in: a link alone connects nothing.
func (a *API) showDevice(x *exchange) (answer, error) {
	if !x.presence.ByCookie {
		return x.toSignIn()
	}
	view := pages.Device{Person: x.person(), Code: builtin.UserCode(x.r.URL.Query().Get("user_code")), Stage: "ask"}
	if view.Code == "" {
		return x.draw("device", view)
	}
	client, err := a.BuiltIn.Devices.Find(x.ctx(), x.presence, view.Code, x.clientPrefix())
	switch {
	case err == nil:
		view.Client, view.Stage = client.Name, "confirm"
	case fault.Is(err, fault.KindNotFound):
		view.Problem = "No device waits with this code. Check it, or start again on the device."
	default:
		return answer{}, err
	}
	return x.draw("device", view)
}

func (a *API) decideDevice(x *exchange) (answer, error) {
	if !x.presence.ByCookie {
		return answer{}, fault.Unauthenticated("sign in first: only you can allow this, in your browser").WithCode("not_signed_in")
	}
	form, err := x.form()
	if err != nil {
		return answer{}, err
	}
	stage := map[string]string{"allow": "allowed", "deny": "denied"}[form.Get("decision")]
	if stage == "" {
		return answer{}, fault.Invalid("the decision is neither allow nor deny")
	}
	code := form.Get("user_code")
	client, err := a.BuiltIn.Devices.Find(x.ctx(), x.presence, code, x.clientPrefix())
	if err != nil {
		return answer{}, err
	}
	if err := a.BuiltIn.Devices.Decide(x.ctx(), x.presence, code, stage == "allowed"); err != nil {
		return answer{}, err
	}
	return x.draw("device", pages.Device{Person: x.person(), Client: client.Name, Stage: stage})
}
