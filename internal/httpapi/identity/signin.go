package identity

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/httpapi/pages"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// pageVisit is where a sign-in on one of our own pages comes from. A form does
// not always say its origin; it is ours.
func pageVisit(x *kernel.Exchange) builtin.Visit {
	v := visit(x)
	v.Origin = x.Base()
	return v
}

// leadsTo is where a form that goes on to next may end: a client that waits
// for its answer.
func (a *API) leadsTo(x *kernel.Exchange, next string) []string {
	u, err := url.Parse(next)
	if err != nil || u.Path != "/oauth/authorize" {
		return nil
	}
	r := builtin.AuthorizationRequest{ClientID: u.Query().Get("client_id"), RedirectURI: u.Query().Get("redirect_uri")}
	if _, err := a.BuiltIn.OAuth.AskingClient(x.Context(), r); err != nil {
		return nil
	}
	return []string{formTarget(r.RedirectURI)}
}

// again draws a form with what was wrong with it; what is not the person's to
// mend stays an error.
func again(f *pages.Form, problem error, draw func() (kernel.Answer, error)) (kernel.Answer, error) {
	e, foreseen := errors.AsType[*fault.Error](problem)
	if !foreseen {
		return kernel.Answer{}, problem
	}
	f.Problem, f.Wrong = kernel.SentenceCase(e.Message), map[string]string{}
	for _, d := range e.Details {
		f.Wrong[d.Path] = kernel.SentenceCase(kernel.Sentence(d))
	}
	if len(f.Wrong) > 0 {
		f.Problem = ""
	}
	ans, err := draw()
	ans.Status = kernel.StatusOf[e.Kind]
	return ans, err
}

// ShowSignIn answers GET /sign-in.
func (a *API) ShowSignIn(x *kernel.Exchange) (kernel.Answer, error) {
	next := kernel.OwnPath(x.Request.URL.Query().Get("next"))
	if x.Presence.ByCookie {
		return kernel.SeeOther(next)
	}
	return a.drawSignIn(x, pages.SignIn{Form: pages.Form{Next: next}})
}

func (a *API) drawSignIn(x *kernel.Exchange, view pages.SignIn) (kernel.Answer, error) {
	view.NoPasswords, view.Providers = a.BuiltIn.NoPasswords, a.Providers.Names()
	view.MaySign = !view.NoPasswords && (a.BuiltIn.SignUp == builtin.SignUpOpen || view.Next == invitationsPath)
	return x.DrawPage("sign-in", view, a.leadsTo(x, view.Next)...)
}

// TakeSignIn answers POST /sign-in.
func (a *API) TakeSignIn(x *kernel.Exchange) (kernel.Answer, error) {
	form, err := x.Form()
	if err != nil {
		return kernel.Answer{}, err
	}
	view := pages.SignIn{Form: pages.Form{Next: kernel.OwnPath(form.Get("next"))}, Email: form.Get("email")}
	in, oneTime, err := a.BuiltIn.Accounts.BeginSignIn(x.Context(), view.Email, form.Get("password"), pageVisit(x))
	switch {
	case err != nil:
		return again(&view.Form, err, func() (kernel.Answer, error) { return a.drawSignIn(x, view) })
	case oneTime != "":
		return x.DrawPage("second-factor", pages.SecondFactor{Form: view.Form, OneTimeToken: oneTime}, a.leadsTo(x, view.Next)...)
	}
	return enter(x, in, view.Next)
}

// enter goes on with a fresh session.
func enter(x *kernel.Exchange, in builtin.SignedIn, next string) (kernel.Answer, error) {
	ans, err := kernel.SeeOther(next)
	return ans.With("Set-Cookie", x.Cookie(in.Secret, in.Until)), err
}

// TakeCode answers POST /sign-in/code.
func (a *API) TakeCode(x *kernel.Exchange) (kernel.Answer, error) {
	form, err := x.Form()
	if err != nil {
		return kernel.Answer{}, err
	}
	view := pages.SecondFactor{Form: pages.Form{Next: kernel.OwnPath(form.Get("next"))}, OneTimeToken: form.Get("token")}
	in, err := a.BuiltIn.Accounts.FinishSignIn(x.Context(), view.OneTimeToken, form.Get("code"), pageVisit(x))
	if err == nil {
		return enter(x, in, view.Next)
	}
	if fault.Is(err, fault.KindNotFound) {
		return kernel.SeeOther("/sign-in?next=" + url.QueryEscape(view.Next)) // took too long
	}
	return again(&view.Form, err, func() (kernel.Answer, error) { return x.DrawPage("second-factor", view, a.leadsTo(x, view.Next)...) })
}

