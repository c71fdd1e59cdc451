package environments_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	build "github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/environments/channeltest"
	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
	"github.com/millrace/millrace/internal/offline"
)

func newBundle(t *testing.T) *offline.Writer {
	t.Helper()
	w, err := offline.Create(filepath.Join(t.TempDir(), "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// load takes a bundle in, and returns its folder and the names of what it has.
func load(t *testing.T, w *offline.Writer) (folder offline.Folder, list []string) {
	t.Helper()
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := offline.Open(string(w.Folder()))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	data := t.TempDir()
	err = b.Load(t.Context(), offline.Loading{
		Data: data, Into: "offline", Copying: func(int) {}, Loaded: func(i offline.Item, _, _ int) { list = append(list, string(i.Kind)+" "+i.Value) },
		Check: func(i offline.Item, f offline.Folder) error {
			if i.Kind == offline.Environment {
				return build.CheckLoaded(f, i.Value)
			}
			return build.CheckFile(i.Value)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return offline.Folder(filepath.Join(data, "offline")), list
}

// The lock that was loaded is the one that counts, and its wheels are installed from what
// was loaded, for every team and again after the environment had to make room.
func TestALoadedEnvironmentNeedsNoIndex(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("greeter", "1.1", map[string]string{"greeter.py": "import words\nprint('hello ' + words.WORD)\n"}, "words>=2")
	x.AddWheel("words", "2.5", map[string]string{"words.py": "WORD = 'world'\n"})
	out := newBundle(t)
	from, spec := open(t, func(c *build.Config) { c.Keep = out }, x.URL), pip("greeter")
	lock, err := from.For("a").Save(t.Context(), spec.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	folder, list := load(t, out)
	if want := []string{"environment " + lock.Digest(), "package greeter-1.1-py3-none-any.whl", "package words-2.5-py3-none-any.whl"}; !slices.Equal(list, want) {
		t.Errorf("the bundle has %v", list)
	}
	x.AddWheel("words", "3.0", map[string]string{"words.py": "WORD = 'moon'\n"})
	before := len(x.Asked())
	const nobody = "http://127.0.0.1:1/simple/"
	f := open(t, func(c *build.Config) { c.Loaded = folder }, nobody)
	for team, wish := range map[string]environment.Spec{"b": spec, "c": {Lock: lock.String()}} {
		root, err := f.root(t, team, wish)
		if err != nil {
			t.Fatal(err)
		}
		if says, err := exec.Command(filepath.Join(root, "bin", "python"), "-c", "import greeter").CombinedOutput(); string(says) != "hello world\n" {
			t.Errorf("it says %q, %v", says, err)
		}
	}
	known, err := f.records.EnvironmentBuild(t.Context(), "b", spec.Key())
	if err != nil || known.Lock != lock.String() || known.State != "ready" {
		t.Errorf("it is known as %+v, %v", known, err)
	}
	again := open(t, func(c *build.Config) { c.Loaded = folder }, nobody)
	if _, err := again.root(t, "b", spec); err != nil || len(x.Asked()) != before {
		t.Errorf("the index is asked for %v, %v", x.Asked()[before:], err)
	}
	// A bundle can be made of what was loaded.
	copied := newBundle(t)
	if _, err := open(t, func(c *build.Config) { c.Loaded, c.Keep = folder, copied }, nobody).For("d").Save(t.Context(), spec.Canonical()); err != nil {
		t.Error(err)
	}
	if _, more := load(t, copied); !slices.Equal(more, list) {
		t.Errorf("that has %v", more)
	}
	// What is missing is named.
	if _, err := f.root(t, "b", pip("words==3.0")); !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), "the package words: the package index cannot be reached") {
		t.Error(err)
	}
	for _, p := range lock.Packages {
		if p.Name == "words" {
			if err := os.RemoveAll(filepath.Join(string(folder), "blobs", "sha256", p.Hashes[0])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := open(t, func(c *build.Config) { c.Loaded = folder }, nobody).root(t, "e", spec); !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), "words") {
		t.Errorf("without a wheel: %v", err)
	}
}

func TestALoadedEnvironmentOfCondaPackagesNeedsNoChannel(t *testing.T) {
	t.Parallel()
	x, c := indextest.New(t), channeltest.New(t, "own")
	channeltest.NeedTool(t, x)
	addGreeter(c)
	out, spec := newBundle(t), environment.Spec{Conda: []string{"greeter=1"}, Channels: []string{"own"}}
	from := open(t, func(cfg *build.Config) { cfg.Keep, cfg.Channels = out, []string{c.URL} }, x.URL)
	lock, err := from.For("a").Save(t.Context(), spec.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	folder, list := load(t, out)
	if len(list) != 5 || !strings.Contains(strings.Join(list, "\n"), "package py_rattler-") || list[0] != "environment "+lock.Digest() {
		t.Errorf("the bundle has %v", list)
	}
	before := len(c.Asked())
	f := open(t, func(cfg *build.Config) {
		cfg.Loaded, cfg.Channels = folder, []string{"http://127.0.0.1:1/own"}
	}, "http://127.0.0.1:1/simple/")
	root, err := f.root(t, "b", spec)
	if err != nil {
		t.Fatal(err)
	}
	if says := inSandbox(t, root, "/environment/bin/greet"); says != "hello from /environment\n" || len(c.Asked()) != before {
		t.Errorf("it says %q, and the channel is asked for %v", says, c.Asked()[before:])
	}
	for _, p := range lock.Packages {
		if p.Name == "word" {
			if err := os.WriteFile(filepath.Join(string(folder), "blobs", "sha256", p.Hashes[0]), []byte("other"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := open(t, func(cfg *build.Config) {
		cfg.Loaded, cfg.Channels = folder, []string{"http://127.0.0.1:1/own"}
	}, "http://127.0.0.1:1/simple/").root(t, "c", spec); !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), "word-2.0-0.conda was loaded and is damaged") {
		t.Errorf("a damaged package: %v", err)
	}
}
