package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
)

// house is a server with one account, ada's, whose password is a horse's.
type house struct {
	factor  bool // a second one is asked for: 123456
	cookie  string
	signUps []string
}

func (h *house) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, 1<<10)
	n, _ := r.Body.Read(body)
	text := string(body[:n])
	const in = `{"success":true,"data":{"token":"jwt_1","expiresAt":"2099-01-01T00:00:00.000Z","team":null}}`
	switch {
	case r.URL.Path == "/api/me" && r.Header.Get("Authorization") == "Bearer jwt_1":
		clitest.Answer(w, 200, me)
	case r.URL.Path == "/api/me":
		status(401)(w)
	case r.URL.Path == "/auth/sign-up":
		h.signUps = append(h.signUps, text)
		http.SetCookie(w, &http.Cookie{Name: h.cookie, Value: "s1"})
		clitest.Answer(w, 201, in)
	case !strings.Contains(text, `"password":"horse"`):
		says(401, `{"success":false,"error":"wrong email address or password","code":"bad_credentials","requestId":"r"}`)(w)
	case h.factor && !strings.Contains(text, `"code"`):
		says(401, `{"success":false,"error":"a second factor is needed","code":"second_factor_required","requestId":"r"}`)(w)
	case h.factor && !strings.Contains(text, `"code":"123456"`):
		says(401, `{"success":false,"error":"wrong code","code":"bad_code","requestId":"r"}`)(w)
	default:
		http.SetCookie(w, &http.Cookie{Name: "other", Value: "x"})
		http.SetCookie(w, &http.Cookie{Name: h.cookie, Value: "s1", HttpOnly: true})
		clitest.Answer(w, 200, in)
	}
}

// Whoever signs in is kept with what renews their token, and whoever does not is not.
func TestSigningInWithAPassword(t *testing.T) {
	t.Parallel()
	const session = "millrace_session"
	for name, tt := range map[string]struct {
		server house
		args   string
		stdin  string
		signed string // what is sent to sign up
		tells  string // empty: it works
		not    string // what it does not tell
	}{
		"with the password":              {house{cookie: session}, "--email ada@example.org", "horse\n", "", "", ""},
		"with another":                   {house{cookie: session}, "--email ada@example.org", "mule\n", "", "wrong email address or password", "millrace login"},
		"with none":                      {house{cookie: session}, "--email ada@example.org", "", "", "standard input is empty", ""},
		"at a server that keeps nothing": {house{cookie: "another"}, "--email ada@example.org", "horse", "", "the server sent no session", ""},
		"without the second factor":      {house{cookie: session, factor: true}, "--email ada@example.org", "horse", "", "a second factor is needed", "millrace login"},
		"with the second factor":         {house{cookie: session, factor: true}, "--email ada@example.org --code 123456", "horse", "", "", ""},
		"with another second factor":     {house{cookie: session, factor: true}, "--email ada@example.org --code 654321", "horse", "", "wrong code", ""},
		"for the first time":             {house{cookie: session}, "--email ada@example.org --sign-up", "horse", `{"email":"ada@example.org","name":"ada","password":"horse"}`, "", ""},
		"for the first time, by a name":  {house{cookie: session}, "--email ada@example.org --sign-up --name Ada", "horse", `{"email":"ada@example.org","name":"Ada","password":"horse"}`, "", ""},
		"for the first time, nobody":     {house{cookie: session}, "--sign-up", "horse", "", "--sign-up needs --email", ""},
		"with a token":                   {house{}, "--token-stdin", "jwt_1\n", "", "", ""},
		"with a token of elsewhere":      {house{}, "--token-stdin", "jwt_2\n", "", "no", "millrace login"},
		"in two ways":                    {house{}, "--token-stdin --email ada@example.org", "horse", "", "can't be used together", ""},
		"at no address":                  {house{}, "--token-stdin --server=ftp://x", "jwt_1", "", "is not a server address", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := clitest.New(t)
			server := clitest.Serve(t, tt.server.ServeHTTP)
			d.SignedIn(t, "https://before.example", line.Grant{Token: "before"})
			args := append([]string{"login"}, strings.Fields(tt.args)...)
			if !strings.Contains(tt.args, "--server") {
				args = append(args, server)
			}
			code := d.Type(&Commands{}, tt.stdin, args...)
			told := d.Errors.String()
			if (code == 0) != (tt.tells == "") || !strings.Contains(told, tt.tells) || tt.not != "" && strings.Contains(told, tt.not) || strings.Contains(told, "horse") || d.Printed.Len() > 0 {
				t.Errorf("%d, told %q, printed %q", code, told, d.Printed)
			}
			if got := strings.Join(tt.server.signUps, " "); got != "" && !sameFields(got, tt.signed) || (got == "") != (tt.signed == "") {
				t.Errorf("it signs up %s", got)
			}
			ring, err := line.Credentials{Folder: d.Folder}.Read()
			if err != nil || ring.Servers["https://before.example"].Token != "before" {
				t.Fatalf("%+v, %v", ring, err)
			}
			g := ring.Servers[server]
			if tt.tells != "" {
				if g != nil || ring.Current != "https://before.example" {
					t.Errorf("%+v is kept", ring)
				}
				return
			}
			cookie := ""
			if tt.server.cookie != "" {
				cookie = "millrace_session=s1"
			}
			if ring.Current != server || g.Token != "jwt_1" || g.Email != "ada@example.org" || g.Cookie != cookie || g.Refresh != "" {
				t.Errorf("%+v is kept", g)
			}
		})
	}
}

