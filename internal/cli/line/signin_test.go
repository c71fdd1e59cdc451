package line_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
)

// gate is a server that knows one token, and what it answers to those who want another.
type gate struct {
	token string
	fresh func(w http.ResponseWriter, r *http.Request)

	mu    sync.Mutex
	asked []string
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, r.URL.Path)
	switch {
	case r.URL.Path == "/oauth/token" || r.URL.Path == "/auth/token":
		g.fresh(w, r)
	case r.Header.Get("Authorization") == "Bearer "+g.token:
		clitest.Answer(w, 200, `{}`)
	default:
		clitest.Answer(w, 401, `{"success":false,"error":"no","code":"invalid_token","requestId":"r"}`)
	}
}

func says(status int, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { clitest.Answer(w, status, text) }
}

// A token that ends is replaced where somebody may have another, and a sign-in is called
// ended only by the server that ended it.
func TestATokenIsRenewedWhileTheSignInLasts(t *testing.T) {
	t.Parallel()
	oauth := says(200, `{"access_token":"fresh","token_type":"Bearer","expires_in":3600,"refresh_token":"r2"}`)
	for name, tt := range map[string]struct {
		kept    line.Grant
		expires time.Duration // of the kept one; 0: not known
		fresh   func(http.ResponseWriter, *http.Request)
		asked   string
		status  int    // of the answer; 0: none
		fails   string // where there is none
		left    line.Grant
	}{
		"refused":                       {line.Grant{Token: "old", Refresh: "r1"}, time.Hour, oauth, "/api/x /oauth/token /api/x", 200, "", line.Grant{Token: "fresh", Refresh: "r2"}},
		"about to end":                  {line.Grant{Token: "old", Refresh: "r1"}, 29 * time.Second, oauth, "/oauth/token /api/x", 200, "", line.Grant{Token: "fresh", Refresh: "r2"}},
		"long enough for the call":      {line.Grant{Token: "fresh", Refresh: "r1"}, 31 * time.Second, oauth, "/api/x", 200, "", line.Grant{Token: "fresh", Refresh: "r1"}},
		"by the same refresh token":     {line.Grant{Token: "old", Refresh: "r1"}, 0, says(200, `{"access_token":"fresh","token_type":"Bearer","expires_in":60}`), "/api/x /oauth/token /api/x", 200, "", line.Grant{Token: "fresh", Refresh: "r1"}},
		"by a session":                  {line.Grant{Token: "old", Cookie: "c=1"}, time.Second, says(200, `{"success":true,"data":{"token":"fresh","expiresAt":"2099-01-01T00:00:00.000Z"}}`), "/auth/token /api/x", 200, "", line.Grant{Token: "fresh", Cookie: "c=1"}},
		"by a session that has ended":   {line.Grant{Token: "old", Cookie: "c=1"}, time.Second, says(401, `{"success":false,"error":"no","code":"c","requestId":"r"}`), "/auth/token", 0, "your session has expired: run millrace login", line.Grant{Token: "old", Cookie: "c=1"}},
		"by nothing":                    {line.Grant{Token: "old"}, time.Second, oauth, "/api/x", 401, "", line.Grant{Token: "old"}},
		"ended":                         {line.Grant{Token: "old", Refresh: "r1"}, 0, says(400, `{"error":"invalid_grant"}`), "/api/x /oauth/token", 0, "your session has expired", line.Grant{Token: "old", Refresh: "r1"}},
		"not ended, but too often":      {line.Grant{Token: "old", Refresh: "r1"}, 0, says(429, `{"error":"slow_down"}`), "/api/x /oauth/token", 0, "slow_down", line.Grant{Token: "old", Refresh: "r1"}},
		"not ended, but broken":         {line.Grant{Token: "old", Refresh: "r1"}, 0, says(500, `{"error":"server_error"}`), "/api/x /oauth/token", 0, "server_error", line.Grant{Token: "old", Refresh: "r1"}},
		"not ended, but another's page": {line.Grant{Token: "old", Refresh: "r1"}, 0, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "/api/x /oauth/token", 0, "doesn't respond like a Millrace server", line.Grant{Token: "old", Refresh: "r1"}},
		"by one that does not work":     {line.Grant{Token: "old", Refresh: "r1"}, 0, says(200, `{"access_token":"other","token_type":"Bearer","expires_in":3600}`), "/api/x /oauth/token /api/x /oauth/token", 401, "", line.Grant{Token: "other", Refresh: "r1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, g := clitest.New(t), &gate{token: "fresh", fresh: tt.fresh}
			server := clitest.Serve(t, g.ServeHTTP)
			if tt.expires > 0 {
				tt.kept.Expires = d.Time().Add(tt.expires)
			}
			d.SignedIn(t, server, tt.kept)
			keep := line.Credentials{Folder: d.Folder}
			calls := line.Calls{Console: d.Console, HTTP: http.DefaultClient, As: &line.KeptToken{Console: d.Console, Keep: keep, Server: server, Grant: tt.kept}}
			status, err := call(t, calls, server)
			if status != tt.status || (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%d, %v", status, err)
			}
			if got := strings.Join(g.asked, " "); got != tt.asked {
				t.Errorf("it asks %s", got)
			}
			ring, err := keep.Read()
			if err != nil {
				t.Fatal(err)
			}
			left := *ring.Servers[server]
			left.Expires = time.Time{}
			if left != tt.left {
				t.Errorf("%+v is kept", left)
			}
		})
	}
}

