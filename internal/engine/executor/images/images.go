// Package images makes root file systems for tasks out of container images,
// without a daemon: it pulls them from registries, unpacks them into a cache
// that is keyed by digest, and clears away what has not been used for longest.
// Registries and images are strangers; nothing that they say is believed before
// it was checked. Which task sees which root is decided by the engine.
package images

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/millrace/millrace/internal/safedial"
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
	maxPulls    = 4
	maxResolves = 16
)

// Store is a cache of images. All methods may be called at the same time.
type Store struct {
	Config
	transport *http.Transport
	pulls     chan struct{} // one for each pull at work
	resolves  chan struct{}

	mu      sync.Mutex
	flights map[string]*flight
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
	for _, dir := range []string{imagesFolder, locksFolder, indexFolder} {
		if err := os.MkdirAll(filepath.Join(c.Folder, dir), 0o700); err != nil {
			return nil, err
		}
	}
	return &Store{
		Config: c, transport: safedial.Transport(c.AllowPrivate), flights: map[string]*flight{},
		pulls: make(chan struct{}, maxPulls), resolves: make(chan struct{}, maxResolves),
	}, nil
}

// What lies in the folder. Names that begin with a dot are unfinished or
// being removed.
const (
	imagesFolder = "sha256" // <digest>/rootfs and <digest>/meta.json
	locksFolder  = "locks"
	indexFolder  = "index" // which image an index holds for this machine

	rootFolder = "rootfs"
	metaFile   = "meta.json"
	newPrefix  = ".new-"
	oldPrefix  = ".old-"
)

func (s *Store) dir(hex string) string { return filepath.Join(s.Folder, imagesFolder, hex) }

// meta is what is known of an unpacked image. Its time of change is when the
// image was last used.
type meta struct {
	Reference string    `json:"reference"`
	Env       []string  `json:"env,omitempty"`
	Bytes     int64     `json:"bytes"`
	Entries   int       `json:"entries"`
	PulledAt  time.Time `json:"pulledAt"`
}

func (s *Store) meta(hex string) (m meta, err error) {
	text, err := os.ReadFile(filepath.Join(s.dir(hex), metaFile))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m)
}

// Resolve finds the digest that a reference stands for, on a machine like this
// one. A tag is asked for every time, since it may have moved; a digest that is
// here needs no registry.
func (s *Store) Resolve(ctx context.Context, ref string) (string, error) {
	r, err := s.parse(ref)
	if err != nil {
		return "", err
	}
	pinned, isPinned := pinnedTo(r)
	if isPinned {
		if digest, ok := s.localDigest(pinned); ok {
			return digest, nil
		}
	}
	if err := acquireSlot(ctx, s.resolves); err != nil {
		return "", err
	}
	defer releaseSlot(s.resolves)
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
	if _, err := s.meta(pinned.Hex); err == nil {
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
	_, err = s.meta(hash.Hex)
	return hash.String(), err == nil
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
func (s *Store) Root(ctx context.Context, ref, digest string) (path string, env []string, release func(), err error) {
	r, err := s.parse(ref)
	if err != nil {
		return "", nil, nil, err
	}
	hash, err := v1.NewHash(digest)
	if err != nil {
		return "", nil, nil, err
	}
	for {
		release, m, err := s.hold(hash.Hex)
		if err == nil {
			return filepath.Join(s.dir(hash.Hex), rootFolder), m.Env, release, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errBusy) {
			return "", nil, nil, err
		}
		err = s.shareFlight(ctx, hash.Hex, func(ctx context.Context) error {
			return s.pull(ctx, r.Context().Digest(digest), hash.Hex)
		})
		if err != nil {
			return "", nil, nil, s.explain(ctx, r, err)
		}
	}
}

// hold holds an image that is here.
func (s *Store) hold(hex string) (release func(), m meta, err error) {
	lock, err := s.lockShared(hex)
	if err != nil {
		return nil, m, err
	}
	if m, err = s.meta(hex); err != nil {
		lock.Close()
		return nil, m, err
	}
	now := s.Now()
	if err := os.Chtimes(filepath.Join(s.dir(hex), metaFile), now, now); err != nil {
		s.Log.Warn("cannot note that an image is used", slog.Any("error", err))
	}
	return sync.OnceFunc(func() { lock.Close() }), m, nil
}

func acquireSlot(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func releaseSlot(slots chan struct{}) { <-slots }
