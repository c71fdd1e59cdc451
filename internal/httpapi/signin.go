package httpapi

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/pages"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// pageVisit is where a sign-in on one of our own pages comes from. A form does
// not always say its origin; it is ours.
func (x *exchange) pageVisit() builtin.Visit {
	v := x.visit()
	v.Origin = x.base()
	return v
}

// leadsTo is where a form that goes on to next may end: a client that waits
// for its answer.
func (a *API) leadsTo(x *exchange, next string) []string {
	u, err := url.Parse(next)
	if err != nil || u.Path != "/oauth/authorize" {
		return nil
	}
	r := builtin.AuthorizationRequest{ClientID: u.Query().Get("client_id"), RedirectURI: u.Query().Get("redirect_uri")}
	if _, err := a.BuiltIn.OAuth.AskingClient(x.ctx(), r); err != nil {
		return nil
	}
	return []string{formTarget(r.RedirectURI)}
}

// again draws a form with what was wrong with it; what is not the person's to
// mend stays an error.
func again(f *pages.Form, problem error, draw func() (answer, error)) (answer, error) {
	e, foreseen := errors.AsType[*fault.Error](problem)
	if !foreseen {
		return answer{}, problem
	}
	f.Problem, f.Wrong = sentenceCase(e.Message), map[string]string{}
	for _, d := range e.Details {
		f.Wrong[d.Path] = sentenceCase(sentence(d))
	}
	if len(f.Wrong) > 0 {
		f.Problem = ""
	}
	ans, err := draw()
	ans.status = statusOf[e.Kind]
	return ans, err
}

func (a *API) showSignIn(x *exchange) (answer, error) {
	next := ownPath(x.r.URL.Query().Get("next"))
	if x.presence.ByCookie {
		return seeOther(next)
	}
	return a.drawSignIn(x, pages.SignIn{Form: pages.Form{Next: next}})
}

func (a *API) drawSignIn(x *exchange, view pages.SignIn) (answer, error) {
	view.MaySign = a.BuiltIn.SignUp == builtin.SignUpOpen || view.Next == invitationsPath
	view.Providers = a.Providers.Names()
	return x.draw("sign-in", view, a.leadsTo(x, view.Next)...)
}

func (a *API) takeSignIn(x *exchange) (answer, error) {
	form, err := x.form()
	if err != nil {
		return answer{}, err
	}
	view := pages.SignIn{Form: pages.Form{Next: ownPath(form.Get("next"))}, Email: form.Get("email")}
	in, oneTime, err := a.BuiltIn.Accounts.BeginSignIn(x.ctx(), view.Email, form.Get("password"), x.pageVisit())
	switch {
	case err != nil:
		return again(&view.Form, err, func() (answer, error) { return a.drawSignIn(x, view) })
	case oneTime != "":
		return x.draw("second-factor", pages.SecondFactor{Form: view.Form, OneTimeToken: oneTime}, a.leadsTo(x, view.Next)...)
	}
	return x.enter(in, view.Next)
}

// enter goes on with a fresh session.
func (x *exchange) enter(in builtin.SignedIn, next string) (answer, error) {
	ans, err := seeOther(next)
	return ans.with("Set-Cookie", x.cookie(in.Secret, in.Until)), err
}

func (a *API) takeCode(x *exchange) (answer, error) {
	form, err := x.form()
	if err != nil {
		return answer{}, err
	}
	view := pages.SecondFactor{Form: pages.Form{Next: ownPath(form.Get("next"))}, OneTimeToken: form.Get("token")}
	in, err := a.BuiltIn.Accounts.FinishSignIn(x.ctx(), view.OneTimeToken, form.Get("code"), x.pageVisit())
	if err == nil {
		return x.enter(in, view.Next)
	}
	if fault.Is(err, fault.KindNotFound) {
		return seeOther("/sign-in?next=" + url.QueryEscape(view.Next)) // took too long
	}
	return again(&view.Form, err, func() (answer, error) { return x.draw("second-factor", view, a.leadsTo(x, view.Next)...) })
}

// followed is the invitation whose link this browser came by.
func (a *API) followed(x *exchange) (token string, inv identity.Invitation, err error) {
	c, err := x.r.Cookie(invitationCookie)
	if err != nil {
		return "", inv, nil //nolint:nilerr // it followed none
	}
	inv, err = a.BuiltIn.Invitations.Find(x.ctx(), c.Value)
	if fault.Is(err, fault.KindNotFound) || err == nil && inv.Status(a.Now()) != identity.Pending {
		return "", identity.Invitation{}, nil
	}
	return c.Value, inv, err
}

func (a *API) showSignUp(x *exchange) (answer, error) {
	return a.drawSignUp(x, pages.SignUp{Form: pages.Form{Next: ownPath(x.r.URL.Query().Get("next"))}})
}

func (a *API) drawSignUp(x *exchange, view pages.SignUp) (answer, error) {
	token, inv, err := a.followed(x)
	if err != nil {
		return answer{}, err
	}
	if token != "" && view.Next == invitationsPath {
		view.Invited, view.Team, view.Email = true, inv.Team.Name, inv.Email
	}
	switch policy := a.BuiltIn.SignUp; {
	case policy == builtin.SignUpClosed:
		view.Closed = "Accounts are made by the operator of this server."
	case policy == builtin.SignUpInvite && !view.Invited:
		view.Closed = "Signing up here needs an invitation: ask a team for one and follow the link in its mail."
	}
	return x.draw("sign-up", view, a.leadsTo(x, view.Next)...)
}

