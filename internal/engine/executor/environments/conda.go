package environments

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/treecache"
	"github.com/millrace/millrace/internal/environments"
)

//go:embed conda.py
var condaScript string

// condaTool is the solver and installer of conda packages. It is installed from
// the operator's index as any environment is, so that nothing but these files
// ever is run. They work with every Python from 3.10 on.
var condaTool = environment.Lock{Python: ">=3.10", Packages: []environment.Locked{{Name: "py-rattler", Version: "0.28.0", Hashes: []string{
	"4f4ab1d34d5394e7ce130a86e59009c95ace4f5757d9c3af04de1351bcea47eb", // x86_64, glibc
	"61b24202374188e72130f1b3dc63b455befaafc3e49e5481a38b6a6c8828c1e0", // aarch64, glibc
	"1c566fb1b0fc3d0d892b7ba021d6863aaff1f476c245178a07f560729aa7ecdb", // x86_64, musl
	"6218478af88d45ac1e08e605ede4f67bbe4ffbbbb40b5e32622a4746f98fe331", // aarch64, musl
}}}}

const (
	condaProgram = "conda.py"
	orderFile    = "order.json"
	placesFile   = "channels.json"
	toolsTotal   = 1 << 30 // bytes of all tools that are kept

	// taskPrefix is where tasks find their environment in the sandbox.
	taskPrefix = "/environment"
)

// order is what the tool is to do.
type order struct {
	Specs    []string `json:"specs,omitempty"`
	Channels []string `json:"channels,omitempty"`
	Platform string   `json:"platform,omitempty"`
	Files    []string `json:"files,omitempty"`
	Prefix   string   `json:"prefix,omitempty"`
	Names    []string `json:"names,omitempty"`
}

// openTools opens where tools are kept. They have a cache of their own, since one
// is fetched while an environment is being made.
func openTools(c Config) (*treecache.Cache, error) {
	return treecache.Open(treecache.Config{
		Folder: c.Tools, InUse: func() ([]string, error) { return nil, nil },
		MaxTotal: toolsTotal, AtOnce: 1, TeamAtOnce: 1, Time: c.totalTime(), Log: c.Log, Now: c.Now,
	})
}

// noConda is why packages of these channels cannot be had here, or nothing.
func (s *Store) noConda(channels []string) string {
	if environment.Platforms[runtime.GOARCH] == "" {
		return "this server has no conda packages for its machine"
	}
	if s.lacksChannels != "" {
		return "this server cannot install conda packages: its operator has to set " + s.lacksChannels
	}
	known := s.channels.Names()
	for _, name := range channels {
		if !s.channels.Has(name) {
			return fmt.Sprintf("this server has no packages of the channel %q: use one of %s, or ask its operator to add the channel to --conda-channels", name, strings.Join(known, ", "))
		}
	}
	return ""
}

// allowed is an error about a lock with packages of channels that are not the
// operator's any more, whether or not they are still here.
func (t Team) allowed(ctx context.Context, spec environment.Spec, lock environment.Lock) error {
	if !isConda(lock) {
		return nil
	}
	problem := t.store.noConda(lock.Channels())
	if problem == "" {
		return nil
	}
	problem += ". The lock of this environment was made with other channels: change its list of packages, or its lock, to have others chosen"
	known, err := t.store.Records.EnvironmentBuild(ctx, t.team, spec.Key())
	if err != nil && !fault.Is(err, fault.KindNotFound) {
		return err
	}
	if err := t.record(ctx, known, spec, lock, environments.Failed, problem); err != nil {
		return err
	}
	return fault.Unavailable("%s", problem).WithCode("environment_failed")
}

// python is the machine's interpreter that uv finds in a sandbox: what links to
// it does not outlive it.
func (s *Store) python(ctx context.Context, version string) (string, error) {
	path, err := s.askUV(ctx, "python", "find", "--system", version)
	if err != nil && !refused(err) {
		return "", fmt.Errorf("uv cannot look for Python: %w", err)
	}
	if err != nil && s.PythonMirror != "" {
		return "of the mirror", nil
	}
	if err != nil {
		return "", failure("the server has no Python %s for the tool for conda packages: %s", version, err)
	}
	return ask(ctx, uvSettings, path, "-I", "-S", "-c", "import os, sys; print(os.path.abspath(sys.executable), os.path.realpath(sys.executable), *sys.version_info[:2])")
}

