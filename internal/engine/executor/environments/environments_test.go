package environments_test

import (
	"context"
	"fmt"
	"log/slog"
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
	"github.com/millrace/millrace/internal/engine/executor/tool/tooltest"
	"github.com/millrace/millrace/internal/environments"
)

func TestMain(m *testing.M) { tooltest.Main(m) }

// memory keeps records as the database does.
type memory struct {
	mu     sync.Mutex
	builds map[string]environments.Build
	logs   []string
}

func (m *memory) EnvironmentBuild(_ context.Context, team ids.Team, key string) (environments.Build, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.builds[string(team)+key]
	if !ok {
		return b, fault.NotFound("no such environment")
	}
	return b, nil
}

func (m *memory) SaveEnvironmentBuild(_ context.Context, team ids.Team, b environments.Build) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.builds[string(team)+b.Key]; known.Lock != "" {
		b.Lock = known.Lock
	}
	b.UsedAt = b.UpdatedAt
	m.builds[string(team)+b.Key] = b
	m.logs = append(m.logs, b.Log)
	return b.Lock, nil
}

func (m *memory) EnvironmentUsed(_ context.Context, team ids.Team, key string, now time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.builds[string(team)+key]
	if ok {
		b.UsedAt = now
		m.builds[string(team)+key] = b
	}
	return ok, nil
}

type fixture struct {
	*build.Store
	records *memory
	folder  string
}