func (a *API) takeSignUp(x *exchange) (answer, error) {
	form, err := x.form()
	if err != nil {
		return answer{}, err
	}
	view := pages.SignUp{Form: pages.Form{Next: ownPath(form.Get("next"))}, Name: form.Get("name"), Email: form.Get("email")}
	in := builtin.SignUp{Email: view.Email, Password: form.Get("password"), Name: view.Name, VerifyLink: x.verifyLink}
	if view.Next == invitationsPath {
		if in.Invitation, _, err = a.followed(x); err != nil {
			return answer{}, err
		}
	}
	made, err := a.BuiltIn.Accounts.SignUp(x.ctx(), in, x.pageVisit())
	if err == nil && in.Invitation != "" {
		view.Next = "/" // they are in the team already
	}
	if err == nil {
		return x.enter(made, view.Next)
	}
	return again(&view.Form, err, func() (answer, error) { return a.drawSignUp(x, view) })
}

func (a *API) showSignOut(x *exchange) (answer, error) {
	view := pages.SignOut{}
	if next := ownPath(x.r.URL.Query().Get("next")); next != "/" {
		view.Next = next
	}
	if x.presence.ByCookie {
		p := x.person()
		view.Person = &p
	}
	return x.draw("sign-out", view)
}

func (a *API) takeSignOut(x *exchange) (answer, error) {
	form, err := x.form()
	if err != nil {
		return answer{}, err
	}
	if x.presence.ByCookie {
		if err := a.BuiltIn.Sessions.SignOut(x.ctx(), x.presence); err != nil {
			return answer{}, err
		}
	}
	next := ownPath(form.Get("next"))
	if next == "/" {
		next = "/sign-out" // says that it is done
	}
	ans, err := seeOther(next)
	return ans.with("Set-Cookie", x.cookie("", time.Unix(1, 0))), err
}

func (a *API) showReset(x *exchange) (answer, error) {
	return x.draw("reset", pages.Reset{NoMail: !a.SendsMail})
}

func (a *API) takeReset(x *exchange) (answer, error) {
	form, err := x.form()
	if err != nil {
		return answer{}, err
	}
	view := pages.Reset{Email: form.Get("email"), NoMail: !a.SendsMail}
	if err := a.BuiltIn.Recovery.RequestReset(x.ctx(), view.Email, x.visit(), x.resetLink); err != nil {
		return again(&view.Form, err, func() (answer, error) { return x.draw("reset", view) })
	}
	view.Sent = true
	return x.draw("reset", view)
}

func (a *API) showNewPassword(x *exchange) (answer, error) {
	if err := a.BuiltIn.Recovery.MayReset(x.ctx(), x.r.PathValue("token")); err != nil {
		return answer{}, err
	}
	return x.draw("new-password", pages.NewPassword{})
}

func (a *API) takeNewPassword(x *exchange) (answer, error) {
	form, err := x.form()
	if err != nil {
		return answer{}, err
	}
	var view pages.NewPassword
	err = a.BuiltIn.Recovery.ResetPassword(x.ctx(), x.r.PathValue("token"), form.Get("password"))
	if fault.Is(err, fault.KindInvalid) {
		return again(&view.Form, err, func() (answer, error) { return x.draw("new-password", view) })
	}
	if err != nil {
		return answer{}, err
	}
	view.Done = true
	return x.draw("new-password", view)
}

// showVerify asks for a click: programs that look into mails follow links too.
func (a *API) showVerify(x *exchange) (answer, error) { return x.draw("verify", pages.Verify{}) }

func (a *API) takeVerify(x *exchange) (answer, error) {
	if err := a.BuiltIn.Recovery.Verify(x.ctx(), x.r.PathValue("token")); err != nil {
		return answer{}, err
	}
	return x.draw("verify", pages.Verify{Done: true})
}

const (
	invitationCookie = "millrace_invitation"
	invitationsPath  = "/invitations"
)

// backToInvitation returns to the invitation that this browser followed, so
// that its secret stands in no other address.
func (a *API) backToInvitation(x *exchange) (answer, error) {
	token, _, err := a.followed(x)
	if err != nil {
		return answer{}, err
	}
	if token == "" {
		return nowhere(x)
	}
	return seeOther(invitationsPath + "/" + token)
}

func (a *API) showInvitation(x *exchange) (answer, error) {
	token := x.r.PathValue("token")
	inv, err := a.BuiltIn.Invitations.Find(x.ctx(), token)
	if err != nil {
		return answer{}, err
	}
	ans, err := a.drawInvitation(x, inv, pages.Invitation{})
	c := http.Cookie{
		Name: invitationCookie, Value: token, Path: "/", MaxAge: 3600,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !loopback(x.base()),
	}
	return ans.with("Set-Cookie", c.String()), err
}

func (a *API) drawInvitation(x *exchange, inv identity.Invitation, view pages.Invitation) (answer, error) {
	view.Team, view.InvitedBy, view.Email, view.Role = inv.Team.Name, inv.InvitedByName, inv.Email, string(inv.Role)
	view.Until, view.Status, view.Here = inv.ExpiresAt, string(inv.Status(a.Now())), invitationsPath
	view.MaySign = a.BuiltIn.SignUp != builtin.SignUpClosed
	if x.presence.ByCookie {
		p := x.person()
		view.Person = &p
	}
	return x.draw("invitation", view)
}

func (a *API) takeInvitation(x *exchange) (answer, error) {
	if !x.presence.ByCookie {
		return seeOther("/sign-in?next=" + url.QueryEscape(invitationsPath))
	}
	token := x.r.PathValue("token")
	inv, err := a.BuiltIn.Invitations.Find(x.ctx(), token)
	if err != nil {
		return answer{}, err
	}
	if _, err := a.BuiltIn.Invitations.Accept(x.ctx(), x.presence, token); err != nil {
		return answer{}, err
	}
	return a.drawInvitation(x, inv, pages.Invitation{Joined: true})
}
