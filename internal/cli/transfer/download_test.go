package transfer_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/transfer"
)

const digits = "0123456789"

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// answering is a store that gives the same text whatever part of it was asked for.
func answering(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func ranged(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	}
}

// A file appears under its name whole or not at all, whether or not its hash is known.
func TestAFileOfAnotherLengthIsNotKept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		store       http.HandlerFunc
		part        string // that an earlier program left
		size        int64
		fails       string // with a hash
		failsNoHash string
	}{
		"as long as it should be":       {store: answering(digits), size: 10},
		"as long, behind a part":        {store: ranged(digits), part: "0123", size: 10},
		"nothing of nothing":            {store: answering("never asked"), size: 0},
		"shorter, without ranges":       {store: answering("0123"), size: 10, fails: "the storage closed the connection after 4 of 10 bytes", failsNoHash: "the storage closed the connection after 4 of 10 bytes"},
		"shorter, with ranges":          {store: ranged("0123"), size: 10, fails: "416", failsNoHash: "416"},
		"empty":                         {store: answering(""), size: 10, fails: "after 0 of 10 bytes", failsNoHash: "after 0 of 10 bytes"},
		"one byte longer":               {store: answering(digits + "X"), size: 10, fails: "was damaged in transfer: its SHA-256 is", failsNoHash: "was damaged in transfer: it has more than 10 bytes"},
		"much longer":                   {store: answering(strings.Repeat("x", 1<<20)), size: 10, fails: "was damaged in transfer", failsNoHash: "it has more than 10 bytes"},
		"a part that is longer":         {store: ranged(digits), part: digits + "more", size: 10},
		"a page in place of it":         {store: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, size: 10, fails: "404", failsNoHash: "404"},
		"another range than asked for":  {store: elsewhere, part: "0123", size: 10, fails: "the storage responded with 206", failsNoHash: "the storage responded with 206"},
		"a store that never works":      {store: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, size: 10, fails: "503", failsNoHash: "503"},
		"a store with words for people": {store: refusing, size: 10, fails: "the file is gone", failsNoHash: "the file is gone"},
	} {
		for hash, fails := range map[string]string{sum(digits[:tt.size]): tt.fails, "": tt.failsNoHash} {
			server := httptest.NewServer(tt.store)
			d, path := folder(t, false)
			if tt.part != "" && hash != "" {
				if err := os.WriteFile(filepath.Join(path, ".f."+hash[:12]+".part"), []byte(tt.part), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := d.Fetch(transfer.File{Path: "f", URL: server.URL + "/?signature=secret", Sum: hash, Size: tt.size})
			server.Close()
			if (err == nil) != (fails == "") || err != nil && (!strings.Contains(err.Error(), fails) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%s, hash %.4s: %v", name, hash, err)
			}
			text, readErr := os.ReadFile(filepath.Join(path, "f"))
			if (readErr == nil) != (fails == "") || fails == "" && string(text) != digits[:tt.size] {
				t.Errorf("%s, hash %.4s: there is %q, %v", name, hash, text, readErr)
			}
		}
	}
}

func elsewhere(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Range", "bytes 0-3/10")
	w.WriteHeader(http.StatusPartialContent)
	_, _ = io.WriteString(w, "0123")
}

func refusing(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusGone)
	_, _ = io.WriteString(w, `{"success":false,"error":"the file is gone","code":"gone"}`)
}