func call(t *testing.T, calls line.Calls, server string) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", server+"/api/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := calls.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return resp.StatusCode, nil
}

// Another program may have been first: with a fresh token, or with the end of the sign-in.
func TestATokenThatAnotherProgramHasReplaced(t *testing.T) {
	t.Parallel()
	d := clitest.New(t)
	g := &gate{token: "fresh", fresh: func(http.ResponseWriter, *http.Request) { t.Error("it is renewed twice") }}
	server := clitest.Serve(t, g.ServeHTTP)
	keep := line.Credentials{Folder: d.Folder}
	d.SignedIn(t, server, line.Grant{Token: "fresh", Refresh: "r2"})
	old := line.Grant{Token: "old", Refresh: "r1"}
	calls := line.Calls{Console: d.Console, HTTP: http.DefaultClient, As: &line.KeptToken{Console: d.Console, Keep: keep, Server: server, Grant: old}}
	if status, err := call(t, calls, server); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	if err := keep.Update(func(ring *line.Keyring) error { clear(ring.Servers); return nil }); err != nil {
		t.Fatal(err)
	}
	calls.As = &line.KeptToken{Console: d.Console, Keep: keep, Server: server, Grant: old}
	if status, err := call(t, calls, server); status != 0 || err == nil || !strings.Contains(err.Error(), "not signed in to "+server+": run millrace login") {
		t.Errorf("after signing out: %d, %v", status, err)
	}
	calls.As = line.GivenToken("old")
	if status, err := call(t, calls, server); status != 401 || err != nil {
		t.Errorf("a token that was given: %d, %v", status, err)
	}
}

// device is a server with a code to enter elsewhere, and the answers of one poll after the
// other, the last for ever.
type device struct {
	interval, expires int
	polls             []string // status and error; 0 hangs up
	n                 int
}

func (s *device) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/oauth/device_authorization" {
		clitest.Answer(w, 200, fmt.Sprintf(`{"device_code":"dev","user_code":"W\u001b[2J","verification_uri":"http://x/\u202edevice","expires_in":%d,"interval":%d}`, s.expires, s.interval))
		return
	}
	poll := s.polls[min(s.n, len(s.polls)-1)]
	s.n++
	status, code, _ := strings.Cut(poll, " ")
	switch status {
	case "0":
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			c.Close()
		}
	case "200":
		clitest.Answer(w, 200, `{"access_token":"oat_1","token_type":"Bearer","expires_in":3600,"refresh_token":"ort_1"}`)
	default:
		var n int
		_, _ = fmt.Sscan(status, &n)
		clitest.Answer(w, n, fmt.Sprintf(`{"error":%q}`, code))
	}
}

func TestACodeIsWaitedForUntilSomebodyDecides(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		server *device
		waits  string
		fails  string
	}{
		"through what breaks":   {&device{5, 600, []string{"0", "502 x", "500 server_error", "200"}, 0}, "[5s 5s 5s 5s]", ""},
		"slower, when asked to": {&device{5, 600, []string{"400 slow_down", "429 x", "400 authorization_pending", "200"}, 0}, "[5s 10s 15s 15s]", ""},
		"not in a hurry":        {&device{0, 600, []string{"400 authorization_pending", "200"}, 0}, "[1s 1s]", ""},
		"not where none is":     {&device{5, 600, []string{"501 not_built"}, 0}, "[5s]", "not_built"},
		"not what is refused":   {&device{5, 600, []string{"400 invalid_client"}, 0}, "[5s]", "invalid_client"},
		"not for ever":          {&device{5, 11, []string{"400 authorization_pending"}, 0}, "[5s 5s 5s]", "the code has expired: run millrace login --device again"},
		"not past its time":     {&device{5, 0, []string{"200"}, 0}, "[]", "the code has expired"},
	} {
		d := clitest.New(t)
		server := clitest.Serve(t, tt.server.ServeHTTP)
		g, err := line.OnDevice(d.Console, server)
		if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) || (g.Token == "oat_1" && g.Refresh == "ort_1") != (err == nil) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
		if got := fmt.Sprint(d.Slept); got != tt.waits {
			t.Errorf("%s: it waits %s", name, got)
		}
		if told := d.Errors.String(); !strings.Contains(told, "  http://x/device\n") || !strings.Contains(told, "the code  W[2J\n") {
			t.Errorf("%s: it tells %q", name, told)
		}
	}
	d := clitest.New(t)
	ctx, leave := context.WithCancel(t.Context())
	d.Ctx = ctx
	d.Sleep = func(ctx context.Context, _ time.Duration) error { leave(); return ctx.Err() }
	if _, err := line.OnDevice(d.Console, clitest.Serve(t, (&device{5, 600, []string{"200"}, 0}).ServeHTTP)); !errors.Is(err, context.Canceled) {
		t.Errorf("whoever leaves: %v", err)
	}
}

