// Package treecache keeps folders that many tasks read and nobody changes, such
// as unpacked images: each is made once, however many ask for it and in however
// many processes, and goes when it has not been used for longest. What is in
// them is decided by others.
package treecache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/turns"
)

// Config says where trees are and how much of them is kept.
type Config struct {
	Folder string // an absolute path; several processes may share it
	// InUse lists the folders inside trees that tasks see, whoever started them.
	// A task that outlives its server is found there.
	InUse    func() ([]string, error)
	MaxTotal int64 // bytes of all trees
	// Trees that are made at the same time, in all and for one team.
	AtOnce, TeamAtOnce int
	Time               time.Duration // for making one
	Log                *slog.Logger
	Now                func() time.Time
}

// Cache is a cache of trees. All methods may be called at the same time.
type Cache struct {
	Config
	turns *turns.Turns[ids.Team] // of those who make trees

	mu      sync.Mutex
	flights map[string]*flight
}

// What lies in the folder. Names that begin with a dot are unfinished or
// being removed.
const (
	treesFolder = "sha256" // <name>/ and what is known of it in <name>/meta.json
	locksFolder = "locks"

	metaFile  = "meta.json"
	newPrefix = ".new-"
	oldPrefix = ".old-"
)

// Open makes a cache in a folder that an earlier one may have used.
func Open(c Config) (*Cache, error) {
	for _, dir := range []string{treesFolder, locksFolder} {
		if err := os.MkdirAll(filepath.Join(c.Folder, dir), 0o700); err != nil {
			return nil, err
		}
	}
	return &Cache{Config: c, turns: turns.New[ids.Team](c.AtOnce, c.TeamAtOnce), flights: map[string]*flight{}}, nil
}

// Dir is where a tree is, once it is there.
func (c *Cache) Dir(hex string) string { return filepath.Join(c.Folder, treesFolder, hex) }

// Meta reads what is known of a tree; fs.ErrNotExist when there is none, or a
// spoilt one. The time of change of the file is when the tree was last used.
func (c *Cache) Meta(hex string, into any) error {
	text, err := os.ReadFile(filepath.Join(c.Dir(hex), metaFile))
	if err != nil {
		return err
	}
	if !json.Valid(text) {
		return fs.ErrNotExist
	}
	return json.Unmarshal(text, into)
}

// size is the part of what is known of a tree that every kind of tree has.
type size struct {
	Bytes int64 `json:"bytes"`
}

// Wanted is a tree that somebody asks for.
type Wanted struct {
	Team ids.Team // whose turn it is to make it
	Hex  string   // the name of the tree
	// From is where its bytes come from. Several who make it from the same place make
	// it once; a place that is slow, or fails, holds up nobody who has it from another.
	From string
}

// making names the work of making the tree.
func (w Wanted) making() string {
	sum := sha256.Sum256([]byte(w.From))
	return w.Hex + "-" + hex.EncodeToString(sum[:8])
}

// Hold keeps a tree, and reads what is known of it. What is not here is made by
// fill first, into a folder that it finds empty; fill returns what is to be known
// of the tree, with its `bytes`. The tree stays until release is called, and as
// long as InUse names a folder in it.
func (c *Cache) Hold(ctx context.Context, w Wanted, known any, fill func(ctx context.Context, dir string) (meta any, err error)) (release func(), err error) {
	for {
		release, err := c.hold(w.Hex, known)
		if err == nil {
			return release, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errBusy) {
			return nil, err
		}
		if err := c.Share(ctx, w.Team, w.making(), func(ctx context.Context) error { return c.create(ctx, w, fill) }); err != nil {
			return nil, err
		}
	}
}

// hold holds a tree that is here.
func (c *Cache) hold(hex string, known any) (release func(), err error) {
	lock, err := c.lockShared(hex)
	if err != nil {
		return nil, err
	}
	if err := c.Meta(hex, known); err != nil {
		lock.Close()
		return nil, err
	}
	now := c.Now()
	if err := os.Chtimes(filepath.Join(c.Dir(hex), metaFile), now, now); err != nil {
		c.Log.Warn("cannot note that a folder is used", slog.Any("error", err))
	}
	return sync.OnceFunc(func() { lock.Close() }), nil
}

// create fills a folder beside the tree's place, and then puts it there whole: a
// process that is killed leaves nothing that could be taken for a tree.
func (c *Cache) create(ctx context.Context, w Wanted, fill func(ctx context.Context, dir string) (any, error)) error {
	lock, err := c.waitExclusive(ctx, w.making(), w.Hex)
	if err != nil || lock == nil {
		return err // without a lock: another was faster
	}
	defer lock.Close()
	dir := c.Dir(newPrefix + w.making())
	if err := errors.Join(folder.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return err
	}
	meta, err := fill(ctx, dir)
	if err == nil {
		err = writeMeta(dir, meta)
	}
	if err == nil {
		err = c.place(ctx, dir, w.Hex)
	}
	if err != nil {
		return errors.Join(err, folder.RemoveAll(dir))
	}
	return nil
}

// place puts a folder where its tree belongs, unless the tree is there by now, and makes
// room: the tree itself is locked, and stays.
func (c *Cache) place(ctx context.Context, dir, hex string) error {
	lock, err := c.waitExclusive(ctx, hex, hex)
	if err != nil {
		return err
	}
	if lock == nil {
		return folder.RemoveAll(dir)
	}
	defer lock.Close()
	// In its place is nothing, or what somebody has spoilt.
	if err := errors.Join(folder.RemoveAll(c.Dir(hex)), os.Rename(dir, c.Dir(hex))); err != nil {
		return err
	}
	if err := c.Clean(); err != nil {
		c.Log.Error("cannot remove folders that nobody uses", slog.Any("error", err))
	}
	return nil
}

// isHere reports whether a tree is there, whole.
func (c *Cache) isHere(hex string) bool { return c.Meta(hex, new(size)) == nil }

func writeMeta(dir string, meta any) error {
	text, err := json.Marshal(meta)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, metaFile), text, 0o600)
	}
	if err != nil {
		return err
	}
	return syncAll(dir)
}

// syncAll makes the whole folder survive a loss of power, at the price of one
// call instead of one for each file.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
