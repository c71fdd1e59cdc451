// Package failedfolders keeps the working folders of attempts that failed, for whoever
// wants to know why. What a command left behind is not trusted: links are named
// and not followed, pipes and devices are named and not opened, and there is a
// bound on how much is looked at and how much is kept.
package failedfolders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// The bounds.
const (
	MaxEntries = 1000      // of a folder, that are listed
	MaxBytes   = 100 << 20 // of a folder, that are kept
	maxDepth   = 40
	maxPath    = 1000 // bytes
)

// Store records what is kept.
type Store interface {
	// MayKeep reports whether an attempt has failed, nothing is kept of it, and
	// its run may keep one more; and whose it is.
	MayKeep(ctx context.Context, k runs.AttemptKey) (f runs.FailedAttempt, ok bool, err error)
	// KeepAttempt records it. The oldest ones of the team are deleted for it.
	KeepAttempt(ctx context.Context, a runs.KeptAttempt, list []runs.KeptFile) error
}

// Objects takes the bytes.
type Objects interface {
	Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (files.Blob, error)
}

// Keeper keeps folders for a while.
type Keeper struct {
	Store   Store
	Objects Objects
	KeepFor time.Duration // 0: nothing is kept
	Low     func() bool   // whether the disk is nearly full: then nothing is kept; nil: never
	Now     func() time.Time
}

// Keep looks at the folder of an attempt that has ended, and keeps it if the
// attempt failed. It may be called again for the same one.
func (k *Keeper) Keep(ctx context.Context, key executor.Key, work string) error {
	if k == nil || k.KeepFor == 0 || k.Low != nil && k.Low() {
		return nil
	}
	attempt := runs.AttemptKey{Run: key.Run, Node: key.Node, Shard: key.Shard, Attempt: key.Attempt}
	failed, ok, err := k.Store.MayKeep(ctx, attempt)
	if err != nil || !ok || hasSecrets(failed.Definition, key.Node) {
		return err
	}
	list, truncated, err := listFolder(work)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(list) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	now := k.Now()
	kept := runs.KeptAttempt{AttemptKey: attempt, Team: failed.Team, Truncated: truncated, KeptAt: now, ExpiresAt: now.Add(k.KeepFor)}
	prefix := fmt.Sprintf("teams/%s/failed/%s.%s.%d.%d.%s", failed.Team, key.Run, key.Node, key.Shard, key.Attempt, failed.Fence)
	for i := range list {
		f := &list[i]
		if f.Kind != runs.KeptFileKind || kept.Bytes+f.Size > MaxBytes {
			continue
		}
		object := fmt.Sprintf("%s.%06d", prefix, i)
		if err := k.put(ctx, object, work, f); err != nil {
			return err
		}
		kept.Bytes += f.Size
	}
	return k.Store.KeepAttempt(ctx, kept, list)
}

// hasSecrets reports whether a step is given secrets: it may have written them
// into its folder, of which nothing is kept then.
func hasSecrets(definition []byte, node string) bool {
	g, _ := graph.Salvage(definition)
	for _, n := range g.Nodes {
		if n.ID == node {
			return len(n.Secrets) > 0
		}
	}
	return true // nobody knows
}

// put stores a file. One that cannot be read is listed without its bytes.
func (k *Keeper) put(ctx context.Context, object, work string, f *runs.KeptFile) error {
	file, err := outputs.Open(work, f.Path)
	if err != nil {
		f.Kind = runs.KeptOtherKind
		return nil
	}
	defer file.Close()
	_, err = k.Objects.Put(ctx, object, "application/octet-stream", file, f.Size)
	if fault.Is(err, fault.KindConflict) { // an earlier worker had come so far
		err = nil
	}
	if err == nil {
		f.Object = object
	}
	return err
}

// listFolder lists a folder, folders before what is in them.
func listFolder(work string) (list []runs.KeptFile, truncated bool, err error) {
	root, err := os.OpenRoot(work)
	if err != nil {
		return nil, false, err
	}
	defer root.Close()
	w := walker{root: root}
	w.folder(".", 0)
	return w.list, w.truncated, nil
}

type walker struct {
	root      *os.Root
	list      []runs.KeptFile
	truncated bool
}

// folder lists what is in one. Nothing changes it any more: its command has
// ended. Few names are read at a time, as there may be millions.
func (w *walker) folder(dir string, depth int) {
	f, err := w.root.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return // closed to us: it is listed, and what is in it is not
	}
	defer f.Close()
	for !w.truncated {
		some, err := f.ReadDir(100)
		for _, e := range some {
			w.entry(path.Join(dir, e.Name()), e, depth)
		}
		if err != nil {
			return
		}
	}
}

func (w *walker) entry(name string, e fs.DirEntry, depth int) {
	if len(w.list) == MaxEntries {
		w.truncated = true
	}
	if w.truncated {
		return
	}
	one := runs.KeptFile{Path: name, Kind: runs.KeptOtherKind}
	if len(name) > maxPath || !printable(name) {
		one.Path = displayName(name)
		w.list = append(w.list, one) // nobody could ask for it by this name
		return
	}
	switch mode := e.Type(); {
	case mode.IsDir():
		one.Kind = runs.KeptFolderKind
	case mode&fs.ModeSymlink != 0:
		one.Kind = runs.KeptLinkKind
	case mode.IsRegular():
		if info, err := e.Info(); err == nil {
			one.Kind, one.Size = runs.KeptFileKind, info.Size()
		}
	}
	w.list = append(w.list, one)
	if one.Kind != runs.KeptFolderKind {
		return
	}
	if depth == maxDepth {
		w.truncated = true
		return
	}
	w.folder(name, depth+1)
}

// printable reports whether a name can be written as it is.
func printable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// displayName is a name that cannot be, as far as it can.
func displayName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(name, string(utf8.RuneError)))
	for len(name) > maxPath {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}
