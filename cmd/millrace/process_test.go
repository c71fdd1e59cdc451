package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/git/unpack"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// The tests run the real program: this test binary, told to be millrace.
func TestMain(m *testing.M) {
	setClock()
	if os.Getenv("BE_MILLRACE") != "" || job.IsCall(os.Args) || unpack.IsCall(os.Args) {
		main()
	}
	waittest.Main(m)
}

// millrace is the program with these arguments and a clean environment, in which pip
// asks an index that nobody answers for.
func millrace(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs the program")
	}
	c := exec.Command(os.Args[0], args...)
	c.Env = []string{"BE_MILLRACE=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PIP_INDEX_URL=http://127.0.0.1:1/simple/"}
	if slices.Contains(args, "doctor") { // which looks whether the port is free
		c.Env = append(c.Env, "MILLRACE_LISTEN=127.0.0.1:0")
	}
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
	// Room for all runs of a test, however small the machine; the last of two
	// settings counts.
	cmd := millrace(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--capacity", "vcpu=64,ramGb=256"}, args...)...)
	putDatabase(t, cmd)
	return launch(t, cmd)
}

// putDatabase gives a server without a database an empty one: to make its tables takes
// the most of a first start. The first test below has that done.
func putDatabase(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if slices.Contains(cmd.Args, "--database-url") {
		return
	}
	folder := filepath.Join(cmd.Dir, "millrace-data")
	for i, arg := range cmd.Args {
		if arg == "--data" {
			folder = cmd.Args[i+1]
		}
	}
	file := filepath.Join(folder, "millrace.db")
	if _, err := os.Lstat(file); err == nil {
		return
	}
	text, err := os.ReadFile(storetest.SQLite(t)) // the folder may be on another disk
	if err := errors.Join(err, os.MkdirAll(folder, 0o700), os.WriteFile(file, text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// launch runs the program that is to become a server.
func launch(t *testing.T, cmd *exec.Cmd) *server {
	t.Helper()
	s := &server{t: t, cmd: cmd, log: &lockedBuffer{}, drained: make(chan struct{})}
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

// send sends a request. The caller closes the answer.
func (s *server) send(method, path, body string, headers ...string) *http.Response {
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
	return resp
}

// call sends a request and reads the answer's JSON.
func (s *server) call(method, path, body string, headers ...string) (status int, data map[string]any, header http.Header) {
	s.t.Helper()
	resp := s.send(method, path, body, headers...)
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

// verify follows the link in the mail to somebody who signed up here.
func (s *server) verify(name string) {
	s.t.Helper()
	data := s.cmd.Args[slices.Index(s.cmd.Args, "--data")+1]
	files, err := filepath.Glob(filepath.Join(data, "mail", "*.eml"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		if _, rest, found := strings.Cut(string(text), "/verify/"); found && strings.Contains(string(text), "To: <"+name+"@example.org>") {
			s.want(200, "POST", "/auth/verify", fmt.Sprintf(`{"token":%q}`, strings.Fields(rest)[0]))
			return
		}
	}
	s.t.Fatalf("no mail to %s", name)
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
	s := launch(t, millrace(t, "serve", "--listen", "127.0.0.1:0", "--data", data))
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
