package main

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	theirAccessKey = "AKIA7QUAHOG3MOLLUSC9"
	theirSecretKey = "Quahog/mollusc+73=\"deep\"\\sea&<x>"
	theirToken     = "tok/Periwinkle+41=\"reef\"\\bay&<y>"
	theirPassword  = "pw/Cuttlefish+58=\"kelp\"\\cove&<z>"
)

// echoing is a host that says all that it was sent, in every way a host can: in the
// text, in headers, in the name of an error, and in an address that it sends us on to.
type echoing struct {
	revoked atomic.Bool
	mu      sync.Mutex
	heard   map[string]bool // which credentials came
}

func (e *echoing) hear(r *http.Request) string {
	sent := r.Header.Get("Authorization") + r.Header.Get("X-Key")
	_, password, _ := r.BasicAuth()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, secret := range []string{theirAccessKey, theirToken, theirPassword} {
		if strings.Contains(sent+password, secret) {
			e.heard[secret] = true
		}
	}
	return sent
}

func (e *echoing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent := e.hear(r)
	switch {
	case strings.HasSuffix(r.URL.Path, "/genome.fa") && !e.revoked.Load():
		w.Header().Set("ETag", `"e1"`)
		http.ServeContent(w, r, "genome.fa", time.Unix(1, 0), strings.NewReader("genome"))
	case r.URL.Path == "/on.fa":
		http.Redirect(w, r, "https://"+r.Host+"/nowhere?was="+sent, http.StatusFound)
	default:
		w.Header().Set("X-Echo", sent)
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>you sent %s to %s</Message><Resource>%s</Resource></Error>", sent, sent, r.URL, sent)
	}
}

// A connection's credentials go to its host and are found nowhere else, whatever that
// host says: not in an answer, an event, an error, an export, a log, a file or a row.
func TestCredentialsAreNowhereButAtTheirHost(t *testing.T) {
	for name, at := range map[string]func(*testing.T) *premises{"sqlite": func(t *testing.T) *premises { return &premises{t: t} }, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			credentialsAreNowhere(t, at(t))
		})
	}
}

func credentialsAreNowhere(t *testing.T, p *premises) {
	echo := &echoing{heard: map[string]bool{}}
	host := httptest.NewTLSServer(echo)
	t.Cleanup(host.Close)
	trusted := filepath.Join(t.TempDir(), "host.pem")
	if err := os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: host.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	p.args = append(p.args, "--fetch-allow-private", "--log-level", "debug")
	program := millrace(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", p.folder()}, p.args...)...)
	program.Env = append(program.Env, "SSL_CERT_FILE="+trusted)
	s := launch(t, program)
	token, cookie, _ := s.signUp("ada")
	s.verify("ada")
	as := []string{"Cookie", cookie}
	at := strings.TrimPrefix(host.URL, "https://")
	var told strings.Builder
	ask := func(method, path, body string) string {
		t.Helper()
		text := s.text(method, path, body, as...)
		fmt.Fprintf(&told, "%s %s: %s\n", method, path, text)
		return text
	}
	made := map[string]string{}
	for kind, more := range map[string]string{
		"s3":    fmt.Sprintf(`"type":"s3","endpoint":%q,"bucket":"lab","accessKey":%q,"secretKey":%q`, host.URL, theirAccessKey, theirSecretKey),
		"https": fmt.Sprintf(`"type":"https","host":%q,"header":"X-Key","token":%q`, at, theirToken),
		"git":   fmt.Sprintf(`"type":"git","host":%q,"username":"ada","password":%q`, at, theirPassword),
	} {
		if made[kind] = idIn.FindString(ask("POST", "/api/connections", `{"name":"`+kind+`",`+more+`}`)); made[kind] == "" {
			t.Fatalf("%s: %s", kind, told.String())
		}
		ask("POST", "/api/connections/"+made[kind]+"/test", "")
		ask("GET", "/api/connections/"+made[kind]+"/objects", "")
		ask("POST", "/api/connections", `{"name":"`+strings.Repeat("long", 100)+`",`+more+`}`) // refused
		ask("POST", "/api/connections", `{"name":"x","unknown":1,`+more+`}`)
	}
	w := s.workflow(token, `{"inputs":{"ref":{"type":"file"}},"nodes":[{"id":"a","inputs":{"in":{"from":"inputs.ref"}},"command":"env; cat \"$INPUT_in\""}]}`)
	body := func(path, kind string) string {
		return fmt.Sprintf(`{"workflowId":%q,"inputs":{"ref":{"url":%q,"connection":%q}}}`, w, path, made[kind])
	}
	run := s.run(token, body(host.URL+"/genome.fa", "https"))
	if r := s.endedFor(cookie, run); r["status"] != "completed" {
		t.Errorf("%v: %v", r["status"], r["errorMessage"])
	}
	bucket := s.run(token, body("s3://lab/genome.fa", "s3"))
	if r := s.endedFor(cookie, bucket); r["status"] != "completed" {
		t.Errorf("%v: %v", r["status"], r["errorMessage"])
	}
	ask("POST", "/api/runs", body(host.URL+"/on.fa", "https"))
	ask("POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":"%s/lab/reads.git","connection":%q}}`, host.URL, made["git"]))
	echo.revoked.Store(true)
	ask("POST", "/api/runs", body(host.URL+"/genome.fa", "https"))
	ask("POST", "/api/runs", body("s3://lab/genome.fa", "s3"))
	ask("POST", "/api/runs/"+run+"/retry", "")
	ask("POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q,"inputs":{"ref":"x"},"outputTo":{"url":"s3://lab/out/","connection":%q}}`, w, made["s3"]))
	for _, path := range []string{
		"/api/connections", "/api/runs/" + run, "/api/runs/" + run + "/events", "/api/runs/" + run + "/logs?nodeId=a", "/api/runs/" + bucket,
		"/api/workflows/" + w, "/api/audit", "/api/account/data", "/api/notifications", "/api/runs",
	} {
		ask("GET", path, "")
	}
	told.WriteString(s.streamed(run, "genome", as...))
	echo.mu.Lock()
	if len(echo.heard) != 3 {
		t.Errorf("only %v were sent: the test looks at too little", echo.heard)
	}
	echo.mu.Unlock()
	words := []string{theirAccessKey}
	for _, secret := range []string{theirSecretKey, theirToken, theirPassword} {
		words = append(words, forms(secret)...)
	}
	for _, word := range words {
		if strings.Contains(told.String(), word) {
			t.Errorf("an answer tells %q: %s", word, around(told.String(), word))
		}
		if strings.Contains(s.log.String(), word) {
			t.Errorf("the log tells %q: %s", word, around(s.log.String(), word))
		}
	}
	if found := p.traces(words...); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

