package builtin

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/identity"
)

// Client is a program that may ask people for access. None keeps a secret:
// PKCE proves that who redeems a code is who asked for it.
type Client struct {
	ID           string
	Name         string
	RedirectURIs []string
	CreatedAt    time.Time
}

// CommandLine is the client that is built in.
var CommandLine = Client{ID: "millrace-cli", Name: "Millrace command line", RedirectURIs: []string{"http://127.0.0.1/"}}

// Scope is all that the person may do themselves, and what a client gets that
// asks for none of NarrowScopes.
const Scope = "user"

// NarrowScopes are parts of it that a client can ask for instead.
var NarrowScopes = []access.Scope{access.ScopeRead, access.ScopeRun, access.ScopeWrite}

// ScopesAsked are the narrow scopes in the words of a request, reading among them;
// none at all is no bound.
func ScopesAsked(words string) (asked access.ScopeSet) {
	given := strings.Fields(words)
	for _, scope := range NarrowScopes {
		if slices.Contains(given, string(scope)) {
			asked = append(asked, scope)
		}
	}
	if len(asked) > 0 && asked[0] != access.ScopeRead {
		asked = append(access.ScopeSet{access.ScopeRead}, asked...)
	}
	return asked
}

var clientID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckClient says what is wrong with a client before it is registered.
func CheckClient(c Client) error {
	if !clientID.MatchString(c.ID) || c.ID == CommandLine.ID || c.SelfRegistered() {
		return fault.Invalid("a client's id has up to 64 letters, digits, dots, dashes and underscores, does not begin with %s, and is not %s", registeredPrefix, CommandLine.ID)
	}
	if _, ok := line(c.Name); !ok {
		return fault.Invalid("a client's name needs 1 to 200 characters in one line")
	}
	if len(c.RedirectURIs) == 0 {
		return fault.Invalid("a client needs at least one redirect address")
	}
	for _, r := range c.RedirectURIs {
		if !mayRegister(r) {
			return fault.Invalid("%q cannot be a redirect address: use https://…, http:// with a loopback address, or a scheme of your own with a dot in it", r)
		}
	}
	return nil
}

func mayRegister(redirect string) bool {
	u, ok := parseRedirect(redirect)
	switch {
	case !ok:
		return false
	case u.Scheme == "https":
		return u.Hostname() != ""
	case u.Scheme == "http":
		return isLoopback(u)
	default:
		return strings.Contains(u.Scheme, ".")
	}
}

func parseRedirect(text string) (*url.URL, bool) {
	if len(text) > 2000 || !visible(text) || strings.ContainsAny(text, `\#"<>`) {
		return nil, false
	}
	u, err := url.Parse(text)
	return u, err == nil && u.User == nil && u.Scheme != ""
}

// visible reports whether text is all visible ASCII.
func visible(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

func isLoopback(u *url.URL) bool {
	return u.Scheme == "http" && slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, u.Hostname())
}

// Takes reports whether the client may be answered at this address: exactly
// one it registered or, if it is a native one, this machine at any port and
// path.
func (c Client) Takes(redirect string) bool {
	u, ok := parseRedirect(redirect)
	if !ok {
		return false
	}
	for _, r := range c.RedirectURIs {
		registered, err := url.Parse(r)
		if r == redirect || err == nil && isLoopback(registered) && isLoopback(u) {
			return true
		}
	}
	return false
}

// OAuth is the authorization server: programs ask people for access, and get
// tokens.
type OAuth struct {
	consents ConsentStore
	grants   GrantStore
	now      func() time.Time
}

// Client finds a registered client.
func (s *OAuth) Client(ctx context.Context, id string) (Client, error) {
	if id == CommandLine.ID {
		return CommandLine, nil
	}
	if !clientID.MatchString(id) {
		return Client{}, errClient
	}
	c, err := s.consents.Client(ctx, id)
	if fault.Is(err, fault.KindNotFound) {
		return c, errClient
	}
	return c, err
}

var errClient = fault.Unauthenticated("there is no client with this client_id; a program registers itself at /oauth/register, or the operator does with: millrace admin client add").WithCode("invalid_client")

// AuthorizationRequest is what a client sends a browser along with.
type AuthorizationRequest struct {
	ResponseType, ClientID, RedirectURI, State, Scope string
	Challenge, ChallengeMethod                        string
	Scopes                                            access.ScopeSet // what it gets; none: all that the person may do
}

