package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/screen"
)

// store gives one file, by an address that expires when it is told to.
type store struct {
	text []byte

	mu      sync.Mutex
	address string
	answers int // until the address expires; negative: it does not
	asked   map[string]int
	whole   bool // it knows no ranges
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	gone := r.URL.Path != s.address || s.answers == 0
	if s.answers > 0 {
		s.answers--
	}
	if !gone {
		s.asked[r.Header.Get("Range")]++
	}
	s.mu.Unlock()
	switch {
	case gone:
		http.Error(w, "expired", http.StatusForbidden)
	case s.whole:
		_, _ = w.Write(s.text)
	default:
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.text))
	}
}

// renew gives another address, which does not expire.
func (s *store) renew() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address, s.answers = s.address+"x", -1
	return s.address
}

func newStore(t *testing.T, answers int) (s *store, base, sum string) {
	t.Helper()
	s = &store{text: largeText(), address: "/a", answers: answers, asked: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL, largeSum()
}

var (
	largeText = sync.OnceValue(func() []byte { return bytes.Repeat([]byte("0123456789abcde\n"), LargeFrom/16+1) })
	largeSum  = sync.OnceValue(func() string {
		h := sha256.Sum256(largeText())
		return hex.EncodeToString(h[:])
	})
)

func openFolder(t *testing.T, path string) *Folder {
	t.Helper()
	d := &Folder{HTTP: http.DefaultClient, Console: screen.Console{
		Ctx: t.Context(), Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }, Now: time.Now,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}}
	if err := d.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func checkFetched(t *testing.T, folder string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(folder, "large"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, or others; %v", len(got), err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("beside the file: %v, %v", entries, err)
	}
}

// What has come in stretches stays when the address expires, and is not fetched
// twice, by this program or the next.
func TestStretchesThatHaveComeAreNotFetchedAgain(t *testing.T) {
	t.Parallel()
	for name, renewed := range map[string]bool{"another address": true, "another program": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, base, sum := newStore(t, 3)
			f := File{Path: "large", URL: base + "/a", Sum: sum, Size: int64(len(s.text))}
			if renewed {
				f.Renew = func() (string, error) { return base + s.renew(), nil }
			}
			folder := t.TempDir()
			err := openFolder(t, folder).Fetch(f)
			if !renewed {
				if err == nil || strings.Contains(err.Error(), "/a") {
					t.Fatalf("%v", err)
				}
				f.URL = base + s.renew()
				err = openFolder(t, folder).Fetch(f)
			}
			if err != nil {
				t.Fatal(err)
			}
			checkFetched(t, folder, s.text)
			if stretches := (len(s.text) + stretchSize - 1) / stretchSize; len(s.asked) != stretches {
				t.Errorf("%d stretches of %d were asked for", len(s.asked), stretches)
			}
			for r, n := range s.asked {
				// A program that gives up leaves those that were on their way.
				if whole := renewed || strings.HasPrefix(r, "bytes=0-"); whole && n != 1 {
					t.Errorf("%s was fetched %d times", r, n)
				}
			}
		})
	}
}

func TestAStoreWithoutRangesGivesTheWhole(t *testing.T) {
	t.Parallel()
	s, base, sum := newStore(t, -1)
	s.whole = true
	folder := t.TempDir()
	if err := openFolder(t, folder).Fetch(File{Path: "large", URL: base + "/a", Sum: sum, Size: int64(len(s.text))}); err != nil {
		t.Fatal(err)
	}
	checkFetched(t, folder, s.text)
}

// A file that is not what it should be is not kept, and neither is its part.
func TestAFileThatArrivesDamagedIsNotKept(t *testing.T) {
	t.Parallel()
	s, base, _ := newStore(t, -1)
	folder := t.TempDir()
	err := openFolder(t, folder).Fetch(File{Path: "large", URL: base + "/a", Sum: strings.Repeat("0", 64), Size: int64(len(s.text))})
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("%v", err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
