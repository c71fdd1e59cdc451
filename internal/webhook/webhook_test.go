package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/runs/webhooks"
)

func TestPostReadsLittleAndFollowsNothing(t *testing.T) {
	t.Parallel()
	redirected := false
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ok", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Was", string(body))
		_, _ = w.Write([]byte(r.Header.Get("webhook-id") + "\x00" + strings.Repeat("x", 1<<20)))
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/target", http.StatusFound) })
	mux.HandleFunc("/target", func(http.ResponseWriter, *http.Request) { redirected = true })
	mux.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	defer server.Close()
	c := New(true)
	status, answer, err := c.Post(t.Context(), server.URL+"/ok", map[string]string{"webhook-id": "m1"}, []byte("{}"))
	if err != nil || status != 200 || !strings.HasPrefix(answer, "m1xxx") || len(answer) > 1<<10 {
		t.Errorf("%d %q %v", status, answer, err)
	}
	if status, _, err := c.Post(t.Context(), server.URL+"/moved", nil, nil); err != nil || status != http.StatusFound || redirected {
		t.Errorf("%d %v, followed %v", status, err, redirected)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := c.Post(short, server.URL+"/hangs", nil, nil); !errors.Is(err, webhooks.ErrSlow) {
		t.Error(err)
	}
	if _, _, err := New(false).Post(t.Context(), server.URL+"/ok", nil, nil); err == nil || !strings.Contains(err.Error(), "--fetch-allow-private") {
		t.Errorf("a private address: %v", err)
	}
}
