// Package environments builds the software that nodes ask for, once for all who
// wait, into a cache of folders that tasks can read. uv chooses and installs
// Python packages, and py-rattler those of conda, in the sandbox that tasks run in,
// without network: uv speaks to nothing but our own view of the operator's package
// indexes, and py-rattler to nobody. Nothing that comes with a package is run.
// What may be asked for is decided in domain/environment.
package environments

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor/command"
	"github.com/millrace/millrace/internal/engine/executor/environments/channels"
	"github.com/millrace/millrace/internal/engine/executor/environments/machine"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/oneshot"
	"github.com/millrace/millrace/internal/engine/executor/treecache"
	"github.com/millrace/millrace/internal/environments"
	"github.com/millrace/millrace/internal/offline"
)

// Records keep what was built for a team, for all servers.
type Records interface {
	// EnvironmentBuild is fault.KindNotFound where nothing was built.
	EnvironmentBuild(ctx context.Context, team ids.Team, key string) (environments.Build, error)
	// SaveEnvironmentBuild keeps a build. A lock that is there already stays; the
	// one that counts is returned.
	SaveEnvironmentBuild(ctx context.Context, team ids.Team, b environments.Build) (lock string, err error)
	// EnvironmentUsed notes that a run uses a build; false where it is not known any
	// more.
	EnvironmentUsed(ctx context.Context, team ids.Team, key string, now time.Time) (known bool, err error)
}

// Config says where packages come from and how much is kept. Folder, InUse,
// Records, Log and Now are needed.
type Config struct {
	Folder  string // of what was built; several processes may share it
	Builds  string // of this process alone; empty: in Folder
	Tools   string // of the tools that build, as Folder is; empty: in Folder
	InUse   func() ([]string, error)
	Records Records
	Log     *slog.Logger
	Now     func() time.Time
	Disk    treecache.Disk // where builds lie; nil: there is always space

	Off          bool     // nothing is built
	Unfit        string   // why tasks could not use one; empty: they can
	UV           string   // empty: the one beside the program, or on the PATH
	Indexes      []string // of Python packages; the first that has a package is asked for it; AsMachine: those of pip; empty: nothing is built
	Channels     []string // of conda packages, by address; AsMachine: those of conda; empty: there are none
	PythonMirror string   // of interpreters that the machine lacks; empty: there is none
	AllowPrivate bool     // indexes and channels in private networks
	Machine      machine.Machine
	InPlace      bool // tasks find environments where they are kept, not at a place of the sandbox

	Loaded offline.Folder  // has locks, and packages that no index is asked for
	Keep   *offline.Writer // for a bundle of all that is installed; nil: there is none

	MaxTotal int64         // bytes of all that is kept; 0: 50 GB
	MaxOne   int64         // bytes of one; 0: 10 GB
	Time     time.Duration // for one step of a build; 0: 30 minutes
}

// AsMachine, in place of addresses, stands for those that pip or conda on the machine uses.
// They may be in private networks.
const AsMachine = "machine"

const (
	defaultTotal = 50 << 30
	defaultOne   = 10 << 30
	defaultTime  = 30 * time.Minute

	// atOnce is how many builds of this process have a sandbox. Each may take a processor
	// and its memory for half an hour, so that there cannot be as many as of transfers.
	atOnce     = 4
	teamAtOnce = 2
	buildBytes = 4 << 30 // of memory

	treeFolder = "tree"
	// format names how trees are made: what was made otherwise is made again.
	format = "1"
)

// Store is a cache of environments. All methods may be called at the same time.
type Store struct {
	Config
	trees  *treecache.Cache
	tools  *treecache.Cache
	runner *oneshot.Runner
	index  *index
	added  step // by tests, to each step

	channels      *channels.Channels
	lacksChannels string // why there are none, for everybody; empty: there are some
	whyChannels   error  // the same for the operator
}

