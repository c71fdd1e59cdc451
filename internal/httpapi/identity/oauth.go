package identity

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/httpapi/pages"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// OauthLimit is far above what any client needs and far below guessing.
var OauthLimit = &kernel.AddressLimit{Name: "oauth", Window: limits.Window{Most: 600, Per: time.Minute}}

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// OauthMetadata says where everything is. The issuer is the public URL that
// was asked, so that a client finds itself confirmed.
func (a *API) OauthMetadata(x *kernel.Exchange) (kernel.Answer, error) {
	base := x.Base()
	yes, register := true, base+"/oauth/register"
	out := api.OAuthMetadata{
		Issuer: base, AuthorizationEndpoint: base + "/oauth/authorize", TokenEndpoint: base + "/oauth/token",
		RegistrationEndpoint: &register, RevocationEndpoint: base + "/oauth/revoke", DeviceAuthorizationEndpoint: base + "/oauth/device_authorization",
		JwksURI: base + "/auth/jwks.json", ResponseTypesSupported: []string{"code"},
		GrantTypesSupported:           []string{"authorization_code", "refresh_token", deviceGrant},
		CodeChallengeMethodsSupported: []string{"S256"}, TokenEndpointAuthMethodsSupported: []string{"none"},
		RevocationEndpointAuthMethodsSupported:     []string{"none"},
		ScopesSupported:                            append([]string{builtin.Scope}, narrowScopes()...),
		AuthorizationResponseIssParameterSupported: &yes,
	}
	return kernel.Answer{Data: out, Bare: true}.With("Cache-Control", "public, max-age=300"), nil
}

// asked reads an authorization request and its client. What cannot be told
// the client safely is an error; everything else goes back to it.
func (a *API) asked(x *kernel.Exchange) (builtin.AuthorizationRequest, builtin.Client, error) {
	q := x.Request.URL.Query()
	r := builtin.AuthorizationRequest{
		ResponseType: q.Get("response_type"), ClientID: q.Get("client_id"), RedirectURI: q.Get("redirect_uri"), State: q.Get("state"),
		Scope: q.Get("scope"), Challenge: q.Get("code_challenge"), ChallengeMethod: q.Get("code_challenge_method"),
		Scopes: builtin.ScopesAsked(q.Get("scope")),
	}
	if err := kernel.NotRepeated(q); err != nil {
		return r, builtin.Client{}, err
	}
	c, err := a.BuiltIn.OAuth.AskingClient(x.Context(), r)
	return r, c, err
}

// back sends the browser to the client with what became of its request.
func back(x *kernel.Exchange, r builtin.AuthorizationRequest, result url.Values) (kernel.Answer, error) {
	to, err := url.Parse(r.RedirectURI)
	if err != nil {
		return kernel.Answer{}, err
	}
	if r.State != "" {
		result.Set("state", r.State)
	}
	result.Set("iss", x.Base())
	query := result.Encode()
	if to.RawQuery != "" {
		query = to.RawQuery + "&" + query
	}
	to.RawQuery = query
	return kernel.SeeOther(to.String())
}

func refuse(x *kernel.Exchange, r builtin.AuthorizationRequest, problem error) (kernel.Answer, error) {
	e, foreseen := errors.AsType[*fault.Error](problem)
	if !foreseen {
		return kernel.Answer{}, problem
	}
	return back(x, r, url.Values{"error": {e.Code}, "error_description": {e.Message}})
}

