package identity

import (
	"context"
	"net/http"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/httpapi/pages"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/identity/oidc"
)

// Providers are where people may sign in instead.
type Providers interface {
	Names() []string
	Start(ctx context.Context, name, callback, next string) (address, cookie string, err error)
	Finish(ctx context.Context, name, callback string, r oidc.Return) (who builtin.ExternalIdentity, next string, err error)
}

const flightCookie = "millrace_sign_in"

// flight is the cookie of a sign-in that is under way elsewhere; an empty one
// takes it back. It must come along when another site sends the browser here.
func flight(x *kernel.Exchange, value string) string {
	c := http.Cookie{
		Name: flightCookie, Value: value, Path: "/auth/oidc/", MaxAge: 600,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !kernel.Loopback(x.Base()),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c.String()
}

func provider(x *kernel.Exchange) (name, callback string) {
	name = x.Request.PathValue("provider")
	return name, x.Base() + "/auth/oidc/" + name + "/callback"
}

// StartProviderSignIn answers GET /auth/oidc/{provider}/start.
func (a *API) StartProviderSignIn(x *kernel.Exchange) (kernel.Answer, error) {
	name, callback := provider(x)
	address, cookie, err := a.Providers.Start(x.Context(), name, callback, kernel.OwnPath(x.Request.URL.Query().Get("returnTo")))
	if err != nil {
		return kernel.Answer{}, err
	}
	ans, err := kernel.SeeOther(address)
	return ans.With("Set-Cookie", flight(x, cookie)), err
}

// FinishProviderSignIn answers GET /auth/oidc/{provider}/callback.
func (a *API) FinishProviderSignIn(x *kernel.Exchange) (kernel.Answer, error) {
	q := x.Request.URL.Query()
	if err := kernel.NotRepeated(q); err != nil {
		return kernel.Answer{}, err
	}
	r := oidc.Return{State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"), Error: q.Get("error")}
	if c, err := x.Request.Cookie(flightCookie); err == nil {
		r.Cookie = c.Value
	}
	x.Writer.Header().Add("Set-Cookie", flight(x, "")) // it works once
	name, callback := provider(x)
	who, next, err := a.Providers.Finish(x.Context(), name, callback, r)
	if err != nil {
		return kernel.Answer{}, err
	}
	invitation, invited, err := a.followed(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	in, oneTime, err := a.BuiltIn.Accounts.SignInExternal(x.Context(), who, invitation, pageVisit(x))
	switch {
	case fault.Is(err, fault.KindConflict):
		return kernel.Answer{}, fault.Unavailable("another sign-in is in progress: try again").WithCause(err)
	case err != nil:
		return kernel.Answer{}, err
	case oneTime != "":
		return x.DrawPage("second-factor", pages.SecondFactor{Form: pages.Form{Next: next}, OneTimeToken: oneTime}, a.leadsTo(x, next)...)
	}
	x.Writer.Header().Add("Set-Cookie", x.Cookie(in.Secret, in.Until))
	if invitation != "" && next == invitationsPath {
		// A new account has accepted it by signing up.
		open, _, err := a.followed(x)
		if err != nil {
			return kernel.Answer{}, err
		}
		if open == "" {
			next = joinedPath + string(invited.Team.ID)
		}
	}
	return kernel.SeeOther(next)
}
