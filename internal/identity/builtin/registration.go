package builtin

import (
	"context"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
)

// registeredPrefix begins the ids of clients that registered themselves; the
// operator's have others.
const registeredPrefix = "dyn_"

const maxRedirects = 10

// SelfRegistered reports whether nobody has checked who the client is.
func (c Client) SelfRegistered() bool { return strings.HasPrefix(c.ID, registeredPrefix) }

// Register adds a client that asks for it by itself (RFC 7591). Its name is what it
// says: people are shown where their answer goes, and that nobody has checked it.
func (s *OAuth) Register(ctx context.Context, name string, redirects []string) (Client, error) {
	if name == "" {
		name = "A program without a name"
	}
	if _, ok := line(name); !ok {
		return Client{}, fault.Invalid("client_name needs 1 to 200 characters in one line").WithCode("invalid_client_metadata")
	}
	if len(redirects) == 0 || len(redirects) > maxRedirects {
		return Client{}, fault.Invalid("redirect_uris needs 1 to %d addresses", maxRedirects).WithCode("invalid_redirect_uri")
	}
	for _, r := range redirects {
		if !mayRegister(r) {
			return Client{}, fault.Invalid("redirect_uris: %q is neither https://…, http:// with a loopback address, nor a scheme of its own with a dot in it", r).WithCode("invalid_redirect_uri")
		}
	}
	c := Client{ID: registeredPrefix + newSecret()[:24], Name: name, RedirectURIs: redirects, CreatedAt: s.now()}
	return c, s.consents.InsertClient(ctx, c)
}
