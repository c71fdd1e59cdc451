package identity

import (
	"net/url"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/httpapi/pages"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// AuthorizeDevice gives a terminal the codes to show and to poll with.
func (a *API) AuthorizeDevice(x *kernel.Exchange) (kernel.Answer, error) {
	form, client, err := a.clientForm(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if err := builtin.CheckScope(form.Get("scope")); err != nil {
		return kernel.Answer{}, err
	}
	if len(builtin.ScopesAsked(form.Get("scope"))) > 0 { // it would get more than it asks for
		return kernel.Answer{}, fault.Invalid("a device gets the scope user: ask for that, or none").WithCode("invalid_scope")
	}
	codes, err := a.BuiltIn.Devices.Start(x.Context(), client, x.ClientPrefix())
	if err != nil {
		return kernel.Answer{}, err
	}
	page := x.Base() + "/device"
	return kernel.Answer{Bare: true, Data: api.DeviceAuthorization{
		DeviceCode: codes.Device, UserCode: codes.User, VerificationURI: page,
		VerificationURIComplete: page + "?user_code=" + url.QueryEscape(codes.User),
		ExpiresIn:               int(codes.Life.Seconds()), Interval: int(codes.Pause.Seconds()),
	}}, nil
}

// ShowDevice asks for the code or, when it came along, whether the device may
// come in: a link alone connects nothing.
func (a *API) ShowDevice(x *kernel.Exchange) (kernel.Answer, error) {
	if !x.Presence.ByCookie {
		return x.ToSignIn()
	}
	view := pages.Device{Person: x.Person(), Code: builtin.UserCode(x.Request.URL.Query().Get("user_code")), Stage: "ask"}
	if view.Code == "" {
		return x.DrawPage("device", view)
	}
	client, err := a.BuiltIn.Devices.Find(x.Context(), x.Presence, view.Code, x.ClientPrefix())
	switch {
	case err == nil:
		view.Client, view.Stage = client.Name, "confirm"
	case fault.Is(err, fault.KindNotFound):
		view.Problem = "No device is waiting for this code. Check it for typos, or start again on the device."
	default:
		return kernel.Answer{}, err
	}
	return x.DrawPage("device", view)
}

// DecideDevice answers POST /device.
func (a *API) DecideDevice(x *kernel.Exchange) (kernel.Answer, error) {
	if !x.Presence.ByCookie {
		return kernel.Answer{}, fault.Unauthenticated("sign in first: only you can allow this, in your browser").WithCode("not_signed_in")
	}
	form, err := x.Form()
	if err != nil {
		return kernel.Answer{}, err
	}
	stage := map[string]string{"allow": "allowed", "deny": "denied"}[form.Get("decision")]
	if stage == "" {
		return kernel.Answer{}, fault.Invalid("the decision is neither allow nor deny")
	}
	code := form.Get("user_code")
	client, err := a.BuiltIn.Devices.Find(x.Context(), x.Presence, code, x.ClientPrefix())
	if err != nil {
		return kernel.Answer{}, err
	}
	if err := a.BuiltIn.Devices.Decide(x.Context(), x.Presence, code, stage == "allowed"); err != nil {
		return kernel.Answer{}, err
	}
	return x.DrawPage("device", pages.Device{Person: x.Person(), Client: client.Name, Stage: stage})
}
