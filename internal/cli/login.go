package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/term"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
)

type loginCommand struct {
	Address    string `arg:"" optional:"" help:"The server's address, such as https://millrace.example.org."`
	Server     string `placeholder:"URL" help:"The same. Default: where you signed in last, else http://127.0.0.1:8080."`
	Device     bool   `env:"-" xor:"way" help:"Show a code to enter on another device, for machines without a browser."`
	TokenStdin bool   `env:"-" xor:"way" help:"Read a token from standard input."`
	Email      string `env:"-" xor:"way" placeholder:"ADDRESS" help:"Sign in with this e-mail address and a password, which is asked for or read from standard input."`
	SignUp     bool   `env:"-" help:"With --email: make the account first."`
	Name       string `env:"-" help:"With --sign-up: your name."`
}

// Run signs in and keeps the credentials.
func (c *loginCommand) Run(w World) error {
	ring, keep, err := w.keyring()
	if err != nil {
		return err
	}
	server, err := serverURL(cmp.Or(c.Address, c.Server, ring.Current, defaultServer))
	if err != nil {
		return err
	}
	s := &session{World: w, server: server, calls: &calls{World: w, http: httpClient()}}
	if s.api, err = client.New(server, client.WithHTTPClient(checked{s.calls})); err != nil {
		return err
	}
	if u, err := url.Parse(server); err == nil && u.Scheme == "http" && u.Hostname() != "127.0.0.1" && u.Hostname() != "localhost" {
		w.note("Careful: %s is not encrypted; whoever listens sees your password.", server)
	}
	g, err := c.ask(s)
	if err != nil {
		return s.explain(err)
	}
	s.calls.as = givenToken(g.Token)
	me, err := s.api.GetMeWithResponse(w.Ctx, nil)
	if err != nil {
		return s.explain(err)
	}
	who := me.JSON200.Data
	g.Email = who.Email
	err = keep.update(func(ring *keyring) error {
		ring.Current, ring.Servers[server] = server, &g
		return nil
	})
	if err != nil {
		return err
	}
	w.tell("Signed in to %s as %s, team %s.", server, clean(who.Email), clean(who.Team.Name))
	return nil
}

func (c *loginCommand) ask(s *session) (grant, error) {
	if c.SignUp && c.Email == "" {
		return grant{}, errors.New("--sign-up needs --email")
	}
	switch {
	case c.TokenStdin:
		token, err := s.secret("Token: ")
		return grant{Token: token}, err
	case c.Email != "":
		return c.byPassword(s)
	case c.Device:
		return deviceLogin(s.World, s.server)
	default:
		return browserLogin(s.World, s.server)
	}
}

func (c *loginCommand) byPassword(s *session) (grant, error) {
	password, err := s.secret("Password: ")
	if err != nil {
		return grant{}, err
	}
	if c.SignUp {
		name := cmp.Or(c.Name, strings.Split(c.Email, "@")[0])
		r, err := s.api.SignUpWithResponse(s.Ctx, api.SignUp{Email: c.Email, Password: password, Name: name})
		if err != nil {
			return grant{}, err
		}
		return signedIn(r.JSON201.Data, r.HTTPResponse)
	}
	r, err := s.api.SignInWithResponse(s.Ctx, api.SignIn{Email: c.Email, Password: password})
	if err != nil {
		return grant{}, err
	}
	return signedIn(r.JSON200.Data, r.HTTPResponse)
}

// signedIn keeps the session's cookie, which makes fresh tokens.
func signedIn(in api.SignedIn, resp *http.Response) (grant, error) {
	for _, c := range resp.Cookies() {
		if c.Name == "millrace_session" {
			return grant{Token: in.Token, Expires: in.ExpiresAt.Time, Cookie: c.Name + "=" + c.Value}, nil
		}
	}
	return grant{}, errors.New("the server gave no session")
}

// secret asks without showing what is typed; from a pipe it takes a line.
func (w World) secret(prompt string) (string, error) {
	var text string
	if fd, ok := terminal(w.In); ok {
		fmt.Fprint(w.Err, prompt)
		typed, err := term.ReadPassword(fd)
		fmt.Fprintln(w.Err)
		if err != nil {
			return "", err
		}
		text = string(typed)
	} else {
		line, err := bufio.NewReader(io.LimitReader(w.In, 64<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		text = line
	}
	if text = strings.TrimRight(text, "\r\n"); text == "" {
		return "", errors.New("nothing was given on standard input")
	}
	return text, nil
}

type logoutCommand struct {
	Server string `placeholder:"URL" help:"The server. Default: where you signed in last."`
}

// Run ends the sign-in at the server, then forgets it here: a token that
// cannot be revoked any more is forgotten all the same.
func (c *logoutCommand) Run(w World) error {
	ring, keep, err := w.keyring()
	if err != nil {
		return err
	}
	server, err := serverURL(cmp.Or(c.Server, ring.Current, defaultServer))
	if err != nil {
		return err
	}
	g := ring.Servers[server]
	if g == nil {
		w.tell("You were not signed in to %s.", server)
		return nil
	}
	ended := signOut(w, server, *g)
	err = keep.update(func(ring *keyring) error {
		delete(ring.Servers, server)
		return nil
	})
	if err != nil {
		return err
	}
	if ended != nil {
		return fmt.Errorf("the credentials are forgotten here, but %s could not be told (%w): end the session under your account there", server, ended)
	}
	w.tell("Signed out of %s.", server)
	return nil
}

func signOut(w World, server string, g grant) error {
	c, err := client.New(server, client.WithHTTPClient(httpClient()))
	if err != nil {
		return err
	}
	switch {
	case g.Cookie != "":
		_, err = c.SignOutWithResponse(w.Ctx, withCookie(g.Cookie))
	case g.Refresh != "":
		id := clientID
		_, err = c.RevokeTokenWithFormdataBodyWithResponse(w.Ctx, api.OAuthRevocation{Token: g.Refresh, ClientID: &id})
	}
	if e, refused := errors.AsType[*client.Error](err); refused && e.Status == http.StatusUnauthorized {
		return nil // it had ended already
	}
	return err
}

type whoamiCommand struct {
	common `embed:""`
}

// Run asks the server, so that it also tells whether the sign-in still works.
func (c *whoamiCommand) Run(w World) error {
	s, err := c.open(w)
	if err != nil {
		return err
	}
	r, err := s.api.GetMeWithResponse(w.Ctx, nil)
	if err != nil {
		return s.explain(err)
	}
	me := r.JSON200.Data
	return s.emit(me, func() {
		s.facts(
			"name", me.Name, "email", me.Email, "id", me.ID,
			"team", fmt.Sprintf("%s (%s)", me.Team.Name, me.Team.ID), "role", string(me.Team.Role), "plan", me.Team.Plan, "server", s.server,
		)
	})
}
