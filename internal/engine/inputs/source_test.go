package inputs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/engine/cachekey"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/inputs"
	"github.com/millrace/millrace/internal/runs"
)

// repository is a store of one, which counts.
type repository struct {
	resolved, released int
	err                error
}

func (r *repository) Resolve(context.Context, runs.Run, source.Source) (string, error) {
	r.resolved++
	return "c1", r.err
}

func (r *repository) Tree(_ context.Context, _ runs.Run, _ source.Source, commit string) (string, string, func(), error) {
	return "/trees/" + commit, "hash of " + commit, func() { r.released++ }, nil
}

func definition(t *testing.T) *graph.Graph {
	t.Helper()
	g, problems := graph.Parse([]byte(`{"source":{"git":"https://h/x"},"nodes":[{"id":"a","command":"ls $SOURCE_DIR"},{"id":"b","command":"ls"}]}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return g
}

func atOnce(failed *error, work func(context.Context) error) chan struct{} {
	done := make(chan struct{})
	*failed = work(context.Background())
	close(done)
	return done
}

func TestTheCommitIsFoundOutOnce(t *testing.T) {
	t.Parallel()
	store, g := &repository{}, definition(t)
	run, step := runs.Run{}, runs.Step{}
	s := inputs.BeginSource(run, g, store, atOnce)
	s.Record(&run, &step)
	if run.Commit != "c1" || step.Commit != "c1" || step.Empty() {
		t.Errorf("recorded are %q and %q", run.Commit, step.Commit)
	}
	s.Close()
	run.Commit = "c0" // as another worker has recorded it
	again := inputs.BeginSource(run, g, store, atOnce)
	p := cachekey.Parts{}
	if err := again.NameIn(p, g.Nodes[0]); err != nil || p["source"] != "hash of c0" || store.resolved != 1 {
		t.Errorf("it is %v after %d questions: %v", p, store.resolved, err)
	}
	again.Close()
	if store.released != 2 {
		t.Errorf("%d of 2 were released", store.released)
	}
}

func TestOnlyWhoMentionsTheCodeSeesIt(t *testing.T) {
	t.Parallel()
	g := definition(t)
	s := inputs.BeginSource(runs.Run{}, g, &repository{}, atOnce)
	var spec executor.Spec
	if at := s.AddTo(&spec, g.Nodes[1], "/inputs"); at != "" || len(spec.Inputs) > 0 {
		t.Errorf("the other one finds it at %q", at)
	}
	if at := s.AddTo(&spec, g.Nodes[0], "/inputs"); at != "/inputs/.source" || spec.Inputs[0].Folder != "/trees/c1" {
		t.Errorf("it is at %q: %v", at, spec.Inputs)
	}
	p := cachekey.Parts{}
	if err := s.NameIn(p, g.Nodes[1]); err != nil || len(p) > 0 {
		t.Errorf("the other one is computed from %v: %v", p, err)
	}
}

func TestWhoIsToBlameIsSaid(t *testing.T) {
	t.Parallel()
	g := definition(t)
	theirs := fault.Invalid("there is no branch").WithCode(inputs.SourceUnavailable)
	ours := errors.New("no disk")
	for _, want := range []error{theirs, ours} {
		err := inputs.BeginSource(runs.Run{}, g, &repository{err: want}, atOnce).NameIn(cachekey.Parts{}, g.Nodes[0])
		if !errors.Is(err, want) || inputs.SourceIsUnavailable(err) != (want != ours) {
			t.Errorf("of %v it says %v", want, err)
		}
	}
	if err := inputs.BeginSource(runs.Run{}, g, nil, atOnce).NameIn(cachekey.Parts{}, g.Nodes[0]); !inputs.SourceIsUnavailable(err) {
		t.Errorf("without a store: %v", err)
	}
	plain, _ := graph.Parse([]byte(`{"nodes":[{"id":"a","command":"ls $SOURCE_DIR"}]}`))
	s := inputs.BeginSource(runs.Run{}, plain, &repository{}, atOnce)
	if !s.Ready() || s.NameIn(cachekey.Parts{}, plain.Nodes[0]) != nil {
		t.Error("a run without code waits for some")
	}
	s.Close()
}
