package environments_test

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	build "github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// found are the files of a name in a folder.
func found(t *testing.T, folder, name string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == name {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestNothingOfAPackageIsRunWhileItIsBuilt(t *testing.T) {
	t.Parallel()
	const leaveMark = "import sys; open(sys.prefix + '/ran', 'w').close()\n"
	const leaveFile = "#!/bin/sh\n: > " + shim.WorkPath + "/environment/ran\n"
	x := indextest.New(t)
	x.AddWheel("evil", "1.0", map[string]string{
		"evil.pth": leaveMark, "sitecustomize.py": leaveMark, "usercustomize.py": leaveMark, "encodings.py": leaveMark, "compileall.py": leaveMark, "evil/__init__.py": leaveMark,
		"evil-1.0.data/scripts/uv": leaveFile,
	})
	for _, name := range []string{"python", "python3", "python3.11"} {
		x.AddWheel("impostor"+strings.ReplaceAll(name, ".", ""), "1.0", map[string]string{"impostor" + strings.ReplaceAll(name, ".", "") + "-1.0.data/scripts/" + name: leaveFile})
	}
	f := open(t, nil, x.URL)
	path, err := f.root(t, "a", pip("evil"))
	if err != nil {
		t.Fatal(err)
	}
	if list := found(t, path, "evil.pth"); len(list) != 1 {
		t.Errorf("the package is not there: %v", list)
	}
	for _, name := range []string{"impostorpython", "impostorpython3", "impostorpython311"} {
		_, _ = f.root(t, "a", pip(name)) // whether it is refused is uv's business
	}
	if list := found(t, f.folder, "ran"); len(list) > 0 {
		t.Errorf("something was run: %v", list)
	}
}

func TestSourcesAreNeverBuilt(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddFile("source", "source-1.0.tar.gz", []byte("not even a tar"))
	f := open(t, nil, x.URL)
	if _, err := f.root(t, "a", pip("source")); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("it is built: %v", err)
	}
	if slices.ContainsFunc(x.Asked(), func(path string) bool { return strings.HasSuffix(path, ".tar.gz") }) {
		t.Errorf("it is fetched: %v", x.Asked())
	}
}

func TestTheFirstIndexThatHasAPackageIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	own, public := indextest.New(t), indextest.New(t)
	own.AddWheel("corp", "1.0", nil, "helper")
	public.AddWheel("corp", "99.0", map[string]string{"evil.py": ""})
	public.AddWheel("helper", "3.0", nil)
	f := open(t, nil, own.URL, public.URL)
	if _, err := f.root(t, "a", pip("corp")); err != nil {
		t.Fatal(err)
	}
	known, err := f.records.EnvironmentBuild(t.Context(), "a", pip("corp").Key())
	lock, _ := environment.ParseLock(known.Lock)
	if err != nil || len(lock.Packages) != 2 || lock.Packages[0].Version != "1.0" || lock.Packages[1].Version != "3.0" {
		t.Errorf("the lock is %q, %v", known.Lock, err)
	}
	if slices.Contains(public.Asked(), "/simple/corp/") {
		t.Error("the public index learns the names of packages that it is not asked for")
	}
	if _, err := f.root(t, "a", pip("corp>=2")); err == nil {
		t.Error("a newer version of the second index is taken")
	}
	own.Fail(http.StatusServiceUnavailable)
	if _, err := f.root(t, "a", pip("corp<50")); err == nil {
		t.Error("while the first index is away the second one answers for its packages")
	}
}

func TestAnIndexInAPrivateNetworkIsNotReached(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("one", "1.0", nil)
	f := open(t, func(c *build.Config) { c.AllowPrivate = false }, x.URL)
	if _, err := f.root(t, "a", pip("one")); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("it is built: %v", err)
	}
	if len(x.Asked()) > 0 {
		t.Errorf("it is reached: %v", x.Asked())
	}
}

func TestABuildHasAnEnd(t *testing.T) {
	t.Parallel()
	never := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(never.Close)
	f := open(t, func(c *build.Config) { c.Time = 3 * time.Second }, never.URL)
	if _, err := f.root(t, "a", pip("one")); !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), "not done within") {
		t.Errorf("an endless one: %v", err)
	}
	x := indextest.New(t)
	x.AddWheel("huge", "1.0", map[string]string{"huge.bin": strings.Repeat("\x00", 64<<20)})
	small := open(t, func(c *build.Config) { c.MaxOne = 16 << 20 }, x.URL)
	if _, err := small.root(t, "a", pip("huge")); !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), "takes more than 16 MB") {
		t.Errorf("a huge one: %v", err)
	}
	// One that nobody waits for any more is ended, and can be asked for again.
	ctx, leave := context.WithCancel(t.Context())
	arrived := make(chan struct{}, 100)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- struct{}{}; <-r.Context().Done() }))
	t.Cleanup(slow.Close)
	left := open(t, nil, slow.URL)
	go func() { <-arrived; leave() }()
	if _, err := left.For(ids.Team("a")).Resolve(ctx, pip("one").Canonical()); err == nil || ctx.Err() == nil {
		t.Errorf("one that was left: %v", err)
	}
}

func TestAWheelStaysInItsEnvironment(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("climber", "1.0", map[string]string{
		"../../../../climbed": "x", "/tmp/climbed": "x", "climber-1.0.data/data/../../../../climbed": "x", "climber-1.0.data/scripts/../../../climbed": "x",
	})
	f := open(t, nil, x.URL)
	path, err := f.root(t, "a", pip("climber"))
	for _, file := range found(t, f.folder, "climbed") {
		if path == "" || !strings.HasPrefix(file, path+"/") {
			t.Errorf("%s was written, %v", file, err)
		}
	}
	if _, err := os.Lstat("/tmp/climbed"); err == nil {
		t.Error("/tmp/climbed was written")
	}
}
