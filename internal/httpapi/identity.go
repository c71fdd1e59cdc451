package httpapi

import (
	"encoding/base64"
	"net/http"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

func (a *API) me(x *exchange) (answer, error) {
	u := x.presence.User
	return ok(api.Me{ID: string(u.ID), Name: u.Name, Email: u.Email, EmailVerified: u.EmailVerified, Team: teamOut(x.membership)})
}

func teamOut(m identity.Membership) api.MeTeam {
	return api.MeTeam{ID: string(m.Team.ID), Name: m.Team.Name, Role: api.Role(m.Role), Plan: api.Plan(m.Team.Plan)}
}

func (x *exchange) visit() builtin.Visit {
	return builtin.Visit{Origin: x.origin(), UserAgent: x.r.UserAgent(), Address: x.address(), ClientPrefix: x.clientPrefix(), Counted: x.counted}
}

func (a *API) signUp(x *exchange) (answer, error) {
	in, err := decode[api.SignUp](x)
	if err != nil {
		return answer{}, err
	}
	s, err := a.BuiltIn.Accounts.SignUp(x.ctx(), builtin.SignUp{
		Email: string(in.Email), Password: string(in.Password), Name: in.Name, Invitation: value(in.Invitation), VerifyLink: x.verifyLink,
	}, x.visit())
	if err != nil {
		return answer{}, err
	}
	ans := x.welcome(s)
	ans.status = http.StatusCreated
	return ans, nil
}

func (a *API) signIn(x *exchange) (answer, error) {
	in, err := decode[api.SignIn](x)
	if err != nil {
		return answer{}, err
	}
	s, err := a.BuiltIn.Accounts.SignIn(x.ctx(), string(in.Email), in.Password, value(in.Code), x.visit())
	if err != nil {
		return answer{}, err
	}
	return x.welcome(s), nil
}

func (x *exchange) welcome(s builtin.SignedIn) answer {
	out := api.SignedIn{
		User:  api.User{ID: string(s.User.ID), Name: s.User.Name, Email: s.User.Email, EmailVerified: s.User.EmailVerified},
		Token: s.Token.Text, ExpiresAt: api.At(s.Token.ExpiresAt),
	}
	if s.Team.Team.ID != "" {
		team := teamOut(s.Team)
		out.Team = &team
	}
	return answer{data: out}.with("Set-Cookie", x.cookie(s.Secret, s.Until))
}

func (a *API) signOut(x *exchange) (answer, error) {
	if err := a.BuiltIn.Sessions.SignOut(x.ctx(), x.presence); err != nil {
		return answer{}, err
	}
	out := map[string]bool{"signedOut": true}
	return answer{data: out}.with("Set-Cookie", x.cookie("", time.Unix(1, 0))), nil
}

// createToken is for the browser: who holds only a token cannot live on it
// for ever.
func (a *API) createToken(x *exchange) (answer, error) {
	if !x.presence.ByCookie {
		return answer{}, fault.Unauthenticated("a fresh token needs the session cookie").WithCode("not_signed_in")
	}
	t, err := a.BuiltIn.Sessions.MintToken(x.ctx(), x.presence, x.origin())
	if err != nil {
		return answer{}, err
	}
	return ok(api.SessionToken{Token: t.Text, ExpiresAt: api.At(t.ExpiresAt)})
}

func (a *API) listSessions(x *exchange) (answer, error) {
	list, err := a.BuiltIn.Sessions.List(x.ctx(), x.presence)
	if err != nil {
		return answer{}, err
	}
	out := make([]api.Session, len(list))
	for i, s := range list {
		out[i] = api.Session{
			ID: string(s.ID), Current: s.ID == x.presence.Session, Origin: s.Origin, UserAgent: s.UserAgent, Address: s.Address,
			CreatedAt: api.At(s.CreatedAt), LastSeenAt: api.At(s.LastSeenAt), ExpiresAt: api.At(s.ExpiresAt),
		}
	}
	return ok(out)
}

func (a *API) revokeSession(x *exchange) (answer, error) {
	id := x.r.PathValue("id")
	if err := a.BuiltIn.Sessions.Revoke(x.ctx(), x.presence, ids.Session(id)); err != nil {
		return answer{}, err
	}
	return ok(map[string]any{"revoked": true, "id": id})
}

// jwks publishes the keys that verify our session tokens.
func (a *API) jwks(x *exchange) (answer, error) {
	keys, err := a.BuiltIn.Keys.Published(x.ctx())
	if err != nil {
		return answer{}, err
	}
	out := api.JWKS{Keys: []api.JWK{}}
	for _, k := range keys {
		curve, public := "Ed25519", base64.RawURLEncoding.EncodeToString(k.Public())
		out.Keys = append(out.Keys, api.JWK{Kty: "OKP", Crv: &curve, X: &public, Kid: k.ID, Use: "sig", Alg: "EdDSA"})
	}
	return answer{data: out, bare: true}.with("Cache-Control", "public, max-age=300"), nil
}