// Authorize asks a person whether a client may act for them.
func (a *API) Authorize(x *kernel.Exchange) (kernel.Answer, error) {
	r, client, err := a.asked(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if problem := cmp.Or(r.Problem(), forUs(x, x.Request.URL.Query())); problem != nil {
		return refuse(x, r, problem)
	}
	if !x.Presence.ByCookie {
		return x.ToSignIn()
	}
	remembered, err := a.BuiltIn.OAuth.Remembered(x.Context(), x.Presence, r)
	if err != nil {
		return kernel.Answer{}, err
	}
	if remembered {
		return a.allow(x, r)
	}
	where, err := url.Parse(r.RedirectURI)
	if err != nil {
		return kernel.Answer{}, err
	}
	return x.DrawPage("consent", pages.Consent{
		Person: x.Person(), Client: client.Name, Where: where.Host, Local: where.Scheme != "https", Itself: client.SelfRegistered(),
		Action: "/oauth/authorize?" + x.Request.URL.RawQuery, Narrow: len(r.Scopes) > 0,
		MayRun: slices.Contains(r.Scopes, access.ScopeRun), MayWrite: slices.Contains(r.Scopes, access.ScopeWrite),
	}, formTarget(r.RedirectURI))
}

func (a *API) allow(x *kernel.Exchange, r builtin.AuthorizationRequest) (kernel.Answer, error) {
	code, err := a.BuiltIn.OAuth.Allow(x.Context(), x.Presence, r)
	if err != nil {
		return kernel.Answer{}, err
	}
	return back(x, r, url.Values{"code": {code}})
}

// DecideAuthorization takes the person's answer, which only their own browser
// can give.
func (a *API) DecideAuthorization(x *kernel.Exchange) (kernel.Answer, error) {
	if !x.Presence.ByCookie {
		return kernel.Answer{}, fault.Unauthenticated("sign in first: only you can allow this, in your browser").WithCode("not_signed_in")
	}
	r, _, err := a.asked(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if problem := cmp.Or(r.Problem(), forUs(x, x.Request.URL.Query())); problem != nil {
		return refuse(x, r, problem)
	}
	form, err := x.Form()
	if err != nil {
		return kernel.Answer{}, err
	}
	// Reading goes with the answer; everything else has a box of its own.
	r.Scopes = slices.DeleteFunc(r.Scopes, func(s access.Scope) bool { return s != access.ScopeRead && form.Get(string(s)) == "" })
	switch form.Get("decision") {
	case "allow":
		return a.allow(x, r)
	case "deny":
		return refuse(x, r, fault.Invalid("access was denied").WithCode("access_denied"))
	}
	return kernel.Answer{}, fault.Invalid("the decision is neither allow nor deny").WithCode("invalid_request")
}

// forUs refuses to give a token for another's resource (RFC 8707).
func forUs(x *kernel.Exchange, form url.Values) error {
	resource := strings.TrimSuffix(form.Get("resource"), "/")
	if resource == "" || x.Known(strings.TrimSuffix(resource, mcpPath)) {
		return nil
	}
	return fault.Invalid("resource is not an address of this server").WithCode("invalid_target")
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
func (a *API) clientForm(x *kernel.Exchange) (url.Values, builtin.Client, error) {
	form, err := x.Form()
	if err != nil {
		return nil, builtin.Client{}, err
	}
	id := form.Get("client_id")
	if name, password, ok := x.Request.BasicAuth(); ok && password == "" && (id == "" || id == name) {
		id = name
	}
	if id == "" {
		return nil, builtin.Client{}, fault.Invalid("client_id is missing").WithCode("invalid_request")
	}
	c, err := a.BuiltIn.OAuth.Client(x.Context(), id)
	return form, c, err
}

// ExchangeToken gives tokens for a code, a refresh token or a device code.
func (a *API) ExchangeToken(x *kernel.Exchange) (kernel.Answer, error) {
	form, client, err := a.clientForm(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if err := forUs(x, form); err != nil {
		return kernel.Answer{}, err
	}
	var t builtin.Tokens
	switch form.Get("grant_type") {
	case "authorization_code":
		t, err = a.BuiltIn.OAuth.RedeemCode(x.Context(), client, form.Get("code"), form.Get("code_verifier"), form.Get("redirect_uri"))
	case "refresh_token":
		t, err = a.BuiltIn.OAuth.Refresh(x.Context(), client, form.Get("refresh_token"), form.Get("scope"))
	case deviceGrant:
		t, err = a.BuiltIn.Devices.Poll(x.Context(), client, form.Get("device_code"))
	case "":
		err = fault.Invalid("grant_type is missing").WithCode("invalid_request")
	default:
		err = fault.Invalid("grant_type is none of authorization_code, refresh_token and device_code").WithCode("unsupported_grant_type")
	}
	if err != nil {
		return kernel.Answer{}, err
	}
	scope := cmp.Or(t.Scopes.String(), builtin.Scope)
	return kernel.Answer{Bare: true, Data: api.OAuthToken{
		AccessToken: t.Access, TokenType: "Bearer", ExpiresIn: int(t.Life.Seconds()), RefreshToken: t.Refresh, Scope: &scope,
	}}.With("Pragma", "no-cache"), nil
}

// RevokeToken ends a grant by one of its tokens. Whoever holds the token may.
func (a *API) RevokeToken(x *kernel.Exchange) (kernel.Answer, error) {
	form, err := x.Form()
	if err != nil {
		return kernel.Answer{}, err
	}
	if form.Get("token") == "" {
		return kernel.Answer{}, fault.Invalid("token is missing").WithCode("invalid_request")
	}
	err = a.BuiltIn.OAuth.Revoke(x.Context(), form.Get("client_id"), form.Get("token"))
	return kernel.Answer{Media: "text/plain", Raw: []byte{}}, err
}

// ListApps answers GET /auth/apps.
func (a *API) ListApps(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.BuiltIn.OAuth.Apps(x.Context(), x.Presence)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.App, len(list))
	for i, app := range list {
		out[i] = api.App{ID: app.Client.ID, Name: app.Client.Name, AllowedAt: api.At(app.AllowedAt), Grants: app.Grants}
		if !app.LastUsedAt.IsZero() {
			at := api.At(app.LastUsedAt)
			out[i].LastUsedAt = &at
		}
	}
	return kernel.OK(out)
}

// RevokeApp answers DELETE /auth/apps/{id}.
func (a *API) RevokeApp(x *kernel.Exchange) (kernel.Answer, error) {
	id := x.Request.PathValue("id")
	err := a.BuiltIn.OAuth.RevokeApp(x.Context(), x.Presence, id)
	return kernel.Answer{Data: map[string]any{"revoked": true, "id": id}}, err
}
