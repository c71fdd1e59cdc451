package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
)

// A server that is killed while it builds leaves nothing that is taken for an
// environment, and the next one builds it.
func TestABuildSurvivesAServerThatIsKilled(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	x := indextest.New(t)
	x.AddWheel("greeter", "1.0", map[string]string{"greeter.py": "WORD = 'hello'\n"})
	of, err := url.Parse(strings.TrimSuffix(x.URL, "/simple/"))
	if err != nil {
		t.Fatal(err)
	}
	var stuck atomic.Bool
	stuck.Store(true)
	reached := make(chan struct{}, 100)
	hand := httputil.NewSingleHostReverseProxy(of)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stuck.Load() && strings.HasSuffix(r.URL.Path, ".whl") {
			reached <- struct{}{}
			<-r.Context().Done()
			return
		}
		hand.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	data := t.TempDir()
	args := []string{"--data", data, "--fetch-allow-private", "--pip-index-url", slow.URL + "/simple/"}
	s := start(t, args...)
	base := s.base
	token, cookie, _ := s.signUp("ada")
	w := s.workflow(token, `{"nodes":[{"id":"a","environment":{"pip":["greeter"]},"command":"python -c 'import greeter; print(greeter.WORD)'"}]}`)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w))
	<-reached
	s.kill()
	stuck.Store(false)
	s = start(t, append(args, "--public-urls", base)...)
	token = s.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	r := s.ended(token, id)
	if log, _ := r["logs"].(string); r["status"] != "completed" || !strings.Contains(log, "hello") {
		t.Errorf("%v: %v\n%v", r["status"], r["errorMessage"], log)
	}
	await(t, "the end of what was left", func() bool {
		left, err := filepath.Glob(filepath.Join(data, "environments", "sha256", ".new-*"))
		builds, buildsErr := filepath.Glob(filepath.Join(data, "environment-builds", "run_*"))
		return err == nil && buildsErr == nil && len(left)+len(builds) == 0
	})
}
