package transfer_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/transfer"
)

// local is an open file with a text.
func local(t *testing.T, text string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reads.fq")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// An upload is sent again only where that may work, and never past the life of its address.
func TestAnUploadIsTriedAgainWhileItsAddressLives(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers []int // one after the other, the last for ever
		lives   time.Duration
		tries   int
		fails   string
	}{
		"taken":                          {[]int{200}, time.Hour, 1, ""},
		"taken at the third try":         {[]int{500, 503, 201}, time.Hour, 3, ""},
		"never":                          {[]int{500}, time.Hour, 4, "the storage responded with 500"},
		"until the address expires":      {[]int{500}, 2500 * time.Millisecond, 3, "the storage responded with 500"},
		"by an address that has expired": {[]int{500}, 0, 1, "the storage responded with 500"},
		"too large":                      {[]int{413}, time.Hour, 1, "the storage responded with 413"},
		"an address that was used":       {[]int{409}, time.Hour, 1, "the upload's address was refused: try again"},
		"one that is gone":               {[]int{410}, time.Hour, 1, "refused: try again"},
		"taken, but nobody heard":        {[]int{500, 409}, time.Hour, 2, ""}, // the hash tells whether whole
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := int(tries.Add(1))
				body, err := io.ReadAll(r.Body)
				if err != nil || string(body) != digits || r.Method != http.MethodPut || r.Header.Get("Content-Type") != "text/csv" || r.ContentLength != 10 || r.Header.Get("Authorization") != "" {
					t.Errorf("%s %q %v, %v", r.Method, body, r.Header, err)
				}
				w.WriteHeader(tt.answers[min(n, len(tt.answers))-1])
			}))
			t.Cleanup(server.Close)
			d := clitest.New(t)
			up := transfer.Upload{Console: d.Console, HTTP: http.DefaultClient, ContentType: "text/csv", Shown: transfer.NewMeter(d.Console, "f", 10), To: api.PresignedUpload{
				URL: server.URL + "/?signature=secret", Method: http.MethodPut, ExpiresAt: api.Time{Time: d.Time().Add(tt.lives)},
			}}
			got, err := up.Put(local(t, digits), 10)
			if (err == nil) != (tt.fails == "") || err != nil && (!strings.Contains(err.Error(), tt.fails) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%v", err)
			}
			if err == nil && got != sum(digits) || err != nil && got != "" {
				t.Errorf("its hash is %q", got)
			}
			if int(tries.Load()) != tt.tries {
				t.Errorf("%d tries", tries.Load())
			}
		})
	}
}

// What was cut short while it was sent is a failure, and not a shorter file.
func TestAFileThatShrinksIsNotUploaded(t *testing.T) {
	t.Parallel()
	var whole atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			t.Errorf("%q came whole", body)
			whole.Add(1)
		}
	}))
	t.Cleanup(server.Close)
	d := clitest.New(t)
	up := transfer.Upload{Console: d.Console, HTTP: http.DefaultClient, Shown: transfer.NewMeter(d.Console, "f", 10), To: api.PresignedUpload{URL: server.URL, Method: http.MethodPut, ExpiresAt: api.Time{Time: d.Time().Add(time.Hour)}}}
	if got, err := up.Put(local(t, "0123"), 10); err == nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	up.To.URL = "http://127.0.0.1:1/?signature=secret"
	if _, err := up.Put(local(t, digits), 10); err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a store that is away: %v", err)
	}
}
