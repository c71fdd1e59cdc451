package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// drips are hosts that answer one byte a second, for as long as anybody reads.
type drips struct{ begun atomic.Int64 }

func (d *drips) answer(w http.ResponseWriter, r *http.Request, status int) {
	d.begun.Add(1)
	w.WriteHeader(status)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		if _, err := w.Write([]byte("x")); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-second.C:
		case <-r.Context().Done():
			return
		}
	}
}

func serving(t *testing.T, h http.HandlerFunc) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// inputHost has an object, of which it gives the first byte at once: that there is
// something is seen when a run is accepted.
func (d *drips) inputHost(t *testing.T) (url string) {
	return serving(t, func(w http.ResponseWriter, r *http.Request) {
		const size = 1 << 20
		var from, to int64
		if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); n != 2 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("ETag", `"0123456789abcdef"`)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, size))
		if to == 0 {
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "x")
			return
		}
		d.answer(w, r, http.StatusPartialContent)
	})
}

// registryHost is a real registry that drips what images consist of.
func (d *drips) registryHost(t *testing.T) (host string) {
	next := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	url := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			d.answer(w, r, http.StatusOK)
			return
		}
		next.ServeHTTP(w, r)
	})
	return strings.TrimPrefix(url, "http://")
}

// unended is how many runs of somebody have not ended.
func (s *server) unended(token string) (n int) {
	s.t.Helper()
	for _, raw := range s.want(200, "GET", "/api/runs?limit=50", "", "Authorization", bearer(token))["data"].([]any) {
		if raw.(map[string]any)["finishedAt"] == nil {
			n++
		}
	}
	return n
}

// Teams name many hosts that answer one byte a second: for inputs, images and webhooks.
// The input, the image and the webhook of another team get through while most of what the
// slow teams wait for is still to come. Without turns of its own, the other team would
// come after all of them.
func TestSlowHostsOfTeamsHoldUpNoOtherTeam(t *testing.T) {
	t.Parallel()
	const many = 24
	var inputs, blobs, calls drips
	slowRegistry := blobs.registryHost(t)
	slowHook := serving(t, func(w http.ResponseWriter, r *http.Request) { calls.answer(w, r, http.StatusOK) })
	told := make(chan string, 100)
	hook := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err == nil && strings.Contains(string(text), "run.completed") {
			told <- string(text)
		}
	})
	data := serving(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"fedcba9876543210"`)
		http.ServeContent(w, r, "reads", time.Unix(1, 0), strings.NewReader("reads\n"))
	})
	host, _ := imageHub(t)
	image := pushImage(t, host+"/lab/tool:1", "lab one", "bash")
	var slowInputs, slowImages []string
	for i := range many {
		slowInputs = append(slowInputs, inputs.inputHost(t))
		slowImages = append(slowImages, pushImage(t, fmt.Sprintf("%s/lab/slow%d:1", slowRegistry, i), fmt.Sprint("slow ", i)))
	}

	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--runs-per-minute", "1000")
	enter := func(name string) (token string) {
		_, cookie, _ := s.signUp(name)
		return s.want(201, "POST", "/auth/api-tokens", `{"name":"cli","role":"admin"}`, "Cookie", cookie)["token"].(string)
	}
	withInputs, withImages := enter("ada"), enter("bob")
	var hooks []string
	for range 20 { // as many as a team may have
		w := s.want(201, "POST", "/api/webhooks", fmt.Sprintf(`{"url":%q}`, slowHook), "Authorization", bearer(withInputs))
		hooks = append(hooks, fmt.Sprint(w["id"]))
	}
	reading := s.workflow(withInputs, `{"inputs":{"ref":{"type":"file"}},"nodes":[{"id":"a","command":"true","inputs":{"in":{"from":"inputs.ref"}}}]}`)
	for i := range many {
		s.run(withInputs, fmt.Sprintf(`{"workflowId":%q,"inputs":{"ref":{"url":"%s/reads"}}}`, reading, slowInputs[i]))
		s.run(withImages, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(withImages, fmt.Sprintf(`{"nodes":[{"id":"a","image":%q,"command":"true"}]}`, slowImages[i]))))
	}
	await(t, "the attack", func() bool { return inputs.begun.Load() >= 4 && blobs.begun.Load() >= 4 && calls.begun.Load() >= 2 })

	began := time.Now()
	other := enter("eve")
	s.want(201, "POST", "/api/webhooks", fmt.Sprintf(`{"url":%q}`, hook), "Authorization", bearer(other))
	id := s.run(other, fmt.Sprintf(`{"workflowId":%q,"inputs":{"ref":{"url":"%s/reads"}}}`, s.workflow(other, fmt.Sprintf(`{"inputs":{"ref":{"type":"file"}},"nodes":[
		{"id":"a","image":%q,"command":"read text < \"$INPUT_in\"; echo \"it says $text\"","inputs":{"in":{"from":"inputs.ref"}}}]}`, image)), data))
	r := s.ended(other, id)
	if logs, _ := r["logs"].(string); r["status"] != "completed" || !strings.Contains(logs, "it says reads") {
		t.Errorf("%v %v\n%v", r["status"], r["errorMessage"], r["logs"])
	}
	await(t, "the other team's message", func() bool { return len(told) > 0 })
	t.Logf("the other team's input, image and webhook got through in %s", time.Since(began).Round(time.Millisecond))

	for what, token := range map[string]string{"inputs": withInputs, "images": withImages} {
		if n := s.unended(token); n <= many/2 {
			t.Errorf("the other team came after the slow %s: only %d of %d runs wait for theirs", what, n, many)
		}
	}
	pending := 0
	for _, id := range hooks {
		for _, raw := range s.want(200, "GET", "/api/webhooks/"+id+"/deliveries", "", "Authorization", bearer(withInputs))["data"].([]any) {
			if raw.(map[string]any)["status"] == "pending" {
				pending++
			}
		}
	}
	if pending <= len(hooks)*many/2 {
		t.Errorf("the other team came after the slow webhooks: only %d of %d messages wait", pending, len(hooks)*many)
	}
}