func open(t *testing.T, change func(*build.Config), indexes ...string) fixture {
	t.Helper()
	indextest.NeedUV(t)
	f := fixture{records: &memory{builds: map[string]environments.Build{}}, folder: filepath.Join(t.TempDir(), "environments")}
	c := build.Config{
		Folder: f.folder, InUse: func() ([]string, error) { return nil, nil }, Records: f.records, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Indexes: indexes, AllowPrivate: true,
	}
	if change != nil {
		change(&c)
	}
	var err error
	if f.Store, err = build.Open(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// root builds what a team asks for.
func (f fixture) root(t *testing.T, team string, s environment.Spec) (string, error) {
	t.Helper()
	of := f.For(ids.Team(team))
	digest, err := of.Resolve(t.Context(), s.Canonical())
	if err != nil {
		return "", err
	}
	path, _, release, err := of.Root(t.Context(), s.Canonical(), digest)
	if err != nil {
		return "", err
	}
	t.Cleanup(release)
	return path, nil
}

func pip(list ...string) environment.Spec { return environment.Spec{Pip: list} }

func TestAnEnvironmentIsChosenBuiltAndFrozen(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("greeter", "1.0", map[string]string{"greeter.py": "def main(): print('old')\n"})
	x.AddWheel("greeter", "1.1", map[string]string{
		"greeter.py": "import words\ndef main(): print('hello ' + words.WORD)\n", "greeter-1.1.dist-info/entry_points.txt": "[console_scripts]\ngreet = greeter:main\n",
	}, "words>=2")
	x.AddWheel("words", "2.5", map[string]string{"words.py": "WORD = 'world'\n"})
	f := open(t, nil, x.URL)
	path, err := f.root(t, "a", pip("greeter<2"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(path, "bin", "greet")).CombinedOutput()
	if err != nil || string(out) != "hello world\n" {
		t.Fatalf("it says %q, %v", out, err)
	}
	compiled, _ := filepath.Glob(filepath.Join(path, "lib", "python3.*", "site-packages", "__pycache__", "greeter.*.pyc"))
	if len(compiled) != 1 {
		t.Error("it is not compiled")
	}
	module, _ := filepath.Glob(filepath.Join(path, "lib", "python3.*", "site-packages", "greeter.py"))
	if info, err := os.Stat(module[0]); err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("its files are %v, %v", info.Mode(), err)
	}
	known, err := f.records.EnvironmentBuild(t.Context(), "a", pip("greeter<2").Key())
	lock, lockErr := environment.ParseLock(known.Lock)
	if err != nil || lockErr != nil || known.State != environments.Ready || len(lock.Packages) != 2 || lock.Packages[0].Version != "1.1" {
		t.Errorf("it is known as %+v, %v %v", known, err, lockErr)
	}
	// A lock moves to another installation and gives the same there.
	other := open(t, nil, x.URL)
	if _, err := other.root(t, "b", environment.Spec{Lock: known.Lock}); err != nil {
		t.Error(err)
	}
}

func TestAChoiceStaysAndIsSharedByThoseWhoMadeTheSame(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("one", "1.0", nil)
	f := open(t, nil, x.URL)
	var all sync.WaitGroup
	paths := make([]string, 12)
	for i := range paths {
		all.Go(func() {
			var err error
			if paths[i], err = f.root(t, fmt.Sprint("team", i%2), pip("one")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, path := range paths {
		if path != paths[0] {
			t.Errorf("two places: %s and %s", path, paths[0])
		}
	}
	fetched := 0
	for _, asked := range x.Asked() {
		if strings.HasSuffix(asked, ".whl") {
			fetched++
		}
	}
	before := len(x.Asked())
	x.AddWheel("one", "2.0", nil)
	if path, err := f.root(t, "team0", pip("one")); err != nil || path != paths[0] {
		t.Errorf("later it is %s, %v", path, err)
	}
	if len(x.Asked()) != before {
		t.Errorf("the index is asked again: %v", x.Asked()[before:])
	}
	if path, err := f.root(t, "team2", pip("one")); err != nil || path == paths[0] {
		t.Errorf("a team that comes later has %s, %v", path, err)
	}
	if fetched > 6 { // two choices may each look into the wheel, one build fetches it
		t.Errorf("the wheel was fetched %d times: %v", fetched, x.Asked())
	}
}

func TestAFailureIsInTheSolversWords(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("low", "1.0", nil, "shared<2")
	x.AddWheel("high", "1.0", nil, "shared>=2")
	x.AddWheel("shared", "1.0", nil)
	x.AddWheel("shared", "2.0", nil)
	f := open(t, nil, x.URL)
	for name, tt := range map[string]struct {
		spec environment.Spec
		says []string
	}{
		"a conflict":   {pip("low", "high"), []string{"low", "high", "shared", "unsatisfiable"}},
		"no package":   {pip("missing"), []string{"missing was not found in the package registry"}},
		"no version":   {pip("shared==9"), []string{"shared==9"}},
		"no python":    {environment.Spec{Python: "3.99", Pip: []string{"shared"}}, []string{"Python 3.99"}},
		"wrong hashes": {environment.Spec{Lock: "# python 3.11\nshared==1.0 --hash=sha256:" + strings.Repeat("0", 64) + "\n"}, []string{"Hash mismatch"}},
	} {
		_, err := f.root(t, "a", tt.spec)
		for _, word := range tt.says {
			if !fault.Is(err, fault.KindUnavailable) || !strings.Contains(strings.ReplaceAll(err.Error(), "\n", " "), word) {
				t.Errorf("%s: %v, want %q in it", name, err, word)
			}
		}
		known, recordErr := f.records.EnvironmentBuild(t.Context(), "a", tt.spec.Key())
		if recordErr != nil || known.State != environments.Failed || known.Error != err.Error() || known.Log == "" {
			t.Errorf("%s: it is known as %+v, %v", name, known, recordErr)
		}
	}
}

// What is missing is named in full, so that nobody mends one thing to learn of the next.
func TestAllThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	conda := environment.Spec{Conda: []string{"one"}}
	const uv, index, channels = "uv (pip install uv)", "a package index (--pip-index-url)", "channels of conda packages (--conda-channels)"
	for _, tt := range []struct {
		uv      string
		indexes []string
		spec    environment.Spec
		says    []string
		not     []string
	}{
		{"no-such-uv", nil, pip("one"), []string{uv, index}, []string{channels}},
		{"no-such-uv", nil, conda, []string{uv, index, channels}, nil},
		{"no-such-uv", []string{"https://packages.example.org/simple/"}, pip("one"), []string{uv}, []string{index, channels}},
		{"", nil, pip("one"), []string{index}, []string{uv, channels}},
		{"", []string{"https://packages.example.org/simple/"}, conda, []string{channels}, []string{uv, index}},
	} {
		f := open(t, func(c *build.Config) { c.UV = tt.uv }, tt.indexes...)
		_, err := f.root(t, "a", tt.spec)
		if problem := f.ProblemWith(tt.spec); !fault.Is(err, fault.KindUnavailable) || err.Error() != problem {
			t.Errorf("building says %v, and saving %q", err, problem)
		}
		for _, word := range tt.says {
			if !strings.Contains(fmt.Sprint(err), word) {
				t.Errorf("%v does not name %q", err, word)
			}
		}
		for _, word := range append(tt.not, "python3") {
			if strings.Contains(fmt.Sprint(err), word) {
				t.Errorf("%v names %q", err, word)
			}
		}
	}
}
