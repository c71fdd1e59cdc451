package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace/client"
)

const defaultServer = "http://127.0.0.1:8080"

// common is what every client command takes.
type common struct {
	Server string `placeholder:"URL" help:"The server. Default: where you signed in last, else http://127.0.0.1:8080."`
	Team   string `placeholder:"TEAM" help:"Act in this team, by id or name."`
	JSON   bool   `env:"-" help:"Print the API's data as JSON."`
}

// session is a command at work: somebody, at one server, in one team.
type session struct {
	World
	api    *client.ClientWithResponses
	calls  *calls
	server string
	json   bool
}

// open is for commands that need somebody to be signed in.
func (c common) open(w World) (*session, error) {
	s, err := c.visit(w)
	if err != nil {
		return nil, err
	}
	if s.calls.as == nil {
		return nil, fmt.Errorf("not signed in to %s: run millrace login", s.server)
	}
	return s, nil
}

// visit is for commands that work without an account, too.
func (c common) visit(w World) (*session, error) {
	ring, keep, err := w.keyring()
	if err != nil {
		return nil, err
	}
	server, err := serverURL(cmp.Or(c.Server, ring.Current, defaultServer))
	if err != nil {
		return nil, err
	}
	who := &calls{World: w, http: httpClient(), team: c.Team}
	if token := w.Env("MILLRACE_TOKEN"); token != "" {
		who.as = givenToken(token)
	} else if g := ring.Servers[server]; g != nil {
		who.as = &keptToken{World: w, keep: keep, server: server, grant: *g}
		who.team = cmp.Or(c.Team, g.Team)
	}
	s := &session{World: w, calls: who, server: server, json: c.JSON}
	if s.api, err = client.New(server, client.WithHTTPClient(checked{who})); err != nil {
		return nil, err
	}
	return s, s.nameTeam()
}

func (w World) keyring() (keyring, credentials, error) {
	folder, err := w.Config()
	if err != nil {
		return keyring{}, credentials{}, fmt.Errorf("there is no folder for settings: %w", err)
	}
	keep := credentials{folder}
	ring, err := keep.read()
	return ring, keep, err
}

// serverURL is the address in its one form, by which credentials are kept.
func serverURL(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "", fmt.Errorf("%q is no address of a server, such as https://millrace.example.org", text)
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

// httpClient waits long for an answer to begin, and for ever for it to end:
// streams and large files are answers, too.
func httpClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: 2 * time.Minute,
		ForceAttemptHTTP2:     true,
	}}
}

// nameTeam turns a team's name, as --team takes it, into its id.
func (s *session) nameTeam() error {
	name := s.calls.team
	if name == "" || strings.HasPrefix(name, "team_") || s.calls.as == nil {
		return nil
	}
	s.calls.team = ""
	t, err := s.team(name)
	s.calls.team = t.ID
	return err
}

// givenToken is a token from the environment; nothing renews it.
type givenToken string

func (t givenToken) token(context.Context) (string, error)           { return string(t), nil }
func (t givenToken) renewed(context.Context, string) (string, error) { return string(t), nil }

// explain adds to a failure what to do about it.
func (s *session) explain(err error) error {
	if _, done := errors.AsType[explained](err); err == nil || done {
		return err
	}
	if _, isNet := errors.AsType[*net.OpError](err); isNet {
		return fmt.Errorf("cannot reach %s: is the server running? Another one is named by --server or MILLRACE_SERVER", s.server)
	}
	e, refused := errors.AsType[*client.Error](err)
	if !refused {
		return err
	}
	hint := ""
	switch {
	case e.Status == http.StatusUnauthorized && s.Env("MILLRACE_TOKEN") != "":
		hint = "the token in MILLRACE_TOKEN was refused; unset it, or take a fresh one"
	case e.Status == http.StatusUnauthorized:
		hint = "run millrace login"
	case e.Code == "insufficient_credits", e.Code == "plan_limit":
		hint = "see millrace credits and millrace estimate"
	case e.Code == "closed_access":
		hint = "download the PDF and run millrace analyze paper.pdf"
	case e.Code == "not_found" && strings.Contains(e.Message, "workflow"):
		hint = "see millrace workflows list"
	case e.Code == "not_found" && strings.Contains(e.Message, "run"):
		hint = "see millrace runs list"
	case e.RetryAfter > 0:
		hint = "try again in " + duration(e.RetryAfter)
	case e.Status >= http.StatusInternalServerError && e.Status != http.StatusNotImplemented && e.RequestID != "":
		hint = "tell the operator request " + e.RequestID
	}
	if hint == "" {
		return err
	}
	return explained{err, hint}
}

// explained is a failure with what to do about it.
type explained struct {
	error
	hint string
}

func (e explained) Error() string { return e.error.Error() + " (" + e.hint + ")" }
func (e explained) Unwrap() error { return e.error }

// emit prints data as JSON when that was asked for, else in a form for people.
func (s *session) emit(data any, people func()) error {
	if !s.json {
		people()
		return nil
	}
	out := json.NewEncoder(s.Out)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(data)
}
