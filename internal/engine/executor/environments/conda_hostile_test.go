package environments_test

import (
	"crypto/rand"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	build "github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/environments/channeltest"
)

func TestNothingOfACondaPackageIsRunWhileItIsBuilt(t *testing.T) {
	t.Parallel()
	const leaveMark = "#!/bin/sh\n: > \"${PREFIX:-/work/environment}/ran\"\n"
	c := channeltest.New(t, "own")
	c.Add(channeltest.Package{Name: "python", Version: "3.11.9", Files: map[string]string{"bin/python3.11": leaveMark, "bin/python": leaveMark}})
	c.Add(channeltest.Package{Name: "evil", Version: "1.0", Python: true, Depends: []string{"python"}, Files: map[string]string{
		"bin/.evil-post-link.sh": leaveMark, "bin/.evil-pre-link.sh": leaveMark, "etc/conda/activate.d/evil.sh": leaveMark,
		"site-packages/evil.pth": "import os; open('/work/environment/ran', 'w')\n", "site-packages/sitecustomize.py": "open('/work/environment/ran', 'w')\n",
	}})
	f := openConda(t, nil, c)
	root, err := f.root(t, "a", conda("evil"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "bin", ".evil-post-link.sh")); err != nil {
		t.Errorf("the package is not there: %v", err)
	}
	if list := found(t, f.folder, "ran"); len(list) > 0 {
		t.Errorf("something was run: %v", list)
	}
}

func TestACondaPackageStaysInItsEnvironment(t *testing.T) {
	t.Parallel()
	mark := "climbed-" + rand.Text()
	c := channeltest.New(t, "own")
	c.Add(channeltest.Package{Name: "climber", Version: "1.0", Files: map[string]string{"../../" + mark: "x", "share/../../" + mark: "x"}})
	c.Add(channeltest.Package{Name: "absolute", Version: "1.0", Files: map[string]string{"/tmp/" + mark: "x"}})
	c.Add(channeltest.Package{Name: "through", Version: "1.0", Links: map[string]string{"out": "/tmp"}, Files: map[string]string{"out/" + mark: "x"}})
	c.Add(channeltest.Package{Name: "secrets", Version: "1.0", Links: map[string]string{"share/passwd": "/etc/passwd", "share/up": "../../../../.."}})
	f := openConda(t, nil, c)
	for _, name := range []string{"climber", "absolute", "through", "secrets"} {
		root, err := f.root(t, "a", conda(name))
		for _, file := range found(t, f.folder, mark) {
			if root == "" || !strings.HasPrefix(file, root+"/") {
				t.Errorf("%s: %s was written, %v", name, file, err)
			}
		}
		if root == "" {
			continue
		}
		// A link out stays a link: nothing of the machine got into the tree.
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && d.Name() == "passwd" {
				t.Errorf("%s: %s is a file", name, path)
			}
			return err
		})
	}
	if _, err := os.Lstat("/tmp/" + mark); err == nil {
		t.Errorf("/tmp/%s was written", mark)
	}
}

func TestAHostileChannelSaysNothingThatIsBelieved(t *testing.T) {
	t.Parallel()
	c := channeltest.New(t, "own")
	c.Add(channeltest.Package{Name: "good", Version: "1.0"})
	c.Add(channeltest.Package{Name: "unhashed", Version: "1.0", Say: map[string]any{"sha256": nil}})
	c.Add(channeltest.Package{Name: "lying", Version: "1.0", Say: map[string]any{"sha256": strings.Repeat("0", 64)}})
	c.Add(channeltest.Package{Name: "misnamed", Version: "1.0", Say: map[string]any{"name": "good", "version": "9.0"}})
	c.Add(channeltest.Package{Name: "away", Version: "1.0", Say: map[string]any{"subdir": "../../etc"}})
	c.Add(channeltest.Package{Name: "typed", Version: "1.0", Say: map[string]any{"depends": map[string]any{"a": 1}}})
	c.Put(channeltest.Platform, "../../../etc/passwd", map[string]any{"name": "x"}, nil)
	c.Put(channeltest.Platform, "odd-1.0-0.conda", "no record", nil)
	c.Add(channeltest.Package{Name: "reaching", Version: "1.0", Depends: []string{"https://elsewhere.example/x-1-0.conda"}})
	c.Add(channeltest.Package{Name: "borrowing", Version: "1.0", Depends: []string{"evil::good"}})
	f := openConda(t, nil, c)
	if _, err := f.root(t, "a", conda("good")); err != nil {
		t.Fatalf("what is good beside it: %v", err)
	}
	for _, name := range []string{"unhashed", "lying", "misnamed", "good=9", "away", "typed", "odd", "passwd", "reaching", "borrowing"} {
		if root, err := f.root(t, "a", conda(name)); !fault.Is(err, fault.KindUnavailable) {
			t.Errorf("%s is %q, %v", name, root, err)
		}
	}
	for _, path := range c.Asked() {
		if strings.Contains(path, "..") || strings.HasSuffix(path, "unhashed-1.0-0.conda") {
			t.Errorf("%s is asked for", path)
		}
	}
}

