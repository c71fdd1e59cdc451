package identity

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// RegisterLimit is how many programs register themselves from one address.
var RegisterLimit = &kernel.AddressLimit{Name: "register", Window: limits.Window{Most: 20, Per: time.Hour}}

// ResourceMetadata says who gives tokens for this API: the same server.
func (a *API) ResourceMetadata(x *kernel.Exchange) (kernel.Answer, error) {
	base := x.Base()
	out := api.OAuthResource{Resource: base, AuthorizationServers: []string{base}, BearerMethodsSupported: []string{"header"}, ScopesSupported: []string{builtin.Scope}}
	return kernel.Answer{Data: out, Bare: true}.With("Cache-Control", "public, max-age=300"), nil
}

// mcpPath is where language models use the API.
const mcpPath = "/mcp"

// MCPResourceMetadata is the same for the address of language models, which ask
// for no more than they were given.
func (a *API) MCPResourceMetadata(x *kernel.Exchange) (kernel.Answer, error) {
	base := x.Base()
	out := api.OAuthResource{Resource: base + mcpPath, AuthorizationServers: []string{base}, BearerMethodsSupported: []string{"header"}, ScopesSupported: narrowScopes()}
	return kernel.Answer{Data: out, Bare: true}.With("Cache-Control", "public, max-age=300"), nil
}

func narrowScopes() (names []string) {
	for _, s := range builtin.NarrowScopes {
		names = append(names, string(s))
	}
	return names
}

// RegisterClient registers a program at its own wish. RFC 7591 has us ignore what
// means nothing to us, so the body is not read as strictly as others.
func (a *API) RegisterClient(x *kernel.Exchange) (kernel.Answer, error) {
	var in api.ClientRegistration
	if err := json.Unmarshal(x.Body, &in); err != nil {
		return kernel.Answer{}, fault.Invalid("the body is no JSON object as RFC 7591 describes it").WithCode("invalid_client_metadata").WithCause(err)
	}
	if m := in.TokenEndpointAuthMethod; m != nil && *m != "none" {
		return kernel.Answer{}, fault.Invalid("token_endpoint_auth_method must be none: programs have no secret here, PKCE proves who they are").WithCode("invalid_client_metadata")
	}
	name := ""
	if in.ClientName != nil {
		name = *in.ClientName
	}
	c, err := a.BuiltIn.OAuth.Register(x.Context(), name, in.RedirectUris)
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Status: http.StatusCreated, Bare: true, Data: api.RegisteredClient{
		ClientID: c.ID, ClientIDIssuedAt: c.CreatedAt.Unix(), ClientName: c.Name, RedirectUris: c.RedirectURIs, TokenEndpointAuthMethod: "none",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}}.With("Cache-Control", "no-store"), nil
}
