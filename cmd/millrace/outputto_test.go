package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// door is a real S3 server behind a gate: a test says of each request whether it goes
// through, waits for ever, or is refused.
type door struct {
	t        *testing.T
	bucket   string
	prefix   string
	endpoint string
	client   *minio.Client
	secret   string

	mu     sync.Mutex
	gate   func(*http.Request) verdict
	passed []string // methods and paths of writes that went through
}

type verdict int

const (
	pass verdict = iota
	hold
	refuse
)

func newDoor(t *testing.T) *door {
	t.Helper()
	u, err := url.Parse(bucketAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	behind, err := url.Parse(q.Get("endpoint"))
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t: t, bucket: u.Host, prefix: "out-" + rand.Text() + "/", secret: q.Get("secret-key")}
	// The library's own transport gives up after a minute: joining the parts of a large object may take longer, and asking
	// for it twice loses the object.
	d.client, err = minio.New(behind.Host, &minio.Options{Creds: credentials.NewStaticV4(q.Get("access-key"), d.secret, ""), Region: q.Get("region"), Transport: http.DefaultTransport})
	if err != nil {
		t.Fatal(err)
	}
	closing, closeAll := context.WithCancel(context.Background())
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.Host = r.In.Host // which is signed
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch d.judge(r) {
		case hold:
			select {
			case <-r.Context().Done():
			case <-closing.Done():
			}
			panic(http.ErrAbortHandler)
		case refuse:
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
		if r.Method == http.MethodPut {
			d.note(r)
		}
	}))
	t.Cleanup(func() { closeAll(); front.Close() })
	d.endpoint = front.URL
	return d
}

func (d *door) judge(r *http.Request) verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gate == nil {
		return pass
	}
	return d.gate(r)
}

func (d *door) note(r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.passed = append(d.passed, strings.TrimPrefix(r.URL.Path, "/"+d.bucket+"/"+d.prefix)+part(r))
}

func part(r *http.Request) string {
	if n := r.URL.Query().Get("partNumber"); n != "" {
		return " part " + n
	}
	return ""
}

func (d *door) set(gate func(*http.Request) verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate = gate
}

// writes are what went through, counted.
func (d *door) writes() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	counts := map[string]int{}
	for _, w := range d.passed {
		counts[w]++
	}
	return counts
}

func (d *door) connection(s *server, as ...string) string {
	made := s.want(201, "POST", "/api/connections", fmt.Sprintf(`{"name":"lab","type":"s3","endpoint":%q,"bucket":%q,"prefix":%q,"accessKey":"millrace","secretKey":%q}`,
		d.endpoint, d.bucket, d.prefix, d.secret), as...)
	return made["id"].(string)
}

// names are what is in the bucket.
func (d *door) names() (names []string) {
	d.t.Helper()
	for o := range d.client.ListObjects(d.t.Context(), d.bucket, minio.ListObjectsOptions{Prefix: d.prefix, Recursive: true}) {
		if o.Err != nil {
			d.t.Fatal(o.Err)
		}
		names = append(names, strings.TrimPrefix(o.Key, d.prefix))
	}
	return names
}

