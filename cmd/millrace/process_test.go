package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/store/storetest"
)

// The tests run the real program: this test binary, told to be millrace.
func TestMain(m *testing.M) {
	if os.Getenv("BE_MILLRACE") != "" || shim.Asked(os.Args) {
		main()
	}
	os.Exit(m.Run())
}

// millrace is the program with these arguments and a clean environment.
func millrace(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = []string{"BE_MILLRACE=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	c.Dir = t.TempDir()
	return c
}

// server is a running one.
type server struct {
	t       *testing.T
	cmd     *exec.Cmd
	base    string
	metrics string
	log     *lockedBuffer
	drained chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a server and returns when it has said where it is.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{t: t, cmd: millrace(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...), log: &lockedBuffer{}, drained: make(chan struct{})}
	s.cmd.Stderr = s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, metrics, found := strings.Cut(lines.Text(), "Metrics are at "); found {
			s.metrics = metrics
		}
		if _, address, found := strings.Cut(lines.Text(), "(listening on "); found {
			s.base = "http://" + strings.TrimSuffix(address, ")") // public URLs may be others
			go func() { defer close(s.drained); _, _ = io.Copy(io.Discard, out) }()
			return s
		}
	}
	t.Fatalf("the server did not start: %s", s.log)
	return nil
}

// kill ends the server as a power cut would.
func (s *server) kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// call sends a request and reads the answer's JSON.
func (s *server) call(method, path, body string, headers ...string) (status int, data map[string]any, header http.Header) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.log)
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		s.t.Fatal(err)
	}
	data, _ = answer["data"].(map[string]any)
	if data == nil {
		data = answer
	}
	return resp.StatusCode, data, resp.Header
}

// signUp makes an account and returns its token and cookie.
func (s *server) signUp(name string) (token, cookie string, data map[string]any) {
	s.t.Helper()
	status, data, header := s.call("POST", "/auth/sign-up", fmt.Sprintf(`{"email":"%s@example.org","password":"correct horse","name":%q}`, name, name))
	if status != 201 {
		s.t.Fatalf("sign-up: %d %v", status, data)
	}
	cookie, _, _ = strings.Cut(header.Get("Set-Cookie"), ";")
	return data["token"].(string), cookie, data
}

func (s *server) want(status int, method, path, body string, headers ...string) map[string]any {
	s.t.Helper()
	got, data, _ := s.call(method, path, body, headers...)
	if got != status {
		s.t.Errorf("%s %s: %d, want %d: %v", method, path, got, status, data)
	}
	return data
}

func bearer(token string) string { return "Bearer " + token }

func TestANewcomersFirstMinuteSurvivesAPowerCut(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := start(t, "--data", data)
	s.want(200, "GET", "/api/health/ready", "")
	token, cookie, _ := s.signUp("ada")
	w := s.want(201, "POST", "/api/workflows", `{"name":"align"}`, "Authorization", bearer(token))
	s.want(200, "PUT", "/api/workflows/"+w["id"].(string), `{"name":"aligned"}`, "Authorization", bearer(token))
	s.kill()

	again := start(t, "--data", data, "--public-urls", s.base)
	again.want(200, "GET", "/api/me", "", "Cookie", cookie)
	if got := again.want(200, "GET", "/api/workflows/"+w["id"].(string), "", "Authorization", bearer(token)); got["name"] != "aligned" {
		t.Errorf("an acknowledged write was lost: %v", got)
	}
	again.kill()
	other := start(t, "--data", data, "--public-urls", "http://elsewhere.example")
	other.want(401, "GET", "/api/me", "", "Authorization", bearer(token)) // minted for another frontend
	other.want(200, "GET", "/api/me", "", "Cookie", cookie)
}

// Many write at once while the power goes: what was acknowledged is there, and
// what is there is whole.
func TestNoAcknowledgedWriteIsLostInTheMiddleOfALoad(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := start(t, "--data", data)
	token, cookie, _ := s.signUp("ada")
	acknowledged := make(chan string, 10_000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				r, err := http.NewRequest("POST", s.base+"/api/workflows", strings.NewReader(`{"name":"kept"}`))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", bearer(token))
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					return // the server is dead
				}
				var answer struct{ Data struct{ ID string } }
				err = json.NewDecoder(resp.Body).Decode(&answer)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 201 {
					return
				}
				acknowledged <- answer.Data.ID
			}
		})
	}
	for len(acknowledged) < 200 {
		runtime.Gosched()
	}
	s.kill()
	wg.Wait()
	close(acknowledged)
	again := start(t, "--data", data)
	fresh := again.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	for id := range acknowledged {
		if got := again.want(200, "GET", "/api/workflows/"+id, "", "Authorization", bearer(fresh)); got["name"] != "kept" {
			t.Fatalf("%s is %v", id, got)
		}
	}
}

