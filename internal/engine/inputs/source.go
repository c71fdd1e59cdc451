package inputs

import (
	"context"
	"errors"
	"path"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/engine/cachekey"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs"
)

// SourceStore brings code from where it is kept. What it says in a foreseen fault with
// the code Unavailable is about the repository; the rest is ours.
type SourceStore interface {
	// Resolve finds the commit that a source stands for now.
	Resolve(ctx context.Context, r runs.Run, s source.Source) (commit string, err error)
	// Tree is a folder with the files of a commit, and a hash of them. It stays
	// until release is called.
	Tree(ctx context.Context, r runs.Run, s source.Source, commit string) (folder, hash string, release func(), err error)
}

// SourceUnavailable is the code of a failure of which the repository is the cause.
const SourceUnavailable = string(lifecycle.SourceUnavailable)

// SourceIsUnavailable reports whether a repository is the cause of a failure.
func SourceIsUnavailable(err error) bool {
	known, ok := errors.AsType[*fault.Error](err)
	return ok && known.Code == SourceUnavailable
}

// Source is the code of one run. Its commit is looked up once, so that all tasks see
// the same, and its files are fetched in the background, since that can take minutes.
// It can be read once Ready has reported true. A run without code has a nil Source.
type Source struct {
	commit  string
	folder  string
	hash    string
	release func()
	err     error
	done    chan struct{}
}

// Background runs work in the background; the channel is closed when it is done, and
// failed is set.
type Background func(failed *error, work func(context.Context) error) chan struct{}

// BeginSource fetches the code of a run whose commands use some. A run that has begun
// before keeps its commit.
func BeginSource(r runs.Run, g *graph.Graph, store SourceStore, in Background) *Source {
	if g.Source == nil || !usesSource(g) {
		return nil
	}
	s := &Source{}
	r.Definition, r.Parameters, r.Inputs = nil, nil, nil
	s.done = in(&s.err, func(ctx context.Context) error { return s.fetch(ctx, r, *g.Source, store) })
	return s
}

func usesSource(g *graph.Graph) bool {
	for _, n := range g.Order() {
		if n.UsesSource() {
			return true
		}
	}
	return false
}

func (s *Source) fetch(ctx context.Context, r runs.Run, from source.Source, store SourceStore) (err error) {
	if store == nil {
		return fault.Invalid("this server fetches no code from Git").WithCode("source_unavailable")
	}
	commit := r.Commit
	if commit == "" {
		if commit, err = store.Resolve(ctx, r, from); err != nil {
			return err
		}
	}
	s.folder, s.hash, s.release, err = store.Tree(ctx, r, from, commit)
	s.commit = commit
	return err
}

// Ready reports whether the code is here, or will not come.
func (s *Source) Ready() bool {
	if s == nil {
		return true
	}
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Record records which commit it is, once that is known.
func (s *Source) Record(r *runs.Run, step *runs.Step) {
	if s != nil && s.Ready() && r.Commit == "" {
		r.Commit, step.Commit = s.commit, s.commit
	}
}

// NameIn adds the code that a node sees to what it is computed from.
func (s *Source) NameIn(p cachekey.Parts, n *graph.Node) error {
	if s == nil || !n.UsesSource() {
		return nil
	}
	p["source"] = s.hash
	return s.err
}

// sourceFolder is where the code is among the inputs of a task. No port is called
// that.
const sourceFolder = ".source"

// AddTo brings the code to a task of a node that uses it, and returns where its
// command finds it.
func (s *Source) AddTo(spec *executor.Spec, n *graph.Node, inputs string) string {
	if s == nil || !n.UsesSource() {
		return ""
	}
	spec.Inputs = append(spec.Inputs, executor.Input{Path: sourceFolder, Folder: s.folder})
	return path.Join(inputs, sourceFolder)
}

// Close lets go of the code. What tasks were given stays.
func (s *Source) Close() {
	if s != nil && s.Ready() && s.release != nil {
		s.release()
	}
}
