package session_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/clitest"
)

// store is a server that takes uploads, and remembers them.
type store struct {
	refuses string // the name of a file that it refuses
	before  func() // each file is taken
	late    int    // how many lists lack the last file

	mu    sync.Mutex
	calls int               // requests
	kept  map[string]string // texts by key
	asked [][]string        // the keys of each list
	long  int               // the length of the longest address
	begun api.NewUpload
	ended api.FinishUpload
	parts string
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodPut && s.before != nil {
		s.before()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	name, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/put/"))
	s.long = max(s.long, len(r.RequestURI))
	switch {
	case r.URL.Path == "/api/files/presign":
		var in api.Presign
		_ = json.Unmarshal(body, &in)
		if in.Filename == s.refuses {
			clitest.Answer(w, 415, `{"success":false,"error":"programs cannot be uploaded","code":"x","requestId":"r"}`)
			return
		}
		clitest.Answer(w, 200, fmt.Sprintf(`{"success":true,"data":{"url":"http://%s/put/%s","key":%q,"method":"PUT","expiresAt":"2099-01-01T00:00:00.000Z"}}`, r.Host, url.PathEscape(in.Filename), in.Filename))
	case name == "part":
		s.parts = string(body)
	case r.Method == http.MethodPut:
		s.kept[name] = string(body)
	case r.URL.Path == "/api/files/uploads":
		s.begun = api.NewUpload{}
		_ = json.Unmarshal(body, &s.begun)
		clitest.Answer(w, 201, fmt.Sprintf(`{"success":true,"data":{"uploadId":"u","key":"k","partSize":100,"partCount":%d,"expiresAt":"2099-01-01T00:00:00.000Z"}}`, min(1, s.begun.Size)))
	case strings.HasSuffix(r.URL.Path, "/parts"):
		clitest.Answer(w, 200, fmt.Sprintf(`{"success":true,"data":[{"number":1,"size":1,"url":"http://%s/put/part","method":"PUT","expiresAt":"2099-01-01T00:00:00.000Z"}]}`, r.Host))
	case strings.HasSuffix(r.URL.Path, "/complete"):
		_ = json.Unmarshal(body, &s.ended)
		clitest.Answer(w, 200, `{"success":true,"data":{"key":"k","name":"f","source":"upload"}}`)
	default:
		keys := r.URL.Query()["key"]
		s.asked = append(s.asked, keys)
		rows := []string{}
		if s.late--; s.late >= 0 {
			keys = keys[:len(keys)-1]
		}
		for _, key := range slices.Backward(keys) { // in another order than they were sent
			sum := sha256.Sum256([]byte(s.kept[key]))
			rows = append(rows, fmt.Sprintf(`{"key":%q,"name":%q,"source":"upload","sha256":%q}`, key, key, hex.EncodeToString(sum[:])))
		}
		clitest.Answer(w, 200, clitest.Data("["+strings.Join(rows, ",")+"]"))
	}
}

func write(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Here the server takes no file before eight are on their way.
func TestSmallFilesGoSeveralAtOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	waiting, eight := 0, make(chan struct{})
	s := &store{kept: map[string]string{}, before: func() {
		mu.Lock()
		if waiting++; waiting == 8 {
			close(eight)
		}
		mu.Unlock()
		<-eight
	}}
	dir, paths, want := t.TempDir(), []string{}, []string{}
	for i := range 40 {
		name := fmt.Sprintf("f%02d", i)
		write(t, dir, map[string]string{name: strings.Repeat("x", i)})
		paths, want = append(paths, filepath.Join(dir, name)), append(want, name)
	}
	keys, err := clitest.New(t).Session(t, clitest.Serve(t, s.ServeHTTP)).UploadKeys(paths)
	if err != nil || !slices.Equal(keys, want) {
		t.Errorf("%v, %v", keys, err)
	}
	if len(s.asked) != 2 || len(s.asked[0]) != 25 || len(s.asked[1]) != 15 || len(s.kept) != 40 {
		t.Errorf("%d files were kept; asked for %v", len(s.kept), s.asked)
	}
}

// What 2,000 small files cost is the number of requests and how many of them wait for each other:
// here the server takes no file before sixteen are on their way.
func TestTwoThousandSmallFilesTakeFewRequests(t *testing.T) {
	t.Parallel()
	const files = 2_000
	var mu sync.Mutex
	waiting, sixteen := 0, make(chan struct{})
	s := &store{kept: map[string]string{}, before: func() {
		mu.Lock()
		if waiting++; waiting == 16 {
			close(sixteen)
		}
		mu.Unlock()
		<-sixteen
	}}
	dir, paths := filepath.Join(t.TempDir(), "reads"), []string{}
	for i := range files {
		name := fmt.Sprintf("f%04d", i)
		write(t, dir, map[string]string{name: name})
		paths = append(paths, filepath.Join(dir, name))
	}
	session := clitest.New(t).Session(t, clitest.Serve(t, s.ServeHTTP))
	keys, err := session.UploadKeys(paths)
	if err != nil || len(keys) != files || s.calls != 2*files+files/25 {
		t.Errorf("%d files took %d requests, %v", len(keys), s.calls, err)
	}
	// As a folder they are one upload: it begins, asks for the addresses of its parts, sends each
	// part, of which there is one here, and ends.
	s.calls, s.before = 0, nil
	if _, err := session.UploadKeys([]string{dir}); err != nil || len(s.ended.Entries) != files || s.calls > 5 {
		t.Errorf("a folder of %d files took %d requests, %v", len(s.ended.Entries), s.calls, err)
	}
}

// Proxies take addresses of 8 KB, and a letter may take six bytes of one.
func TestUploadsWithLongNamesAreAskedAboutInShortAddresses(t *testing.T) {
	t.Parallel()
	s := &store{kept: map[string]string{}}
	dir, paths := t.TempDir(), []string{}
	for i := range 30 {
		name := strings.Repeat("ü", 99) + fmt.Sprintf("%02d", i)
		write(t, dir, map[string]string{name: "x"})
		paths = append(paths, filepath.Join(dir, name))
	}
	keys, err := clitest.New(t).Session(t, clitest.Serve(t, s.ServeHTTP)).UploadKeys(paths)
	if err != nil || len(keys) != 30 || s.long > 7_000 {
		t.Errorf("%d keys, an address of %d bytes, %v", len(keys), s.long, err)
	}
}

// A bucket takes files that the server has yet to look at.
func TestFilesThatTheServerFindsLaterHaveArrived(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"a": "a", "b": "b", "c": "c"})
	for _, late := range []int{5, 100} {
		s, d := &store{kept: map[string]string{}, late: late}, clitest.New(t)
		began := d.Time()
		var told []string
		err := d.Session(t, clitest.Serve(t, s.ServeHTTP)).Upload([]string{dir + "/a", dir + "/b", dir + "/c"}, "", func(f api.File) { told = append(told, f.Key) })
		if waited := d.Time().Sub(began); late == 5 && (err != nil || !slices.Equal(told, []string{"a", "b", "c"}) || len(s.asked[5]) != 1) {
			t.Errorf("after %v told of %v, asked for %v, %v", waited, told, s.asked, err)
		} else if late == 100 && (err == nil || !strings.Contains(err.Error(), "c: the server refused it, or it did not arrive") || !slices.Equal(told, []string{"a", "b"}) || waited < 90*time.Second || waited > 2*time.Minute) {
			t.Errorf("after %v told of %v, %v", waited, told, err)
		}
	}
}

