package environments_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	build "github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
	"github.com/millrace/millrace/internal/environments"
)

// fetched counts how often files whose names end so were asked for.
func fetched(x *indextest.Index, end string) (n int) {
	for _, path := range x.Asked() {
		if strings.HasSuffix(path, end) {
			n++
		}
	}
	return n
}

// use has an environment for a moment.
func (f fixture) use(t *testing.T, team string, s environment.Spec) (path, digest string) {
	t.Helper()
	of := f.For(ids.Team(team))
	digest, err := of.Resolve(t.Context(), s.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	path, _, release, err := of.Root(t.Context(), s.Canonical(), digest)
	if err != nil {
		t.Fatal(err)
	}
	release()
	return path, digest
}

func TestOneBuildServesAllShardsOfTwoRuns(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("one", "1.0", nil)
	f := open(t, nil, x.URL)
	var all sync.WaitGroup
	for range 2 * 50 {
		all.Go(func() {
			if _, err := f.root(t, "a", pip("one")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	installed := 0
	for _, log := range f.records.logs {
		installed = max(installed, strings.Count(log, "Installed 1 package"))
	}
	if installed != 1 || fetched(x, ".whl") > 3 { // looked into, and fetched
		t.Errorf("installed %d times, fetched %d times", installed, fetched(x, ".whl"))
	}
	before, saved := len(x.Asked()), len(f.records.logs)
	for range 50 {
		if _, err := f.root(t, "a", pip("one")); err != nil {
			t.Fatal(err)
		}
	}
	if len(x.Asked()) != before || len(f.records.logs) != saved {
		t.Errorf("the next run builds again: %v", x.Asked()[before:])
	}
}

func TestEnvironmentsThatAreNotUsedMakeRoom(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	for _, name := range []string{"one", "two"} {
		x.AddWheel(name, "1.0", map[string]string{name + ".bin": strings.Repeat(name, 3<<20)})
	}
	now, mu := time.Now(), sync.Mutex{}
	f := open(t, func(c *build.Config) {
		c.MaxTotal, c.MaxOne = 16<<20, 16<<20
		c.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(time.Second)
			return now
		}
	}, x.URL)
	first, digest := f.use(t, "a", pip("one"))
	f.use(t, "a", pip("two"))
	if _, err := os.Stat(first); err == nil {
		t.Fatal("both are kept, though there is no room")
	}
	// It comes again from its lock, whatever the index has by then.
	x.AddWheel("one", "2.0", nil)
	again, now2 := f.use(t, "a", pip("one"))
	if _, err := os.Stat(again); err != nil || again != first || now2 != digest {
		t.Errorf("built again it is %s, %s: %v", again, now2, err)
	}
	// What is in use stays.
	held, err := f.root(t, "a", pip("one"))
	if err != nil {
		t.Fatal(err)
	}
	f.use(t, "a", pip("two"))
	if _, err := os.Stat(held); err != nil {
		t.Errorf("it went while it was used: %v", err)
	}
}

func TestTwoServersBuildAtOnce(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("one", "1.0", nil)
	first := open(t, nil, x.URL)
	sameMachine := open(t, func(c *build.Config) {
		c.Records, c.Folder, c.Builds = first.records, first.folder, t.TempDir()
	}, x.URL)
	elsewhere := open(t, func(c *build.Config) { c.Records = first.records }, x.URL)
	var all sync.WaitGroup
	paths, digests := make([]string, 3), make([]string, 3)
	for i, f := range []fixture{first, sameMachine, elsewhere} {
		all.Go(func() {
			of := f.For("a")
			digest, err := of.Resolve(t.Context(), pip("one").Canonical())
			if err != nil {
				t.Error(err)
				return
			}
			path, _, release, err := of.Root(t.Context(), pip("one").Canonical(), digest)
			if err != nil {
				t.Error(err)
				return
			}
			release()
			paths[i], digests[i] = path, digest
		})
	}
	all.Wait()
	if digests[0] != digests[1] || digests[0] != digests[2] || paths[0] != paths[1] || paths[0] == paths[2] {
		t.Errorf("they are %v at %v", digests, paths)
	}
	known, err := first.records.EnvironmentBuild(t.Context(), "a", pip("one").Key())
	if err != nil || known.State != environments.Ready {
		t.Errorf("it is known as %s, %v", fmt.Sprint(known), err)
	}
}

// What no run has any more is forgotten, at whatever moment: then packages are chosen
// anew, and never taken for those that were chosen before.
func TestAnEnvironmentThatIsForgottenIsChosenAnew(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("one", "1.0", nil)
	f := open(t, nil, x.URL)
	spec, of := pip("one"), f.For("a")
	digest, err := of.Resolve(t.Context(), spec.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	x.AddWheel("one", "2.0", nil)
	f.records.mu.Lock()
	clear(f.records.builds)
	f.records.mu.Unlock()
	if _, _, _, err := of.Root(t.Context(), spec.Canonical(), digest); err == nil || fault.KindOf(err) != fault.KindInternal {
		t.Errorf("other packages under the old digest: %v", err)
	}
	f.use(t, "a", spec)
	if known, err := f.records.EnvironmentBuild(t.Context(), "a", spec.Key()); err != nil || !strings.Contains(known.Lock, "one==2.0") {
		t.Errorf("it is %+v, %v", known, err)
	}
}

func TestThatAnEnvironmentIsUsedIsNotedOnceADay(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("one", "1.0", nil)
	now := time.Date(2026, 8, 3, 12, 0, 0, 0, time.UTC)
	f := open(t, func(c *build.Config) { c.Now = func() time.Time { return now } }, x.URL)
	for _, pass := range []struct{ later, noted time.Duration }{{0, 0}, {23 * time.Hour, 0}, {25 * time.Hour, 25 * time.Hour}} {
		began := time.Date(2026, 8, 3, 12, 0, 0, 0, time.UTC)
		now = began.Add(pass.later)
		f.use(t, "a", pip("one"))
		if known, err := f.records.EnvironmentBuild(t.Context(), "a", pip("one").Key()); err != nil || !known.UsedAt.Equal(began.Add(pass.noted)) {
			t.Errorf("%s later it was used at %s, %v", pass.later, known.UsedAt, err)
		}
	}
}

// After an upgrade of the machine its interpreter may be another one.
func TestAnEnvironmentWithoutItsInterpreterIsBuiltAgain(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("one", "1.0", map[string]string{"one.py": "print('one')\n"})
	f := open(t, nil, x.URL)
	path, _ := f.use(t, "a", pip("one"))
	python := filepath.Join(path, "bin", "python")
	if err := errors.Join(os.Remove(python), os.Symlink("/usr/bin/python3.0", python)); err != nil {
		t.Fatal(err)
	}
	if again, _ := f.use(t, "a", pip("one")); again != path {
		t.Errorf("it is at %s", again)
	}
	if out, err := exec.Command(python, "-m", "one").CombinedOutput(); err != nil || string(out) != "one\n" {
		t.Errorf("it says %q, %v", out, err)
	}
}

func TestATeamBuildsTwoAtATime(t *testing.T) {
	t.Parallel()
	arrived, letGo := make(chan string, 10), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- r.URL.Path
		<-letGo
		http.NotFound(w, r)
	}))
	t.Cleanup(slow.Close)
	f := open(t, nil, slow.URL)
	var all sync.WaitGroup
	resolve := func(team ids.Team, name string) {
		all.Go(func() {
			if _, err := f.For(team).Resolve(t.Context(), pip(name).Canonical()); !fault.Is(err, fault.KindUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	for _, name := range []string{"one", "two"} {
		resolve("a", name)
		<-arrived
	}
	resolve("a", "three")
	resolve("b", "other")
	if path := <-arrived; path != "/other/" {
		t.Errorf("while two are built, %s is asked for", path)
	}
	close(letGo)
	if path := <-arrived; path != "/three/" {
		t.Errorf("then %s is asked for", path)
	}
	all.Wait()
}
