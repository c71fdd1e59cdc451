package httpapi

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi/pages"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// oauthLimit is far above what any client needs and far below guessing.
var oauthLimit = &addressLimit{name: "oauth", window: limits.Window{Most: 600, Per: time.Minute}}

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// oauthMetadata says where everything is. The issuer is the public URL that
// was asked, so that a client finds itself confirmed.
func (a *API) oauthMetadata(x *exchange) (answer, error) {
	base := x.base()
	yes := true
	out := api.OAuthMetadata{
		Issuer: base, AuthorizationEndpoint: base + "/oauth/authorize", TokenEndpoint: base + "/oauth/token",
		RevocationEndpoint: base + "/oauth/revoke", DeviceAuthorizationEndpoint: base + "/oauth/device_authorization",
		JwksURI: base + "/auth/jwks.json", ResponseTypesSupported: []string{"code"},
		GrantTypesSupported:           []string{"authorization_code", "refresh_token", deviceGrant},
		CodeChallengeMethodsSupported: []string{"S256"}, TokenEndpointAuthMethodsSupported: []string{"none"},
		RevocationEndpointAuthMethodsSupported:     []string{"none"},
		ScopesSupported:                            []string{builtin.Scope},
		AuthorizationResponseIssParameterSupported: &yes,
	}
	return answer{data: out, bare: true}.with("Cache-Control", "public, max-age=300"), nil
}

// asked reads an authorization request and its client. What cannot be told
// the client safely is an error; everything else goes back to it.
func (a *API) asked(x *exchange) (builtin.AuthorizationRequest, builtin.Client, error) {
	q := x.r.URL.Query()
	r := builtin.AuthorizationRequest{
		ResponseType: q.Get("response_type"), ClientID: q.Get("client_id"), RedirectURI: q.Get("redirect_uri"), State: q.Get("state"),
		Scope: q.Get("scope"), Challenge: q.Get("code_challenge"), ChallengeMethod: q.Get("code_challenge_method"),
	}
	if err := saidOnce(q); err != nil {
		return r, builtin.Client{}, err
	}
	c, err := a.BuiltIn.OAuth.AskingClient(x.ctx(), r)
	return r, c, err
}

// back sends the browser to the client with what became of its request.
func (x *exchange) back(r builtin.AuthorizationRequest, result url.Values) (answer, error) {
	to, err := url.Parse(r.RedirectURI)
	if err != nil {
		return answer{}, err
	}
	if r.State != "" {
		result.Set("state", r.State)
	}
	result.Set("iss", x.base())
	query := result.Encode()
	if to.RawQuery != "" {
		query = to.RawQuery + "&" + query
	}
	to.RawQuery = query
	return seeOther(to.String())
}

func (x *exchange) refuse(r builtin.AuthorizationRequest, problem error) (answer, error) {
	e, foreseen := errors.AsType[*fault.Error](problem)
	if !foreseen {
		return answer{}, problem
	}
	return x.back(r, url.Values{"error": {e.Code}, "error_description": {e.Message}})
}

// authorize asks a person whether a client may act for them.
func (a *API) authorize(x *exchange) (answer, error) {
	r, client, err := a.asked(x)
	if err != nil {
		return answer{}, err
	}
	if problem := r.Problem(); problem != nil {
		return x.refuse(r, problem)
	}
	if !x.presence.ByCookie {
		return x.toSignIn()
	}
	remembered, err := a.BuiltIn.OAuth.Remembered(x.ctx(), x.presence, r)
	if err != nil {
		return answer{}, err
	}
	if remembered {
		return a.allow(x, r)
	}
	where, err := url.Parse(r.RedirectURI)
	if err != nil {
		return answer{}, err
	}
	return x.draw("consent", pages.Consent{
		Person: x.person(), Client: client.Name, Where: where.Host, Local: where.Scheme != "https",
		Action: "/oauth/authorize?" + x.r.URL.RawQuery,
	}, formTarget(r.RedirectURI))
}

func (a *API) allow(x *exchange, r builtin.AuthorizationRequest) (answer, error) {
	code, err := a.BuiltIn.OAuth.Allow(x.ctx(), x.presence, r)
	if err != nil {
		return answer{}, err
	}
	return x.back(r, url.Values{"code": {code}})
}

