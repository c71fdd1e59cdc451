package identity

import (
	"encoding/base64"
	"net/http"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// Me answers GET /api/me.
func (a *API) Me(x *kernel.Exchange) (kernel.Answer, error) {
	u := x.Presence.User
	me := api.Me{ID: string(u.ID), Name: u.Name, Email: u.Email, EmailVerified: u.EmailVerified, Team: teamOut(x.Membership)}
	if a.BuiltIn != nil && a.BuiltIn.NoPasswords {
		me.PasswordSignIn = new(bool)
	}
	if operates, err := x.IsOperator(); err != nil || operates {
		me.Operator = &operates
		return kernel.Answer{Data: me}, err
	}
	return kernel.OK(me)
}

func teamOut(m identity.Membership) api.MeTeam {
	return api.MeTeam{ID: string(m.Team.ID), Name: m.Team.Name, Role: api.Role(m.Role), Plan: api.Plan(m.Team.Plan)}
}

func visit(x *kernel.Exchange) builtin.Visit {
	return builtin.Visit{Origin: x.Origin(), UserAgent: x.Request.UserAgent(), Address: x.Address(), ClientPrefix: x.ClientPrefix(), Direct: x.Direct(), Counted: x.CountedBy}
}

// SignUp answers POST /auth/sign-up.
func (a *API) SignUp(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.SignUp](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	s, err := a.BuiltIn.Accounts.SignUp(x.Context(), builtin.SignUp{
		Email: string(in.Email), Password: string(in.Password), Name: in.Name, Invitation: kernel.Value(in.Invitation), FirstToken: kernel.Value(in.FirstAccountToken), VerifyLink: verifyLink(x),
	}, visit(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	ans := welcome(x, s)
	ans.Status = http.StatusCreated
	return ans, nil
}

// SignIn answers POST /auth/sign-in.
func (a *API) SignIn(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.SignIn](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	s, err := a.BuiltIn.Accounts.SignIn(x.Context(), string(in.Email), in.Password, kernel.Value(in.Code), visit(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	return welcome(x, s), nil
}

func welcome(x *kernel.Exchange, s builtin.SignedIn) kernel.Answer {
	out := api.SignedIn{
		User:  api.User{ID: string(s.User.ID), Name: s.User.Name, Email: s.User.Email, EmailVerified: s.User.EmailVerified},
		Token: s.Token.Text, ExpiresAt: api.At(s.Token.ExpiresAt),
	}
	if s.Team.Team.ID != "" {
		team := teamOut(s.Team)
		out.Team = &team
	}
	return kernel.Answer{Data: out}.With("Set-Cookie", x.Cookie(s.Secret, s.Until))
}

// SignOut answers POST /auth/sign-out.
func (a *API) SignOut(x *kernel.Exchange) (kernel.Answer, error) {
	if err := a.BuiltIn.Sessions.SignOut(x.Context(), x.Presence); err != nil {
		return kernel.Answer{}, err
	}
	out := map[string]bool{"signedOut": true}
	return kernel.Answer{Data: out}.With("Set-Cookie", x.Cookie("", time.Unix(1, 0))), nil
}

// CreateToken is for the browser: who holds only a token cannot live on it
// for ever.
func (a *API) CreateToken(x *kernel.Exchange) (kernel.Answer, error) {
	if !x.Presence.ByCookie {
		return kernel.Answer{}, fault.Unauthenticated("a fresh token needs the session cookie").WithCode("not_signed_in")
	}
	t, err := a.BuiltIn.Sessions.MintToken(x.Context(), x.Presence, x.Origin())
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.OK(api.SessionToken{Token: t.Text, ExpiresAt: api.At(t.ExpiresAt)})
}

// ListSessions answers GET /auth/sessions.
func (a *API) ListSessions(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.BuiltIn.Sessions.List(x.Context(), x.Presence)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.Session, len(list))
	for i, s := range list {
		out[i] = api.Session{
			ID: string(s.ID), Current: s.ID == x.Presence.Session, Origin: s.Origin, UserAgent: s.UserAgent, Address: s.Address,
			CreatedAt: api.At(s.CreatedAt), LastSeenAt: api.At(s.LastSeenAt), ExpiresAt: api.At(s.ExpiresAt),
		}
	}
	return kernel.OK(out)
}

// RevokeSession answers DELETE /auth/sessions/{id}.
func (a *API) RevokeSession(x *kernel.Exchange) (kernel.Answer, error) {
	id := x.Request.PathValue("id")
	if err := a.BuiltIn.Sessions.Revoke(x.Context(), x.Presence, ids.Session(id)); err != nil {
		return kernel.Answer{}, err
	}
	return kernel.OK(map[string]any{"revoked": true, "id": id})
}

// JWKS publishes the keys that verify our session tokens.
func (a *API) JWKS(x *kernel.Exchange) (kernel.Answer, error) {
	keys, err := a.BuiltIn.Keys.Published(x.Context())
	if err != nil {
		return kernel.Answer{}, err
	}
	out := api.JWKS{Keys: []api.JWK{}}
	for _, k := range keys {
		curve, public := "Ed25519", base64.RawURLEncoding.EncodeToString(k.Public())
		out.Keys = append(out.Keys, api.JWK{Kty: "OKP", Crv: &curve, X: &public, Kid: k.ID, Use: "sig", Alg: "EdDSA"})
	}
	return kernel.Answer{Data: out, Bare: true}.With("Cache-Control", "public, max-age=300"), nil
}
