// Package indextest is a package index on loopback with small wheels of its own,
// for the tests of others.
package indextest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Index is an index. All methods may be called at the same time.
type Index struct {
	URL string

	mu    sync.Mutex
	files map[string]map[string][]byte // by package
	links map[string][]string          // to other places, by package
	asked []string                     // paths
	whole map[string]int               // how often each file was given as a whole
	fails int                          // the status of every answer; 0: as it should be
}

// New starts an index that ends with the test.
func New(t *testing.T) *Index {
	t.Helper()
	x := &Index{files: map[string]map[string][]byte{}, links: map[string][]string{}, whole: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(x.serve))
	t.Cleanup(server.Close)
	x.URL = server.URL + "/simple/"
	return x
}

// NeedUV skips a test where uv is not installed, and fails it where everything must be there.
func NeedUV(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("uv"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("uv is not in PATH: run by scripts/with-uv")
		}
		t.Skip("uv is not in PATH: scripts/with-uv fetches it")
	}
}

// NeedPackages gives the index real packages, pandas and matplotlib with all that
// they need. It skips a test where they are not there, and fails it where everything
// must be.
func (x *Index) NeedPackages(t *testing.T) {
	t.Helper()
	NeedUV(t)
	wheels, _ := filepath.Glob(filepath.Join(os.Getenv("MILLRACE_TEST_WHEELS"), "packages", "*.whl"))
	if len(wheels) == 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("there are no packages in MILLRACE_TEST_WHEELS: run by scripts/with-uv")
		}
		t.Skip("there are no packages in MILLRACE_TEST_WHEELS: scripts/with-uv fetches them")
	}
	for _, wheel := range wheels {
		content, err := os.ReadFile(wheel)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(filepath.Base(wheel), "-")
		x.AddFile(strings.ReplaceAll(name, "_", "-"), filepath.Base(wheel), content)
	}
}

// Fail has every answer from now on have a status.
func (x *Index) Fail(status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fails = status
}

// Asked are the paths that were asked for.
func (x *Index) Asked() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.asked)
}

// Whole is how often each file was given, by name; who looked into it does not count.
func (x *Index) Whole() map[string]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.whole)
}

// AddWheel adds a pure wheel with files, and what it requires.
func (x *Index) AddWheel(name, version string, files map[string]string, requires ...string) {
	x.AddFile(name, fmt.Sprintf("%s-%s-py3-none-any.whl", name, version), Wheel(name, version, files, requires...))
}

// AddFile adds any file under the name of a package.
func (x *Index) AddFile(name, filename string, content []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.files[name] == nil {
		x.files[name] = map[string][]byte{}
	}
	x.files[name][filename] = content
}

// AddLink adds a link to a file somewhere else, with the hash of content.
func (x *Index) AddLink(name, address string, content []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.links[name] = append(x.links[name], address+"#sha256="+hash(content))
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Wheel makes a pure wheel.
func Wheel(name, version string, files map[string]string, requires ...string) []byte {
	info := fmt.Sprintf("%s-%s.dist-info/", name, version)
	metadata := fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version)
	for _, r := range requires {
		metadata += "Requires-Dist: " + r + "\n"
	}
	all := maps.Clone(files)
	if all == nil {
		all = map[string]string{}
	}
	all[info+"METADATA"] = metadata
	all[info+"WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
	record := ""
	for _, file := range slices.Sorted(maps.Keys(all)) {
		sum := sha256.Sum256([]byte(all[file]))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", file, base64.RawURLEncoding.EncodeToString(sum[:]), len(all[file]))
	}
	all[info+"RECORD"] = record + info + "RECORD,,\n"
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		w, err := z.Create(file)
		if err == nil {
			_, err = w.Write([]byte(all[file]))
		}
		if err != nil {
			panic(err) // memory only
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func (x *Index) serve(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	x.asked = append(x.asked, r.URL.Path)
	defer x.mu.Unlock()
	if x.fails != 0 {
		w.WriteHeader(x.fails)
		return
	}
	name := path.Base(r.URL.Path)
	if strings.HasPrefix(r.URL.Path, "/files/") {
		content, ok := x.files[path.Base(path.Dir(r.URL.Path))][name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Method == http.MethodGet && r.Header.Get("Range") == "" {
			x.whole[name]++
		}
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
		return
	}
	if x.files[name] == nil && x.links[name] == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	for _, file := range slices.Sorted(maps.Keys(x.files[name])) {
		fmt.Fprintf(w, "<a href=\"/files/%s/%s#sha256=%s\">%s</a><br/>\n", name, file, hash(x.files[name][file]), file)
	}
	for _, link := range x.links[name] {
		fmt.Fprintf(w, "<a href=\"%s\">elsewhere</a><br/>\n", html.EscapeString(link))
	}
}
