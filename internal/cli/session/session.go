// Package session is a command at work: somebody, at one server, in one team, and
// how things are found there by their names.
package session

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

// Flags is what every client command takes.
type Flags struct {
	Server string `placeholder:"URL" help:"The server. Default: the one you last signed in to, or http://127.0.0.1:8080."`
	Team   string `placeholder:"TEAM" help:"Use this team, by ID or name."`
	JSON   bool   `env:"-" help:"Print the API's data as JSON."`
}

// Session is a command at work: somebody, at one server, in one team.
type Session struct {
	screen.Console
	API    *client.ClientWithResponses
	Calls  *line.Calls
	Server string
	JSON   bool
}

// Open is for commands that need somebody to be signed in.
func (c Flags) Open(w screen.Console) (*Session, error) {
	s, err := c.Visit(w)
	if err != nil {
		return nil, err
	}
	if s.Calls.As == nil {
		return nil, fmt.Errorf("not signed in to %s: run millrace login", s.Server)
	}
	return s, nil
}

// Visit is for commands that work without an account, too.
func (c Flags) Visit(w screen.Console) (*Session, error) {
	ring, keep, err := line.Kept(w)
	if err != nil {
		return nil, err
	}
	server, err := line.ServerURL(cmp.Or(c.Server, ring.Current, line.DefaultServer))
	if err != nil {
		return nil, err
	}
	who := &line.Calls{Console: w, HTTP: line.HTTPClient(), Team: c.Team}
	if !c.JSON {
		who.Notices = &line.Notices{Server: server}
	}
	if token := w.Env("MILLRACE_TOKEN"); token != "" {
		who.As = line.GivenToken(token)
	} else if g := ring.Servers[server]; g != nil {
		who.As = &line.KeptToken{Console: w, Keep: keep, Server: server, Grant: *g}
		who.Team = cmp.Or(c.Team, g.Team)
	}
	s := &Session{Console: w, Calls: who, Server: server, JSON: c.JSON}
	if s.API, err = client.New(server, client.WithHTTPClient(line.Checked{Next: who})); err != nil {
		return nil, err
	}
	return s, s.nameTeam()
}

// nameTeam turns a team's name, as --team takes it, into its id.
func (s *Session) nameTeam() error {
	name := s.Calls.Team
	if name == "" || strings.HasPrefix(name, "team_") || s.Calls.As == nil {
		return nil
	}
	s.Calls.Team = ""
	t, err := s.Team(name)
	s.Calls.Team = t.ID
	return err
}

// Free reports whether the server is known to charge nothing: then nobody is shown
// credits. Programs read JSON, which stays the same, so nothing is asked for them.
func (s *Session) Free() bool {
	if s.JSON {
		return false
	}
	r, err := s.API.GetFeaturesWithResponse(s.Ctx, nil)
	if err != nil {
		return false
	}
	var said struct {
		Data struct {
			Billing *bool `json:"billing"` // older servers do not say it, and charge
		} `json:"data"`
	}
	return json.Unmarshal(r.Body, &said) == nil && said.Data.Billing != nil && !*said.Data.Billing
}

// Explain adds to a failure what to do about it.
func (s *Session) Explain(err error) error {
	if _, done := errors.AsType[line.Explained](err); err == nil || done {
		return err
	}
	if e, isNet := errors.AsType[*net.OpError](err); isNet && e.Op == "dial" {
		return fmt.Errorf("can't reach %s: is the server running? Choose another one with --server or MILLRACE_SERVER", s.Server)
	}
	e, refused := errors.AsType[*client.Error](err)
	if !refused {
		return err
	}
	hint := ""
	switch {
	case e.Status == http.StatusUnauthorized && s.Env("MILLRACE_TOKEN") != "":
		hint = "the token in MILLRACE_TOKEN was refused; unset it or use a new one"
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

// Each does something to one after the other until that fails, and says what was done:
// that cannot be taken back, so a failure does not hide it.
func Each[T any](s *Session, names []string, do func(name string) (T, error), people func(T)) error {
	done, failed := []T{}, error(nil)
	for _, name := range names {
		var one T
		if one, failed = do(name); failed != nil {
			break
		}
		done = append(done, one)
	}
	if len(done) == 0 {
		return failed
	}
	return errors.Join(failed, s.Emit(done, func() {
		for _, one := range done {
			people(one)
		}
	}))
}

// Emit prints data as JSON when that was asked for, else in a form for people.
func (s *Session) Emit(data any, people func()) error {
	if !s.JSON {
		people()
		return nil
	}
	out := json.NewEncoder(s.Out)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(data)
}
