package engine_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

const cached = `{"parameters":{"q":{"type":"integer","default":20}},
	"nodes":[{"id":"a","command":"$PARAM_q # dummy: output:a.txt=one","cache":true,"outputs":{"o":{"path":"a.txt"}}},
		{"id":"b","command":"# dummy: output:b.txt=two","cache":true,"scatter":{"over":"[1,2,3]"},"outputs":{"o":{"path":"b.txt"}}}],
	"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`

func TestWhatWasComputedBeforeIsUsedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.open("w1")
		first := s.submit(cached, `{"q":20}`)
		s.await(first, terminal)
		if n := s.node(first, "a"); n.Cached || n.CacheMiss != "it has not succeeded before" {
			t.Errorf("%+v", n)
		}
		again := s.submit(cached, `{"q":20}`)
		if r := s.await(again, terminal); r.Status != lifecycle.Completed {
			t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
		}
		if got := s.story(again); strings.Contains(got, "node.started") || strings.Count(got, "node.cached") != 2 {
			t.Error(got)
		}
		if a, b := s.node(again, "a"), s.node(again, "b"); !a.Cached || !b.Cached || b.ShardsDone != 3 {
			t.Errorf("%+v\n%+v", a, b)
		}
		s.sameOutputs(first, again)

		changed := s.submit(cached, `{"q":25}`)
		s.await(changed, terminal)
		if n := s.node(changed, "a"); n.Cached || n.CacheMiss != "`PARAM_q` was 20, is 25" {
			t.Errorf("%+v", n)
		}
		if n := s.node(changed, "b"); !n.Cached { // it was given the same file as before
			t.Errorf("%+v", n)
		}
	})
}

// node is what is known of a node of a run.
func (s *harness) node(id ids.Run, name string) runs.Node {
	s.t.Helper()
	list, err := s.db.NodesOf(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, n := range list {
		if n.ID == name {
			return n
		}
	}
	s.t.Fatalf("no node %s", name)
	return runs.Node{}
}

// sameOutputs fails unless the second run has rows of its own for the bytes of
// the first.
func (s *harness) sameOutputs(first, second ids.Run) {
	s.t.Helper()
	had, has := s.made(first), s.made(second)
	if len(had) != len(has) || len(had) == 0 {
		s.t.Fatalf("%d and %d outputs", len(had), len(has))
	}
	for i := range had {
		if had[i].Blob != has[i].Blob || had[i].Key == has[i].Key || had[i].SHA256 != has[i].SHA256 || had[i].Shard != has[i].Shard {
			s.t.Errorf("%+v\n%+v", had[i], has[i])
		}
	}
}

func (s *harness) made(id ids.Run) []runs.Output {
	s.t.Helper()
	list, err := s.db.OutputsOf(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

func TestDeletedOutputsAreComputedAgain(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	s.open("w1")
	first := s.submit(cached, `{}`)
	s.await(first, terminal)
	second := s.submit(cached, `{}`)
	s.await(second, terminal)
	bytes := s.made(first)[0]

	// The bytes of the first run stay while the second has rows for them.
	s.deleteFiles(first)
	third := s.submit(cached, `{}`)
	s.await(third, terminal)
	if n := s.node(third, "a"); !n.Cached {
		t.Errorf("%+v", n)
	}
	// An object that is not what it was is no result.
	if err := s.kept.Delete(t.Context(), bytes.Blob); err != nil {
		t.Fatal(err)
	}
	fourth := s.submit(cached, `{}`)
	if r := s.await(fourth, terminal); r.Status != lifecycle.Completed {
		t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
	}
	if n := s.node(fourth, "a"); n.Cached || n.CacheMiss != "its earlier outputs are missing or have changed" {
		t.Errorf("%+v", n)
	}
}

func (s *harness) deleteFiles(id ids.Run) {
	s.t.Helper()
	for _, o := range s.made(id) {
		if _, err := s.db.DeleteFile(s.t.Context(), s.team, o.Key); err != nil {
			s.t.Error(err)
		}
	}
}

// forgetful deletes what it has just found, as somebody else may.
type forgetful struct {
	*store.DB
	delete func()
}

func (f forgetful) Computed(ctx context.Context, team ids.Team, key string, of ids.Run) ([]runs.Output, bool, error) {
	list, found, err := f.DB.Computed(ctx, team, key, of)
	f.delete()
	return list, found, err
}

func TestFilesThatGoWhileTheyAreTakenAgainAreComputed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		stop := s.open("w1")
		first := s.submit(cached, `{}`)
		s.await(first, terminal)
		stop()
		s.archive = forgetful{s.db, func() { s.deleteFiles(first) }}
		s.open("w2")
		second := s.submit(cached, `{}`)
		if r := s.await(second, terminal); r.Status != lifecycle.Completed {
			t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
		}
		if a, b := s.node(second, "a"), s.node(second, "b"); a.Cached || a.State != lifecycle.NodeSucceeded || b.ShardsDone != 3 {
			t.Errorf("%+v\n%+v", a, b)
		}
		if n := len(s.made(second)); n != 4 {
			t.Errorf("%d outputs", n)
		}
	})
}

