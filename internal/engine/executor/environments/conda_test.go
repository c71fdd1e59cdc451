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
	"github.com/millrace/millrace/internal/environments"
)

func conda(list ...string) environment.Spec { return environment.Spec{Conda: list} }

// openConda opens a store that knows channels.
func openConda(t *testing.T, change func(*build.Config), channels ...*channeltest.Channel) fixture {
	t.Helper()
	x := indextest.New(t)
	channeltest.NeedTool(t, x)
	return open(t, func(c *build.Config) {
		c.Tools = channeltest.Tools()
		for _, one := range channels {
			c.Channels = append(c.Channels, one.URL)
		}
		if change != nil {
			change(c)
		}
	}, x.URL)
}

// interpreter stands for the Python of a channel: it is the machine's, and knows
// where it is installed.
var interpreter = channeltest.Package{Name: "python", Version: "3.11.9", Files: map[string]string{
	"bin/python3.11": "#!/bin/sh\nPYTHONPATH=" + channeltest.Prefix + "/lib/python3.11/site-packages exec /usr/bin/python3 \"$@\"\n",
}}

func addGreeter(c *channeltest.Channel) {
	c.Add(interpreter)
	c.Add(channeltest.Package{Name: "word", Version: "1.0", Files: map[string]string{"share/word": "old"}})
	c.Add(channeltest.Package{Name: "word", Version: "2.0", Files: map[string]string{"share/word": "hello from " + channeltest.Prefix + "\n"}})
	c.Add(channeltest.Package{
		Name: "greeter", Version: "1.1", Python: true, Depends: []string{"python >=3.8", "word >=2"}, Scripts: []string{"greet = greeter:main"},
		Files: map[string]string{"site-packages/greeter.py": "import os\ndef main():\n    print(open(os.environ['CONDA_PREFIX'] + '/share/word').read(), end='')\n"},
	})
}

// inSandbox runs a program of an environment where tasks find it.
func inSandbox(t *testing.T, root string, command ...string) string {
	t.Helper()
	args := slices.Concat([]string{
		"--dev", "/dev", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--ro-bind", root, "/environment", "--setenv", "CONDA_PREFIX", "/environment",
	}, command)
	out, err := exec.Command("bwrap", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v says %q, %v", command, out, err)
	}
	return string(out)
}

func TestCondaPackagesAreChosenInstalledRunAndMoved(t *testing.T) {
	t.Parallel()
	c := channeltest.New(t, "own")
	addGreeter(c)
	f := openConda(t, nil, c)
	spec := environment.Spec{Conda: []string{"greeter=1"}, Channels: []string{"own"}}
	root, err := f.root(t, "a", spec)
	if err != nil {
		t.Fatal(err)
	}
	if says := inSandbox(t, root, "/environment/bin/greet"); says != "hello from /environment\n" {
		t.Errorf("it says %q", says)
	}
	if info, err := os.Stat(filepath.Join(root, "share", "word")); err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("its files are %v, %v", info.Mode(), err)
	}
	known, err := f.records.EnvironmentBuild(t.Context(), "a", spec.Key())
	lock, lockErr := environment.ParseLock(known.Lock)
	if err != nil || lockErr != nil || known.State != environments.Ready || len(lock.Packages) != 3 || !strings.Contains(known.Log, "3 packages were installed") {
		t.Fatalf("it is known as %+v, %v %v", known, err, lockErr)
	}
	// The lock gives the same on another installation, whatever its channel has
	// by then, and there at the place where it is kept.
	c.Add(channeltest.Package{Name: "word", Version: "3.0"})
	other := openConda(t, func(c *build.Config) { c.InPlace = true }, c)
	moved, err := other.root(t, "b", environment.Spec{Lock: known.Lock})
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(filepath.Join(moved, "bin", "greet"))
	run.Env = []string{"CONDA_PREFIX=" + moved}
	if out, err := run.CombinedOutput(); err != nil || string(out) != "hello from "+moved+"\n" {
		t.Errorf("moved it says %q, %v", out, err)
	}
}

func TestACondaConflictIsInTheSolversWords(t *testing.T) {
	t.Parallel()
	c := channeltest.New(t, "own")
	addGreeter(c)
	f := openConda(t, nil, c)
	for name, tt := range map[string]struct {
		spec environment.Spec
		says []string
	}{
		"a conflict":          {conda("greeter", "word<2"), []string{"greeter", "word", "cannot"}},
		"no package":          {conda("missing"), []string{"No candidates were found for missing"}},
		"a forbidden channel": {environment.Spec{Conda: []string{"word"}, Channels: []string{"evil"}}, []string{"evil", "own"}},
		"a forbidden lock":    {environment.Spec{Lock: "# conda " + channeltest.Platform + "\nevil/noarch/a-1-0.conda --hash=sha256:" + strings.Repeat("0", 64)}, []string{"evil", "own"}},
		"another platform":    {environment.Spec{Lock: "# conda linux-32\nown/noarch/a-1-0.conda --hash=sha256:" + strings.Repeat("0", 64)}, []string{"linux-32"}},
		"a wrong hash":        {environment.Spec{Lock: "# conda " + channeltest.Platform + "\nown/" + channeltest.Platform + "/word-2.0-0.conda --hash=sha256:" + strings.Repeat("0", 64)}, []string{"hash mismatch"}},
		"what is not there":   {environment.Spec{Lock: "# conda " + channeltest.Platform + "\nown/noarch/gone-1-0.conda --hash=sha256:" + strings.Repeat("0", 64)}, []string{"has no gone-1-0.conda"}},
	} {
		_, err := f.root(t, "a", tt.spec)
		for _, word := range tt.says {
			if !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v, want %q in it", name, err, word)
			}
		}
	}
}

func TestTheFirstChannelThatHasAPackageIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	own, public := channeltest.New(t, "own"), channeltest.New(t, "public")
	own.Add(channeltest.Package{Name: "corp", Version: "1.0", Depends: []string{"helper"}})
	public.Add(channeltest.Package{Name: "corp", Version: "99.0", Files: map[string]string{"share/evil": "x"}})
	public.Add(channeltest.Package{Name: "helper", Version: "3.0"})
	f := openConda(t, nil, own, public)
	if _, err := f.root(t, "a", conda("corp")); err != nil {
		t.Fatal(err)
	}
	known, err := f.records.EnvironmentBuild(t.Context(), "a", conda("corp").Key())
	lock, _ := environment.ParseLock(known.Lock)
	if err != nil || len(lock.Packages) != 2 || lock.Packages[0].Version != "1.0" || lock.Packages[1].File.Channel != "public" {
		t.Errorf("the lock is %q, %v", known.Lock, err)
	}
	if _, err := f.root(t, "a", conda("corp>=2")); err == nil {
		t.Error("a newer version of the second channel is taken")
	}
}

func TestWhatAChannelHasIsFetchedOnce(t *testing.T) {
	t.Parallel()
	c := channeltest.New(t, "own")
	addGreeter(c)
	f := openConda(t, nil, c)
	for _, name := range []string{"word", "greeter"} {
		if _, err := f.For("a").Resolve(t.Context(), conda(name).Canonical()); err != nil {
			t.Fatal(err)
		}
	}
	if sent := c.Sent("noarch/repodata.json"); sent != 1 {
		t.Errorf("it was sent %d times", sent)
	}
	c.Add(channeltest.Package{Name: "later", Version: "1.0", Python: true})
	if _, err := f.For("a").Resolve(t.Context(), conda("later").Canonical()); err != nil {
		t.Error("what came later is not found: ", err)
	}
}

// What the operator takes away is neither fetched nor used any more, and the author
// is told which channel it is.
func TestALockOfAChannelThatWasTakenAwayIsRefused(t *testing.T) {
	t.Parallel()
	taken, left := channeltest.New(t, "taken"), channeltest.New(t, "left")
	taken.Add(channeltest.Package{Name: "word", Version: "1.0"})
	left.Add(channeltest.Package{Name: "other", Version: "1.0"})
	f := openConda(t, nil, taken, left)
	spec := conda("word") // of whichever channel
	if _, err := f.root(t, "a", spec); err != nil {
		t.Fatal(err)
	}
	known, err := f.records.EnvironmentBuild(t.Context(), "a", spec.Key())
	if err != nil {
		t.Fatal(err)
	}
	asked := len(taken.Asked())
	for name, change := range map[string]func(*build.Config){
		"still here":  func(c *build.Config) { c.Folder = f.folder },
		"not here":    func(*build.Config) {},
		"no channels": func(c *build.Config) { c.Channels = nil },
	} {
		later := openConda(t, func(c *build.Config) { c.Records = f.records; change(c) }, left)
		for _, s := range []environment.Spec{spec, {Lock: known.Lock}} {
			_, err := later.root(t, "a", s)
			if !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), "lock of this environment") {
				t.Errorf("%s: %v", name, err)
			}
			if name != "no channels" && !strings.Contains(err.Error(), `channel "taken": use one of left, or ask its operator to add the channel to --conda-channels.`) {
				t.Errorf("%s: it does not say which: %v", name, err)
			}
			if seen, recordErr := f.records.EnvironmentBuild(t.Context(), "a", s.Key()); recordErr != nil || seen.State != environments.Failed || seen.Error != err.Error() || seen.Lock == "" {
				t.Errorf("%s: it is known as %+v, %v", name, seen, recordErr)
			}
		}
	}
	if now := taken.Asked(); len(now) > asked {
		t.Errorf("the channel is asked for %v", now[asked:])
	}
	again := openConda(t, func(c *build.Config) { c.Records, c.Folder = f.records, f.folder }, taken, left)
	if _, err := again.root(t, "a", spec); err != nil {
		t.Error("once it is allowed again: ", err)
	}
}