var idIn = regexp.MustCompile(`conn_[0-9a-z]+`)

// text is an answer as it comes.
func (s *server) text(method, path, body string, headers ...string) string {
	s.t.Helper()
	resp := s.send(method, path, body, headers...)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprint(resp.StatusCode, resp.Header, string(text))
}

// around is where a text has a word.
func around(text, word string) string {
	at := strings.Index(text, word)
	return text[max(0, at-200):min(len(text), at+200)]
}

// claiming is an endpoint that says of whatever is asked for that it is one object, and
// gives it to those who have a key.
func claiming(t *testing.T, text, key string) (endpoint string, given *atomic.Int64) {
	t.Helper()
	given = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && !r.URL.Query().Has("list-type") {
			if !strings.Contains(r.Header.Get("Authorization"), "Credential="+key+"/") {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			given.Add(1)
		}
		w.Header().Set("ETag", `"0123456789abcdef0123456789abcdef"`)
		http.ServeContent(w, r, "reads", time.Unix(1, 0), strings.NewReader(text))
	}))
	t.Cleanup(server.Close)
	return server.URL, given
}

// Another endpoint that claims the same address, etag and size gets nobody's bytes, and
// neither does another team at the same endpoint: what it may not read it does not get
// from what others have read, and nothing that was computed from it.
func TestAnotherEndpointGetsNobodysBytes(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private")
	real, _ := claiming(t, "ada's reads", "theirs")
	fake, fromFake := claiming(t, "eve's reads", "theirs")
	const definition = `{"inputs":{"ref":{"type":"file"}},"nodes":[{"id":"a","cache":true,"inputs":{"in":{"from":"inputs.ref"}},"command":"cp \"$INPUT_in\" o","outputs":{"o":{"path":"o"}}}]}`
	type person struct{ token, cookie, workflow string }
	enter := func(name string) person {
		token, cookie, _ := s.signUp(name)
		return person{token, cookie, s.workflow(token, definition)}
	}
	ada, eve := enter("ada"), enter("eve")
	run := func(who person, endpoint, key string) (r map[string]any, read string) {
		t.Helper()
		connection := s.want(201, "POST", "/api/connections", fmt.Sprintf(`{"name":"lab","type":"s3","endpoint":%q,"bucket":"lab","accessKey":%q,"secretKey":"s"}`, endpoint, key), "Cookie", who.cookie)["id"]
		id := s.run(who.token, fmt.Sprintf(`{"workflowId":%q,"inputs":{"ref":{"url":"s3://lab/reads","connection":%q}}}`, who.workflow, connection))
		if r = s.ended(who.token, id); r["status"] == "completed" {
			read = string(download(t, s.outputsOf(who.token, id)["o"]["url"].(string)))
		}
		return r, read
	}
	for _, step := range []struct {
		name     string
		who      person
		endpoint string
		want     string
	}{
		{"the first", ada, real, "ada's reads"}, {"another team's endpoint", eve, fake, "eve's reads"}, {"another endpoint of the team", ada, fake, "eve's reads"}, {"the first again", ada, real, "ada's reads"},
	} {
		if r, read := run(step.who, step.endpoint, "theirs"); read != step.want {
			t.Errorf("%s: %q: %v", step.name, read, r["errorMessage"])
		}
	}
	if fromFake.Load() < 2 {
		t.Error("two teams have shared what one of them read")
	}
	if r, _ := run(eve, real, "another"); r["status"] != "failed" || r["errorCode"] != "input_unreachable" {
		t.Errorf("without a key to what another team has read: %v, %v", r["status"], r["errorCode"])
	}
}
