package httpapi

import (
	"context"
	"net/http"

	"github.com/millrace/millrace/internal/domain/fault"
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
func (x *exchange) flight(value string) string {
	c := http.Cookie{
		Name: flightCookie, Value: value, Path: "/auth/oidc/", MaxAge: 600,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !loopback(x.base()),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c.String()
}

func (x *exchange) provider() (name, callback string) {
	name = x.r.PathValue("provider")
	return name, x.base() + "/auth/oidc/" + name + "/callback"
}

func (a *API) startProviderSignIn(x *exchange) (answer, error) {
	name, callback := x.provider()
	address, cookie, err := a.Providers.Start(x.ctx(), name, callback, ownPath(x.r.URL.Query().Get("returnTo")))
	if err != nil {
		return answer{}, err
	}
	ans, err := seeOther(address)
	return ans.with("Set-Cookie", x.flight(cookie)), err
}

func (a *API) finishProviderSignIn(x *exchange) (answer, error) {
	q := x.r.URL.Query()
	if err := saidOnce(q); err != nil {
		return answer{}, err
	}
	r := oidc.Return{State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"), Error: q.Get("error")}
	if c, err := x.r.Cookie(flightCookie); err == nil {
		r.Cookie = c.Value
	}
	x.w.Header().Add("Set-Cookie", x.flight("")) // it works once
	name, callback := x.provider()
	who, next, err := a.Providers.Finish(x.ctx(), name, callback, r)
	if err != nil {
		return answer{}, err
	}
	invitation, _, err := a.followed(x)
	if err != nil {
		return answer{}, err
	}
	in, oneTime, err := a.BuiltIn.Accounts.SignInExternal(x.ctx(), who, invitation, x.pageVisit())
	switch {
	case fault.Is(err, fault.KindConflict):
		return answer{}, fault.Unavailable("another sign-in is in progress: try again").WithCause(err)
	case err != nil:
		return answer{}, err
	case oneTime != "":
		return x.draw("second-factor", pages.SecondFactor{Form: pages.Form{Next: next}, OneTimeToken: oneTime}, a.leadsTo(x, next)...)
	}
	x.w.Header().Add("Set-Cookie", x.cookie(in.Secret, in.Until))
	return seeOther(next)
}