// Open makes a store in a folder that an earlier one may have used. The caller
// closes it.
func Open(c Config) (s *Store, err error) {
	if c.Folder, err = filepath.Abs(c.Folder); err != nil {
		return nil, err
	}
	if c.Builds == "" {
		c.Builds = filepath.Join(c.Folder, "builds")
	}
	if c.Builds, err = filepath.Abs(c.Builds); err != nil {
		return nil, err
	}
	if c.Tools == "" {
		c.Tools = filepath.Join(c.Folder, "tools")
	}
	if c.MaxTotal == 0 {
		c.MaxTotal = defaultTotal
	}
	if c.MaxOne == 0 {
		c.MaxOne = min(defaultOne, c.MaxTotal)
	}
	if c.Time == 0 {
		c.Time = defaultTime
	}
	s = &Store{Config: c}
	if s.index, err = newIndex(c); err != nil {
		return nil, err
	}
	if err := s.findChannels(); err != nil {
		return nil, err
	}
	if err := errors.Join(s.index.why, s.whyChannels); err != nil && !c.Off {
		c.Log.Warn("cannot use what pip or conda is told on this machine", slog.Any("error", err))
	}
	if err := s.channels.Keep(filepath.Join(c.Folder, "lists"), c.Log, c.Now); err != nil {
		return nil, err
	}
	if s.tools, err = openTools(c); err != nil {
		return nil, err
	}
	s.trees, err = treecache.Open(treecache.Config{
		Folder: c.Folder, InUse: c.InUse, MaxTotal: c.MaxTotal, AtOnce: 2 * atOnce, TeamAtOnce: teamAtOnce, Time: c.totalTime(), Log: c.Log, Now: c.Now,
	})
	s.runner = oneshot.New(local.Config{Folder: c.Builds, Log: c.Log, Now: c.Now, VCPU: atOnce, MemoryBytes: atOnce * buildBytes})
	return s, err
}

// totalTime is the longest that one may take, with waiting for a sandbox, so that a step whose own time is up is what ends it, and says so.
func (c Config) totalTime() time.Duration { return 2*c.Time + time.Minute }

// Close ends what is being built.
func (s *Store) Close() error { return s.runner.Close() }

// Clean clears away what killed servers left, and what has not been used for
// longest beyond MaxTotal.
func (s *Store) Clean(ctx context.Context) error {
	return errors.Join(s.runner.Recover(ctx), s.trees.Clean(), s.tools.Clean(), s.channels.Clean())
}

// Problem is why nothing can be built here, or nothing.
func (s *Store) Problem() string { return s.problem(s.missing(command.Path)) }

func (s *Store) problem(missing []string) string {
	switch {
	case s.Unfit != "":
		return s.Unfit
	case s.Off:
		return "this server builds no environments (--environments off): use an `image`, or the programs of the machine"
	case len(missing) > 0:
		return "this server cannot build environments: its operator has to install or set " + strings.Join(missing, "; ")
	}
	return ""
}

// missing lists what every build needs and is not here, with how the operator gets it.
// Interpreters are looked for in these folders.
func (s *Store) missing(folders string) (list []string) {
	if _, err := s.uv(); err != nil {
		list = append(list, "uv (pip install uv)")
	}
	switch {
	case hasPython(folders):
	case s.PythonMirror == "":
		list = append(list, "python3 (apt-get install python3)")
	case s.index.finds:
		list = append(list, "python3 (apt-get install python3), without which the index of pip cannot be found, or --pip-index-url")
	}
	if s.index.lacks != "" {
		list = append(list, s.index.lacks)
	}
	return list
}

// hasPython reports whether there is an interpreter in these folders.
func hasPython(folders string) bool {
	for _, folder := range filepath.SplitList(folders) {
		if _, err := exec.LookPath(filepath.Join(folder, "python3")); err == nil {
			return true
		}
	}
	return false
}

// ProblemWith is why what a node asks for cannot be built here, or nothing.
func (s *Store) ProblemWith(spec environment.Spec) string {
	missing := s.missing(command.Path)
	channels, conda := spec.IsConda()
	if conda && s.lacksChannels != "" {
		missing = append(missing, s.lacksChannels)
	}
	if problem := s.problem(missing); problem != "" || !conda {
		return problem
	}
	return s.noConda(channels)
}