func TestASecondServerOnTheSameFolderIsTold(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first := start(t, "--data", data)
	for _, command := range []string{"serve", "migrate"} {
		out, err := millrace(t, command, "--data", data).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "in use by another server") || !strings.Contains(string(out), fmt.Sprint(first.cmd.Process.Pid)) {
			t.Errorf("%s: %v %s", command, err, out)
		}
	}
	first.kill()
	start(t, "--data", data)
}

func TestSIGTERMEndsWellWithStatusZero(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--drain", "5s")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.drained
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, s.log)
	}
}

func TestTwoServersOnOnePostgreSQLAreOneService(t *testing.T) {
	t.Parallel()
	db := storetest.Postgres(t)
	args := []string{"--database-url", db, "--secret-key", "shared by all replicas", "--public-urls", "http://millrace.example", "--sign-up", "open"}
	a := start(t, append(args, "--data", t.TempDir())...)
	b := start(t, append(args, "--data", t.TempDir())...)

	token, cookie, data := a.signUp("ada")
	b.want(200, "GET", "/api/me", "", "Authorization", bearer(token))
	second := b.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	a.want(200, "GET", "/api/me", "", "Authorization", bearer(second))
	a.want(200, "POST", "/auth/sign-out", "", "Authorization", bearer(token))
	for _, s := range []*server{a, b} {
		s.want(401, "GET", "/api/me", "", "Authorization", bearer(token))
		s.want(401, "GET", "/api/me", "", "Authorization", bearer(second))
		s.want(401, "GET", "/api/me", "", "Cookie", cookie)
	}

	token, _, _ = a.signUp("bob")
	limited := 0
	for i := range 40 {
		if status, _, _ := []*server{a, b}[i%2].call("POST", "/api/runs", "{}", "Authorization", bearer(token)); status == 429 {
			limited++
		}
	}
	if limited != 10 {
		t.Errorf("%d of 40 requests to two servers were stopped, want 10", limited)
	}

	key := []string{"Authorization", bearer(token), "Idempotency-Key", "k"}
	first := a.want(201, "POST", "/api/workflows", `{"name":"once"}`, key...)
	if again := b.want(201, "POST", "/api/workflows", `{"name":"once"}`, key...); again["id"] != first["id"] {
		t.Error("the other server carried it out again")
	}

	team := data["team"].(map[string]any)["id"].(string)
	admin := millrace(t, "admin", "team", "set-plan", team, "pro", "--database-url", db, "--secret-key", "shared by all replicas")
	if out, err := admin.CombinedOutput(); err != nil {
		t.Errorf("%v %s", err, out)
	}
	out, err := millrace(t, "serve", "--listen", "127.0.0.1:0", "--database-url", db, "--secret-key", "not the same at all").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "secret key") {
		t.Errorf("a server with another key: %v %s", err, out)
	}
	worker := millrace(t, "worker", "--database-url", db, "--secret-key", "shared by all replicas")
	said, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.Contains(line, "works") {
		t.Errorf("%q %v", line, err)
	}
	_ = worker.Process.Signal(syscall.SIGTERM)
	if err := worker.Wait(); err != nil {
		t.Error(err)
	}
}

func TestTheOperatorWorksBesideTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, "--data", dir)
	token, cookie, data := s.signUp("ada")
	admin := func(in string, args ...string) string {
		t.Helper()
		c := millrace(t, append([]string{"admin"}, args...)...)
		c.Env = append(c.Env, "MILLRACE_DATA="+dir)
		c.Stdin = strings.NewReader(in)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v %s", args, err, out)
		}
		return string(out)
	}
	if out := admin("", "user", "list"); !strings.Contains(out, "ada@example.org") {
		t.Error(out)
	}
	team := data["team"].(map[string]any)["id"].(string)
	if out := admin("", "team", "list"); !strings.Contains(out, team) || !strings.Contains(out, "ada@example.org") {
		t.Error(out)
	}
	admin("", "team", "set-plan", team, "pro")
	if me := s.want(200, "GET", "/api/me", "", "Authorization", bearer(token)); me["team"].(map[string]any)["plan"] != "pro" {
		t.Errorf("%v", me)
	}
	admin("", "user", "disable", "Ada@example.org")
	s.want(401, "GET", "/api/me", "", "Authorization", bearer(token))
	s.want(401, "GET", "/api/me", "", "Cookie", cookie)
	s.want(403, "POST", "/auth/sign-in", `{"email":"ada@example.org","password":"correct horse"}`)
	admin("", "user", "enable", "ada@example.org")
	admin("another horse\n", "user", "set-password", "ada@example.org")
	s.want(401, "POST", "/auth/sign-in", `{"email":"ada@example.org","password":"correct horse"}`)
	s.want(200, "POST", "/auth/sign-in", `{"email":"ada@example.org","password":"another horse"}`)
	admin("a good password\n", "user", "create", "bob@example.org", "--name", "Bob")
	s.want(200, "POST", "/auth/sign-in", `{"email":"bob@example.org","password":"a good password"}`)

	for _, bad := range [][]string{
		{"admin", "team", "set-plan", team, "platinum", "--data", dir},
		{"admin", "team", "set-plan", "team_nobody", "pro", "--data", dir},
		{"admin", "user", "disable", "nobody@example.org", "--data", dir},
		{"admin", "user", "list", "--data", t.TempDir()},
		{"worker", "--data", dir},
		{"serve", "--public-urls", "https://example.org/path"},
		{"serve", "--tls-cert", "only.pem"},
		{"serve", "--trusted-proxies", "everybody"},
		{"serve", "--task-disk", "much"},
		{"serve", "--no-such-flag"},
	} {
		out, err := millrace(t, bad...).CombinedOutput()
		if err == nil || !strings.HasPrefix(string(out), "millrace: ") {
			t.Errorf("%v: %v %s", bad, err, out)
		}
	}
}

func TestTheDoctorSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	start(t, "--data", dir)
	out, err := millrace(t, "admin", "doctor", "--data", dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok       database") {
		t.Errorf("%v %s", err, out)
	}
	out, err = millrace(t, "admin", "doctor", "--data", dir, "--secret-key", "not the one it has").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "WRONG    database") {
		t.Errorf("%v %s", err, out)
	}
	out, err = millrace(t, "admin", "doctor", "--data", dir, "--smtp-url", "smtp://127.0.0.1:1?from=a@b.c").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "WRONG    mail") {
		t.Errorf("%v %s", err, out)
	}
}

// Every setting of the contract is a flag, a variable, a line of help and one
// of the documentation.
func TestSettingsAreFlagsVariablesAndHelp(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operating/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := millrace(t, "serve", "--help").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(`listen tls-cert tls-key admin-listen data public-urls collab-url database-url storage-url
		secret-key sign-up executor sandbox task-network task-disk image-registries identity oidc-providers clerk-secret-key
		ai-base-url ai-model ai-api-key chat-per-day chat-daily-quota crossref-url openalex-url unpaywall-url contact-email
		fetch-allow-private payments stripe-secret-key stripe-webhook-secret stripe-api-url smtp-url trusted-proxies
		runs-per-minute analyses-per-day plan-free-run-seconds plans-file drain`) {
		variable := "$MILLRACE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if !strings.Contains(string(out), "--"+name) || !strings.Contains(string(out), variable) {
			t.Errorf("--%s and %s are not both in the help", name, variable)
		}
	}
	for _, flag := range regexp.MustCompile(`(?m)^ +--([a-z-]+)`).FindAllStringSubmatch(string(out), -1) {
		if !strings.Contains(string(page), "| `--"+flag[1]+"` |") {
			t.Errorf("--%s is not in docs/operating/settings.md", flag[1])
		}
	}
	c := millrace(t, "serve")
	c.Env = append(c.Env, "MILLRACE_LISTEN=127.0.0.1:0", "MILLRACE_RUNS_PER_MINUTE=0")
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "--runs-per-minute") {
		t.Errorf("%v %s", err, out)
	}
}

func TestItEndsTLSItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate, key, pool := selfSigned(t, dir)
	s := start(t, "--data", dir, "--tls-cert", certificate, "--tls-key", key)
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	resp, err := client.Get(strings.Replace(s.base, "http://", "https://", 1) + "/api/health")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.ProtoMajor != 2 || resp.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%d by HTTP/%d with %v", resp.StatusCode, resp.ProtoMajor, resp.Header)
	}
}

// selfSigned makes a certificate for 127.0.0.1 that pool trusts.
func selfSigned(t *testing.T, dir string) (certificate, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return certificate, key, pool
}

// Metrics are on their own listener, and nowhere else.
func TestMetricsStayOnTheAdminListener(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--admin-listen", "127.0.0.1:0")
	s.want(200, "GET", "/api/health", "")
	s.want(404, "GET", "/metrics", "")
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(s.metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), `millrace_http_requests_total{method="GET",route="GET /api/health",status="200"} 1`) {
		t.Errorf("%v %s", err, text)
	}
}
