package main

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	theSecret = "Quahog/mollusc+73 \"deep\" \\ sea"
	longOne   = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7\n-----END KEY-----"
)

// forms are what a thief would look for.
func forms(secret string) []string {
	encoded := base64.StdEncoding.EncodeToString
	inner := func(before string) string { // what only the secret says of it
		text := encoded([]byte(before + secret))
		return text[8 : len(text)-8]
	}
	escaped, _ := json.Marshal(secret) // what HTML would read is written \u003c
	return []string{
		secret, inner(""), inner("x"), inner("xy"), hex.EncodeToString([]byte(secret)), strings.ReplaceAll(strings.ReplaceAll(secret, `\`, `\\`), `"`, `\"`),
		strings.Trim(string(escaped), `"`), url.QueryEscape(secret), url.PathEscape(secret), base64.URLEncoding.EncodeToString([]byte(secret)),
	}
}

const printer = `printf '%s\n' \"$SECRET_DEEP\"; printf %s \"$SECRET_DEEP\" | base64; printf 'x%s' \"$SECRET_DEEP\" | base64 -w 0; echo
printf %s \"$SECRET_DEEP\" | od -An -tx1 | tr -d ' \\n'; echo; printf %s \"${SECRET_DEEP:0:11}\"; sleep 0.3; printf '%s\n' \"${SECRET_DEEP:11}\"
python3 -c 'import json, os, urllib.parse; s = os.environ[\"SECRET_DEEP\"]; print(json.dumps({\"s\": s})); print(urllib.parse.quote_plus(s)); print(urllib.parse.quote(s, safe=\"\"))' || true
printf '%s\n' \"$SECRET_LONG\" >&2`

// A secret reaches its command and nobody else: not by a log, an event, an error
// or an export, not by a file of the installation, its database or its objects,
// while its task runs, when the server is killed beside it, and afterwards.
func TestASecretIsNowhereButInItsCommand(t *testing.T) {
	t.Parallel()
	secretIsNowhere(t, &premises{t: t})
}

func TestASecretIsNowhereButInItsCommandOnPostgreSQL(t *testing.T) {
	t.Parallel()
	secretIsNowhere(t, onPostgres(t))
}

// On a cluster it is not in what Slurm keeps or shows either.
func TestASecretIsNowhereButInItsCommandOnSlurm(t *testing.T) {
	t.Parallel()
	secretIsNowhere(t, onCluster(t))
}

// In pods it is in nothing that Kubernetes keeps or shows.
func TestASecretIsNowhereButInItsCommandOnKubernetes(t *testing.T) {
	t.Parallel()
	secretIsNowhere(t, onPods(t))
}

func secretIsNowhere(t *testing.T, p *premises) {
	folder := p.folder()
	s := p.serve(folder)
	token, cookie, _ := s.signUp("ada")
	s.verify("ada")                  // off loopback a run needs it
	as := []string{"Cookie", cookie} // a token is bound to the port
	for name, value := range map[string]string{"DEEP": theSecret, "LONG": longOne} {
		s.want(200, "PUT", "/api/secrets/"+name, fmt.Sprintf(`{"value":%q}`, value), as...)
	}
	w := s.workflow(token, fmt.Sprintf(`{"nodes":[
		{"id":"a","secrets":["DEEP","LONG"],"command":"%s\necho printed; %s; printf '%%s' \"$SECRET_DEEP\" | sha256sum > sum; [ ${#SECRET_LONG} = %d ]; echo \"fails because of $SECRET_DEEP\" >&2; exit 3",
		 "outputs":{"sum":{"path":"sum"}}},
		{"id":"b","command":"env | grep -c SECRET_ || true"}]}`, strings.ReplaceAll(printer, "\n", `\n`), p.pause(), len(longOne)))
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w))
	await(t, "what it prints", func() bool {
		return strings.Contains(s.want(200, "GET", "/api/runs/"+id, "", as...)["logs"].(string), "printed")
	})
	words := append(forms(theSecret), strings.Split(longOne, "\n")...)
	look := func(when string) {
		t.Helper()
		if found := p.traces(words...); len(found) > 0 {
			t.Errorf("%s: %v", when, found)
		}
	}
	look("while it runs")
	streams := []string{s.streamed(id, "printed", as...)}
	s.kill()
	look("beside a dead server")
	s = p.serve(folder)
	p.goOn()
	r := s.endedFor(cookie, id)
	if r["status"] != "failed" || r["errorMessage"] != "Step a exited with status 3" {
		t.Errorf("%v: %v", r["status"], r["errorMessage"])
	}
	if logs := r["logs"].(string); strings.Count(logs, "***") < 8 || !strings.Contains(logs, "fails because of ***") || !strings.Contains(logs, "0\n") {
		t.Errorf("the log is %q", logs)
	}
	for _, path := range []string{"/api/runs/" + id, "/api/runs/" + id + "/events", "/api/runs/" + id + "/logs?nodeId=a", "/api/secrets", "/api/workflows/" + w, "/api/account/data"} {
		text := fmt.Sprint(s.want(200, "GET", path, "", as...))
		for _, word := range words {
			if strings.Contains(text, word) {
				t.Errorf("%s tells %q: %s", path, word, text)
			}
		}
	}
	for _, text := range append(streams, s.streamed(id, "fails because of ", as...)) {
		for _, word := range words {
			if !strings.Contains(text, "***") || strings.Contains(text, word) {
				t.Errorf("the stream tells %q: %s", word, text)
			}
		}
	}
	look("after its end")
	if text, err := os.ReadFile(filepath.Join(folder, "secret.key")); err == nil && strings.Contains(s.log.String(), strings.TrimSpace(string(text))) {
		t.Error("the log of the server has its key")
	}
}