// tool is the folder of the solver, which is installed first where it is not
// here.
func (b *build) tool(ctx context.Context) (path string, release func(), err error) {
	python, err := b.store.python(ctx, condaTool.Python)
	if err != nil {
		return "", nil, err
	}
	name := treeName(condaTool.Digest() + " " + python)
	if b.store.tools.Meta(name, new(meta)) != nil {
		b.say(ctx, "Installing the tool for conda packages")
	}
	release, err = b.store.tools.Hold(ctx, treecache.Wanted{Team: b.team, Hex: name}, new(meta), func(ctx context.Context, dir string) (any, error) {
		// Others may wait for it for longer than this build goes on.
		alone := &build{store: b.store, team: b.team, unseen: true}
		return alone.install(ctx, condaTool, filepath.Join(dir, treeFolder), taskPrefix)
	})
	if err != nil {
		return "", nil, fmt.Errorf("the tool for conda packages (%s %s) cannot be installed: %w", condaTool.Packages[0].Name, condaTool.Packages[0].Version, err)
	}
	return filepath.Join(b.store.tools.Dir(name), treeFolder), release, nil
}

// runConda has the tool carry out an order. It has no network.
func (b *build) runConda(ctx context.Context, o order, stage func(ctx context.Context, inputs string) error, done func(work string) error) error {
	tool, release, err := b.tool(ctx)
	if err != nil {
		return err
	}
	defer release()
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	st := step{
		files:  map[string]string{condaProgram: condaScript, orderFile: string(text)},
		stage:  stage,
		tool:   tool,
		script: taskPrefix + `/bin/python -I -B "$INPUTS/` + condaProgram + `"`,
	}
	return b.run(ctx, st, done)
}

// placeChannels asks the tool where the channels are that conda's configuration names
// without an address: it knows as much as conda does.
func (b *build) placeChannels(ctx context.Context) error {
	names := b.store.channels.Unplaced()
	if len(names) == 0 {
		return nil
	}
	return b.runConda(ctx, order{Names: names}, nil, func(work string) error {
		text, err := readText(work, placesFile)
		if err != nil {
			return err
		}
		places := map[string]string{}
		if err := json.Unmarshal([]byte(text), &places); err != nil {
			return failure("the tool for conda packages does not say where the channels are: %s", err)
		}
		for _, name := range names {
			if err := b.store.channels.Place(name, places[name]); err != nil && slices.Contains(b.store.channels.Unplaced(), name) {
				return failure("%s", err)
			}
		}
		return nil
	})
}

// resolveConda has the tool choose, and keeps what it chose.
func (b *build) resolveConda(ctx context.Context, spec environment.Spec) error {
	if err := b.placeChannels(ctx); err != nil {
		return err
	}
	o := order{Specs: spec.Conda, Channels: spec.Channels, Platform: environment.Platforms[runtime.GOARCH]}
	if len(o.Channels) == 0 {
		o.Channels = b.store.channels.Names()
	}
	stage := func(ctx context.Context, inputs string) error {
		b.say(ctx, "Reading what the channels have: "+strings.Join(o.Channels, ", "))
		return b.stageLists(ctx, o, inputs)
	}
	return b.runConda(ctx, o, stage, func(work string) error {
		text, err := readText(work, lockFile)
		if err != nil {
			return err
		}
		return b.keepLock(ctx, "# conda "+o.Platform+"\n"+text)
	})
}

