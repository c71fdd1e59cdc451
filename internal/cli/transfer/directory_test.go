package transfer_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/transfer"
)

// folder takes downloads without anybody watching, and waits no time.
func folder(t *testing.T, force bool) (f *transfer.Folder, path string) {
	t.Helper()
	path = t.TempDir()
	f = &transfer.Folder{HTTP: http.DefaultClient, Force: force, Console: screen.Console{
		Ctx: t.Context(), Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }, Now: time.Now, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}}
	if err := f.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, path
}

// listed is everything in a folder, with what is hidden.
func listed(t *testing.T, path string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(path, func(name string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			rel, _ := filepath.Rel(path, name)
			all = append(all, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// tree is a store of a folder.
type tree struct {
	manifest, data string
	breaks         int // how often the bytes break off
	fetched        int // bytes of files
}

func (s *tree) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/manifest":
		_, _ = io.WriteString(w, s.manifest)
	case "/data":
		rest := s.data
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &s.fetched); err == nil {
			rest = s.data[s.fetched:]
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", s.fetched, len(s.data)-1, len(s.data)))
			w.WriteHeader(http.StatusPartialContent)
		}
		s.fetched = len(rest)
		if s.breaks > 0 {
			s.breaks--
			_, _ = io.WriteString(w, rest[:len(rest)/2])
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, rest)
	default:
		w.WriteHeader(http.StatusForbidden)
	}
}

// of is a folder with these files, links and folders.
func (s *tree) of(server string) transfer.Directory {
	return transfer.Directory{
		Path: "res", Manifest: server + "/manifest", Sum: sum(s.manifest), Data: server + "/expired", Bytes: int64(len(s.data)),
		Renew: func() (string, error) { return server + "/data", nil },
	}
}

func line(path, text, more string) string {
	return fmt.Sprintf(`{"path":%q,"size":%d,"sha256":%q%s}`, path, len(text), sum(text), more)
}

func manifest(lines ...string) string {
	return `{"version":1,"entries":[` + strings.Join(lines, ",") + `]}`
}

func TestAFolderIsFetchedAsAFolder(t *testing.T) {
	t.Parallel()
	s := &tree{breaks: 2, data: "first\nsecond\nthird\n", manifest: manifest(
		line("a.txt", "first\n", ""), line("b/c.txt", "second\n", `,"executable":true`), `{"path":"b/link","size":0,"link":"../a.txt"}`,
		line("d", "", ""), line("e", "third\n", ""), `{"path":"empty","size":0,"folder":true}`, `{"path":"up","link":"x/../../b/c.txt"}`, `{"path":"x","link":"b/none"}`)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	f, to := folder(t, false)
	if err := f.FetchDirectory(s.of(server.URL)); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		if got := listed(t, to); got != "res/a.txt res/b/c.txt res/b/link res/d res/e res/up res/x" {
			t.Errorf("%s there are %q", when, got)
		}
		for name, want := range map[string]string{"a.txt": "first\n", "b/c.txt": "second\n", "b/link": "first\n", "d": "", "e": "third\n"} {
			if text, err := os.ReadFile(filepath.Join(to, "res", name)); err != nil || string(text) != want {
				t.Errorf("%s %s is %q, %v", when, name, text, err)
			}
		}
	}
	check("at first")
	info, err := os.Stat(filepath.Join(to, "res/b/c.txt"))
	if err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(to, "res/empty")); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	// Again: only what is not there is fetched, and nothing that is there is replaced.
	s.fetched = 0
	if err := f.FetchDirectory(s.of(server.URL)); err != nil || s.fetched != 0 {
		t.Errorf("%d bytes were fetched again, %v", s.fetched, err)
	}
	if err := os.Remove(filepath.Join(to, "res/e")); err != nil {
		t.Fatal(err)
	}
	if err := f.FetchDirectory(s.of(server.URL)); err != nil || s.fetched != 6 {
		t.Errorf("%d bytes were fetched again, %v", s.fetched, err)
	}
	check("then")
	if err := os.WriteFile(filepath.Join(to, "res/a.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.FetchDirectory(s.of(server.URL)); err == nil || !strings.Contains(err.Error(), "res/a.txt: already exists and differs") {
		t.Error(err)
	}
	f.Force = true
	if err := f.FetchDirectory(s.of(server.URL)); err != nil {
		t.Error(err)
	}
	check("at last")
}

// Hard links stand for a disk that does not tell capital letters from small ones.
func TestNamesThatAreOneFileHereDoNotReplaceEachOther(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"files": {line("README", "first", ""), line("readme", "second", "")},
		"links": {`{"path":"README","link":"first"}`, `{"path":"readme","link":"second"}`},
	} {
		for _, force := range []bool{false, true} {
			server := httptest.NewServer(&tree{manifest: manifest(lines...), data: "firstsecond"})
			t.Cleanup(server.Close)
			f, to := folder(t, force)
			large, small := filepath.Join(to, "res/README"), filepath.Join(to, "res/readme")
			put := func() error { return os.WriteFile(large, []byte("first"), 0o600) }
			if name == "links" {
				put = func() error { return os.Symlink("first", large) }
			}
			if err := errors.Join(os.Mkdir(filepath.Join(to, "res"), 0o700), put(), os.Link(large, small)); err != nil {
				t.Fatal(err)
			}
			err := f.FetchDirectory(transfer.Directory{Path: "res", Manifest: server.URL + "/manifest", Data: server.URL + "/data", Bytes: 11})
			if err == nil || !strings.Contains(err.Error(), "res/readme: is the same file as res/README here") || strings.Contains(err.Error(), "--force") {
				t.Errorf("%s, force %v: %v", name, force, err)
			}
			if text, err := os.ReadFile(large); name == "files" && string(text) != "first" {
				t.Errorf("force %v: it is %q, %v", force, text, err)
			}
		}
	}
}

func TestAFolderThatIsNotWholeIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		manifest, data, path, sum string
		want, left                string
	}{
		"another manifest":        {manifest: manifest(), sum: sum("x"), want: "res: was damaged in transfer"},
		"no manifest":             {manifest: "words", want: "res: the server sent no list of its files"},
		"a damaged file":          {manifest: manifest(line("a", "ax", ""), line("b", "bx", "")), data: "axb!", want: "res/b: was damaged in transfer", left: "res/a"},
		"too few bytes":           {manifest: manifest(line("a", "ax", ""), line("b", "bx", "")), data: "axb", want: "closed the connection after 3 of 3 bytes", left: "res/a"},
		"a path above":            {manifest: manifest(line("../a", "", "")), want: `".." is not a valid file name here`},
		"a path from the top":     {manifest: manifest(line("/a", "", "")), want: `"" is not a valid file name here`},
		"a link out":              {manifest: manifest(`{"path":"a/b","link":"../../c"}`), want: `res: "a/b": a link that leads out`},
		"a link out by another":   {manifest: manifest(`{"path":"a","link":"."}`, `{"path":"b","link":"a/a/.."}`), want: `res: "b": a link that leads out`},
		"a link from the top":     {manifest: manifest(`{"path":"a","link":"/etc"}`), want: `res: "a": a link that leads out`},
		"a folder with no name":   {manifest: manifest(), path: "a//b", want: `"" is not a valid file name here`},
		"a folder above":          {manifest: manifest(), path: "../b", want: `".." is not a valid file name here`},
		"a name that bends lines": {manifest: manifest(line("a\rb", "", "")), want: "is not a valid file name here"},
	} {
		s := &tree{manifest: tt.manifest, data: tt.data}
		server := httptest.NewServer(s)
		t.Cleanup(server.Close)
		f, to := folder(t, false)
		of := s.of(server.URL)
		of.Path, of.Sum = cmp.Or(tt.path, of.Path), cmp.Or(tt.sum, of.Sum)
		if err := f.FetchDirectory(of); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if got := listed(t, to); got != tt.left {
			t.Errorf("%s: there are %q", name, got)
		}
	}
}

// A link that lies in the folder does not lead a download out of it.
func TestADownloadDoesNotFollowLinksOutOfItsFolder(t *testing.T) {
	t.Parallel()
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "theirs") }))
	t.Cleanup(store.Close)
	sum := sha256.Sum256([]byte("theirs"))
	inside := httptest.NewServer(&tree{manifest: manifest(line("mine", "theirs", "")), data: "theirs"})
	t.Cleanup(inside.Close)
	outside := t.TempDir()
	mine := filepath.Join(outside, "mine")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, path := folder(t, true)
	for name, to := range map[string]string{"folder": outside, "file": mine, "dangling": filepath.Join(outside, "fresh")} {
		if err := os.Symlink(to, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"folder/mine", "folder/fresh", "file", "dangling"} {
		_ = f.Fetch(transfer.File{Path: name, URL: store.URL, Sum: hex.EncodeToString(sum[:]), Size: 6})
		_ = f.FetchDirectory(transfer.Directory{Path: name, Manifest: inside.URL + "/manifest", Data: inside.URL + "/data", Bytes: 6})
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "mine" {
		t.Errorf("what lies outside is %q, %v", text, err)
	}
	if got := listed(t, outside); got != "mine" {
		t.Errorf("outside there are %q", got)
	}
}