// Check reports why nothing could be built with these settings.
func Check(ctx context.Context, c Config) error {
	x, err := newIndex(c)
	if err != nil {
		return err
	}
	s := &Store{Config: c, index: x}
	if problem := s.Problem(); problem != "" {
		return errors.Join(errors.New(problem), x.why)
	}
	return x.reach(ctx)
}

// CheckConda reports why no conda packages could be had with these settings, beside what
// Check reports.
func CheckConda(ctx context.Context, c Config) error {
	s := &Store{Config: c}
	if err := s.findChannels(); err != nil {
		return err
	}
	if problem := s.noConda(nil); problem != "" {
		return errors.Join(errors.New(problem), s.whyChannels)
	}
	if len(s.channels.Unplaced()) == 0 {
		return s.channels.Reach(ctx)
	}
	return reachApart(ctx, c)
}

// reachApart reports whether channels answer whose addresses only the tool knows. It installs
// the tool in a folder of its own, because the server's belong to the server.
func reachApart(ctx context.Context, c Config) (err error) {
	if c.Folder, err = os.MkdirTemp("", "millrace-conda-"); err != nil {
		return err
	}
	c.Builds, c.Tools = "", ""
	c.Log, c.Now, c.InUse = slog.New(slog.DiscardHandler), time.Now, func() ([]string, error) { return nil, nil }
	s, err := Open(c)
	if err != nil {
		return errors.Join(err, folder.RemoveAll(c.Folder))
	}
	defer func() { err = errors.Join(err, s.Close(), folder.RemoveAll(c.Folder)) }()
	if problem := s.Problem(); problem != "" {
		return errors.New(problem)
	}
	if err := (&build{store: s, unseen: true}).placeChannels(ctx); err != nil {
		return err
	}
	return s.channels.Reach(ctx)
}

// findChannels finds the channels of conda packages.
func (s *Store) findChannels() (err error) {
	if !slices.Equal(s.Channels, []string{AsMachine}) {
		s.channels, err = channels.New(s.Channels, s.AllowPrivate)
	} else {
		var list []string
		if list, s.whyChannels = s.Machine.Conda(); s.whyChannels == nil {
			s.channels, s.whyChannels = channels.Configured(list, s.AllowPrivate)
		}
	}
	switch {
	case err != nil:
		return err
	case s.whyChannels != nil:
		s.channels, err = channels.New(nil, false)
		s.lacksChannels = "channels of conda packages (what conda is told on the machine cannot be used, as `millrace admin doctor` explains; --conda-channels takes its place)"
	case len(s.channels.Names()) == 0:
		s.lacksChannels = "channels of conda packages (--conda-channels)"
	}
	return err
}

// Team is the store as the runs of a team see it.
type Team struct {
	store *Store
	team  ids.Team
}

// For is the store as the runs of a team see it.
func (s *Store) For(team ids.Team) Team { return Team{s, team} }

// Resolve finds out which packages are chosen for what was asked for, once and
// for all of the team's runs, and returns the digest of the lock.
func (t Team) Resolve(ctx context.Context, canonical string) (digest string, err error) {
	lock, err := t.lock(ctx, canonical)
	if err != nil {
		return "", err
	}
	return lock.Digest(), nil
}

func (t Team) lock(ctx context.Context, canonical string) (l environment.Lock, err error) {
	spec, err := environment.Read(canonical)
	if err != nil {
		return l, err
	}
	if spec.Lock != "" {
		return environment.ParseLock(spec.Lock)
	}
	known, err := t.known(ctx, spec)
	if err == nil && known.Lock != "" {
		return environment.ParseLock(known.Lock)
	}
	if err != nil && !fault.Is(err, fault.KindNotFound) {
		return l, err
	}
	loaded, found, err := t.store.loadedLock(spec.Key())
	switch {
	case err != nil:
	case found:
		err = t.record(ctx, known, spec, loaded, environments.Waiting, "")
	default:
		err = t.store.trees.Share(ctx, t.team, "lock "+string(t.team)+" "+spec.Key(), func(ctx context.Context) error {
			return t.store.build(ctx, t.team, spec, func(b *build) error { return b.resolve(ctx) })
		})
	}
	if err != nil {
		return l, err
	}
	if known, err = t.store.Records.EnvironmentBuild(ctx, t.team, spec.Key()); err != nil {
		return l, err
	}
	return environment.ParseLock(known.Lock)
}