// followed is the invitation whose link this browser came by.
func (a *API) followed(x *kernel.Exchange) (token string, inv identity.Invitation, err error) {
	c, err := x.Request.Cookie(invitationCookie)
	if err != nil {
		return "", inv, nil //nolint:nilerr // it followed none
	}
	inv, err = a.BuiltIn.Invitations.Find(x.Context(), c.Value)
	if fault.Is(err, fault.KindNotFound) || err == nil && inv.Status(a.Now()) != identity.Pending {
		return "", identity.Invitation{}, nil
	}
	return c.Value, inv, err
}

// ShowSignUp answers GET /sign-up.
func (a *API) ShowSignUp(x *kernel.Exchange) (kernel.Answer, error) {
	q := x.Request.URL.Query()
	return a.drawSignUp(x, pages.SignUp{Form: pages.Form{Next: kernel.OwnPath(q.Get("next"))}, First: q.Get("first")})
}

func (a *API) drawSignUp(x *kernel.Exchange, view pages.SignUp) (kernel.Answer, error) {
	token, inv, err := a.followed(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if token != "" && view.Next == invitationsPath {
		view.Invited, view.Team, view.Email = true, inv.Team.Name, inv.Email
	}
	if view.First != "" {
		fits, err := a.BuiltIn.Accounts.FitsFirst(x.Context(), view.First)
		if err != nil {
			return kernel.Answer{}, err
		}
		if !fits {
			view.First, view.Problem = "", "This link was for the first account of the installation, or is incomplete."
		}
	}
	policy := a.BuiltIn.SignUp
	admitted := policy == builtin.SignUpOpen || policy == builtin.SignUpInvite && view.Invited
	view.ByPassword = (admitted || view.First != "") && !a.BuiltIn.NoPasswords
	if admitted || a.BuiltIn.Newcomers.Any() {
		view.Providers = a.Providers.Names()
	}
	view.Closed = "Signing up needs an invitation: ask a team for one, and open the link in the email."
	if policy == builtin.SignUpClosed {
		view.Closed = "Accounts are created by the operator of this server."
	}
	return x.DrawPage("sign-up", view, a.leadsTo(x, view.Next)...)
}

// TakeSignUp answers POST /sign-up.
func (a *API) TakeSignUp(x *kernel.Exchange) (kernel.Answer, error) {
	form, err := x.Form()
	if err != nil {
		return kernel.Answer{}, err
	}
	view := pages.SignUp{Form: pages.Form{Next: kernel.OwnPath(form.Get("next"))}, Name: form.Get("name"), Email: form.Get("email"), First: form.Get("first")}
	in := builtin.SignUp{Email: view.Email, Password: form.Get("password"), Name: view.Name, FirstToken: view.First, VerifyLink: verifyLink(x)}
	var invited identity.Invitation
	if view.Next == invitationsPath {
		if in.Invitation, invited, err = a.followed(x); err != nil {
			return kernel.Answer{}, err
		}
	}
	made, err := a.BuiltIn.Accounts.SignUp(x.Context(), in, pageVisit(x))
	if err == nil && in.Invitation != "" {
		view.Next = joinedPath + string(invited.Team.ID) // they are in the team already
	}
	if err == nil {
		return enter(x, made, view.Next)
	}
	return again(&view.Form, err, func() (kernel.Answer, error) { return a.drawSignUp(x, view) })
}

// ShowSignOut answers GET /sign-out.
func (a *API) ShowSignOut(x *kernel.Exchange) (kernel.Answer, error) {
	view := pages.SignOut{}
	if next := kernel.OwnPath(x.Request.URL.Query().Get("next")); next != "/" {
		view.Next = next
	}
	if x.Presence.ByCookie {
		p := x.Person()
		view.Person = &p
	}
	return x.DrawPage("sign-out", view)
}

// TakeSignOut answers POST /sign-out.
func (a *API) TakeSignOut(x *kernel.Exchange) (kernel.Answer, error) {
	form, err := x.Form()
	if err != nil {
		return kernel.Answer{}, err
	}
	if x.Presence.ByCookie {
		if err := a.BuiltIn.Sessions.SignOut(x.Context(), x.Presence); err != nil {
			return kernel.Answer{}, err
		}
	}
	next := kernel.OwnPath(form.Get("next"))
	if next == "/" {
		next = "/sign-out" // says that it is done
	}
	ans, err := kernel.SeeOther(next)
	return ans.With("Set-Cookie", x.Cookie("", time.Unix(1, 0))), err
}

// ShowReset answers GET /reset.
func (a *API) ShowReset(x *kernel.Exchange) (kernel.Answer, error) {
	if err := a.BuiltIn.Recovery.Offered(); err != nil {
		return kernel.Answer{}, err
	}
	return x.DrawPage("reset", pages.Reset{NoMail: !a.SendsMail})
}

// TakeReset answers POST /reset.
func (a *API) TakeReset(x *kernel.Exchange) (kernel.Answer, error) {
	form, err := x.Form()
	if err = cmp.Or(err, a.BuiltIn.Recovery.Offered()); err != nil {
		return kernel.Answer{}, err
	}
	view := pages.Reset{Email: form.Get("email"), NoMail: !a.SendsMail}
	if err := a.BuiltIn.Recovery.RequestReset(x.Context(), view.Email, visit(x), resetLink(x)); err != nil {
		return again(&view.Form, err, func() (kernel.Answer, error) { return x.DrawPage("reset", view) })
	}
	view.Sent = true
	return x.DrawPage("reset", view)
}

// ShowNewPassword answers GET /reset/{token}.
func (a *API) ShowNewPassword(x *kernel.Exchange) (kernel.Answer, error) {
	if err := a.BuiltIn.Recovery.MayReset(x.Context(), x.Request.PathValue("token")); err != nil {
		return kernel.Answer{}, err
	}
	return x.DrawPage("new-password", pages.NewPassword{})
}

// TakeNewPassword answers POST /reset/{token}.
func (a *API) TakeNewPassword(x *kernel.Exchange) (kernel.Answer, error) {
	form, err := x.Form()
	if err != nil {
		return kernel.Answer{}, err
	}
	var view pages.NewPassword
	err = a.BuiltIn.Recovery.ResetPassword(x.Context(), x.Request.PathValue("token"), form.Get("password"))
	if fault.Is(err, fault.KindInvalid) {
		return again(&view.Form, err, func() (kernel.Answer, error) { return x.DrawPage("new-password", view) })
	}
	if err != nil {
		return kernel.Answer{}, err
	}
	view.Done = true
	return x.DrawPage("new-password", view)
}

// ShowVerify asks for a click: programs that look into mails follow links too.
func (a *API) ShowVerify(x *kernel.Exchange) (kernel.Answer, error) {
	return x.DrawPage("verify", pages.Verify{})
}

// TakeVerify answers POST /verify/{token}.
func (a *API) TakeVerify(x *kernel.Exchange) (kernel.Answer, error) {
	if err := a.BuiltIn.Recovery.Verify(x.Context(), x.Request.PathValue("token")); err != nil {
		return kernel.Answer{}, err
	}
	return x.DrawPage("verify", pages.Verify{Done: true})
}

const (
	invitationCookie = "millrace_invitation"
	invitationsPath  = "/invitations"
	joinedPath       = "/team/joined/" // the app enters the team and says so
)

// BackToInvitation returns to the invitation that this browser followed, so
// that its secret stands in no other address.
func (a *API) BackToInvitation(x *kernel.Exchange) (kernel.Answer, error) {
	token, _, err := a.followed(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if token == "" {
		return kernel.NotFound(x)
	}
	return kernel.SeeOther(invitationsPath + "/" + token)
}

// ShowInvitation answers GET /invitations/{token}.
func (a *API) ShowInvitation(x *kernel.Exchange) (kernel.Answer, error) {
	token := x.Request.PathValue("token")
	inv, err := a.BuiltIn.Invitations.Find(x.Context(), token)
	if err != nil {
		return kernel.Answer{}, err
	}
	ans, err := a.drawInvitation(x, inv)
	c := http.Cookie{
		Name: invitationCookie, Value: token, Path: "/", MaxAge: 3600,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !kernel.Loopback(x.Base()),
	}
	return ans.With("Set-Cookie", c.String()), err
}

func (a *API) drawInvitation(x *kernel.Exchange, inv identity.Invitation) (kernel.Answer, error) {
	var view pages.Invitation
	view.Team, view.InvitedBy, view.Email, view.Role = inv.Team.Name, inv.InvitedByName, inv.Email, string(inv.Role)
	view.Until, view.Status, view.Here = inv.ExpiresAt, string(inv.Status(a.Now())), invitationsPath
	view.NoPasswords, view.Providers = a.BuiltIn.NoPasswords, a.Providers.Names()
	view.MaySign = !view.NoPasswords && a.BuiltIn.SignUp != builtin.SignUpClosed
	if x.Presence.ByCookie {
		p := x.Person()
		view.Person = &p
	}
	return x.DrawPage("invitation", view)
}

// TakeInvitation answers POST /invitations/{token}.
func (a *API) TakeInvitation(x *kernel.Exchange) (kernel.Answer, error) {
	if !x.Presence.ByCookie {
		return kernel.SeeOther("/sign-in?next=" + url.QueryEscape(invitationsPath))
	}
	m, err := a.BuiltIn.Invitations.Accept(x.Context(), x.Presence, x.Request.PathValue("token"))
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.SeeOther(joinedPath + string(m.Team.ID))
}
