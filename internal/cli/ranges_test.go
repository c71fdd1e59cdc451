package cli

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/transfer"
	"github.com/millrace/millrace/internal/waittest"
)

// store gives one large file, as a test says.
type store struct {
	mu     sync.Mutex
	ranges []string
	handle func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
	text   []byte

	served, refused atomic.Int32 // requests
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	s.mu.Unlock()
	if s.handle == nil || !s.handle(w, r) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.text))
		s.served.Add(1)
	}
}

func (s *store) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ranges
}

// refuseLast refuses the last stretch as often as it is tried at first, once the store has
// served the others.
func (s *store) refuseLast(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasPrefix(r.Header.Get("Range"), fmt.Sprintf("bytes=%d-", transfer.LargeFrom)) || s.refused.Add(1) > 4 {
		return false
	}
	waittest.Until(func() bool { return s.served.Load() >= 4 })
	status(503)(w)
	return true
}

// Large files come in stretches; what has come is not fetched again, and what is
// damaged is not kept.
func TestALargeDownloadComesInStretches(t *testing.T) {
	t.Parallel()
	text := make([]byte, transfer.LargeFrom+100)
	rand.NewChaCha8([32]byte{}).Read(text)
	sum := sumOf(string(text))
	for name, tt := range map[string]struct {
		handle func(w http.ResponseWriter, r *http.Request) bool
		again  bool // it is tried twice
		asked  int  // requests in all
		fails  string
	}{
		"whole":                        {nil, false, 5, ""},
		"broken off, and gone on with": {nil, true, 0, ""},
		"an address that has expired": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/f" {
				status(403)(w)
			}
			return r.URL.Path == "/f"
		}, false, 6, ""},
		"a store without ranges": {func(w http.ResponseWriter, _ *http.Request) bool { _, _ = w.Write(text); return true }, false, 2, ""},
		"damaged": {func(w http.ResponseWriter, r *http.Request) bool {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(append(bytes.Clone(text[:len(text)-1]), text[len(text)-1]^1)))
			return true
		}, false, 5, "damaged"},
		"another length": {func(w http.ResponseWriter, r *http.Request) bool {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text[:len(text)-1]))
			return true
		}, false, 0, "another file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, folder, at := clitest.New(t), t.TempDir(), &store{handle: tt.handle, text: text}
			if tt.again {
				at.handle = at.refuseLast
			}
			s := d.Session(t, clitest.Serve(t, at.ServeHTTP))
			to, err := s.Folder(folder, false)
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			f := transfer.File{Path: "f", URL: s.Server + "/f", Sum: sum, Size: int64(len(text)), Renew: func() (string, error) { return s.Server + "/renewed", nil }}
			err = to.Fetch(f)
			if tt.again {
				if err == nil {
					t.Error("it did not break off")
				}
				before := len(at.asked())
				err = to.Fetch(f)
				if fetched := len(at.asked()) - before; fetched >= 5 {
					t.Errorf("%d stretches were fetched again", fetched)
				}
			}
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("got %v", err)
			}
			got, _ := os.ReadFile(filepath.Join(folder, "f"))
			if err == nil && !bytes.Equal(got, text) || err != nil && len(got) > 0 {
				t.Errorf("%d bytes", len(got))
			}
			if n := len(at.asked()); tt.asked > 0 && n != tt.asked {
				t.Errorf("%d requests: %q", n, at.asked())
			}
			if left, _ := filepath.Glob(filepath.Join(folder, ".f.*")); tt.fails != "another file" && len(left) > 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
}

// What an earlier program left without marks is the beginning of the file.
func TestALargeDownloadGoesOnWithABeginning(t *testing.T) {
	t.Parallel()
	text := make([]byte, transfer.LargeFrom+100)
	rand.NewChaCha8([32]byte{}).Read(text)
	d, folder, at := clitest.New(t), t.TempDir(), &store{text: text}
	s := d.Session(t, clitest.Serve(t, at.ServeHTTP))
	f := transfer.File{Path: "f", URL: s.Server + "/f", Sum: sumOf(string(text)), Size: int64(len(text))}
	if err := os.WriteFile(filepath.Join(folder, ".f."+f.Sum[:12]+".part"), text[:40<<20], 0o600); err != nil {
		t.Fatal(err)
	}
	to, err := s.Folder(folder, false)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := to.Fetch(f); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, "f")); err != nil || !bytes.Equal(got, text) || len(at.asked()) != 3 {
		t.Errorf("%d bytes after %q, %v", len(got), at.asked(), err)
	}
}