func TestAChannelInAPrivateNetworkIsNotReached(t *testing.T) {
	t.Parallel()
	c := channeltest.New(t, "own")
	c.Add(channeltest.Package{Name: "one", Version: "1.0"})
	with := openConda(t, nil, c)
	if _, err := with.root(t, "a", conda("one")); err != nil {
		t.Fatal(err)
	}
	known, err := with.records.EnvironmentBuild(t.Context(), "a", conda("one").Key())
	if err != nil {
		t.Fatal(err)
	}
	before := len(c.Asked())
	f := openConda(t, func(c *build.Config) { c.AllowPrivate = false }, c)
	for _, spec := range []environment.Spec{conda("one"), {Lock: known.Lock}} {
		if _, err := f.root(t, "a", spec); !fault.Is(err, fault.KindUnavailable) {
			t.Errorf("it is built: %v", err)
		}
	}
	if asked := c.Asked(); len(asked) != before {
		t.Errorf("it is reached: %v", asked[before:])
	}
}

func TestACondaBuildHasAnEnd(t *testing.T) {
	t.Parallel()
	c := channeltest.New(t, "own")
	c.Add(channeltest.Package{Name: "huge", Version: "1.0", Files: map[string]string{"share/zeros": strings.Repeat("\x00", 64<<20)}}) // small when packed
	f := openConda(t, func(c *build.Config) { c.MaxOne = 32 << 20 }, c)
	_, _ = f.root(t, "a", pip("nothing")) // so that a failure is not the sandbox's
	if _, err := f.root(t, "a", conda("huge")); !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), "takes more than") {
		t.Errorf("a huge one: %v", err)
	}
}

func TestAnotherTeamGetsWhatItsOwnLockSays(t *testing.T) {
	t.Parallel()
	c := channeltest.New(t, "own")
	c.Add(channeltest.Package{Name: "tool", Version: "1.0", Files: map[string]string{"share/tool": "good"}})
	f := openConda(t, nil, c)
	before, err := f.root(t, "a", conda("tool"))
	if err != nil {
		t.Fatal(err)
	}
	// The channel replaces the file under the same name.
	c.Add(channeltest.Package{Name: "tool", Version: "1.0", Files: map[string]string{"share/tool": "poisoned"}})
	after, err := f.root(t, "b", conda("tool"))
	if err != nil || after == before {
		t.Fatalf("%s, %v", after, err)
	}
	for root, want := range map[string]string{before: "good", after: "poisoned"} {
		if text, err := os.ReadFile(filepath.Join(root, "share", "tool")); err != nil || string(text) != want {
			t.Errorf("%s has %q, %v", root, text, err)
		}
	}
	if again, err := f.root(t, "a", conda("tool")); err != nil || again != before {
		t.Errorf("the first team now has %s, %v", again, err)
	}
	var meta struct {
		Lock string `json:"lock"`
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(before), "meta.json"))
	if err != nil || json.Unmarshal(text, &meta) != nil || !slices.Contains(strings.Fields(meta.Lock), "own/"+channeltest.Platform+"/tool-1.0-0.conda") {
		t.Errorf("it is known as %s, %v", text, err)
	}
}