// Without a hash nothing says whether what is there is the same.
func TestWhatIsThereIsReplacedOnlyWhenThatWasAsked(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(answering(digits))
	t.Cleanup(server.Close)
	for name, tt := range map[string]struct {
		there, hash string
		force       bool
		fails, left string
	}{
		"the same":                  {digits, sum(digits), false, "", digits},
		"another":                   {"mine", sum(digits), false, "f already exists and differs: replace it with --force", "mine"},
		"another, by force":         {"mine", sum(digits), true, "", digits},
		"who knows":                 {digits, "", false, "f already exists: replace it with --force", digits},
		"who knows, by force":       {"mine", "", true, "", digits},
		"another that fails":        {"mine", sum("other"), true, "damaged", "mine"},
		"an empty one, who knows":   {"", "", false, "f already exists: replace it", ""},
		"an empty one that differs": {"", sum(digits), false, "differs", ""},
	} {
		d, path := folder(t, tt.force)
		if err := os.WriteFile(filepath.Join(path, "f"), []byte(tt.there), 0o600); err != nil {
			t.Fatal(err)
		}
		err := d.Fetch(transfer.File{Path: "f", URL: server.URL, Sum: tt.hash, Size: 10})
		if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%s: %v", name, err)
		}
		if text, err := os.ReadFile(filepath.Join(path, "f")); err != nil || string(text) != tt.left {
			t.Errorf("%s: there is %q, %v", name, text, err)
		}
		if got := listed(t, path); got != "f" {
			t.Errorf("%s: there are %q", name, got)
		}
	}
}

// File systems take names of 255 bytes, and a part's name has more in it than that.
func TestANameMayBeAsLongAsFileSystemsTake(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(answering(digits))
	t.Cleanup(server.Close)
	for _, length := range []int{1, 230, 231, 236, 237, 250, 251, 254, 255} {
		for _, hash := range []string{sum(digits), ""} {
			d, path := folder(t, false)
			name := strings.Repeat("x", length)
			if err := d.Fetch(transfer.File{Path: name, URL: server.URL, Sum: hash, Size: 10}); err != nil {
				t.Errorf("%d bytes: %v", length, err)
			}
			if got := listed(t, path); got != name {
				t.Errorf("%d bytes: there are %d", length, len(got))
			}
		}
	}
	d, path := folder(t, false)
	if err := d.Fetch(transfer.File{Path: strings.Repeat("x", 256), URL: server.URL, Sum: sum(digits), Size: 10}); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("one byte more: %v", err)
	}
	if got := listed(t, path); got != "" {
		t.Errorf("one byte more leaves %q", got)
	}
}

// Whoever leaves in the middle goes on there the next time.
func TestADownloadThatIsLeftIsGoneOnWith(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Range")
		if r.Header.Get("Range") != "" {
			ranged(digits)(w, r)
			return
		}
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "0123")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	d, path := folder(t, false)
	ctx, leave := context.WithCancel(t.Context())
	d.Ctx = ctx
	// The bytes are in the part before anybody leaves.
	part := filepath.Join(path, ".f."+sum(digits)[:12]+".part")
	d.HTTP = &http.Client{Transport: leaving{func() { leave() }}}
	err := d.Fetch(transfer.File{Path: "f", URL: server.URL, Sum: sum(digits), Size: 10})
	if err == nil || ctx.Err() == nil {
		t.Fatalf("%v", err)
	}
	if text, err := os.ReadFile(part); err != nil || string(text) != "0123" {
		t.Fatalf("the part is %q, %v", text, err)
	}
	d.Ctx, d.HTTP = t.Context(), http.DefaultClient
	if err := d.Fetch(transfer.File{Path: "f", URL: server.URL, Sum: sum(digits), Size: 10}); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(<-asked, <-asked); got != "bytes=4-" || listed(t, path) != "f" {
		t.Errorf("asked for %q, there are %q", got, listed(t, path))
	}
}

// leaving has somebody leave after the first four bytes of an answer.
type leaving struct{ leave func() }

func (l leaving) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = &leavingBody{ReadCloser: resp.Body, leave: l.leave}
	}
	return resp, err
}

type leavingBody struct {
	io.ReadCloser
	leave func()
	read  int
}

func (b *leavingBody) Read(p []byte) (int, error) {
	if b.read == 4 {
		b.leave()
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), 4-b.read%4)])
	b.read += n
	return n, err
}
