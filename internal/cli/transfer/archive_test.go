package transfer_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
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

func TestAnArchiveIsThereWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	var whole bytes.Buffer
	z := zip.NewWriter(&whole)
	w, err := z.Create("a.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, "hello")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/whole":
			_, _ = w.Write(whole.Bytes())
		case "/half": // ended as if it were whole
			_, _ = w.Write(whole.Bytes()[:whole.Len()/2])
		case "/cut":
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(whole.Bytes())
		case "/words":
			_, _ = io.WriteString(w, "no archive")
		case "/refused":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"success":false,"error":"the address has expired","code":"expired"}`)
		}
		if r.Header.Get("Authorization") != "" {
			t.Error("a token goes along with an address that is its own permission")
		}
	}))
	t.Cleanup(store.Close)
	for name, tt := range map[string]struct {
		path, url, there string
		force            bool
		fails, left      string
	}{
		"whole":                     {path: "res.zip", url: store.URL + "/whole", left: "res.zip"},
		"below folders":             {path: "a/o/res.zip", url: store.URL + "/whole", left: "a/o/res.zip"},
		"half":                      {path: "res.zip", url: store.URL + "/half", fails: "res.zip: the download of the archive was interrupted, try again"},
		"cut":                       {path: "res.zip", url: store.URL + "/cut", fails: "res.zip: the download of the archive was interrupted, try again"},
		"words":                     {path: "res.zip", url: store.URL + "/words", fails: "the download of the archive was interrupted"},
		"nothing":                   {path: "res.zip", url: store.URL + "/nothing", fails: "the download of the archive was interrupted"},
		"refused":                   {path: "res.zip", url: store.URL + "/refused", fails: "res.zip: the address has expired"},
		"a store that is away":      {path: "res.zip", url: "http://127.0.0.1:1/?signature=secret", fails: "connection refused"},
		"one that is there":         {path: "res.zip", url: store.URL + "/whole", there: "res.zip", fails: "res.zip already exists: replace it with --force", left: "res.zip"},
		"one that may be replaced":  {path: "res.zip", url: store.URL + "/whole", there: "res.zip", force: true, left: "res.zip"},
		"replaced by half":          {path: "res.zip", url: store.URL + "/half", there: "res.zip", force: true, fails: "was interrupted", left: "res.zip"},
		"a file where a folder is":  {path: "a/res.zip", url: store.URL + "/whole", there: "a", fails: "a", left: "a"},
		"above the folder":          {path: "../res.zip", url: store.URL + "/whole", fails: `".." is not a valid file name here`},
		"above it, on the way":      {path: "a/../../res.zip", url: store.URL + "/whole", fails: `".." is not a valid file name here`},
		"from the top":              {path: "/res.zip", url: store.URL + "/whole", fails: `"" is not a valid file name here`},
		"no name":                   {path: "", url: store.URL + "/whole", fails: `"" is not a valid file name here`},
		"a name that turns the bar": {path: "a\rb.zip", url: store.URL + "/whole", fails: "is not a valid file name here"},
		"a name of another system":  {path: `a\b.zip`, url: store.URL + "/whole", fails: "is not a valid file name here"},
	} {
		f, path := folder(t, tt.force)
		if tt.there != "" {
			if err := os.WriteFile(filepath.Join(path, tt.there), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := f.FetchArchive(tt.path, tt.url)
		if (err == nil) != (tt.fails == "") || err != nil && (!strings.Contains(err.Error(), tt.fails) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v", name, err)
		}
		if got := listed(t, path); got != tt.left {
			t.Errorf("%s: there are %q", name, got)
		}
		if tt.there == "res.zip" && tt.fails != "" {
			if text, err := os.ReadFile(filepath.Join(path, "res.zip")); err != nil || string(text) != "mine" {
				t.Errorf("%s: what was there is %q, %v", name, text, err)
			}
		}
	}
}

// Who downloads again keeps an archive that has the same in it, whenever that was
// written, and is told of one that has not.
func TestAnArchiveThatIsThereIsCompared(t *testing.T) {
	t.Parallel()
	written, text, name, mode := time.Unix(1e9, 0), "hello", "a.txt", fs.FileMode(0o644)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z := zip.NewWriter(w)
		h := &zip.FileHeader{Name: name, Modified: written}
		h.SetMode(mode)
		if file, err := z.CreateHeader(h); err == nil {
			_, _ = io.WriteString(file, text)
		}
		_ = z.Close()
	}))
	t.Cleanup(store.Close)
	f, path := folder(t, false)
	fetch := func() error { return f.FetchArchive("res.zip", store.URL) }
	if err := fetch(); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(path, "res.zip"))
	if err != nil {
		t.Fatal(err)
	}
	written = written.Add(time.Hour)
	if err := fetch(); err != nil {
		t.Errorf("the same again: %v", err)
	}
	for what, change := range map[string]func(){
		"another text": func() { text = "hallo" },
		"another name": func() { name = "b.txt" },
		"another mode": func() { mode = 0o755 },
	} {
		text, name, mode = "hello", "a.txt", 0o644
		change()
		if err := fetch(); err == nil || !strings.Contains(err.Error(), "already exists") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(path, "res.zip")); err != nil || !bytes.Equal(got, first) || listed(t, path) != "res.zip" {
		t.Errorf("there are %q, %v", listed(t, path), err)
	}
}

// A link that lies in the folder does not lead a download out of it.
func TestADownloadDoesNotFollowLinksOutOfItsFolder(t *testing.T) {
	t.Parallel()
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "theirs") }))
	t.Cleanup(store.Close)
	sum := sha256.Sum256([]byte("theirs"))
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
		_ = f.FetchArchive(name, store.URL)
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "mine" {
		t.Errorf("what lies outside is %q, %v", text, err)
	}
	if got := listed(t, outside); got != "mine" {
		t.Errorf("outside there are %q", got)
	}
}