var challenge = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// AskingClient is the client of a request, if the person can safely be sent
// back to the address it names. Who fails here is told on a page of ours.
func (s *OAuth) AskingClient(ctx context.Context, r AuthorizationRequest) (Client, error) {
	c, err := s.Client(ctx, r.ClientID)
	if fault.Is(err, fault.KindUnauthenticated) {
		return c, fault.Invalid("%s", errClient.Message).WithCode("invalid_client")
	}
	if err == nil && !c.Takes(r.RedirectURI) {
		err = fault.Invalid("the address that the program wants its answer at (redirect_uri) is not one that it has registered").WithCode("invalid_request")
	}
	return c, err
}

// Problem is what else is wrong with a request, in the words of RFC 6749; the
// client is told.
func (r AuthorizationRequest) Problem() error {
	switch {
	case r.ResponseType != "code":
		return fault.Invalid("response_type must be code").WithCode("unsupported_response_type")
	case r.State == "" || len(r.State) > 1000:
		return fault.Invalid("state must be there, in up to 1000 characters").WithCode("invalid_request")
	case r.ChallengeMethod != "S256":
		return fault.Invalid("code_challenge_method must be S256").WithCode("invalid_request")
	case !challenge.MatchString(r.Challenge):
		return fault.Invalid("code_challenge must be a SHA-256 hash in base64url, 43 characters").WithCode("invalid_request")
	}
	return CheckScope(r.Scope)
}

// CheckScope refuses words that are no scopes: who asks for less than we can give
// must not get everything.
func CheckScope(words string) error {
	if len(words) > 1000 {
		return fault.Invalid("scope is too long").WithCode("invalid_scope")
	}
	for _, word := range strings.Fields(words) {
		if word != Scope && !slices.Contains(NarrowScopes, access.Scope(word)) {
			return fault.Invalid("scope has a word that is none: ask for %s, or for some of read, run and write", Scope).WithCode("invalid_scope")
		}
	}
	return nil
}

// Remembered reports whether the person has allowed this client before and
// need not be asked again. What answers on a loopback address can be any
// program of the machine, so there we always ask.
func (s *OAuth) Remembered(ctx context.Context, p identity.Presence, r AuthorizationRequest) (bool, error) {
	if u, ok := parseRedirect(r.RedirectURI); !ok || u.Scheme != "https" || len(r.Scopes) > 0 {
		return false, nil // what may be narrowed is asked each time
	}
	return s.consents.Consented(ctx, p.User.ID, r.ClientID)
}

// Code is an authorization code, before or after it was redeemed.
type Code struct {
	Hash        string
	User        ids.User
	Client      string
	RedirectURI string
	Challenge   string
	Scopes      access.ScopeSet // none: all that the person may do
	ExpiresAt   time.Time
}

const codeLife = time.Minute

// Allow records the person's consent and gives a code for the client.
func (s *OAuth) Allow(ctx context.Context, p identity.Presence, r AuthorizationRequest) (code string, err error) {
	code = newSecret()
	now := s.now()
	return code, s.consents.InsertCode(ctx, Code{
		Hash: hashed(code), User: p.User.ID, Client: r.ClientID, RedirectURI: r.RedirectURI,
		Challenge: r.Challenge, Scopes: r.Scopes, ExpiresAt: now.Add(codeLife),
	}, now)
}

// App is a client that a person has allowed.
type App struct {
	Client     Client
	AllowedAt  time.Time
	LastUsedAt time.Time // zero: it has no access now
	Grants     int       // how many times it is signed in
}

// Apps are what the person has allowed, newest first.
func (s *OAuth) Apps(ctx context.Context, p identity.Presence) ([]App, error) {
	apps, err := s.consents.Apps(ctx, p.User.ID, s.now())
	for i := range apps {
		if apps[i].Client.ID == CommandLine.ID {
			apps[i].Client = CommandLine
		}
	}
	return apps, err
}

// RevokeApp takes back what the person allowed; every token of it is dead.
func (s *OAuth) RevokeApp(ctx context.Context, p identity.Presence, client string) error {
	return s.consents.DeleteConsent(ctx, p.User.ID, client)
}

// Devices ask at most this often from one address.
var devicesByAddress = limits.Window{Most: 60, Per: 5 * time.Minute}
