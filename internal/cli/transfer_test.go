package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/transfer"
)

func sumOf(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// TestADownloadStaysInItsFolder tries what a run could call its outputs.
func TestADownloadStaysInItsFolder(t *testing.T) {
	t.Parallel()
	d := clitest.New(t)
	s := d.Session(t, clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("evil")) }))
	parent := t.TempDir()
	folder := filepath.Join(parent, "to")
	outside := filepath.Join(parent, "outside")
	for _, dir := range []string{folder, outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	to, err := s.Folder(folder, true)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	for _, name := range []string{"../evil", "/evil", "a/../../evil", "..", ".", "", "a\x00b", `..\evil`, "link/evil", "a//b", "new\nline"} {
		if err := to.Fetch(transfer.File{Path: name, URL: s.Server, Sum: sumOf("evil"), Size: 4}); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	if got, _ := os.ReadDir(outside); len(got) > 0 {
		t.Errorf("outside: %v", got)
	}
	if got, _ := os.ReadDir(parent); len(got) != 2 {
		t.Errorf("beside: %v", got)
	}
	if err := to.Fetch(transfer.File{Path: "sub/fine", URL: s.Server, Sum: sumOf("evil"), Size: 4}); err != nil {
		t.Error(err)
	}
}

func TestDownloadsAreWholeOrNotThere(t *testing.T) {
	t.Parallel()
	const text = "0123456789"
	for name, tt := range map[string]struct {
		part   string // left by an earlier try
		there  string // under the final name
		handle func(n int, w http.ResponseWriter, r *http.Request)
		ranges string // that were asked for
		want   string // "" : it fails with
		fails  string
	}{
		"a part is gone on with": {"0123", "", func(n int, w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
		}, "bytes=4-", text, ""},
		"a broken connection is, too": {"", "", func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				w.Header().Set("Content-Length", "10")
				fmt.Fprint(w, "012345")
				return // and the connection ends
			}
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
		}, " bytes=6-", text, ""},
		"a store without ranges starts again": {"0123", "", func(n int, w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text) }, "bytes=4-", text, ""},
		"a part of something else is no start": {"abcd", "", func(n int, w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
		}, "bytes=4-", "", "damaged"},
		"what is damaged is not kept": {"", "", func(n int, w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "012345678X") }, "", "", "damaged"},
		"more than was promised":      {"", "", func(n int, w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text+text) }, "", "", "damaged"},
		"an address that has expired": {"", "", func(n int, w http.ResponseWriter, r *http.Request) { status(403)(w) }, "", "", "no"},
		"what is there is left alone": {"", "mine", nil, "", "mine", "--force"},
		"the same is not asked again": {"", text, nil, "", text, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, folder := clitest.New(t), t.TempDir()
			var mu sync.Mutex
			var ranges []string
			s := d.Session(t, clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				ranges = append(ranges, r.Header.Get("Range"))
				n := len(ranges)
				mu.Unlock()
				if r.Header.Get("Authorization") != "" {
					t.Error("the token went along")
				}
				tt.handle(n, w, r)
			}))
			f := transfer.File{Path: "f", URL: s.Server + "/f", Sum: sumOf(text), Size: int64(len(text))}
			for name, content := range map[string]string{"." + "f." + f.Sum[:12] + ".part": tt.part, "f": tt.there} {
				if content != "" {
					if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			to, err := s.Folder(folder, false)
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			err = to.Fetch(f)
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("got %v", err)
			}
			got, _ := os.ReadFile(filepath.Join(folder, "f"))
			mu.Lock()
			defer mu.Unlock()
			if string(got) != tt.want || strings.Join(ranges, " ") != tt.ranges {
				t.Errorf("%q after %q", got, ranges)
			}
		})
	}
}

// shelf keeps one upload.
type shelf struct {
	mu    sync.Mutex
	puts  int
	kept  []byte
	store func(n int, body []byte) (kept []byte, status int) // status 0: hang up
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/api/files/presign":
		clitest.Answer(w, 200, fmt.Sprintf(`{"success":true,"data":{"url":"http://%s/put","key":"teams/t/uploads/1/f","method":"PUT","expiresAt":"2099-01-01T00:00:00.000Z"}}`, r.Host))
	case "/put":
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		s.puts++
		kept, status := s.store(s.puts, body.Bytes())
		if kept != nil {
			s.kept = kept
		}
		if r.Header.Get("Authorization") != "" || status == 0 {
			hangUp(w)
			return
		}
		w.WriteHeader(status)
	default:
		list := ""
		if s.kept != nil {
			list = fmt.Sprintf(`{"key":"teams/t/uploads/1/f","name":"f","source":"upload","size":%d,"sha256":%q}`, len(s.kept), sumOf(string(s.kept)))
		}
		clitest.Answer(w, 200, `{"success":true,"data":[`+list+`],"page":{"hasMore":false,"nextCursor":null}}`)
	}
}

func TestUploadsAreCompared(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text  string
		store func(n int, body []byte) ([]byte, int)
		puts  int
		fails string
	}{
		"what was sent is there": {"hello", func(n int, b []byte) ([]byte, int) { return b, 200 }, 1, ""},
		"nothing at all, too":    {"", func(n int, b []byte) ([]byte, int) { return append([]byte{}, b...), 200 }, 1, ""},
		"sent again when it broke off": {"hello", func(n int, b []byte) ([]byte, int) {
			if n == 1 {
				return nil, 0
			}
			return b, 200
		}, 2, ""},
		"arrived, but the answer was lost": {"hello", func(n int, b []byte) ([]byte, int) {
			if n == 1 {
				return b, 0
			}
			return nil, 403
		}, 2, ""},
		"gone":               {"hello", func(n int, b []byte) ([]byte, int) { return nil, 0 }, 4, "EOF"},
		"refused":            {"hello", func(n int, b []byte) ([]byte, int) { return nil, 403 }, 1, "refused"},
		"of the wrong type":  {"hello", func(n int, b []byte) ([]byte, int) { return nil, 415 }, 1, "415"},
		"damaged on its way": {"hello", func(n int, b []byte) ([]byte, int) { return []byte("hullo"), 200 }, 1, "damaged"},
		"never listed":       {"hello", func(n int, b []byte) ([]byte, int) { return nil, 200 }, 1, "couldn't upload"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, keep := clitest.New(t), &shelf{store: tt.store}
			s := d.Session(t, clitest.Serve(t, keep.ServeHTTP))
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := s.UploadKeys([]string{path})
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "/put") {
				t.Errorf("tells the address: %v", err)
			}
			keep.mu.Lock()
			defer keep.mu.Unlock()
			if keep.puts != tt.puts {
				t.Errorf("%d puts", keep.puts)
			}
		})
	}
}