// The browser's answer counts once, and with our state alone.
func TestWhatABrowserComesBackWith(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers []string // queries of the way back, with STATE in them
		page    string   // what the browser shows last
		fails   string   // empty: the code was exchanged
		code    string
	}{
		"a code":                   {[]string{"code=c1&state=STATE"}, "Return to the terminal", "", "c1"},
		"the first of two":         {[]string{"code=c1&state=STATE", "code=c2&state=STATE"}, "Return to the terminal", "", "c1"},
		"a code behind a forgery":  {[]string{"code=evil&state=x", "code=evil", "error=access_denied&state=", "code=c1&state=STATE"}, "Return to the terminal", "", "c1"},
		"nothing":                  {[]string{"state=STATE"}, "Sign-in failed", "the browser returned no code: run millrace login again", ""},
		"a refusal":                {[]string{"state=STATE&error=access_denied&code=c1"}, "Sign-in failed", "access was denied in the browser", ""},
		"a refusal in other words": {[]string{"state=STATE&error=server_error&error_description=" + url.QueryEscape("try\nlater\x1b[2J")}, "Sign-in failed", "the server refused: server_error try later[2J", ""},
		"a code that is refused":   {[]string{"code=old&state=STATE"}, "Return to the terminal", "invalid_grant", "old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exchanged := ""
			server := clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/.well-known/oauth-authorization-server":
					clitest.Answer(w, 200, `{"issuer":"x"}`)
				case r.FormValue("code") == "old":
					exchanged = "old"
					clitest.Answer(w, 400, `{"error":"invalid_grant"}`)
				default:
					exchanged = r.FormValue("code")
					clitest.Answer(w, 200, `{"access_token":"oat_1","token_type":"Bearer","expires_in":3600,"refresh_token":"ort_1"}`)
				}
			})
			d, page := clitest.New(t), ""
			d.OnBrowse = func(address string) error {
				u, err := url.Parse(address)
				if err != nil {
					return err
				}
				q := u.Query()
				if _, status, err := get(q.Get("redirect_uri") + "/other?code=evil&state=" + q.Get("state")); err != nil || status != 404 {
					t.Errorf("another page: %d, %v", status, err)
				}
				for _, answer := range tt.answers {
					if page, _, err = get(q.Get("redirect_uri") + "?" + strings.ReplaceAll(answer, "STATE", q.Get("state"))); err != nil {
						return err
					}
				}
				return nil
			}
			g, err := line.InBrowser(d.Console, server)
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) || (g.Token == "oat_1") != (err == nil) {
				t.Errorf("%+v, %v", g, err)
			}
			if exchanged != tt.code || !strings.Contains(page, tt.page) {
				t.Errorf("%q was exchanged, and the browser shows %q", exchanged, page)
			}
		})
	}
}

func get(address string) (text string, status int, err error) {
	resp, err := http.Get(address)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), resp.StatusCode, err
}

// Signing out ends what was begun here, and nobody else's.
func TestSigningOutEndsTheSignIn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		grant  line.Grant
		status int
		asks   string
		fails  string
	}{
		"of a session":            {line.Grant{Token: "t", Cookie: "c=1"}, 200, "/auth/sign-out c=1 ", ""},
		"of OAuth":                {line.Grant{Token: "t", Refresh: "ort_1"}, 200, "/oauth/revoke  ort_1", ""},
		"of a token from outside": {line.Grant{Token: "t"}, 200, "", ""},
		"that had ended":          {line.Grant{Token: "t", Cookie: "c=1"}, 401, "/auth/sign-out c=1 ", ""},
		"at a broken server":      {line.Grant{Token: "t", Refresh: "ort_1"}, 500, "/oauth/revoke  ort_1", "Internal Server Error"},
	} {
		asked := ""
		server := clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.Path + " " + r.Header.Get("Cookie") + " " + r.FormValue("token")
			if r.Header.Get("Authorization") != "" {
				t.Errorf("%s: a token goes along", name)
			}
			clitest.Answer(w, tt.status, `{"success":true,"data":{}}`)
		})
		err := line.SignOut(clitest.New(t).Console, server, tt.grant)
		if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) || asked != tt.asks {
			t.Errorf("%s: it asks %q, %v", name, asked, err)
		}
	}
}
