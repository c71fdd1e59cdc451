// Package images makes root file systems for tasks out of container images,
// without a daemon: it pulls them from registries, unpacks them into a cache
// that is keyed by digest, and clears away what has not been used for longest.
// Registries and images are strangers; nothing that they say is believed before
// it was checked. Which task sees which root is decided by the engine.
package images

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor/treecache"
	"github.com/millrace/millrace/internal/offline"
	"github.com/millrace/millrace/internal/safedial"
	"github.com/millrace/millrace/internal/turns"
)

// Config says where images come from and how much of them is kept. Only Folder,
// InUse, Log and Now are needed.
type Config struct {
	Folder string // several processes may share it
	// InUse lists the roots that tasks see, whoever started them. A task that
	// outlives its server is found there.
	InUse func() ([]string, error)
	Log   *slog.Logger
	Now   func() time.Time
	Disk  treecache.Disk // where Folder lies; nil: there is always space
	// Loaded has images that come before those of registries.
	Loaded offline.Folder

	Registries   []string // the hosts that images may come from; empty: all
	AuthFile     string   // empty: where docker and podman keep theirs
	AllowPrivate bool     // registries in private networks

	MaxTotal   int64         // bytes of all images; 0: 50 GB
	MaxImage   int64         // bytes of one, unpacked; 0: 20 GB, or MaxTotal if that is less
	MaxEntries int           // files, folders and links of one; 0: a million
	Pause      time.Duration // before what failed for a moment is tried again; 0: a second
}

const (
	defaultTotal   = 50 << 30
	defaultImage   = 20 << 30
	defaultEntries = 1_000_000

	resolveTime = 2 * time.Minute
	pullTime    = time.Hour
)

// How much is done at the same time, in all and for one team; package turns says why in
// all. A pull takes three connections and as many files at a time. Unpacking reads a
// layer that is here: it takes a processor and memory for the names in the layer, and
// waits for nobody, so it has a lower limit of its own.
const (
	maxPulls        = 64
	maxTeamPulls    = 4
	maxUnpacks      = 24
	maxTeamUnpacks  = 2
	maxResolves     = 128
	maxTeamResolves = 8
)

// Store is a cache of images. All methods may be called at the same time.
type Store struct {
	Config
	trees     *treecache.Cache
	transport *http.Transport
	resolves  *turns.Turns[ids.Team] // of those who look references up
	unpacks   *turns.Turns[ids.Team] // of those who unpack layers
}

// Open makes a store in a folder that an earlier one may have used.
func Open(c Config) (*Store, error) {
	var err error
	if c.Folder, err = filepath.Abs(c.Folder); err != nil {
		return nil, err
	}
	if c.MaxTotal == 0 {
		c.MaxTotal = defaultTotal
	}
	if c.MaxImage == 0 {
		c.MaxImage = min(defaultImage, c.MaxTotal)
	}
	if c.MaxEntries == 0 {
		c.MaxEntries = defaultEntries
	}
	if c.Pause == 0 {
		c.Pause = time.Second
	}
	c.Registries = slices.Clone(c.Registries)
	for i, host := range c.Registries {
		c.Registries[i] = canonical(host)
	}
	if err := os.MkdirAll(filepath.Join(c.Folder, indexFolder), 0o700); err != nil {
		return nil, err
	}
	trees, err := treecache.Open(treecache.Config{
		Folder: c.Folder, InUse: c.InUse, MaxTotal: c.MaxTotal, AtOnce: maxPulls, TeamAtOnce: maxTeamPulls, Time: pullTime, Log: c.Log, Now: c.Now,
	})
	return &Store{Config: c, trees: trees, transport: safedial.Transport(c.AllowPrivate), resolves: turns.New[ids.Team](maxResolves, maxTeamResolves), unpacks: turns.New[ids.Team](maxUnpacks, maxTeamUnpacks)}, err
}

const (
	indexFolder = "index"  // of the folder: which image an index holds for this machine
	rootFolder  = "rootfs" // of an image
)

