package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/millrace/millrace/internal/store/storetest"
)

// submit posts a form with a person's cookie and does not follow the answer.
func (s *server) submit(address, cookie string, form url.Values) (status int, location string) {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Cookie", cookie)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Location")
}

// commandLine is the built-in client, as golang.org/x/oauth2 is set up for it.
func (s *server) commandLine() *oauth2.Config {
	return &oauth2.Config{
		ClientID: "millrace-cli", RedirectURL: "http://127.0.0.1:49152/callback",
		Endpoint: oauth2.Endpoint{
			AuthURL: s.base + "/oauth/authorize", TokenURL: s.base + "/oauth/token", DeviceAuthURL: s.base + "/oauth/device_authorization",
		},
	}
}

// letIn takes the command line through code and PKCE.
func (s *server) letIn(cookie string) *oauth2.Token {
	s.t.Helper()
	config, verifier := s.commandLine(), oauth2.GenerateVerifier()
	_, back := s.submit(config.AuthCodeURL("a state", oauth2.S256ChallengeOption(verifier)), cookie, url.Values{"decision": {"allow"}})
	answer, err := url.Parse(back)
	if err != nil || answer.Query().Get("state") != "a state" {
		s.t.Fatalf("sent to %s", back)
	}
	token, err := config.Exchange(s.t.Context(), answer.Query().Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

func TestGolangsOAuthClientGoesThroughEveryFlow(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := start(t, "--data", data)
	_, cookie, _ := s.signUp("ada")
	config := s.commandLine()
	token := s.letIn(cookie)
	s.want(200, "GET", "/api/me", "", "Authorization", "Bearer "+token.AccessToken)

	stale := *token
	stale.Expiry = time.Now().Add(-time.Hour)
	fresh, err := config.TokenSource(t.Context(), &stale).Token()
	if err != nil || fresh.AccessToken == token.AccessToken {
		t.Fatalf("refreshing gives %v, %v", fresh, err)
	}
	s.want(200, "GET", "/api/me", "", "Authorization", "Bearer "+fresh.AccessToken)
	if status, _ := s.submit(s.base+"/oauth/revoke", "", url.Values{"token": {fresh.RefreshToken}}); status != 200 {
		t.Errorf("revoking: %d", status)
	}
	s.want(401, "GET", "/api/me", "", "Authorization", "Bearer "+fresh.AccessToken)
	var refused *oauth2.RetrieveError
	if _, err := config.TokenSource(t.Context(), &oauth2.Token{RefreshToken: fresh.RefreshToken}).Token(); !errors.As(err, &refused) || refused.ErrorCode != "invalid_grant" {
		t.Errorf("after revoking: %v", err)
	}

	device, err := config.DeviceAuth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := s.submit(device.VerificationURI, cookie, url.Values{"user_code": {device.UserCode}, "decision": {"allow"}}); status != 200 {
		t.Fatalf("allowing the device: %d", status)
	}
	device.Interval = 1 // the first poll need not wait
	onDevice, err := config.DeviceAccessToken(t.Context(), device)
	if err != nil {
		t.Fatal(err)
	}
	s.want(200, "GET", "/api/me", "", "Authorization", "Bearer "+onDevice.AccessToken)
	s.kill()
	for _, secret := range []string{onDevice.AccessToken, onDevice.RefreshToken, token.RefreshToken, device.DeviceCode, strings.TrimPrefix(cookie, "millrace_session=")} {
		if strings.Contains(s.log.String(), secret) {
			t.Error("a secret is in the log")
		}
		if file := holds(t, data, secret); file != "" {
			t.Errorf("a secret stands in clear in %s", file)
		}
	}
}

// holds names a file of the folder that holds the text.
func holds(t *testing.T, folder, text string) (file string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			file = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestARevokedTokenIsDeadOnEveryReplicaAtOnce(t *testing.T) {
	t.Parallel()
	args := []string{"--database-url", storetest.Postgres(t), "--secret-key", "shared by all replicas", "--public-urls", "http://millrace.example", "--sign-up", "open"}
	a := start(t, append(args, "--data", t.TempDir())...)
	b := start(t, append(args, "--data", t.TempDir())...)
	_, cookie, _ := a.signUp("ada")
	token := a.letIn(cookie)
	b.want(200, "GET", "/api/me", "", "Authorization", "Bearer "+token.AccessToken)
	a.submit(a.base+"/oauth/revoke", "", url.Values{"token": {token.AccessToken}})
	b.want(401, "GET", "/api/me", "", "Authorization", "Bearer "+token.AccessToken)

	token = b.letIn(cookie)
	a.want(200, "DELETE", "/auth/apps/millrace-cli", "", "Cookie", cookie)
	b.want(401, "GET", "/api/me", "", "Authorization", "Bearer "+token.AccessToken)
	ci := a.want(201, "POST", "/auth/api-tokens", `{"name":"ci"}`, "Cookie", cookie)
	b.want(200, "GET", "/api/me", "", "Authorization", "Bearer "+ci["token"].(string))
	a.want(200, "DELETE", "/auth/api-tokens?id="+ci["id"].(string), "", "Cookie", cookie)
	b.want(401, "GET", "/api/me", "", "Authorization", "Bearer "+ci["token"].(string))
}

func TestTheOperatorRegistersClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, "--data", dir)
	_, cookie, _ := s.signUp("ada")
	admin := func(args ...string) (string, error) {
		out, err := millrace(t, append([]string{"admin", "client"}, append(args, "--data", dir)...)...).CombinedOutput()
		return string(out), err
	}
	for _, bad := range []string{"http://desk.example/", "javascript:alert(1)", "https://desk.example/#x", "desk:/back"} {
		if out, err := admin("add", "desk", bad, "--name", "Desk"); err == nil || !strings.HasPrefix(out, "millrace: ") {
			t.Errorf("%s: %v %s", bad, err, out)
		}
	}
	if out, err := admin("add", "desk", "https://desk.example/back", "org.desk.app:/back", "--name", "The Desk"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if out, err := admin("list"); err != nil || !strings.Contains(out, "millrace-cli") || !strings.Contains(out, "org.desk.app:/back") {
		t.Errorf("%v %s", err, out)
	}
	config, verifier := s.commandLine(), oauth2.GenerateVerifier()
	config.ClientID, config.RedirectURL = "desk", "https://desk.example/back"
	_, back := s.submit(config.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier)), cookie, url.Values{"decision": {"allow"}})
	answer, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	token, err := config.Exchange(t.Context(), answer.Query().Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	s.want(200, "GET", "/api/me", "", "Authorization", "Bearer "+token.AccessToken)
	if out, err := admin("remove", "desk"); err != nil {
		t.Errorf("%v %s", err, out)
	}
	s.want(401, "GET", "/api/me", "", "Authorization", "Bearer "+token.AccessToken)
	if _, err := admin("remove", "desk"); err == nil {
		t.Error("it was removed twice")
	}
}

// signInTools brings the npm packages of e2e/sign-in, once.
var signInTools = sync.OnceValues(func() ([]byte, error) {
	c := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
	c.Dir = "../../e2e/sign-in"
	if _, err := os.Stat(filepath.Join(c.Dir, "node_modules", ".package-lock.json")); err == nil {
		return nil, nil
	}
	return c.CombinedOutput()
})

// node runs a script of e2e/sign-in; without Node it is skipped.
func node(t *testing.T, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("no node: scripts/setup test installs it")
	}
	if out, err := signInTools(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "node", args...)
	c.Dir = "../../e2e/sign-in"
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAnNPMOAuthClientGoesThroughEveryFlow(t *testing.T) {
	t.Parallel()
	node(t, "client.mjs", start(t, "--data", t.TempDir()).base)
}

func TestThePagesWorkInABrowserWithoutScripts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("chromium-headless-shell"); err != nil {
		t.Skip("no chromium-headless-shell: scripts/setup test installs it")
	}
	data := t.TempDir()
	s := start(t, "--data", data, "--oidc-providers", "orcid,keycloak", "--oidc-issuers", "orcid=https://orcid.org;keycloak=https://id.example.org/realms/a", "--oidc-client-ids", "orcid=APP-1;keycloak=millrace")
	node(t, "browser.mjs", s.base, filepath.Join(data, "mail"), os.Getenv("MILLRACE_TEST_PICTURES"))
}