// stageLists puts what the channels have beside the tool. Of a package the first
// channel that has it is the only one, so that nobody can put a newer one of the
// same name into a later one.
func (b *build) stageLists(ctx context.Context, o order, inputs string) error {
	hidden := map[string]bool{}
	for _, channel := range o.Channels {
		var found []string
		for _, folder := range []string{o.Platform, environment.NoPlatform} {
			f, err := createShared(filepath.Join(inputs, channel+"."+folder+".json"))
			if err != nil {
				return err
			}
			out := &ours{w: f}
			names, err := b.store.channels.Packages(ctx, channel, folder, hidden, out)
			if err := out.outcome(err, f.Close()); err != nil {
				return err
			}
			for name := range names {
				found = append(found, name)
			}
		}
		for _, name := range found {
			hidden[name] = true
		}
	}
	return nil
}

// ours is a file of our own that something of a channel is written to.
type ours struct {
	w   io.Writer
	err error
}

func (o *ours) Write(p []byte) (n int, err error) {
	n, err = o.w.Write(p)
	o.err = errors.Join(o.err, err)
	return n, err
}

// outcome says whose failure it was: what the channel did is the author's to
// mend, or the channel's, and what became of the file is ours.
func (o *ours) outcome(err, closeErr error) error {
	if own := errors.Join(o.err, closeErr); own != nil || err == nil {
		return own
	}
	return failure("%s", err)
}

// createShared makes a file that the sandbox's user can read.
func createShared(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return f, f.Chmod(0o644)
}

// installConda makes the folder of an environment of conda packages. Paths in
// its files are those that tasks will find it at.
func (b *build) installConda(ctx context.Context, lock environment.Lock, to, prefix string) (m meta, err error) {
	if have := environment.Platforms[runtime.GOARCH]; lock.Platform != have {
		return m, failure("its lock is for %s, and this machine is %s", lock.Platform, have)
	}
	if err := b.placeChannels(ctx); err != nil {
		return m, err
	}
	o := order{Prefix: prefix}
	for i, p := range lock.Packages {
		o.Files = append(o.Files, fmt.Sprintf("packages/%d/%s", i, p.File.Name))
	}
	stage := func(ctx context.Context, inputs string) error {
		b.say(ctx, fmt.Sprintf("Fetching %d packages", len(lock.Packages)))
		return b.stagePackages(ctx, lock, o.Files, inputs)
	}
	m.Lock = lock.String()
	err = b.runConda(ctx, o, stage, func(work string) error {
		m.Bytes, err = freeze(filepath.Join(work, buildFolder), to, b.store.MaxOne)
		return err
	})
	return m, err
}

// stagePackages fetches the files of a lock. What is not what the lock says never
// reaches the tool.
func (b *build) stagePackages(ctx context.Context, lock environment.Lock, files []string, inputs string) error {
	left := b.store.MaxOne
	for i, p := range lock.Packages {
		path := filepath.Join(inputs, files[i])
		if err := folder.MakeOpen(filepath.Dir(path)); err != nil { // another user reads it
			return err
		}
		f, err := createShared(path)
		if err != nil {
			return err
		}
		out := &ours{w: f}
		size, err := b.store.fetchPackage(ctx, p, left, out)
		if err := out.outcome(err, f.Close()); err != nil {
			return err
		}
		if err := b.store.keepPackage(p, path); err != nil {
			return err
		}
		left -= size
	}
	return nil
}

// isConda reports whether a lock is one of conda packages.
func isConda(l environment.Lock) bool { return l.Platform != "" }

// prefix is where tasks find an environment that is kept under a name.
func (s *Store) prefix(name string) string {
	if s.InPlace {
		return filepath.Join(s.trees.Dir(name), treeFolder)
	}
	return taskPrefix
}

// nameOf is the name of what is built from a lock. Conda packages, and interpreters
// of the mirror, are built for one place.
func (s *Store) nameOf(lock environment.Lock, digest string) string {
	if s.InPlace && (isConda(lock) || s.PythonMirror != "") {
		return treeName(digest + " " + s.Folder)
	}
	return treeName(digest)
}

// variables are those that the programs of an environment expect.
func (s *Store) variables(lock environment.Lock, name string) []string {
	if !isConda(lock) {
		return nil
	}
	return []string{"CONDA_PREFIX=" + s.prefix(name)}
}