// Whoever interrupts the command while it waits hears of what has arrived.
func TestWhatArrivedBeforeAnInterruptionIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"a": "a", "b": "b"})
	s, d := &store{kept: map[string]string{}, late: 9}, clitest.New(t)
	d.Sleep = func(context.Context, time.Duration) error { return context.Canceled }
	var told []string
	err := d.Session(t, clitest.Serve(t, s.ServeHTTP)).Upload([]string{dir + "/a", dir + "/b"}, "", func(f api.File) { told = append(told, f.Key) })
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "did not arrive") || !slices.Equal(told, []string{"a"}) {
		t.Errorf("told of %v, %v", told, err)
	}
}

func TestWhatArrivedBeforeAFailureIsTold(t *testing.T) {
	t.Parallel()
	s := &store{kept: map[string]string{}, refuses: "b.py"}
	dir := t.TempDir()
	write(t, dir, map[string]string{"a": "a", "b.py": "b"})
	session := clitest.New(t).Session(t, clitest.Serve(t, s.ServeHTTP))
	var told []string
	err := session.Upload([]string{dir + "/a", dir + "/b.py"}, "", func(f api.File) { told = append(told, f.Key) })
	if err == nil || !strings.Contains(err.Error(), "b.py: programs cannot be uploaded") || !slices.Equal(told, []string{"a"}) {
		t.Errorf("told of %v, %v", told, err)
	}
	// And nothing is sent if one of them is not there.
	s.kept = map[string]string{}
	if _, err := session.UploadKeys([]string{dir + "/a", dir + "/gone"}); err == nil || len(s.kept) != 0 {
		t.Errorf("%v was sent, %v", s.kept, err)
	}
}

func TestAFolderIsOneUpload(t *testing.T) {
	t.Parallel()
	s := &store{kept: map[string]string{}}
	dir := filepath.Join(t.TempDir(), "reads")
	write(t, dir, map[string]string{"a/x.csv": "world", "a-b.csv": "hello ", "z": ""})
	for _, path := range []string{"a/none", "empty/in/it"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../a-b.csv", filepath.Join(dir, "a/link")); err != nil {
		t.Fatal(err)
	}
	session := clitest.New(t).Session(t, clitest.Serve(t, s.ServeHTTP))
	keys, err := session.UploadKeys([]string{dir + "/"})
	if err != nil || !slices.Equal(keys, []string{"k"}) || s.parts != "hello world" {
		t.Fatalf("%v, %v, %q was sent", keys, err, s.parts)
	}
	want := `[{"path":"a-b.csv","size":6},{"link":"../a-b.csv","path":"a/link"},{"folder":true,"path":"a/none"},{"path":"a/x.csv","size":5},{"folder":true,"path":"empty/in/it"},{"path":"z","size":0}]`
	for _, entries := range [][]api.FolderEntry{s.begun.Entries, s.ended.Entries} {
		if text, _ := json.Marshal(entries); string(text) != want {
			t.Errorf("%s", text)
		}
	}
	sum := sha256.Sum256([]byte("hello world"))
	if s.begun.ContentType != "inode/directory" || s.begun.Filename != "reads" || s.begun.Size != 11 || s.ended.Sha256 == nil || *s.ended.Sha256 != hex.EncodeToString(sum[:]) {
		t.Errorf("%+v, %+v", s.begun, s.ended)
	}
	// One without anything in it is a folder, too.
	if err := os.Mkdir(filepath.Join(dir, "nothing"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := session.UploadKeys([]string{filepath.Join(dir, "nothing")}); err != nil || s.begun.Size != 0 || len(s.begun.Entries) != 0 {
		t.Errorf("%+v, %v", s.begun, err)
	}
}
