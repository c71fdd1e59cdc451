package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/millrace/millrace/internal/waittest"
)

// imageHub is a real registry whose layers wait behind a gate.
func imageHub(t *testing.T) (host string, gate *atomic.Pointer[chan struct{}]) {
	t.Helper()
	gate = &atomic.Pointer[chan struct{}]{}
	next := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait := gate.Load(); wait != nil && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			if *wait == nil { // the registry has lost them
				http.NotFound(w, r)
				return
			}
			select {
			case <-*wait:
			case <-r.Context().Done():
			}
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), gate
}

// pushImage makes an image of programs of this machine, and of what they need.
func pushImage(t *testing.T, ref, release string, programs ...string) string {
	t.Helper()
	files := map[string][]byte{"etc/release": []byte(release + "\n")}
	for _, program := range programs {
		found, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		needs, err := exec.Command("ldd", found).Output()
		if err != nil {
			t.Skip("ldd does not tell what a program needs")
		}
		text, err := os.ReadFile(found)
		if err != nil {
			t.Fatal(err)
		}
		files["opt/lab/bin/"+program] = text
		for word := range strings.FieldsSeq(string(needs)) {
			if strings.HasPrefix(word, "/") {
				if files[word[1:]], err = os.ReadFile(word); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for name, body := range files {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o700, Uid: 4242, Gid: 4242, Size: int64(len(body))}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err == nil {
		image, err = mutate.ConfigFile(image, configOf(t, image))
	}
	parsed, perr := name.ParseReference(ref)
	if err != nil || perr != nil {
		t.Fatal(err, perr)
	}
	if err := remote.Write(parsed, image); err != nil {
		t.Fatal(err)
	}
	return ref
}

func configOf(t *testing.T, image v1.Image) *v1.ConfigFile {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{
		Env:        []string{"PATH=/opt/lab/bin", "LAB=image", "WHO=image", "HOME=/root", "NODE_ID=image", "TMPDIR=/nowhere"},
		WorkingDir: "/opt", Entrypoint: []string{"/bin/false"}, Cmd: []string{"/bin/false"}, User: "0",
	}
	return config
}

func TestATaskRunsInItsImage(t *testing.T) {
	t.Parallel()
	host, gate := imageHub(t)
	ref := pushImage(t, host+"/lab/tool:1", "lab one", "bash")
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private")
	token, _, _ := s.signUp("ada")

	wait := make(chan struct{})
	gate.Store(&wait)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, fmt.Sprintf(`{"nodes":[
		{"id":"host","command":"echo from the host > h","outputs":{"h":{"path":"h"}}},
		{"id":"in","image":%q,"env":{"WHO":"author"},"outputs":{"o":{"path":"o"}},"command":
			"read r < /etc/release; echo \"$r|$PATH|$LAB|$WHO|$HOME|$NODE_ID|$TMPDIR|$PWD|$UID|$(type -P awk || echo no awk)\"; echo x > /tmp/x; echo y > /var/tmp/y; : > o; (: > /opt/w) 2>/dev/null || echo read-only; echo /*"}],
		"edges":[{"id":"e","source":"host","target":"in"}]}`, ref))))
	nodes := func() string {
		r := s.want(200, "GET", "/api/runs/"+id, "", "Authorization", bearer(token))
		var states []string
		for _, raw := range r["nodes"].([]any) {
			n := raw.(map[string]any)
			states = append(states, fmt.Sprintf("%v %v", n["id"], n["status"]))
		}
		return strings.Join(states, ", ")
	}
	if !waittest.Until(func() bool { return strings.Contains(nodes(), "host succeeded") }) {
		t.Fatalf("a pull holds up everything: %s", nodes())
	}
	if got := nodes(); !strings.Contains(got, "in queued") {
		t.Errorf("while its image is pulled: %s", got)
	}
	close(wait)
	r := s.ended(token, id)
	want := "lab one|/opt/lab/bin|image|author|/tmp|in|/tmp|/work|1000|no awk\nread-only\n"
	if logs := r["logs"].(string); r["status"] != "completed" || !strings.Contains(logs, want) || strings.Contains(logs, "/home") {
		t.Errorf("%v %v\n%v", r["status"], r["errorMessage"], logs)
	}
}

func TestCancelDoesNotWaitForAnImage(t *testing.T) {
	t.Parallel()
	host, gate := imageHub(t)
	ref := pushImage(t, host+"/lab/tool:1", "lab one", "bash")
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private")
	token, _, _ := s.signUp("ada")
	never := make(chan struct{})
	gate.Store(&never)
	for label, tt := range map[string]struct{ definition, status string }{
		"of a first node": {`{"nodes":[{"id":"a","image":%q,"command":"true"}]}`, "queued"},
		"of a later one": {`{"nodes":[{"id":"first","command":"true"},{"id":"a","image":%q,"command":"true"}],
			"edges":[{"id":"e","source":"first","target":"a"}]}`, "running"},
	} {
		id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, fmt.Sprintf(tt.definition, ref))))
		await(t, "the image "+label+" to be asked for", func() bool {
			r := s.want(200, "GET", "/api/runs/"+id, "", "Authorization", bearer(token))
			waiting, _ := r["waiting"].(map[string]any)
			return r["status"] == tt.status && (tt.status == "running" || waiting["reason"] == "image")
		})
		s.want(200, "POST", "/api/runs/"+id+"/cancel", "", "Authorization", bearer(token))
		if r := s.ended(token, id); r["status"] != "cancelled" {
			t.Errorf("%s: %v", label, r["status"])
		}
	}
}

