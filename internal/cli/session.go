package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/screen"
)

// common is what every client command takes.
type common struct {
	Server string `placeholder:"URL" help:"The server. Default: where you signed in last, else http://127.0.0.1:8080."`
	Team   string `placeholder:"TEAM" help:"Act in this team, by id or name."`
	JSON   bool   `env:"-" help:"Print the API's data as JSON."`
}

// session is a command at work: somebody, at one server, in one team.
type session struct {
	screen.World
	api    *client.ClientWithResponses
	calls  *line.Calls
	server string
	json   bool
}

// open is for commands that need somebody to be signed in.
func (c common) open(w screen.World) (*session, error) {
	s, err := c.visit(w)
	if err != nil {
		return nil, err
	}
	if s.calls.As == nil {
		return nil, fmt.Errorf("not signed in to %s: run millrace login", s.server)
	}
	return s, nil
}

// visit is for commands that work without an account, too.
func (c common) visit(w screen.World) (*session, error) {
	ring, keep, err := line.Kept(w)
	if err != nil {
		return nil, err
	}
	server, err := line.ServerURL(cmp.Or(c.Server, ring.Current, line.DefaultServer))
	if err != nil {
		return nil, err
	}
	who := &line.Calls{World: w, HTTP: line.HTTPClient(), Team: c.Team}
	if token := w.Env("MILLRACE_TOKEN"); token != "" {
		who.As = line.GivenToken(token)
	} else if g := ring.Servers[server]; g != nil {
		who.As = &line.KeptToken{World: w, Keep: keep, Server: server, Grant: *g}
		who.Team = cmp.Or(c.Team, g.Team)
	}
	s := &session{World: w, calls: who, server: server, json: c.JSON}
	if s.api, err = client.New(server, client.WithHTTPClient(line.Checked{Next: who})); err != nil {
		return nil, err
	}
	return s, s.nameTeam()
}

// nameTeam turns a team's name, as --team takes it, into its id.
func (s *session) nameTeam() error {
	name := s.calls.Team
	if name == "" || strings.HasPrefix(name, "team_") || s.calls.As == nil {
		return nil
	}
	s.calls.Team = ""
	t, err := s.team(name)
	s.calls.Team = t.ID
	return err
}

// explain adds to a failure what to do about it.
func (s *session) explain(err error) error {
	if _, done := errors.AsType[line.Explained](err); err == nil || done {
		return err
	}
	if e, isNet := errors.AsType[*net.OpError](err); isNet && e.Op == "dial" {
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
		hint = "try again in " + screen.Duration(e.RetryAfter)
	case e.Status >= http.StatusInternalServerError && e.Status != http.StatusNotImplemented && e.RequestID != "":
		hint = "if it keeps failing, tell the operator request ID " + e.RequestID
	}
	if hint == "" {
		return err
	}
	return line.Explained{Err: err, Hint: hint}
}

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