func TestARetryUsesWhatHasSucceeded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.open("w1")
		const definition = `{"nodes":[{"id":"a","command":"# dummy: output:a.txt=one","outputs":{"o":{"path":"a.txt"}}},{"id":"b","command":"# dummy: exit=1"}],
			"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`
		first := s.submit(definition, `{}`)
		if r := s.await(first, terminal); r.Status != lifecycle.Failed {
			t.Fatal(r.Status)
		}
		second := s.retry(definition, first)
		s.await(second, terminal)
		third := s.retry(definition, second)
		s.await(third, terminal)
		for _, id := range []ids.Run{second, third} {
			got := s.story(id)
			if strings.Contains(got, "node.started:a") || !strings.Contains(got, "node.cached:a") || !strings.Contains(got, "node.failed:b") {
				t.Error(got)
			}
		}
		if other := s.submit(definition, `{}`); !strings.Contains(s.storyOf(other), "node.started:a") {
			t.Error("a run that is no retry has not run a node without a cache")
		}
	})
}

// gated lets nobody read an object before the gate opens.
type gated struct {
	runs.Objects
	reached chan struct{} // holds one signal at most
	open    chan struct{}
}

func (g gated) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	select {
	case g.reached <- struct{}{}:
	default:
	}
	select {
	case <-g.open:
		return g.Objects.Open(ctx, key, offset, length)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Outputs whose marks have changed are hashed before they are reused. The run can be
// cancelled meanwhile.
func TestRetryReusesRestoredOutputs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		gate := gated{s.kept, make(chan struct{}, 1), make(chan struct{})}
		s.verified = gate
		s.open("w1")
		const definition = `{"nodes":[{"id":"a","command":"# dummy: output:a.txt=one","outputs":{"o":{"path":"a.txt"}}},
			{"id":"b","command":"# dummy: output:b.txt=two","scatter":{"over":"[1,2,3]"},"outputs":{"o":{"path":"b.txt"}}}]}`
		first := s.submit(definition, `{}`)
		s.await(first, terminal)
		for _, o := range s.made(first) {
			if err := s.db.RenewMark(t.Context(), o.Blob, o.SHA256, "of another disk"); err != nil {
				t.Fatal(err)
			}
		}
		second := s.retry(definition, first)
		<-gate.reached
		if _, err := s.db.CancelRun(t.Context(), s.team, second, runs.Starter{}, time.Now()); err != nil {
			t.Fatal(err)
		}
		s.wake()
		if r := s.await(second, terminal); r.Status != lifecycle.Cancelled || r.CreditsUsed != 0 {
			t.Fatalf("%s, %d", r.Status, r.CreditsUsed)
		}
		close(gate.open)
		third := s.retry(definition, first)
		if r := s.await(third, terminal); r.Status != lifecycle.Completed || r.CreditsUsed != 0 {
			t.Fatalf("%s, %d: %s", r.Status, r.CreditsUsed, r.ErrorMessage)
		}
		if got := s.story(third); strings.Contains(got, "node.started") || strings.Count(got, "node.cached") != 2 {
			t.Error(got)
		}
		s.sameOutputs(first, third)
	})
}

func (s *harness) storyOf(id ids.Run) string {
	s.await(id, terminal)
	return s.story(id)
}

var _ engine.Archive = forgetful{}
