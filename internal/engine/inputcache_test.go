package engine_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// stager looks at what is staged for a node.
type stager struct {
	*dummy.Driver
	node   string
	sealed bool

	mu    sync.Mutex
	found []os.FileInfo
	open  []*os.File // what was found, so that no later file takes its place
}

func (s *stager) Capabilities(ctx context.Context) (executor.Capabilities, error) {
	caps, err := s.Driver.Capabilities(ctx)
	caps.InputsReadOnly = s.sealed
	return caps, err
}

func (s *stager) Submit(ctx context.Context, p executor.Permit, spec executor.Spec) (executor.Handle, error) {
	if spec.Key.Node == s.node {
		file, err := os.Open(filepath.Join(spec.Places().Inputs, "in", "0", "o.txt"))
		if err != nil {
			return executor.Handle{}, err
		}
		info, err := file.Stat()
		if err != nil {
			return executor.Handle{}, err
		}
		s.mu.Lock()
		s.found, s.open = append(s.found, info), append(s.open, file)
		s.mu.Unlock()
	}
	return s.Driver.Submit(ctx, p, spec)
}

// afar is a store on another machine.
type afar struct {
	objects.Store
	stuck chan struct{} // nil: it is not; closed when somebody waits for it

	mu     sync.Mutex
	opened int
}

func (a *afar) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	a.mu.Lock()
	a.opened++
	a.mu.Unlock()
	if a.stuck != nil {
		return silent{ctx, sync.OnceFunc(func() { close(a.stuck) })}, nil
	}
	r, err := a.Store.Open(ctx, key, offset, length)
	return struct{ io.ReadCloser }{r}, err
}

// silent never says anything.
type silent struct {
	context.Context
	asked func()
}

func (s silent) Read([]byte) (int, error) {
	s.asked()
	<-s.Done()
	return 0, s.Err()
}

func (silent) Close() error { return nil }

// However many tasks read an input, there is one copy of it where none of them
// can change it; else each has its own.
func TestTasksShareWhatTheyCannotChange(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ sealed, afar bool }{
		"on this machine":                      {true, false},
		"from another machine":                 {true, true},
		"a copy for each":                      {false, false},
		"a copy for each from another machine": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, storetest.SQLite(t))
			far := &afar{Store: s.kept.Store}
			if s.remote = tt.afar; tt.afar {
				s.kept = objects.Kept{Store: far}
			}
			st := &stager{node: "each", sealed: tt.sealed}
			s.around = func(d *dummy.Driver) executor.Driver { st.Driver = d; return st }
			s.open("w1")
			id := s.submit(`{"nodes":[{"id":"ref","command":"# dummy: output:o.txt=genome","outputs":{"o":{"path":"o.txt"}}},
				{"id":"each","command":"true","scatter":{"over":"[1,2,3]"}}],
				"edges":[{"id":"e","source":"ref","sourceHandle":"o","target":"each","targetHandle":"in"}]}`, `{}`)
			if r := s.await(id, terminal); r.Status != lifecycle.Completed {
				t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
			}
			if len(st.found) != 3 {
				t.Fatalf("%d shards", len(st.found))
			}
			for _, info := range st.found[1:] {
				if os.SameFile(info, st.found[0]) != tt.sealed {
					t.Errorf("two tasks have the same file: %v", !tt.sealed)
				}
			}
			if info := st.found[0]; info.Size() != int64(len("genome")) || info.Mode().Perm()&0o444 != 0o444 {
				t.Errorf("%d bytes, %v", info.Size(), info.Mode())
			}
			if want := map[bool]int{true: 1, false: 3}[tt.sealed]; tt.afar && far.opened != want {
				t.Errorf("fetched %d times", far.opened)
			}
			s.cleared(string(id))
		})
	}
}

// cleared waits until nothing lies there for a run.
func (s *harness) cleared(run string) {
	s.t.Helper()
	cached := filepath.Join(s.dir, ".shelf", run)
	if !waittest.Until(func() bool { _, err := os.Stat(cached); return os.IsNotExist(err) }) {
		s.t.Fatalf("%s is still there", cached)
	}
}

// A worker that was killed could not clear up.
func TestInputsOfAKilledWorkerGo(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	left := filepath.Join(s.dir, ".shelf", "run_lost")
	for _, err := range []error{os.MkdirAll(left, 0o700), os.WriteFile(filepath.Join(left, "0"), []byte("genome"), fs.FileMode(0o644))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.open("w1")
	s.cleared("run_lost")
}

// A run can be cancelled while its inputs are on their way.
func TestNobodyWaitsForInputsThatAreNotWantedAnyMore(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	far := &afar{Store: s.kept.Store, stuck: make(chan struct{})}
	s.kept, s.remote = objects.Kept{Store: far}, true
	s.around = func(d *dummy.Driver) executor.Driver { return &stager{Driver: d, sealed: true} }
	s.open("w1")
	id := s.submit(`{"nodes":[{"id":"ref","command":"# dummy: output:o.txt=genome","outputs":{"o":{"path":"o.txt"}}},{"id":"next","command":"true"}],
		"edges":[{"id":"e","source":"ref","sourceHandle":"o","target":"next","targetHandle":"in"}]}`, `{}`)
	<-far.stuck
	if _, err := s.db.CancelRun(t.Context(), s.team, id, runs.Starter{Type: "user", ID: string(s.user), Name: "Ada"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if r := s.await(id, terminal); r.Status != lifecycle.Cancelled {
		t.Errorf("%s: %s", r.Status, r.ErrorMessage)
	}
	s.cleared(string(id))
}