func (d *door) hash(key string) string {
	d.t.Helper()
	in, err := d.client.GetObject(d.t.Context(), d.bucket, key, minio.GetObjectOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		d.t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// checkManifest holds the manifest of a copy against what is there, and returns the
// names of its files.
func (d *door) checkManifest(below, run string) (names []string) {
	d.t.Helper()
	in, err := d.client.GetObject(d.t.Context(), d.bucket, d.prefix+below+"manifest.json", minio.GetObjectOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	defer in.Close()
	var m struct {
		RunID string
		Files []struct {
			Name   string
			Size   int64
			SHA256 string
		}
		Links        []struct{ Name, Target string }
		EmptyFolders []string
	}
	if err := json.NewDecoder(in).Decode(&m); err != nil {
		d.t.Fatal(err)
	}
	for _, f := range m.Files {
		if d.hash(d.prefix+below+f.Name) != f.SHA256 {
			d.t.Errorf("%s is not what the manifest says", f.Name)
		}
		names = append(names, f.Name)
	}
	for _, l := range m.Links {
		names = append(names, l.Name+" -> "+l.Target)
	}
	names = append(names, m.EmptyFolders...)
	if m.RunID != run {
		d.t.Errorf("it is of %s", m.RunID)
	}
	sort.Strings(names)
	return names
}

func (s *server) outputTo(token, id string) map[string]any {
	s.t.Helper()
	to, _ := s.want(200, "GET", "/api/runs/"+id, "", "Authorization", bearer(token))["outputTo"].(map[string]any)
	if to == nil {
		s.t.Fatal("the run says nothing of its copy")
	}
	return to
}

// copied waits until the copy of a run has come to a state.
func (s *server) copied(token, id, state string) (to map[string]any) {
	s.t.Helper()
	await(s.t, "the end of the copy", func() bool { to = s.outputTo(token, id); return to["finishedAt"] != nil })
	if to["state"] != state {
		s.t.Fatalf("%v", to)
	}
	return to
}

const copiedWorkflow = `{"nodes":[{"id":"make","outputs":{"dir":{"path":"results","directory":true},"large":{"path":"large.bin"},"small":{"path":"*.txt","many":true}},
	"command":"mkdir -p results/1/2 results/none; echo five > results/1/2/5.txt; : > results/empty; ln -s 2 results/1/two; head -c 157286401 /dev/zero | tr '\\0' m > large.bin; for i in 1 2 3; do echo $i > $i.txt; done"}]}`

var copiedNames = []string{
	"make/dir/results/1/2/5.txt", "make/dir/results/1/two -> 2", "make/dir/results/empty", "make/dir/results/none/",
	"make/large/large.bin", "make/small/1.txt", "make/small/2.txt", "make/small/3.txt",
}

// Killed in the middle of a large file and again between the bytes and the manifest, a
// copy goes on where it was, and its manifest is there only when all the rest is.
func TestACopyOfOutputsGoesOnWhereItWasKilled(t *testing.T) {
	t.Parallel()
	eachStorage(t, copyAndKill)
}

func copyAndKill(t *testing.T, args []string, _ bool) {
	d := newDoor(t)
	args = append(args, "--data", t.TempDir(), "--fetch-allow-private")
	s := start(t, args...)
	args = append(args, "--public-urls", s.base)
	_, cookie, _ := s.signUp("ada")
	token, _ := s.want(201, "POST", "/auth/api-tokens", `{"name":"cli","role":"member"}`, "Cookie", cookie)["token"].(string)
	connection := d.connection(s, "Cookie", cookie)
	w := s.workflow(token, copiedWorkflow)

	let := 2
	d.set(func(r *http.Request) verdict {
		if part(r) == "" {
			return pass
		}
		if let--; let < 0 {
			return hold
		}
		return pass
	})
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q,"outputTo":{"url":"s3://%s/%s{runId}/","connection":%q}}`, w, d.bucket, d.prefix, connection))
	if r := s.ended(token, id); r["status"] != "completed" {
		t.Fatalf("%v: %v", r["status"], r["errorMessage"])
	}
	parts := func() (n int) {
		for name, count := range d.writes() {
			if strings.Contains(name, "large.bin part") {
				n += count
			}
		}
		return n
	}
	await(t, "two parts", func() bool { return parts() == 2 })
	s.kill()

	d.set(func(r *http.Request) verdict {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "manifest.json") {
			return hold
		}
		return pass
	})
	s = start(t, args...)
	await(t, "everything but the manifest", func() bool { return len(d.names()) == 6 })
	if to := s.outputTo(token, id); to["state"] != "copying" {
		t.Errorf("%v", to)
	}
	s.kill()
	if parts() != 3 {
		t.Errorf("of three parts %d were sent", parts())
	}

	d.set(nil)
	s = start(t, args...)
	to := s.copied(token, id, "completed")
	if to["files"] != 6.0 || to["copiedFiles"] != 6.0 || to["copiedBytes"] != to["bytes"] || to["message"] != nil || to["finishedAt"] == nil || to["url"] != "s3://"+d.bucket+"/"+d.prefix+id+"/" {
		t.Errorf("%v", to)
	}
	if names := d.checkManifest(id+"/", id); fmt.Sprint(names) != fmt.Sprint(copiedNames) {
		t.Errorf("%q", names)
	}
	if parts() != 3 {
		t.Errorf("of three parts %d were sent", parts())
	}
	for u := range d.client.ListIncompleteUploads(t.Context(), d.bucket, d.prefix, true) {
		t.Errorf("an upload is left: %v", u)
	}
}

// Credentials that are refused in the middle are said on the run, which is none the
// worse for it, and when they are back the copy goes on.
func TestACopyOfOutputsOutlivesRevokedCredentials(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private")
	_, cookie, _ := s.signUp("ada")
	token, _ := s.want(201, "POST", "/auth/api-tokens", `{"name":"cli","role":"member"}`, "Cookie", cookie)["token"].(string) // which outlives the pauses
	connection := d.connection(s, "Cookie", cookie)
	w := s.workflow(token, copiedWorkflow)
	d.set(func(r *http.Request) verdict {
		if part(r) == "" {
			return pass
		}
		return refuse
	})
	body := fmt.Sprintf(`{"workflowId":%q,"outputTo":{"url":"s3://%s/%s","connection":%q}}`, w, d.bucket, d.prefix, connection)
	id := s.run(token, body)
	ended := s.ended(token, id)
	if ended["status"] != "completed" {
		t.Fatalf("%v: %v", ended["status"], ended["errorMessage"])
	}
	var to map[string]any
	await(t, "a refusal", func() bool { to = s.outputTo(token, id); return to["message"] != nil })
	if to["state"] != "copying" || !strings.Contains(to["message"].(string), "does not let these credentials") || to["nextAttemptAt"] == nil {
		t.Errorf("%v", to)
	}
	used := s.want(200, "GET", "/api/runs/"+id, "", "Authorization", bearer(token))["creditsUsed"]
	d.set(func(*http.Request) verdict { return refuse })
	if refused := s.want(400, "POST", "/api/runs", body, "Authorization", bearer(token)); refused["code"] != "output_unreachable" {
		t.Errorf("%v", refused)
	}
	d.set(nil)
	s.copied(token, id, "completed")
	if names := d.checkManifest("", id); fmt.Sprint(names) != fmt.Sprint(copiedNames) {
		t.Errorf("%q", names)
	}
	if after := s.want(200, "GET", "/api/runs/"+id, "", "Authorization", bearer(token)); after["creditsUsed"] != used || after["status"] != "completed" {
		t.Errorf("the copy cost %v, was %v", after["creditsUsed"], used)
	}
	if strings.Contains(s.log.String(), d.secret) {
		t.Error("the log has the secret key")
	}
}
