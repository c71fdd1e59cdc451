package environments

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
)

func ignore(string) {}

// What is in a sandbox may ask for anything.
func TestABuildFetchesOnlyWhatAnIndexNames(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("one", "1.0", nil)
	x.AddFile("one", "one-1.0.tar.gz", []byte("a source"))
	x.AddFile("one", "evil.exe", []byte("a program"))
	x.AddLink("one", "file:///etc/passwd/one-2.0-py3-none-any.whl", nil)
	x.AddLink("one", "ftp://127.0.0.1/one-3.0-py3-none-any.whl", nil)
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another server is asked") }))
	t.Cleanup(secret.Close)
	view, err := newIndex(Config{Indexes: []string{strings.Replace(x.URL, "http://", "http://user:password@", 1)}, AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(view.handler(1<<20, ignore))
	t.Cleanup(server.Close)
	get := func(path string) (int, string) {
		t.Helper()
		answer, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var b strings.Builder
		_, _ = io.Copy(&b, answer.Body)
		return answer.StatusCode, b.String()
	}
	status, text := get("/simple/one/")
	var p page
	if err := json.Unmarshal([]byte(text), &p); err != nil || status != 200 || len(p.Files) != 1 || p.Files[0].Filename != "one-1.0-py3-none-any.whl" || strings.Contains(text, "password") {
		t.Fatalf("%d %s, %v", status, text, err)
	}
	if status, text := get(p.Files[0].URL); status != 200 || !strings.HasPrefix(text, "PK") {
		t.Errorf("the wheel: %d %.20q", status, text)
	}
	sealed := strings.Split(p.Files[0].URL, "/")[2]
	if text, err := base64.RawURLEncoding.DecodeString(sealed); err != nil || strings.Contains(string(text), "127.0.0.1") {
		t.Errorf("the address of the wheel can be read: %q, %v", text, err)
	}
	other, err := newIndex(Config{})
	if err != nil {
		t.Fatal(err)
	}
	forged := base64.RawURLEncoding.EncodeToString([]byte(secret.URL + "/x.whl"))
	for _, path := range []string{
		"/files/" + forged + "/x.whl", "/files/" + sealed + forged + "/x.whl", "/files/" + other.seal(secret.URL+"/x.whl") + "/x.whl", "/files/x/x.whl", "/files/" + sealed, "/simple/..%2f..%2fadmin/", "/simple/One/", "/simple/one%2f..%2ftwo/",
		"/", "/simple/", "/http://" + strings.TrimPrefix(secret.URL, "http://"), "/simple/missing/",
	} {
		if status, text := get(path); status != 404 {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	answer, err := http.Post(server.URL+p.Files[0].URL, "text/plain", strings.NewReader("data"))
	if err != nil || answer.StatusCode != 405 {
		t.Errorf("something can be sent: %v %v", answer, err)
	}
	answer.Body.Close()
	small := httptest.NewServer(view.handler(100, ignore))
	t.Cleanup(small.Close)
	if answer, err := http.Get(small.URL + p.Files[0].URL); err == nil {
		var b strings.Builder
		_, _ = io.Copy(&b, answer.Body)
		answer.Body.Close()
		if b.Len() > 100 {
			t.Errorf("%d bytes come where 100 may", b.Len())
		}
	}
}

func TestPagesAreReadInBothForms(t *testing.T) {
	t.Parallel()
	const hash = "1111111111111111111111111111111111111111111111111111111111111111"
	html, err := readHTML([]byte(`<a href="../one-1.0-py3-none-any.whl#sha256=` + hash + `" data-requires-python="&gt;=3.8" data-yanked="broken" data-core-metadata="sha256=` + hash + `">x</a>`))
	if err != nil || len(html) != 1 || html[0].Filename != "one-1.0-py3-none-any.whl" || html[0].RequiresPython != ">=3.8" || html[0].Yanked != "broken" || html[0].Hashes["sha256"] != hash {
		t.Errorf("%+v, %v", html, err)
	}
	files, err := readJSON([]byte(`{"files":[{"filename":"one-1.0-py3-none-any.whl","url":"x.whl","hashes":{"sha256":"` + hash + `"},"yanked":false,"core-metadata":{"sha256":"` + hash + `"}}]}`))
	if err != nil || len(files) != 1 || files[0].Hashes["sha256"] != hash {
		t.Errorf("%+v, %v", files, err)
	}
	if _, err := readJSON([]byte("no")); err == nil {
		t.Error("nonsense is read")
	}
}

func TestAMirrorGivesInterpretersAndNothingElse(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	mirror := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if user, password, _ := r.BasicAuth(); user != "ada" || password != "word" {
			t.Errorf("%s is asked for by %q", r.RequestURI, user)
		}
	}))
	t.Cleanup(mirror.Close)
	for _, wrong := range []string{"mirror", "file:///etc", "https:///x", "https://mirror.example/x?token=1"} {
		if _, err := newIndex(Config{PythonMirror: wrong}); err == nil || !strings.Contains(err.Error(), "--python-mirror") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	address := strings.Replace(mirror.URL, "http://", "http://ada:word@", 1)
	without, err := newIndex(Config{})
	with, withErr := newIndex(Config{PythonMirror: address, AllowPrivate: true})
	private, privateErr := newIndex(Config{PythonMirror: address})
	if err := errors.Join(err, withErr, privateErr); err != nil {
		t.Fatal(err)
	}
	const python = "/python/20260101/cpython-3.12.1%2B20260101-x.tar.gz"
	for _, tt := range []struct {
		view *index
		path string
		want int
	}{
		{with, python, 200},
		{without, python, 404},
		{private, python, 502},
		{with, "/python/20260101/pypy-3.12.1-x.tar.gz", 404},
		{with, "/python/20260101/cpython-3.12.1.tar.gz.sh", 404},
		{with, "/python/2026/cpython-3.12.1-x.tar.gz", 404},
		{with, "/python/20260101/..%2f..%2fcpython-3.12.1-x.tar.gz", 404},
		{with, "/python/20260101/cpython-3.12.1%2f..%2f..%2fx.tar.gz", 404},
	} {
		w := httptest.NewRecorder()
		before := asked.Load()
		tt.view.handler(1<<20, ignore).ServeHTTP(w, httptest.NewRequest(http.MethodGet, tt.path, nil))
		if w.Code != tt.want || (asked.Load() > before) != (tt.want == 200) {
			t.Errorf("%s is %d, want %d", tt.path, w.Code, tt.want)
		}
	}
	if err := errors.Join(with.reach(t.Context()), without.reach(t.Context())); err != nil {
		t.Error(err)
	}
	if err := private.reach(t.Context()); err == nil || strings.Contains(err.Error(), "word") {
		t.Errorf("one in a private network: %v", err)
	}
}
