// Package mcp lets language models use the API: a server of the Model Context
// Protocol whose tools are requests to the API with the caller's own token, so
// that roles, scopes, limits and the audit log hold as for any program.
package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// API answers language models.
type API struct {
	requests http.Handler // the API itself
	protocol http.Handler
	schemas  *sdk.SchemaCache
}

// New makes the server of tools. It uses what requests returns once the first
// message comes: the API that it is itself a part of.
func New(requests func() http.Handler) *API {
	a := &API{
		requests: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { requests().ServeHTTP(w, r) }),
		schemas:  sdk.NewSchemaCache(),
	}
	// Nothing is kept between messages, so that any replica answers any of them.
	// Where a message comes from is checked below: the library's own check of
	// loopback addresses would refuse everything behind a proxy.
	a.protocol = sdk.NewStreamableHTTPHandler(a.server, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: kernel.GraphBody,
	})
	return a
}

// Routes are those of the protocol. The API's document leaves them out: they are
// described by themselves.
func (a *API) Routes() []kernel.Route {
	return []kernel.Route{{
		Pattern: "POST /mcp", Who: kernel.Member, May: access.Read, Body: kernel.GraphBody, Slow: true,
		ResourceMetadata: "/.well-known/oauth-protected-resource/mcp", Handle: a.message,
	}}
}

type messageKey struct{}

// message answers one message of a program.
func (a *API) message(x *kernel.Exchange) (kernel.Answer, error) {
	if x.Presence.ByCookie {
		return kernel.Answer{}, fault.Unauthenticated("this address is for programs: it takes a token, not the session of a browser").WithCode("invalid_token")
	}
	if origin := x.Request.Header.Get("Origin"); origin != "" && !x.Known(origin) {
		return kernel.Answer{}, fault.Forbidden("this request comes from a page of another site").WithCode("cross_origin")
	}
	// Only the oldest protocol has lists of messages. One could have a hundred
	// thousand, which the library would carry out at once.
	if bytes.HasPrefix(bytes.TrimLeft(x.Body, " \t\r\n"), []byte("[")) {
		return kernel.Answer{}, fault.Invalid("send one message at a time, not a list of them")
	}
	return kernel.Answer{Stream: func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(context.WithValue(r.Context(), messageKey{}, message{api: a.requests, asked: r, caller: x.Caller, base: x.Base()}))
		r.Body = io.NopCloser(bytes.NewReader(x.Body))
		a.protocol.ServeHTTP(w, r)
	}}, nil
}

const instructions = `Millrace runs scientific workflows of a team. A workflow has a definition (a graph of steps with commands); a run carries one revision of it out.
Look at a failed run with get_run, then at the failed step's log with read_log. Definitions are checked by check_definition before they are saved.
Which tools there are depends on what the person allowed: reading always, starting and cancelling runs, and changing workflows only where they said so.`

// server has the tools that the caller was given, and all prompts.
func (a *API) server(r *http.Request) *sdk.Server {
	m, _ := r.Context().Value(messageKey{}).(message)
	s := sdk.NewServer(&sdk.Implementation{Name: "millrace", Title: "Millrace", Version: "1"}, &sdk.ServerOptions{
		Instructions: instructions, SchemaCache: a.schemas, CompletionHandler: m.complete,
		// Nobody is told of changes: this server ends with the message.
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{}},
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" }, // tools depend on the token
	})
	for _, t := range tools() {
		// Consent is a scope that somebody chose; a token without bounds was not made
		// for a model to act with.
		if t.scope == access.ScopeRead || slices.Contains(m.caller.Scopes, t.scope) {
			t.add(s, m)
		}
	}
	m.addPrompts(s)
	return s
}
