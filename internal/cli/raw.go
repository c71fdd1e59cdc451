package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace/internal/cli/definitions"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type rawCommand struct {
	session.Flags `embed:""`
	Method        string   `arg:"" help:"GET, POST, PUT, PATCH or DELETE."`
	Path          string   `arg:"" help:"Path, such as /api/me. A path without a leading slash is relative to /api/."`
	Field         []string `short:"f" env:"-" sep:"none" placeholder:"NAME=VALUE" help:"Field of the JSON body, as JSON if it's valid JSON, otherwise as text."`
	Text          []string `short:"t" env:"-" sep:"none" placeholder:"NAME=VALUE" help:"Field of the JSON body, always as text."`
	Input         string   `env:"-" placeholder:"FILE" help:"Send this file as the body; - is standard input."`
	Header        []string `short:"H" env:"-" sep:"none" placeholder:"NAME:VALUE" help:"Header to send."`
	Include       bool     `short:"I" env:"-" help:"Also print the status and headers."`
}

// Run prints the answer as it is, and fails when the server refused.
func (c *rawCommand) Run(w screen.Console) error {
	s, err := c.Visit(w)
	if err != nil {
		return err
	}
	s.Calls.Notices = nil // what it prints is for programs
	r, err := c.request(s)
	if err != nil {
		return err
	}
	resp, err := s.Calls.Do(r)
	if err != nil {
		return s.Explain(err)
	}
	defer resp.Body.Close()
	if c.Include {
		s.Say("%s %s", resp.Proto, resp.Status)
		_ = resp.Header.Write(s.Out) // as say: a reader that left is no failure of ours
		s.Say("")
	}
	if err := printBody(s, resp); err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the server responded with %s", resp.Status)
	}
	return nil
}

func (c *rawCommand) request(s *session.Session) (*http.Request, error) {
	address, err := apiURL(s.Server, c.Path)
	if err != nil {
		return nil, err
	}
	body, err := c.body(s)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(s.Ctx, strings.ToUpper(c.Method), address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return nil, fmt.Errorf("-H %s: enter name:value", h)
		}
		r.Header.Set(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return r, nil
}

// apiURL is a path on the server, and never another server: the token goes
// with it.
func apiURL(server, path string) (string, error) {
	if !strings.HasPrefix(path, "/") {
		path = "/api/" + path
	}
	// A person types what is searched for as it is; neither would get to the server.
	path = strings.NewReplacer(" ", "%20", "#", "%23").Replace(path)
	u, err := url.Parse(server + path)
	if err != nil || u.Scheme+"://"+u.Host != server || strings.HasPrefix(path, "/api/http") {
		return "", fmt.Errorf("%q is not a path on the server such as /api/me", path)
	}
	return u.String(), nil
}

func (c *rawCommand) body(s *session.Session) ([]byte, error) {
	if c.Input != "" {
		if len(c.Field)+len(c.Text) > 0 {
			return nil, fmt.Errorf("--input and fields can't be combined")
		}
		return definitions.ReadSmall(s.Console, c.Input, maxPDF)
	}
	if len(c.Field)+len(c.Text) == 0 {
		return nil, nil
	}
	fields := map[string]json.RawMessage{}
	for i, f := range append(c.Field, c.Text...) {
		name, value, ok := strings.Cut(f, "=")
		if !ok {
			return nil, fmt.Errorf("%s: enter name=value", f)
		}
		typed := definitions.Schema{}
		if i >= len(c.Field) {
			typed.Type = "string"
		}
		text, err := typed.Value(value)
		if err != nil {
			return nil, err
		}
		fields[name] = text
	}
	return json.Marshal(fields)
}

// printBody indents JSON for a person; a script gets the bytes.
func printBody(s *session.Session, resp *http.Response) error {
	if !s.ForPerson() || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		_, err := io.Copy(s.Out, resp.Body)
		return err
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, text, "", "  ") == nil {
		text = pretty.Bytes()
	}
	s.Say("%s", s.LogText(string(bytes.TrimSpace(text))))
	return nil
}