func TestAnImageThatCannotBeUsedSaysWhy(t *testing.T) {
	t.Parallel()
	host, _ := imageHub(t)
	noBash := pushImage(t, host+"/lab/small:1", "small", "sleep")
	open, bare := start(t, "--data", t.TempDir(), "--fetch-allow-private"), start(t, "--data", t.TempDir(), "--fetch-allow-private", "--sandbox", "none")
	closed := start(t, "--data", t.TempDir())
	for label, tt := range map[string]struct {
		on          *server
		image, code string
		want        []string
	}{
		"no bash in it":     {open, noBash, "node_failed", []string{"Step a cannot start: ", "the image has no bash", "interpreter"}},
		"no such tag":       {open, host + "/lab/small:2", "image_unavailable", []string{"404", "check the name and the tag"}},
		"no sandbox":        {bare, noBash, "image_unavailable", []string{"--sandbox none"}},
		"a private network": {closed, noBash, "image_unavailable", []string{"--fetch-allow-private"}},
	} {
		t.Run(label, func(t *testing.T) {
			token, _, _ := tt.on.signUp(strings.ReplaceAll(label, " ", ""))
			id := tt.on.run(token, fmt.Sprintf(`{"workflowId":%q}`, tt.on.workflow(token, fmt.Sprintf(`{"nodes":[{"id":"a","image":%q,"command":"true","retries":{"max":3,"on":["oom"]}}]}`, tt.image))))
			r := tt.on.ended(token, id)
			if r["status"] != "failed" || r["errorCode"] != tt.code {
				t.Errorf("%v, %v", r["status"], r["errorCode"])
			}
			for _, word := range tt.want {
				if !strings.Contains(r["errorMessage"].(string), word) {
					t.Errorf("it says %q, without %q", r["errorMessage"], word)
				}
			}
		})
	}
}

func TestTheCacheKnowsAnImageByItsDigest(t *testing.T) {
	t.Parallel()
	host, gate := imageHub(t)
	ref := pushImage(t, host+"/lab/tool:1", "lab one", "bash")
	data := t.TempDir()
	s := start(t, "--data", data, "--fetch-allow-private")
	token, _, _ := s.signUp("ada")
	w := s.workflow(token, fmt.Sprintf(`{"nodes":[{"id":"a","image":%q,"cache":true,"command":"read r < /etc/release; echo $r > o; echo $r","outputs":{"o":{"path":"o"}}}]}`, ref))
	run := func() map[string]any {
		r := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w)))
		if r["status"] != "completed" {
			t.Fatalf("%v: %v", r["status"], r["errorMessage"])
		}
		return r
	}
	run()
	if err := os.RemoveAll(filepath.Join(data, "images", "sha256")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(data, "images", "sha256"), 0o700); err != nil {
		t.Fatal(err)
	}
	var lost chan struct{}
	gate.Store(&lost)
	if r := run(); strings.Contains(r["logs"].(string), "lab") { // what is not run needs no image
		t.Errorf("it ran again: %v", r["logs"])
	}
	gate.Store(nil)
	pushImage(t, ref, "lab two", "bash")
	if r := run(); !strings.Contains(r["logs"].(string), "lab two") {
		t.Errorf("the tag has moved, and it did not run again: %v", r["logs"])
	}
}

// A task in an image outlives the server, and its image the pulls of the next
// one, although there is no room for both.
func TestATaskKeepsItsImageWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	host, _ := imageHub(t)
	first, second := pushImage(t, host+"/lab/tool:1", "one", "bash", "sleep"), pushImage(t, host+"/lab/tool:2", "two"+strings.Repeat(" ", 7<<20), "bash")
	data := t.TempDir()
	args := []string{"--data", data, "--fetch-allow-private", "--image-cache", "12MB"}
	s := start(t, args...)
	base := s.base
	token, cookie, _ := s.signUp("ada")
	w := s.workflow(token, fmt.Sprintf(`{"nodes":[{"id":"a","image":%q,"command":"echo up; until [ -e go ]; do sleep 0.02; done; cat() { while read l; do echo $l; done < $1; }; cat /etc/release"}]}`, first))
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w))
	s.logged(token, id, "up")
	s.kill()
	s = start(t, append(args, "--public-urls", base)...)
	token = s.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	other := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, fmt.Sprintf(`{"nodes":[{"id":"b","image":%q,"command":"echo two"}]}`, second))))
	if r := s.ended(token, other); r["status"] != "completed" {
		t.Fatalf("%v: %v", r["status"], r["errorMessage"])
	}
	if err := os.WriteFile(filepath.Join(data, "attempts", id+".a.0.1", "work", "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := s.ended(token, id); r["status"] != "completed" || !strings.Contains(r["logs"].(string), "up\none\n") {
		t.Errorf("%v: %v\n%v", r["status"], r["errorMessage"], r["logs"])
	}
}
