package environments_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	build "github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
	"github.com/millrace/millrace/internal/environments"
	"github.com/millrace/millrace/internal/waittest"
)

// disk is one that fills and empties as a test wants.
type disk struct{ low, nearlyNone atomic.Bool }

func (d *disk) Low() bool        { return d.low.Load() || d.nearlyNone.Load() }
func (d *disk) NearlyNone() bool { return d.nearlyNone.Load() }

// says reports whether the log of what a team asked for has a line.
func (m *memory) says(line string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, log := range m.logs {
		if strings.Contains(log, line) {
			return true
		}
	}
	return false
}

func TestABuildWaitsForSpaceOnTheDisk(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("one", "1.0", nil)
	d := &disk{}
	d.low.Store(true)
	f := open(t, func(c *build.Config) { c.Disk = d }, x.URL)
	done := make(chan error, 1)
	go func() {
		_, err := f.root(t, "a", pip("one"))
		done <- err
	}()
	if !waittest.Until(func() bool { return f.records.says("Waiting for space on the server's disk") }) {
		t.Error("nobody is told what it waits for")
	}
	if asked := x.Asked(); len(asked) > 0 {
		t.Errorf("the index is asked for %v", asked)
	}
	d.low.Store(false)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestABuildGivesWayWhenTheDiskIsNearlyFull(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("one", "1.0", nil)
	to, err := url.Parse(x.URL)
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{}
	// An index that, while the disk fills, sends nothing until nobody listens any more.
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host }}
	var stuck atomic.Int32
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".whl") && stuck.CompareAndSwap(0, 1) {
			d.nearlyNone.Store(true)
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	f := open(t, func(c *build.Config) { c.Disk = d }, slow.URL+to.Path)
	_, err = f.root(t, "a", pip("one"))
	if err == nil || fault.KindOf(err) != fault.KindInternal || !strings.Contains(err.Error(), "disk is nearly full") {
		t.Fatalf("it ends with %v, which is not ours", err)
	}
	if seen, err := f.records.EnvironmentBuild(t.Context(), "a", pip("one").Key()); err != nil || seen.State != environments.Waiting || seen.Error != "" {
		t.Errorf("it is known as %+v, %v", seen, err)
	}
	if left, _ := filepath.Glob(filepath.Join(f.folder, "builds", "run_*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	d.nearlyNone.Store(false)
	if _, err := f.root(t, "a", pip("one")); err != nil {
		t.Error("once there is space again: ", err)
	}
}