// sameFields compares the members of two flat objects.
func sameFields(a, b string) bool {
	split := func(text string) map[string]bool {
		set := map[string]bool{}
		for field := range strings.SplitSeq(strings.Trim(strings.TrimSpace(text), "{}"), ",") {
			set[field] = true
		}
		return set
	}
	x, y := split(a), split(b)
	for field := range x {
		if !y[field] {
			return false
		}
	}
	return len(x) == len(y)
}

// Credentials are forgotten here whatever becomes of the server, which is said.
func TestSigningOutForgetsInAnyCase(t *testing.T) {
	t.Parallel()
	broken := clitest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { status(500)(w) })
	working := clitest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { clitest.Answer(w, 200, `{"success":true,"data":{}}`) })
	for name, tt := range map[string]struct {
		server string
		args   string
		code   int
		tells  string
		left   int
	}{
		"where one is":                   {working, "", 0, "Signed out of " + working + ".", 1},
		"of another":                     {working, "--server https://other.example", 0, "Signed out of https://other.example.", 1},
		"where nobody is":                {working, "--server https://nobody.example", 0, "You were not signed in to https://nobody.example.", 2},
		"of a server that is broken":     {broken, "", 1, "the credentials were deleted here, but " + broken + " couldn't be reached", 1},
		"of a server that is not there":  {"http://127.0.0.1:1", "", 1, "sign out the session on your account page there", 1},
		"of something that is no server": {working, "--server ftp://x", 1, "is not a server address", 2},
	} {
		d := clitest.New(t)
		d.SignedIn(t, "https://other.example", line.Grant{Token: "handed in"})
		d.SignedIn(t, tt.server, line.Grant{Token: "t", Cookie: "millrace_session=s"})
		code := d.Type(&Commands{}, "", append([]string{"logout"}, strings.Fields(tt.args)...)...)
		ring, err := line.Credentials{Folder: d.Folder}.Read()
		if code != tt.code || !strings.Contains(d.Errors.String(), tt.tells) || err != nil || len(ring.Servers) != tt.left {
			t.Errorf("%s: %d, told %q, left %v, %v", name, code, d.Errors, ring.Servers, err)
		}
	}
}

func TestTheTeamThatCommandsActIn(t *testing.T) {
	t.Parallel()
	team := func(id, name string) string {
		return `{"id":"` + id + `","name":"` + name + `","role":"owner","plan":"free","joinedAt":"2026-03-02T09:15:00.000Z"}`
	}
	api := clitest.ServeAPI(t, map[string]string{
		"GET /auth/teams": clitest.Data("[" + strings.Join([]string{team("team_1", "Red"), team("team_2", "Blue\u202e"), team("team_3", "Twin"), team("team_4", "twin")}, ",") + "]"),
		"GET /api/me":     me,
	})
	for name, tt := range map[string]struct {
		args   string
		token  string
		kept   string // before
		prints string
		tells  string
		code   int
		left   string
	}{
		"all of them":             {"teams", "", "team_1", "   NAME  ID      ROLE   PLAN\n*  Red   team_1  owner  free\n   Blue  team_2  owner  free\n   Twin  team_3  owner  free\n   twin  team_4  owner  free\n", "", 0, "team_1"},
		"by its name":             {"teams use red", "", "", "", "Using team Red (team_1).", 0, "team_1"},
		"by its id":               {"teams use team_2", "", "team_gone", "", "Using team Blue (team_2).", 0, "team_2"},
		"by the name of two":      {"teams use Twin", "", "team_1", "", `2 of your teams are called "Twin": use the ID`, 1, "team_1"},
		"by no name":              {"teams use Green", "", "team_1", "", `you have no team "Green": see millrace teams`, 1, "team_1"},
		"with somebody's token":   {"teams use red", "oat_9", "team_2", "", "MILLRACE_TOKEN is set: choose the team with --team or MILLRACE_TEAM", 1, "team_2"},
		"for a call, by its name": {"whoami --team blue\u202e --json", "", "team_1", "\"id\": \"user_1\"", "", 0, "team_1"},
	} {
		d := clitest.New(t)
		d.SignedIn(t, api.URL, line.Grant{Token: "oat_1", Team: tt.kept, Expires: time.Time{}})
		d.Vars["MILLRACE_TOKEN"] = tt.token
		code := d.Type(&Commands{}, "", strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(d.Printed.String(), tt.prints) || !strings.Contains(d.Errors.String(), tt.tells) {
			t.Errorf("%s: %d, printed\n%s\ntold %q", name, code, d.Printed, d.Errors)
		}
		ring, err := line.Credentials{Folder: d.Folder}.Read()
		if err != nil || ring.Servers[api.URL].Team != tt.left {
			t.Errorf("%s: %q is kept, %v", name, ring.Servers[api.URL].Team, err)
		}
	}
}