// decideAuthorization takes the person's answer, which only their own browser
// can give.
func (a *API) decideAuthorization(x *exchange) (answer, error) {
	if !x.presence.ByCookie {
		return answer{}, fault.Unauthenticated("sign in first: only you can allow this, in your browser").WithCode("not_signed_in")
	}
	r, _, err := a.asked(x)
	if err != nil {
		return answer{}, err
	}
	if problem := r.Problem(); problem != nil {
		return x.refuse(r, problem)
	}
	form, err := x.form()
	if err != nil {
		return answer{}, err
	}
	switch form.Get("decision") {
	case "allow":
		return a.allow(x, r)
	case "deny":
		return x.refuse(r, fault.Invalid("access was denied").WithCode("access_denied"))
	}
	return answer{}, fault.Invalid("the decision is neither allow nor deny").WithCode("invalid_request")
}

// formTarget is a redirect address in the words of a content security policy,
// which knows no IPv6 addresses.
func formTarget(redirect string) string {
	u, err := url.Parse(redirect)
	if err != nil || u.Host == "" || strings.HasPrefix(u.Host, "[") {
		scheme, _, _ := strings.Cut(redirect, ":")
		return scheme + ":"
	}
	return u.Scheme + "://" + u.Host
}

// clientForm reads a form of a client and who it says it is: in the form, or
// as the name of Basic authentication without a password.
func (a *API) clientForm(x *exchange) (url.Values, builtin.Client, error) {
	form, err := x.form()
	if err != nil {
		return nil, builtin.Client{}, err
	}
	id := form.Get("client_id")
	if name, password, ok := x.r.BasicAuth(); ok && password == "" && (id == "" || id == name) {
		id = name
	}
	if id == "" {
		return nil, builtin.Client{}, fault.Invalid("client_id is missing").WithCode("invalid_request")
	}
	c, err := a.BuiltIn.OAuth.Client(x.ctx(), id)
	return form, c, err
}

// exchangeToken gives tokens for a code, a refresh token or a device code.
func (a *API) exchangeToken(x *exchange) (answer, error) {
	form, client, err := a.clientForm(x)
	if err != nil {
		return answer{}, err
	}
	var t builtin.Tokens
	switch form.Get("grant_type") {
	case "authorization_code":
		t, err = a.BuiltIn.OAuth.RedeemCode(x.ctx(), client, form.Get("code"), form.Get("code_verifier"), form.Get("redirect_uri"))
	case "refresh_token":
		t, err = a.BuiltIn.OAuth.Refresh(x.ctx(), client, form.Get("refresh_token"))
	case deviceGrant:
		t, err = a.BuiltIn.Devices.Poll(x.ctx(), client, form.Get("device_code"))
	case "":
		err = fault.Invalid("grant_type is missing").WithCode("invalid_request")
	default:
		err = fault.Invalid("grant_type is none of authorization_code, refresh_token and device_code").WithCode("unsupported_grant_type")
	}
	if err != nil {
		return answer{}, err
	}
	scope := builtin.Scope
	return answer{bare: true, data: api.OAuthToken{
		AccessToken: t.Access, TokenType: "Bearer", ExpiresIn: int(t.Life.Seconds()), RefreshToken: t.Refresh, Scope: &scope,
	}}.with("Pragma", "no-cache"), nil
}

// revokeToken ends a grant by one of its tokens. Whoever holds the token may.
func (a *API) revokeToken(x *exchange) (answer, error) {
	form, err := x.form()
	if err != nil {
		return answer{}, err
	}
	if form.Get("token") == "" {
		return answer{}, fault.Invalid("token is missing").WithCode("invalid_request")
	}
	err = a.BuiltIn.OAuth.Revoke(x.ctx(), form.Get("client_id"), form.Get("token"))
	return answer{media: "text/plain", raw: []byte{}}, err
}

func (a *API) listApps(x *exchange) (answer, error) {
	list, err := a.BuiltIn.OAuth.Apps(x.ctx(), x.presence)
	if err != nil {
		return answer{}, err
	}
	out := make([]api.App, len(list))
	for i, app := range list {
		out[i] = api.App{ID: app.Client.ID, Name: app.Client.Name, AllowedAt: api.At(app.AllowedAt), Grants: app.Grants}
		if !app.LastUsedAt.IsZero() {
			at := api.At(app.LastUsedAt)
			out[i].LastUsedAt = &at
		}
	}
	return ok(out)
}

func (a *API) revokeApp(x *exchange) (answer, error) {
	id := x.r.PathValue("id")
	err := a.BuiltIn.OAuth.RevokeApp(x.ctx(), x.presence, id)
	return answer{data: map[string]any{"revoked": true, "id": id}}, err
}
