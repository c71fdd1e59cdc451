package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/workflows"
)

// Connections knows those of teams.
type Connections interface {
	// ConnectionOf is the connection that a run's code comes by. One that the run
	// cannot have is fault.KindInvalid.
	ConnectionOf(ctx context.Context, run ids.Run, id ids.Connection) (connections.Connection, connections.Credentials, error)
}

// Sources brings the code of runs.
type Sources struct {
	Trees       *Trees
	Connections Connections
	Pause       time.Duration // before a host that did not answer is asked again; 0: 2 s
}

const tries = 3

// Resolve finds the commit that a source stands for now.
func (s *Sources) Resolve(ctx context.Context, r runs.Run, from source.Source) (commit string, err error) {
	err = s.again(ctx, r, from, func(w Wanted) error {
		commit, err = s.Trees.Resolve(ctx, w, from.Ref)
		return err
	})
	return commit, err
}

// Tree is a folder with the files of a commit, and their hash.
func (s *Sources) Tree(ctx context.Context, r runs.Run, from source.Source, commit string) (folder, hash string, release func(), err error) {
	var tree Tree
	err = s.again(ctx, r, from, func(w Wanted) error {
		tree, err = s.Trees.Tree(ctx, w, commit)
		return err
	})
	return tree.Folder, tree.Hash, tree.Release, err
}

// again tries something several times while its host cannot be reached. What is
// wrong then is the repository's doing, unless nobody foresaw it.
func (s *Sources) again(ctx context.Context, r runs.Run, from source.Source, do func(Wanted) error) error {
	w, err := s.wanted(ctx, r, from)
	pause := s.Pause
	if pause == 0 {
		pause = 2 * time.Second
	}
	for n := 1; err == nil; n++ {
		if err = do(w); err == nil {
			return nil
		}
		if known, ok := errors.AsType[*fault.Error](err); !ok || known.Kind != fault.KindUnavailable || known.Code != "" || n == tries {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
			err, pause = nil, 4*pause
		}
	}
	known, ok := errors.AsType[*fault.Error](err)
	if !ok || known.Code != "" || known.Kind == fault.KindInternal {
		return err
	}
	return fault.Invalid("the code could not be fetched from Git: %s", known.Message).WithCode("source_unavailable").WithCause(known.Cause)
}

func (s *Sources) wanted(ctx context.Context, r runs.Run, from source.Source) (Wanted, error) {
	return wanted(r.Team, from, func(id ids.Connection) (connections.Connection, connections.Credentials, error) {
		return s.Connections.ConnectionOf(ctx, r.ID, id)
	})
}

func wanted(team ids.Team, from source.Source, open func(ids.Connection) (connections.Connection, connections.Credentials, error)) (w Wanted, err error) {
	w = Wanted{Team: team, Path: from.Path, Submodules: from.Submodules}
	var c *connections.Connection
	var secret connections.Credentials
	if from.Connection != "" {
		found, opened, err := open(ids.Connection(from.Connection))
		if err != nil {
			return w, err
		}
		c, secret = &found, opened
	}
	w.Repository, err = Open(from, c, secret)
	return w, err
}

// Hosts knows what the code of workflows has come to.
type Hosts struct {
	Trees *Trees
	// Open is a connection of a team.
	Open func(ctx context.Context, team ids.Team, id ids.Connection) (connections.Connection, connections.Credentials, error)
}

func (h *Hosts) wanted(ctx context.Context, team ids.Team, from source.Source) (Wanted, error) {
	return wanted(team, from, func(id ids.Connection) (connections.Connection, connections.Credentials, error) {
		return h.Open(ctx, team, id)
	})
}

// Latest is the commit that a source stands for now.
func (h *Hosts) Latest(ctx context.Context, team ids.Team, from source.Source) (string, error) {
	w, err := h.wanted(ctx, team, from)
	if err != nil {
		return "", err
	}
	return h.Trees.Resolve(ctx, w, from.Ref)
}

// File reads the first of several files that is in the folder of a source at a
// commit. That there is none, or that it is too large, is fault.KindInvalid.
func (h *Hosts) File(ctx context.Context, team ids.Team, from source.Source, commit string, f workflows.FileWanted) (name string, text []byte, err error) {
	w, err := h.wanted(ctx, team, from)
	if err != nil {
		return "", nil, err
	}
	tree, err := h.Trees.Tree(ctx, w, commit)
	if err != nil {
		return "", nil, err
	}
	defer tree.Release()
	root, err := os.OpenRoot(tree.Folder)
	if err != nil {
		return "", nil, err
	}
	defer root.Close()
	for _, name := range f.Names {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP): // what should be its folder may be anything
			continue
		case err != nil:
			return "", nil, err
		case !info.Mode().IsRegular():
			return name, nil, fault.Invalid("%s is not a plain file", name)
		case info.Size() > f.MaxBytes:
			return name, nil, fault.Invalid("%s has more than %s", name, sizeText(f.MaxBytes))
		}
		text, err := root.ReadFile(name)
		return name, text, err
	}
	return "", nil, fault.Invalid("there is no %s", strings.Join(f.Names, " or ")).WithCause(workflows.ErrNoFile)
}

// Behind counts the commits that one has and another has not; -1 where nobody
// can tell.
func (h *Hosts) Behind(ctx context.Context, team ids.Team, from source.Source, commit, latest string) (int, error) {
	w, err := h.wanted(ctx, team, from)
	if err != nil {
		return 0, err
	}
	return h.Trees.Behind(ctx, w, commit, latest)
}