// streamed reads the stream of a run until it has said a word.
func (s *server) streamed(id, word string, headers ...string) (text string) {
	s.t.Helper()
	r, err := http.NewRequest("GET", s.base+"/api/runs/"+id+"/stream", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewReader(resp.Body); !strings.Contains(text, word); {
		line, err := lines.ReadString('\n')
		if text += line; err != nil {
			s.t.Fatalf("the stream ends without %q: %v: %s", word, err, text)
		}
	}
	return text
}

// What was computed with one value of a secret is not reused with another, and
// deleting the secret between makes no difference.
func TestTheVersionOfASecretIsInTheCacheKey(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir())
	token, _, _ := s.signUp("ada")
	as := []string{"Authorization", bearer(token)}
	w := s.workflow(token, `{"nodes":[{"id":"a","cache":true,"secrets":["KEY"],"command":"echo ${#SECRET_KEY} > o","outputs":{"o":{"path":"o"}}}]}`)
	if e := s.want(400, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), as...); e["code"] != "incomplete_workflow" {
		t.Errorf("%v", e)
	}
	node := func() map[string]any {
		t.Helper()
		r := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w)))
		if r["status"] != "completed" {
			t.Fatalf("%v", r)
		}
		return r["nodes"].([]any)[0].(map[string]any)
	}
	put := func() { s.want(200, "PUT", "/api/secrets/KEY", `{"value":"long enough"}`, as...) }
	put()
	if n := node(); n["cached"] != false {
		t.Errorf("%v", n)
	}
	if n := node(); n["cached"] != true {
		t.Errorf("the same version: %v", n)
	}
	put()
	if n := node(); n["cached"] != false || !strings.Contains(n["cacheMiss"].(string), "`SECRET_KEY` was version 1 of ") {
		t.Errorf("the next version: %v", n)
	}
	s.want(200, "DELETE", "/api/secrets/KEY", "", as...)
	put() // its first version, again
	if n := node(); n["cached"] != false {
		t.Errorf("another first version: %v", n)
	}
	if used := s.want(200, "GET", "/api/secrets", "", as...)["data"].([]any)[0].(map[string]any)["lastUsedAt"]; used == nil {
		t.Error("nobody noted the use")
	}
}