// usedEvery is how far what is known of the last use may be behind it.
const usedEvery = 24 * time.Hour

// known is what was built, for a run that is about to use it. What no run has any more
// may be forgotten before that is noted.
func (t Team) known(ctx context.Context, spec environment.Spec) (environments.Build, error) {
	known, err := t.store.Records.EnvironmentBuild(ctx, t.team, spec.Key())
	now := t.store.Now()
	if err != nil || now.Sub(known.UsedAt) < usedEvery {
		return known, err
	}
	there, err := t.store.Records.EnvironmentUsed(ctx, t.team, spec.Key(), now)
	if err == nil && !there {
		err = fault.NotFound("what was built is not known any more")
	}
	return known, err
}

// meta is what is known of what was built.
type meta struct {
	Bytes int64  `json:"bytes"`
	Lock  string `json:"lock"`
}

// Root is the folder of an environment that Resolve gave a digest for. It is
// built if it is not here. It stays until release is called, and as long as
// Config.InUse names it. Teams whose locks are the same share it: a lock says by
// hash what is in it, and nothing but those files had a part in making it.
func (t Team) Root(ctx context.Context, canonical, digest string) (path string, env []string, release func(), err error) {
	spec, err := environment.Read(canonical)
	if err != nil {
		return "", nil, nil, err
	}
	lock, err := t.lock(ctx, canonical)
	if err != nil {
		return "", nil, nil, err
	}
	if lock.Digest() != digest { // forgotten in between, and chosen anew: the run asks again
		return "", nil, nil, errors.New("other packages were chosen since the environment was resolved")
	}
	if err := t.allowed(ctx, spec, lock); err != nil {
		return "", nil, nil, err
	}
	name := t.store.nameOf(lock, digest)
	if err := t.store.dropOutlived(name, lock); err != nil {
		return "", nil, nil, err
	}
	var m meta
	release, err = t.store.trees.Hold(ctx, treecache.Wanted{Team: t.team, Hex: name}, &m, func(ctx context.Context, dir string) (known any, err error) {
		err = t.store.build(ctx, t.team, spec, func(b *build) error {
			if to := filepath.Join(dir, treeFolder); isConda(lock) {
				known, err = b.installConda(ctx, lock, to, t.store.prefix(name))
			} else {
				known, err = b.install(ctx, lock, to, t.store.prefix(name))
			}
			return err
		})
		return known, err
	})
	if err != nil {
		return "", nil, nil, err
	}
	if err := t.ready(ctx, spec, lock); err != nil {
		release()
		return "", nil, nil, err
	}
	return filepath.Join(t.store.trees.Dir(name), treeFolder), t.store.variables(lock, name), release, nil
}

// ready records that an environment is there, whoever has built it.
func (t Team) ready(ctx context.Context, spec environment.Spec, lock environment.Lock) error {
	known, err := t.known(ctx, spec)
	if err == nil && known.State == environments.Ready || err != nil && !fault.Is(err, fault.KindNotFound) {
		return err
	}
	return t.record(ctx, known, spec, lock, environments.Ready, "")
}

func (t Team) record(ctx context.Context, known environments.Build, spec environment.Spec, lock environment.Lock, state environments.State, problem string) error {
	known.Key, known.Spec, known.State, known.Lock, known.Error, known.UpdatedAt = spec.Key(), spec.Canonical(), state, lock.String(), problem, t.store.Now()
	_, err := t.store.Records.SaveEnvironmentBuild(ctx, t.team, known)
	return err
}

// treeName is the name of what is built from a lock on a machine like this one.
func treeName(digest string) string {
	sum := sha256.Sum256([]byte(format + " " + runtime.GOOS + " " + runtime.GOARCH + " " + digest))
	return hex.EncodeToString(sum[:])
}
