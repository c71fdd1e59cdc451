package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/store/storetest"
)

// TestNginxPassesOverAServerThatRestarts restarts two servers one after the other, behind
// nginx with the file of the documentation, while requests flow.
func TestNginxPassesOverAServerThatRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the program")
	}
	nginx := lookNginx(t)
	var net [2]byte
	_, _ = rand.Read(net[:]) // others test here, too
	at := func(host int) string { return fmt.Sprintf("127.%d.%d.%d:8080", net[0]|1, net[1], host) }
	db, plans := storetest.Postgres(t), filepath.Join(t.TempDir(), "plans.json")
	if err := os.WriteFile(plans, []byte(labPage(t, "json")), 0o600); err != nil {
		t.Fatal(err)
	}
	launchAt := func(address, data string) *server {
		t.Helper()
		return launch(t, millrace(t, "serve", "--listen", address, "--data", data, "--database-url", db,
			"--secret-key", "shared by all servers", "--public-urls", "http://millrace.example.org", "--trusted-proxies", "127.0.0.0/8", "--sign-up", "open", "--plans-file", plans))
	}
	addresses, folders := []string{at(11), at(12)}, []string{t.TempDir(), t.TempDir()}
	var servers []*server
	for i := range addresses {
		servers = append(servers, launchAt(addresses[i], folders[i]))
	}
	startNginx(t, nginx, at(1), addresses)
	token, _, _ := (&server{t: t, base: "http://" + at(1), log: &lockedBuffer{}}).signUp("ada")

	f := &flow{t: t, base: "http://" + at(1), token: token, done: make(chan struct{})}
	f.start()
	for i, s := range servers {
		f.goesOn()
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-s.drained
		if err := s.cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, s.log)
		}
		f.goesOn()
		launchAt(addresses[i], folders[i]).want(200, "GET", "/api/health/ready", "")
	}
	f.goesOn()
	f.stop()
}

func lookNginx(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"nginx", "/usr/sbin/nginx"} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Skip("there is no nginx: scripts/setup test brings it")
	return ""
}

// labPage is the example in a language on the page of the documentation.
func labPage(t *testing.T, language string) string {
	t.Helper()
	for _, e := range examplesOf(t, "operating/lab.md") {
		if e.language == language {
			return e.text
		}
	}
	t.Fatal("the page has nothing in", language)
	return ""
}

// startNginx starts nginx with the file on the page of the documentation. Only what has to
// differ here does: addresses, and no certificate.
func startNginx(t *testing.T, program, listen string, servers []string) {
	t.Helper()
	site := regexp.MustCompile(`(?m)^ *ssl_.*\n`).ReplaceAllString(labPage(t, "nginx"), "")
	site = strings.NewReplacer("listen 443 ssl;", "listen "+listen+";", "10.0.0.11:8080", servers[0], "10.0.0.12:8080", servers[1]).Replace(site)
	dir := t.TempDir()
	config := filepath.Join(dir, "nginx.conf")
	var temporary strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temporary, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	whole := fmt.Sprintf("daemon off;\nmaster_process off;\npid %s/pid;\nevents {}\nhttp {\naccess_log off;\n%s%s}\n", dir, &temporary, site)
	if err := os.WriteFile(config, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &lockedBuffer{}
	c := exec.Command(program, "-p", dir, "-e", "stderr", "-c", config)
	c.Stderr = said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("nginx: %s", said)
		}
	})
	await(t, "nginx answers", func() bool {
		resp, err := http.Get("http://" + listen + "/api/health")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
}

// flow is people who send one request after the other.
type flow struct {
	t           *testing.T
	base, token string
	done        chan struct{}
	group       sync.WaitGroup
	sent        [2]atomic.Int64
}

func (f *flow) start() {
	for i, one := range []struct{ method, path, body string }{
		{"GET", "/api/me", ""},
		{"POST", "/api/billing/estimate", `{}`},
	} {
		for range 3 {
			f.group.Go(func() {
				for f.send(one.method, one.path, one.body) {
					f.sent[i].Add(1)
				}
			})
		}
	}
}

// send reports whether more is to be sent.
func (f *flow) send(method, path, body string) bool {
	select {
	case <-f.done:
		return false
	default:
	}
	r, err := http.NewRequest(method, f.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		f.t.Error(err)
		return false
	}
	r.Header.Set("Authorization", bearer(f.token))
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Error(err)
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		f.t.Errorf("%s %s: %d %s %v", method, path, resp.StatusCode, text, err)
		return false
	}
	return true
}

// goesOn waits until more requests of each kind were answered.
func (f *flow) goesOn() {
	f.t.Helper()
	before := [2]int64{f.sent[0].Load(), f.sent[1].Load()}
	await(f.t, "requests are answered", func() bool {
		return f.t.Failed() || f.sent[0].Load() >= before[0]+20 && f.sent[1].Load() >= before[1]+20
	})
	if f.t.Failed() {
		f.t.FailNow()
	}
}

func (f *flow) stop() {
	close(f.done)
	f.group.Wait()
}
