package git

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/git/unpack"
	"github.com/millrace/millrace/internal/offline"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/turns"
)

// Sandbox runs a program on files of a stranger, where it can do no harm:
// without network, and with limits on what it uses. Among its arguments {name}
// stands for the path of a file. A program that fails is no error: its status is
// a shell's. Where there is no sandbox, it is fault.KindUnavailable.
type Sandbox interface {
	RunFiles(ctx context.Context, files map[string]string, argv []string, read func(io.Reader) error) (complaint string, status int, err error)
}

// Trees are the folders of commits, in a cache that forgets what has not been
// used for longest. All methods may be called at the same time.
type Trees struct {
	client  *Client
	sandbox Sandbox
	config  TreesConfig
	flights singleflight.Group
	fetches *turns.Turns[ids.Team] // of those who fetch trees
	reads   *turns.Turns[ids.Team] // of those who have packs read

	mu      sync.Mutex
	program string // a copy of this one, for the sandbox; empty: none was made yet
}

// TreesConfig says where trees are kept.
type TreesConfig struct {
	Folder   string // several processes may share it
	MaxTotal int64  // bytes of all trees; 0: 10 GB
	// Space is an error while the file system of Folder has no room for more; nil: there
	// is always space.
	Space func(context.Context) error
	Log   *slog.Logger
	Now   func() time.Time

	Loaded offline.Folder  // has code that no host is asked for
	Keep   *offline.Writer // for a bundle of all that is fetched; nil: there is none
}

const defaultTotal = 10 << 30

// How much is done at the same time, in all and for one team; package turns says why in
// all. A fetch mostly waits for its host. Reading a pack takes a processor and memory of
// this machine and waits for no host, so it has a lower limit.
const (
	maxFetches     = 64
	maxTeamFetches = 2
	MaxReads       = 4
	maxTeamReads   = 1
)

// What lies in the folder. Names that begin with a dot are unfinished, or being
// removed.
const (
	metaFile   = "meta.json"
	treeFolder = "tree"
	newPrefix  = ".new-"
	oldPrefix  = ".old-"
	locks      = ".locks"
	programs   = ".program"
)

// NewTrees opens a folder that another may have used.
func NewTrees(c *Client, s Sandbox, config TreesConfig) (*Trees, error) {
	var err error
	if config.Folder, err = filepath.Abs(config.Folder); err != nil {
		return nil, err
	}
	config.MaxTotal = cmp.Or(config.MaxTotal, defaultTotal)
	t := &Trees{client: c, sandbox: s, config: config, fetches: turns.New[ids.Team](maxFetches, maxTeamFetches), reads: turns.New[ids.Team](MaxReads, maxTeamReads)}
	return t, os.MkdirAll(filepath.Join(config.Folder, locks), 0o700)
}

// Wanted is a folder of a repository.
type Wanted struct {
	Team       ids.Team // what one has fetched is not for others
	Repository Repository
	Path       string
	Submodules bool
}

func (w Wanted) key(commit string) string {
	text := fmt.Sprintf("%q %q %q %q %t", w.Team, w.Repository.url.String(), commit, w.Path, w.Submodules)
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Tree is a folder with the files of a commit. Nobody changes it.
type Tree struct {
	Folder  string
	Hash    string // of names, modes and contents
	Release func() // when it is not needed any more
}

// meta is what is known of a tree. Its time of change is when the tree was last
// used.
type meta struct {
	Hash  string `json:"hash"`
	Bytes int64  `json:"bytes"`
}

// Resolve finds the commit that a branch or tag stands for now.
func (t *Trees) Resolve(ctx context.Context, w Wanted, ref string) (string, error) {
	commit, loaded, err := t.lookup(offline.Commit, w.Repository, ref)
	if err == nil && !loaded {
		commit, err = t.client.Resolve(ctx, w.Repository, ref)
	}
	if err == nil && t.config.Keep != nil && !isCommit(ref) {
		t.config.Keep.Add(offline.Item{Kind: offline.Commit, Name: w.Repository.loadedName(ref), Value: commit})
	}
	return commit, err
}

// errLeft is about a fetch that had not begun when who asked for it left.
var errLeft = errors.New("who waited for this code has left")

// Tree is the folder as it is at a commit. However many ask for it, it is
// fetched once. What has begun to be fetched goes on when they leave.
func (t *Trees) Tree(ctx context.Context, w Wanted, commit string) (Tree, error) {
	key := w.key(commit)
	for {
		tree, err := t.hold(key)
		if !errors.Is(err, fs.ErrNotExist) {
			return tree, err
		}
		done := t.flights.DoChan(key, func() (any, error) {
			giveBack, err := t.fetches.Take(ctx, w.Team)
			if err != nil {
				return nil, errLeft
			}
			defer giveBack()
			wide, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*t.client.limits.Time)
			defer cancel()
			return nil, panics.Catch(func() error { return t.make(wide, w, commit, key) })
		})
		select {
		case r := <-done:
			switch {
			case errors.Is(r.Err, errLeft) && ctx.Err() == nil: // another asked first, and we are still here
			case errors.Is(r.Err, errLeft):
				return Tree{}, ctx.Err()
			case r.Err != nil:
				return Tree{}, r.Err
			}
		case <-ctx.Done():
			return Tree{}, ctx.Err()
		}
	}
}

