package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type loginCommand struct {
	Address    string `arg:"" optional:"" help:"The server's address, such as https://millrace.example.org."`
	Server     string `placeholder:"URL" help:"The same as the argument. Default: the server you last signed in to, or http://127.0.0.1:8080."`
	Device     bool   `env:"-" xor:"way" help:"Show a code to enter on another device, for machines without a browser."`
	TokenStdin bool   `env:"-" xor:"way" help:"Read a token from standard input."`
	Email      string `env:"-" xor:"way" placeholder:"ADDRESS" help:"Sign in with this email address and a password, entered at a prompt or read from standard input."`
	Code       string `env:"-" help:"With --email: code from your authenticator app."`
	SignUp     bool   `env:"-" help:"With --email: create the account first."`
	Name       string `env:"-" help:"With --sign-up: your name."`
}

// Run signs in and keeps the credentials.
func (c *loginCommand) Run(w screen.Console) error {
	ring, keep, err := line.Kept(w)
	if err != nil {
		return err
	}
	server, err := line.ServerURL(cmp.Or(c.Address, c.Server, ring.Current, line.DefaultServer))
	if err != nil {
		return err
	}
	s := &session.Session{Console: w, Server: server, Calls: &line.Calls{Console: w, HTTP: line.HTTPClient(), Notices: &line.Notices{Server: server}}}
	if s.API, err = client.New(server, client.WithHTTPClient(line.Checked{Next: s.Calls})); err != nil {
		return err
	}
	if u, err := url.Parse(server); err == nil && u.Scheme == "http" && !line.Loopback(u.Hostname()) {
		w.Note("Warning: the connection to %s is not encrypted; others on the network can read your password.", server)
	}
	g, err := c.ask(s)
	if err != nil {
		return notSignedIn(s, err)
	}
	s.Calls.As = line.GivenToken(g.Token)
	me, err := s.API.GetMeWithResponse(w.Ctx, nil)
	if err != nil {
		return notSignedIn(s, err)
	}
	who := me.JSON200.Data
	g.Email = who.Email
	err = keep.Update(func(ring *line.Keyring) error {
		ring.Current, ring.Servers[server] = server, &g
		return nil
	})
	if err != nil {
		return err
	}
	w.Tell("Signed in to %s as %s, team %s.", server, screen.Clean(who.Email), screen.Clean(who.Team.Name))
	return nil
}

// notSignedIn explains a failure, but for one of what was given: to sign in would be no news.
func notSignedIn(s *session.Session, err error) error {
	if e, refused := errors.AsType[*client.Error](err); refused && e.Status == http.StatusUnauthorized {
		return err
	}
	return s.Explain(err)
}

func (c *loginCommand) ask(s *session.Session) (line.Grant, error) {
	if c.SignUp && c.Email == "" {
		return line.Grant{}, errors.New("--sign-up needs --email")
	}
	switch {
	case c.TokenStdin:
		token, err := s.Secret("Token: ")
		return line.Grant{Token: token}, err
	case c.Email != "":
		return c.byPassword(s)
	case c.Device:
		return line.OnDevice(s.Console, s.Server)
	default:
		return line.InBrowser(s.Console, s.Server)
	}
}

func (c *loginCommand) byPassword(s *session.Session) (line.Grant, error) {
	prompt := "Password: "
	if c.SignUp {
		prompt = "Password (at least 10 characters): "
	}
	password, err := s.Secret(prompt)
	if err != nil {
		return line.Grant{}, err
	}
	if c.SignUp && s.Interactive() { // what nobody sees is easily mistyped
		if again, err := s.Secret("Repeat password: "); err != nil || again != password {
			return line.Grant{}, cmp.Or(err, errors.New("the passwords don't match"))
		}
	}
	if c.SignUp {
		name := cmp.Or(c.Name, strings.Split(c.Email, "@")[0])
		r, err := s.API.SignUpWithResponse(s.Ctx, api.SignUp{Email: c.Email, Password: password, Name: name})
		if err != nil {
			return line.Grant{}, err
		}
		return signedIn(r.JSON201.Data, r.HTTPResponse)
	}
	in := api.SignIn{Email: c.Email, Password: password}
	if c.Code != "" {
		in.Code = &c.Code
	}
	r, err := s.API.SignInWithResponse(s.Ctx, in)
	if e, refused := errors.AsType[*client.Error](err); refused && e.Code == "second_factor_required" && in.Code == nil && s.Interactive() {
		code, askErr := s.Secret("Code from your authenticator app: ")
		if askErr != nil {
			return line.Grant{}, askErr
		}
		in.Code = &code
		r, err = s.API.SignInWithResponse(s.Ctx, in)
	}
	if err != nil {
		return line.Grant{}, err
	}
	return signedIn(r.JSON200.Data, r.HTTPResponse)
}

// signedIn keeps the session's cookie, which makes fresh tokens.
func signedIn(in api.SignedIn, resp *http.Response) (line.Grant, error) {
	for _, c := range resp.Cookies() {
		if c.Name == "millrace_session" {
			return line.Grant{Token: in.Token, Expires: in.ExpiresAt.Time, Cookie: c.Name + "=" + c.Value}, nil
		}
	}
	return line.Grant{}, errors.New("the server sent no session")
}

type logoutCommand struct {
	Server string `placeholder:"URL" help:"The server. Default: the one you last signed in to."`
}

// Run ends the sign-in at the server, then forgets it here: a token that
// cannot be revoked any more is forgotten all the same.
func (c *logoutCommand) Run(w screen.Console) error {
	ring, keep, err := line.Kept(w)
	if err != nil {
		return err
	}
	server, err := line.ServerURL(cmp.Or(c.Server, ring.Current, line.DefaultServer))
	if err != nil {
		return err
	}
	g := ring.Servers[server]
	if g == nil {
		w.Tell("You were not signed in to %s.", server)
		return nil
	}
	ended := line.SignOut(w, server, *g)
	err = keep.Update(func(ring *line.Keyring) error {
		delete(ring.Servers, server)
		return nil
	})
	if err != nil {
		return err
	}
	if ended != nil {
		return fmt.Errorf("the credentials were deleted here, but %s couldn't be reached (%w): sign out the session on your account page there", server, ended)
	}
	w.Tell("Signed out of %s.", server)
	return nil
}

type whoamiCommand struct {
	session.Flags `embed:""`
}

// Run asks the server, so that it also tells whether the sign-in still works.
func (c *whoamiCommand) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.GetMeWithResponse(w.Ctx, nil)
	if err != nil {
		return s.Explain(err)
	}
	me := r.JSON200.Data
	return s.Emit(me, func() {
		s.Facts(
			"name", me.Name, "email", me.Email, "id", me.ID,
			"team", fmt.Sprintf("%s (%s)", me.Team.Name, me.Team.ID), "role", string(me.Team.Role), "plan", me.Team.Plan, "server", s.Server,
		)
	})
}
