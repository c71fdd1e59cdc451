package cli

import (
	"crypto/sha256"
	"encoding/base64"
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

// authority is an authorization server as RFC 6749, 7636 and 8628 have it,
// with one person who decides.
type authority struct {
	mu        sync.Mutex
	decision  string // a code, or an error
	challenge string
	back      string
	device    []string // the answers of one poll after the other
	revoked   string
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		clitest.Answer(w, 200, `{"issuer":"x"}`)
	case "/oauth/authorize":
		q := r.URL.Query()
		a.challenge, a.back = q.Get("code_challenge"), q.Get("redirect_uri")
		if q.Get("response_type") != "code" || q.Get("client_id") != "millrace-cli" || q.Get("code_challenge_method") != "S256" {
			w.WriteHeader(400)
			return
		}
		to := url.Values{"state": {q.Get("state")}, "code": {"c1"}}
		if a.decision != "" {
			to = url.Values{"state": {q.Get("state")}, "error": {a.decision}}
		}
		http.Redirect(w, r, a.back+"?"+to.Encode(), http.StatusSeeOther)
	case "/oauth/device_authorization":
		clitest.Answer(w, 200, `{"device_code":"dev","user_code":"WDJB-MJHT","verification_uri":"http://x/device","verification_uri_complete":"","expires_in":60,"interval":5}`)
	case "/oauth/token":
		a.token(w, r)
	case "/oauth/revoke":
		a.revoked = r.FormValue("token")
	case "/api/me":
		if r.Header.Get("Authorization") != "Bearer oat_1" {
			status(401)(w)
			return
		}
		clitest.Answer(w, 200, me)
	}
}

func (a *authority) token(w http.ResponseWriter, r *http.Request) {
	refused := ""
	switch r.FormValue("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if r.FormValue("code") != "c1" || r.FormValue("redirect_uri") != a.back || base64.RawURLEncoding.EncodeToString(sum[:]) != a.challenge {
			refused = "invalid_grant"
		}
	case "urn:ietf:params:oauth:grant-type:device_code":
		refused, a.device = a.device[0], a.device[1:]
	default:
		refused = "unsupported_grant_type"
	}
	if refused != "" {
		clitest.Answer(w, 400, fmt.Sprintf(`{"error":%q}`, refused))
		return
	}
	clitest.Answer(w, 200, `{"access_token":"oat_1","token_type":"Bearer","expires_in":3600,"refresh_token":"ort_1"}`)
}

// visit is a browser that follows wherever it is sent.
func visit(address string) (status int, text string, err error) {
	resp, err := http.Get(address)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func TestLoginInTheBrowser(t *testing.T) {
	t.Parallel()
	d, a := clitest.New(t), &authority{}
	server := clitest.Serve(t, a.ServeHTTP)
	d.OnBrowse = func(address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		// First somebody else's page tries to slip in a code of its own.
		forged := u.Query().Get("redirect_uri") + "?code=evil&state=guess"
		if got, _, err := visit(forged); err != nil || got != 400 {
			t.Errorf("a forged answer: %d %v", got, err)
		}
		if _, text, err := visit(address); err != nil || !strings.Contains(text, "close this page") {
			t.Errorf("%q %v", text, err)
		}
		return nil
	}
	if err := (&loginCommand{Address: server}).Run(d.Console); err != nil {
		t.Fatal(err)
	}
	ring, err := line.Credentials{Folder: d.Folder}.Read()
	if g := ring.Servers[server]; err != nil || g.Token != "oat_1" || g.Refresh != "ort_1" || g.Email != "ada@example.org" || !g.Expires.Equal(d.Time().Add(time.Hour)) {
		t.Errorf("%+v %v", g, err)
	}
	if strings.Contains(d.Errors.String(), "oat_") || d.Printed.Len() > 0 {
		t.Errorf("%q %q", d.Printed, d.Errors)
	}
	if err := (&logoutCommand{}).Run(d.Console); err != nil {
		t.Error(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.revoked != "ort_1" {
		t.Errorf("revoked %q", a.revoked)
	}
	if ring, err := (line.Credentials{Folder: d.Folder}).Read(); err != nil || len(ring.Servers) > 0 {
		t.Errorf("%v %v", ring, err)
	}
}

func TestLoginThatIsDeniedInTheBrowser(t *testing.T) {
	t.Parallel()
	d := clitest.New(t)
	server := clitest.Serve(t, (&authority{decision: "access_denied"}).ServeHTTP)
	d.OnBrowse = func(address string) error { _, _, err := visit(address); return err }
	if err := (&loginCommand{Address: server}).Run(d.Console); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("got %v", err)
	}
}

func TestLoginOnAnotherDevice(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		polls []string
		want  string
		waits time.Duration
	}{
		"allowed after a while": {[]string{"authorization_pending", "slow_down", ""}, "", 5*time.Second + 5*time.Second + 10*time.Second},
		"denied":                {[]string{"authorization_pending", "access_denied"}, "denied", 10 * time.Second},
		"too late":              {[]string{"expired_token"}, "expired", 5 * time.Second},
		"nobody came":           {strings.Fields(strings.Repeat("authorization_pending ", 13)), "expired", 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := clitest.New(t)
			server := clitest.Serve(t, (&authority{device: tt.polls}).ServeHTTP)
			began := d.Time()
			err := (&loginCommand{Address: server, Device: true}).Run(d.Console)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
			if waited := d.Time().Sub(began); waited != tt.waits {
				t.Errorf("waited %v", waited)
			}
			if !strings.Contains(d.Errors.String(), "WDJB-MJHT") {
				t.Errorf("%q", d.Errors)
			}
		})
	}
}

func TestLoginWithoutABrowserOrAServerThatCan(t *testing.T) {
	t.Parallel()
	d := clitest.New(t)
	server := clitest.Serve(t, (&authority{}).ServeHTTP)
	d.OnBrowse = func(string) error { return io.EOF }
	if err := (&loginCommand{Address: server}).Run(d.Console); err == nil || !strings.Contains(err.Error(), "millrace login --device") {
		t.Errorf("got %v", err)
	}
	old := clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) { status(501)(w) })
	if err := (&loginCommand{Address: old}).Run(d.Console); err == nil || !strings.Contains(err.Error(), "--email") {
		t.Errorf("got %v", err)
	}
}