// Clean clears away what a process that was killed left unfinished, and images
// beyond MaxTotal.
func (s *Store) Clean() error { return s.trees.Clean() }

// meta is what is known of an unpacked image.
type meta struct {
	Reference string    `json:"reference"`
	Env       []string  `json:"env,omitempty"`
	Bytes     int64     `json:"bytes"`
	Entries   int       `json:"entries"`
	PulledAt  time.Time `json:"pulledAt"`
}

// Team is the store as the runs of a team see it.
type Team struct {
	store *Store
	team  ids.Team
}

// For is the store as the runs of a team see it: slow registries take up the turns of
// the team that names them.
func (s *Store) For(team ids.Team) Team { return Team{s, team} }

// Resolve finds the digest that a reference stands for, on a machine like this
// one. A tag is asked for every time, since it may have moved; a digest that is
// here, and what was loaded, needs no registry.
func (t Team) Resolve(ctx context.Context, ref string) (string, error) {
	s := t.store
	r, err := s.parse(ref)
	if err != nil {
		return "", err
	}
	if digest, loaded, err := s.Loaded.Lookup(offline.Image, r.Name()); err != nil || loaded {
		return digest, err
	}
	pinned, isPinned := pinnedTo(r)
	if isPinned {
		if digest, ok := s.localDigest(pinned); ok {
			return digest, nil
		}
	}
	giveBack, err := s.resolves.Take(ctx, t.team)
	if err != nil {
		return "", err
	}
	defer giveBack()
	asking, stop := context.WithTimeout(ctx, resolveTime)
	defer stop()
	digest, err := s.resolveRemote(asking, r)
	if err != nil {
		return "", s.explain(ctx, r, err)
	}
	if isPinned && digest.String() != pinned.String() {
		s.saveIndex(pinned, digest)
	}
	return digest.String(), nil
}

// localDigest is what a pinned digest stands for, if that is here.
func (s *Store) localDigest(pinned v1.Hash) (digest string, ok bool) {
	if s.trees.Meta(pinned.Hex, new(meta)) == nil {
		return pinned.String(), true
	}
	text, err := os.ReadFile(s.indexFile(pinned))
	if err != nil {
		return "", false
	}
	hash, err := v1.NewHash(string(text))
	if err != nil {
		return "", false
	}
	return hash.String(), s.trees.Meta(hash.Hex, new(meta)) == nil
}

// saveIndex keeps what an index holds for this machine; an index never changes.
func (s *Store) saveIndex(index, digest v1.Hash) {
	temporary := s.indexFile(index) + ".new"
	err := os.WriteFile(temporary, []byte(digest.String()), 0o600)
	if err = errors.Join(err, os.Rename(temporary, s.indexFile(index))); err != nil {
		s.Log.Error("cannot keep what an image index holds", slog.Any("error", err))
	}
}

func (s *Store) indexFile(index v1.Hash) string {
	return filepath.Join(s.Folder, indexFolder, index.Hex+"."+platform().Architecture)
}

// Root is the root file system of a digest that Resolve gave for ref, with the
// variables that the image sets. It is pulled if it is not here; however many
// ask for it, that happens once. It stays until release is called, and as long
// as Config.InUse names it.
func (t Team) Root(ctx context.Context, ref, digest string) (path string, env []string, release func(), err error) {
	s := t.store
	r, err := s.parse(ref)
	if err != nil {
		return "", nil, nil, err
	}
	hash, err := v1.NewHash(digest)
	if err != nil {
		return "", nil, nil, err
	}
	var m meta
	w := treecache.Wanted{Team: t.team, Hex: hash.Hex, From: r.Context().Name()}
	release, err = s.trees.Hold(ctx, w, &m, func(ctx context.Context, dir string) (any, error) {
		return t.buildWhileSpace(ctx, r.Context().Digest(digest), dir)
	})
	if err != nil {
		return "", nil, nil, s.explain(ctx, r, err)
	}
	return filepath.Join(s.trees.Dir(hash.Hex), rootFolder), m.Env, release, nil
}
