//go:build linux

package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/session"
)

// Somebody at a terminal is asked for what is missing, and never shown what they typed.
func TestAPersonIsAskedForTheirSecrets(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		factor  bool
		signUp  bool
		answers [][2]string // a question, and what is typed then
		fails   string
		signUps int
	}{
		"a password":                 {false, false, [][2]string{{"Password: ", "horse"}}, "", 0},
		"a second factor":            {true, false, [][2]string{{"Password: ", "horse"}, {"Code from your authenticator app: ", "123456"}}, "", 0},
		"another second factor":      {true, false, [][2]string{{"Password: ", "horse"}, {"Code from your authenticator app: ", "654321"}}, "wrong code", 0},
		"no second factor":           {true, false, [][2]string{{"Password: ", "horse"}, {"Code from your authenticator app: ", ""}}, "standard input is empty", 0},
		"a password, twice":          {false, true, [][2]string{{"Password (at least 10 characters): ", "horse"}, {"Repeat password: ", "horse"}}, "", 1},
		"a password, mistyped":       {false, true, [][2]string{{"Password (at least 10 characters): ", "horse"}, {"Repeat password: ", "hrose"}}, "the passwords don't match", 0},
		"a password, left out twice": {false, true, [][2]string{{"Password (at least 10 characters): ", "horse"}, {"Repeat password: ", ""}}, "standard input is empty", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &house{cookie: "millrace_session", factor: tt.factor}
			d := clitest.New(t)
			screen, server := d.UseScreen(t), clitest.Serve(t, h.ServeHTTP)
			done := make(chan error, 1)
			go func() {
				done <- (&loginCommand{Address: server, Email: "ada@example.org", SignUp: tt.signUp}).Run(d.Console)
			}()
			for _, a := range tt.answers {
				screen.Sees(a[0])
				screen.Types(a[1] + "\n")
			}
			err := <-done
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) || len(h.signUps) != tt.signUps {
				t.Errorf("%v, %d accounts", err, len(h.signUps))
			}
			d.Say("the end")
			if shown := screen.Sees("the end"); strings.Contains(shown, "horse") || strings.Contains(shown, "123456") {
				t.Errorf("it is shown: %q", shown)
			}
			ring, err := line.Credentials{Folder: d.Folder}.Read()
			if err != nil || (ring.Servers[server] != nil) != (tt.fails == "") {
				t.Errorf("%+v is kept, %v", ring, err)
			}
		})
	}
}

// An answer of the API is laid out for a person, and cannot steer their terminal.
func TestAnAnswerIsLaidOutForAPerson(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind, body, shows string
		not               string
	}{
		"JSON":            {"application/json; charset=utf-8", `{"a":[1,"é"]}`, "{\r\n  \"a\": [\r\n    1,\r\n    \"é\"\r\n  ]\r\n}\r\nend", ""},
		"no JSON, though": {"application/json", "{\"a\":\x1b[2J", "{\"a\":·[2J\r\nend", "\x1b"},
		"a title":         {"application/json", "{\"a\":\"\u009b2J\"}", "·2J", "\u009b"},
		"a table":         {"text/csv", "a,b\n1,2\n", "a,b\r\n1,2\r\nend", ""},
	} {
		d := clitest.New(t)
		screen := d.UseScreen(t)
		c := &rawCommand{Method: "get", Path: "x", Flags: session.Flags{Server: clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", tt.kind)
			_, _ = w.Write([]byte(tt.body))
		})}}
		if err := c.Run(d.Console); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		d.Say("end")
		if shown := screen.Sees("end"); !strings.Contains(shown, tt.shows) || tt.not != "" && strings.Contains(shown, tt.not) {
			t.Errorf("%s: it shows %q", name, shown)
		}
	}
}
