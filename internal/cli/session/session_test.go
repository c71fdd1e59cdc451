package session_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/session"
)

func TestAFailureSaysWhatToDoOnce(t *testing.T) {
	t.Parallel()
	d := clitest.New(t)
	s := d.Session(t, "http://127.0.0.1:1")
	for name, tt := range map[string]struct {
		err  error
		hint string // empty: none
	}{
		"a workflow that is not there": {&client.Error{Status: 404, Code: "not_found", Message: "no such workflow"}, "see millrace workflows list"},
		"a run that is not there":      {&client.Error{Status: 404, Code: "not_found", Message: "no such run"}, "see millrace runs list"},
		"anything else that is not":    {&client.Error{Status: 404, Code: "not_found", Message: "no such secret"}, ""},
		"a run that is in the way":     {&client.Error{Status: 409, Code: "conflict", Message: "the run goes on"}, ""},
		"no credits":                   {&client.Error{Status: 402, Code: "insufficient_credits", Message: "no"}, "see millrace credits and millrace estimate"},
		"a plan":                       {&client.Error{Status: 403, Code: "plan_limit", Message: "no"}, "see millrace credits and millrace estimate"},
		"a paper behind a wall":        {&client.Error{Status: 403, Code: "closed_access", Message: "no"}, "download the PDF"},
		"a limit":                      {&client.Error{Status: 429, Message: "no", RetryAfter: 90 * time.Second}, "try again in 1m 30s"},
		"a server that fails":          {&client.Error{Status: 500, Message: "no", RequestID: "r1"}, "tell the operator request ID r1"},
		"one that says no more":        {&client.Error{Status: 500, Message: "no"}, ""},
		"what is not built":            {&client.Error{Status: 501, Message: "no", RequestID: "r1"}, ""},
		"a sign-in that ended":         {&client.Error{Status: 401, Message: "no"}, "run millrace login"},
		"inside another":               {fmt.Errorf("a.csv: %w", &client.Error{Status: 402, Code: "insufficient_credits", Message: "no"}), "see millrace credits"},
		"no answer of a server":        {errors.New("no"), ""},
	} {
		got := s.Explain(tt.err)
		if !errors.Is(got, tt.err) || (got == tt.err) != (tt.hint == "") || !strings.Contains(got.Error(), tt.hint) { //nolint:errorlint // the same one
			t.Errorf("%s: %v", name, got)
		}
		if again := s.Explain(got); again.Error() != got.Error() {
			t.Errorf("%s: it is said twice: %v", name, again)
		}
	}
	if s.Explain(nil) != nil {
		t.Error("no failure is one")
	}
	d.Vars["MILLRACE_TOKEN"] = "x"
	if got := s.Explain(&client.Error{Status: 401, Message: "no"}); !strings.Contains(got.Error(), "MILLRACE_TOKEN was refused") {
		t.Errorf("%v", got)
	}
}

func TestPagesAreReadToTheEndOrTheMost(t *testing.T) {
	t.Parallel()
	pages := map[string][]int{"": {1, 2}, "a": {3, 4}, "b": {}, "c": {5}}
	next := map[string]string{"": "a", "a": "b", "b": "c"}
	read := func(most int) (got []int, asked int, err error) {
		got, err = session.Pages(most, func(cursor *string) ([]int, api.Page, error) {
			asked++
			at := ""
			if cursor != nil {
				at = *cursor
			}
			p := api.Page{}
			if to, more := next[at]; more {
				p.HasMore, p.NextCursor = true, &to
			}
			return pages[at], p, nil
		})
		return got, asked, err
	}
	for most, want := range map[int]string{0: "[1 2 3 4 5] 4", 1: "[1] 1", 2: "[1 2] 1", 3: "[1 2 3] 2", 4: "[1 2 3 4] 2", 5: "[1 2 3 4 5] 4", 9: "[1 2 3 4 5] 4"} {
		got, asked, err := read(most)
		if text := fmt.Sprint(got, " ", asked); err != nil || text != want {
			t.Errorf("at most %d: %s, %v", most, text, err)
		}
	}
	away := errors.New("away")
	if got, err := session.Pages(0, func(*string) ([]int, api.Page, error) { return nil, api.Page{}, away }); !errors.Is(err, away) || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := session.Pages(0, func(*string) ([]int, api.Page, error) { return nil, api.Page{HasMore: true}, nil }); err != nil || got == nil || len(got) != 0 {
		t.Errorf("a page that names no next one: %v, %v", got, err)
	}
}