func (t *Trees) dir(name string) string { return filepath.Join(t.config.Folder, name) }

// hold keeps a tree that is here from being removed.
func (t *Trees) hold(key string) (Tree, error) {
	lock, err := t.lock(key, unix.LOCK_SH)
	if err != nil {
		return Tree{}, err
	}
	m, err := t.meta(key)
	if err != nil {
		return Tree{}, errors.Join(err, lock.Close())
	}
	now := t.config.Now()
	if err := os.Chtimes(filepath.Join(t.dir(key), metaFile), now, now); err != nil {
		t.config.Log.Warn("cannot note that code is used", slog.Any("error", err))
	}
	return Tree{Folder: filepath.Join(t.dir(key), treeFolder), Hash: m.Hash, Release: sync.OnceFunc(func() { lock.Close() })}, nil
}

// meta is what is known of a tree. One whose note is damaged, as it is when a machine
// lost its power, is as good as absent: it is fetched again.
func (t *Trees) meta(key string) (m meta, err error) {
	text, err := os.ReadFile(filepath.Join(t.dir(key), metaFile))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return m, nil
}

// lock is shared by those who use a tree, and held alone by who removes it. The
// kernel gives it back, whatever happens to its holder.
func (t *Trees) lock(key string, how int) (*os.File, error) {
	path := filepath.Join(t.config.Folder, locks, key)
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err = unix.Flock(int(file.Fd()), how); err == nil && sameFile(file, path) {
			return file, nil
		}
		_ = file.Close() // nothing was written
		if err != nil && !errors.Is(err, unix.EINTR) {
			return nil, err
		}
	}
}

// sameFile reports whether the file has not been removed while we waited for it.
func sameFile(file *os.File, path string) bool {
	ours, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(ours, there)
}

