package kubernetes

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// An API server that restarts refuses no run: they wait for it. One that refuses us has
// answered.
func TestWhatAClusterHasIsRememberedForAWhile(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(503)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch code := int(status.Load()); {
		case code != http.StatusOK:
			w.WriteHeader(code)
			reason := map[int]string{403: "Forbidden", 503: "ServiceUnavailable"}[code]
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not now","reason":%q,"code":%d}`, reason, code)
		case strings.HasSuffix(r.URL.Path, "/nodes"):
			fmt.Fprint(w, `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"8","memory":"1Gi"}}}]}`)
		default:
			fmt.Fprint(w, `{"kind":"JobList","apiVersion":"batch/v1","items":[]}`)
		}
	}))
	t.Cleanup(api.Close)
	file := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","namespace":"n"}}],"current-context":"c"}`, api.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := New(t.Context(), Config{
		Kubeconfig: file, Installation: "here", URL: "http://127.0.0.1:1", Image: "registry.example/tasks", ShimImage: "registry.example/shim", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		status int64
		old    time.Duration // its last answer
		ready  bool
		says   string
	}{
		{503, 0, false, "Kubernetes does not answer"}, // it was never there
		{200, 0, true, ""},
		{503, probeLasts / 2, true, ""},
		{503, probeLasts, false, "Kubernetes does not answer"},
		{200, 0, true, ""},
		{403, 0, false, "not now"},
	} {
		status.Store(step.status)
		k.mu.Lock()
		k.answered = k.answered.Add(-step.old)
		k.mu.Unlock()
		k.probe(t.Context())
		if c := k.Capabilities(t.Context()); c.Ready != step.ready || !strings.Contains(c.Problem, step.says) || c.Ready && c.VCPU != 8 {
			t.Errorf("%d: %+v", i, c)
		}
	}
}