func TestWhatWasDoneBeforeAFailureIsSaid(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, tt := range map[string]struct {
		names  string
		json   bool
		prints string
		fails  bool
	}{
		"all":                  {"a b", false, "did a\ndid b\n", false},
		"all, as JSON":         {"a b", true, "[\n  \"a\",\n  \"b\"\n]\n", false},
		"until one fails":      {"a bad c", false, "did a\n", true},
		"until then, as JSON":  {"a bad c", true, "[\n  \"a\"\n]\n", true},
		"the first":            {"bad c", false, "", true},
		"the first, as JSON":   {"bad c", true, "", true},
		"nothing was asked of": {"", true, "", false},
	} {
		d := clitest.New(t)
		s := d.Session(t, "http://127.0.0.1:1")
		s.JSON = tt.json
		err := session.Each(s, strings.Fields(tt.names), func(name string) (string, error) {
			if name == "bad" {
				return "", refused
			}
			return name, nil
		}, func(name string) { s.Say("did %s", name) })
		if errors.Is(err, refused) != tt.fails || !tt.fails && err != nil || d.Printed.String() != tt.prints {
			t.Errorf("%s: %v, %q", name, err, d.Printed)
		}
	}
}

// Who calls, where and for which team: what is typed counts before what is kept.
func TestASessionIsWhatWasAskedForBeforeWhatIsKept(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 1)
	server := clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/auth/teams" {
			clitest.Answer(w, 200, `{"success":true,"data":[{"id":"team_blue","name":"Blue","role":"owner","plan":"free","joinedAt":"2026-03-02T09:15:00.000Z"}]}`)
			return
		}
		seen <- r
		clitest.Answer(w, 200, `{"success":true,"data":[],"page":{"hasMore":false}}`)
	})
	for name, tt := range map[string]struct {
		flags       session.Flags
		env         string
		team, token string
		fails       string
	}{
		"as kept":                    {session.Flags{}, "", "team_kept", "kept", ""},
		"another team":               {session.Flags{Team: "team_other"}, "", "team_other", "kept", ""},
		"another team, by its name":  {session.Flags{Team: "blue"}, "", "team_blue", "kept", ""},
		"a team that there isn't":    {session.Flags{Team: "Green"}, "", "", "", `you have no team "Green"`},
		"a token of the environment": {session.Flags{}, "given", "", "given", ""}, // the team that was chosen is of another sign-in
		"that, in a team":            {session.Flags{Team: "team_other"}, "given", "team_other", "given", ""},
		"no address":                 {session.Flags{Server: "ftp://x"}, "", "", "", "is not a server address"},
		"nobody there":               {session.Flags{Server: "http://127.0.0.1:1"}, "", "", "", "not signed in to http://127.0.0.1:1"},
	} {
		d := clitest.New(t)
		d.SignedIn(t, server, line.Grant{Token: "kept", Team: "team_kept"})
		d.Vars["MILLRACE_TOKEN"] = tt.env
		s, err := tt.flags.Open(d.Console)
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := s.Workflows(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := <-seen
		if r.Header.Get("X-Team-Id") != tt.team || r.Header.Get("Authorization") != "Bearer "+tt.token {
			t.Errorf("%s: %v", name, r.Header)
		}
	}
}