// make fetches a tree into a new folder, and gives it its name when it is whole.
func (t *Trees) make(ctx context.Context, w Wanted, commit, key string) error {
	if err := errors.Join(t.Clean(), t.space(ctx)); err != nil {
		return err
	}
	unfinished, err := os.MkdirTemp(t.config.Folder, newPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(unfinished)
	l, err := newLayout(filepath.Join(unfinished, treeFolder), t.client.limits)
	if err != nil {
		return err
	}
	defer l.close()
	if err := t.fill(ctx, l, w, commit, 0); err != nil {
		return err
	}
	if link, found := l.outward(); found {
		return fault.Invalid("%s cannot be used: the link %s leads out of it", w.Repository.name(), printable(link))
	}
	text, err := json.Marshal(meta{Hash: l.sum(), Bytes: l.bytes})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(unfinished, metaFile), text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(unfinished, t.dir(key)); err != nil && !errors.Is(err, fs.ErrExist) { // somebody was faster
		return err
	}
	return nil
}

const maxSubmoduleDepth = 3

// fill puts a repository's files into a layout, and with them those of the
// repositories that it names.
func (t *Trees) fill(ctx context.Context, l *layout, w Wanted, commit string, depth int) error {
	pack, err := t.newPack(ctx)
	if err != nil {
		return err
	}
	defer os.Remove(pack.file.Name())
	err = t.fetch(ctx, w.Repository, commit, pack)
	if err = errors.Join(err, pack.file.Close()); err != nil {
		return err
	}
	order := unpack.Order{Commit: commit, Path: w.Path, File: l.limits.File, Tree: l.limits.Tree - l.bytes, Files: l.limits.Files - l.entries}
	var found []unpack.Submodule
	err = t.read(ctx, w, pack.file.Name(), unpack.TreeArguments("{pack}", order), func(r io.Reader) (err error) {
		found, err = l.take(r)
		return err
	})
	if err != nil || !w.Submodules {
		return err
	}
	for _, s := range found {
		if err := t.submodule(ctx, l, w, s, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trees) submodule(ctx context.Context, l *layout, w Wanted, s unpack.Submodule, depth int) error {
	at, inside := s.Path, true
	if w.Path != "" {
		at, inside = strings.CutPrefix(s.Path, strings.Trim(w.Path, "/")+"/")
	}
	if !inside {
		return nil
	}
	if depth > maxSubmoduleDepth || l.submodules >= maxSubmodules {
		return fault.Invalid("%s has more than %d submodules, or some more than %d deep", w.Repository.name(), maxSubmodules, maxSubmoduleDepth)
	}
	l.submodules++
	r, err := w.Repository.submodule(s.URL)
	if err == nil && !isCommit(s.Commit) {
		err = fault.Invalid("its commit cannot be read")
	}
	if err == nil {
		err = l.within(at, func() error {
			return t.fill(ctx, l, Wanted{Team: w.Team, Repository: r, Submodules: true}, s.Commit, depth)
		})
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return &fault.Error{Kind: known.Kind, Message: "the submodule " + printable(s.Path) + ": " + known.Message, Cause: known.Cause}
	}
	return err
}

const maxSubmodules = 20

// packFile is for what a host sends.
type packFile struct {
	file  *os.File
	space func() error
	since int64 // bytes since space was last asked for
}

// checkSpaceEach is how many bytes of a pack are written before the disk is looked at
// again.
const checkSpaceEach = 16 << 20

func (t *Trees) space(ctx context.Context) error {
	if t.config.Space == nil {
		return nil
	}
	return t.config.Space(ctx)
}

func (t *Trees) newPack(ctx context.Context) (*packFile, error) {
	file, err := os.CreateTemp(t.config.Folder, newPrefix+"*.pack")
	return &packFile{file: file, space: func() error { return t.space(ctx) }}, err
}

// Write fails when the disk has no room for more.
func (p *packFile) Write(b []byte) (int, error) {
	if p.since += int64(len(b)); p.since >= checkSpaceEach {
		p.since = 0
		if err := p.space(); err != nil {
			return 0, err
		}
	}
	return p.file.Write(b)
}

// read waits for the team's turn and has a pack read in the sandbox.
func (t *Trees) read(ctx context.Context, w Wanted, pack string, argv []string, read func(io.Reader) error) error {
	r := w.Repository
	program, err := t.copiedProgram()
	if err != nil {
		return err
	}
	giveBack, err := t.reads.Take(ctx, w.Team)
	if err != nil {
		return err
	}
	defer giveBack()
	var taken error
	said, status, err := t.sandbox.RunFiles(ctx, map[string]string{"millrace": program, "pack": pack}, append([]string{"{millrace}"}, argv...), func(printed io.Reader) error {
		taken = read(printed) // of a program that broke, half of it may be there
		return nil
	})
	switch {
	case err != nil:
		return err
	case status == unpack.Refused:
		return fault.Invalid("%s cannot be used: %s", r.name(), printable(said))
	case status != 0:
		return fault.Invalid("%s cannot be used: it takes too much memory or time to unpack", r.name()).WithCause(fmt.Errorf("status %d: %s", status, said))
	}
	if refusal, ok := errors.AsType[*fault.Error](taken); ok {
		return fault.Invalid("%s cannot be used: %s", r.name(), refusal.Message)
	}
	return taken
}

// Behind counts the commits that the newer one has and the other has not; -1
// where the host does not know the other any more, or cannot tell without
// sending its files.
func (t *Trees) Behind(ctx context.Context, w Wanted, commit, latest string) (int, error) {
	giveBack, err := t.fetches.Take(ctx, w.Team)
	if err != nil {
		return 0, err
	}
	defer giveBack()
	pack, err := t.newPack(ctx)
	if err != nil {
		return 0, err
	}
	defer os.Remove(pack.file.Name())
	known, err := t.client.fetchSince(ctx, w.Repository, latest, commit, pack)
	switch err = errors.Join(err, pack.file.Close()); {
	case errors.Is(err, errNoFilter), err == nil && !known:
		return -1, nil
	case err != nil:
		return 0, err
	}
	n := 0
	err = t.read(ctx, w, pack.file.Name(), unpack.CountArguments("{pack}"), func(r io.Reader) error {
		_, err := fmt.Fscan(r, &n)
		return err
	})
	return n, err
}

// copiedProgram is the copy of this program, which is made once.
func (t *Trees) copiedProgram() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.program == "" {
		if err := t.copyProgram(); err != nil {
			return "", err // a disk may be full for a moment
		}
		t.program = t.dir(programs)
	}
	return t.program, nil
}

// copyProgram makes this program one that the sandbox can show.
func (t *Trees) copyProgram() error {
	self, err := os.Open("/proc/self/exe") // whatever has been installed since
	if err != nil {
		return err
	}
	defer self.Close()
	to, err := os.CreateTemp(t.config.Folder, newPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(to.Name()) // of one that was not finished
	_, err = io.Copy(to, self)
	if err = errors.Join(err, to.Chmod(0o755), to.Close()); err != nil {
		return err
	}
	return os.Rename(to.Name(), t.dir(programs))
}
