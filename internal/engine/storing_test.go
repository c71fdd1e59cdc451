package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
)

// slowStore is an object store that takes a byte a second until it is released, or none.
type slowStore struct {
	engine.Objects
	released chan struct{}
	hangs    bool

	mu      sync.Mutex
	waiting int
	most    int // that waited at the same time
}

func (s *slowStore) Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (files.Blob, error) {
	s.count(1)
	defer s.count(-1)
	var taken bytes.Buffer
	for {
		select {
		case <-s.released:
			return s.Objects.Put(ctx, key, contentType, io.MultiReader(&taken, r), size)
		case <-ctx.Done():
			return files.Blob{}, ctx.Err()
		case <-time.After(time.Second):
		}
		if !s.hangs {
			if _, err := io.CopyN(&taken, r, 1); err != nil && !errors.Is(err, io.EOF) {
				return files.Blob{}, err
			}
		}
	}
}

func (s *slowStore) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += n
	s.most = max(s.most, s.waiting)
}

func (s *slowStore) counts() (waiting, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting, s.most
}

// onSlowStore tests an engine whose outputs are not stored until the test says so. Time
// in it is the test's own.
func onSlowStore(t *testing.T, test func(t *testing.T, s *harness, store *slowStore)) {
	t.Parallel()
	url := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s := newHarness(t, url)
		slow := &slowStore{released: make(chan struct{})}
		s.store = func(o engine.Objects) engine.Objects {
			slow.Objects = o
			return slow
		}
		s.shareCluster()
		s.join("here")
		test(t, s, slow)
	})
}

// items is a step with a number of items, each of which takes a second and makes a file
// of 5,000 bytes.
func items(over string) string {
	return `{"nodes":[{"id":"a","command":"# dummy: sleep=1s output:o=` + strings.Repeat("x", 5000) + `","scatter":{"over":"` + over + `"},"outputs":{"o":{"path":"o"}}}]}`
}

func (s *harness) cancel(id ids.Run) {
	s.t.Helper()
	by := runs.Starter{Type: "user", ID: string(s.user), Name: "Ada"}
	if _, err := s.db.CancelRun(s.t.Context(), s.team, id, by, time.Now()); err != nil {
		s.t.Fatal(err)
	}
}

func TestCancelDoesNotWaitForOutputs(t *testing.T) {
	onSlowStore(t, func(t *testing.T, s *harness, store *slowStore) {
		id := s.submit(items("[1]"), `{}`)
		time.Sleep(10 * time.Second)
		if waiting, _ := store.counts(); waiting != 1 {
			t.Fatalf("%d outputs are being stored", waiting)
		}
		s.cancel(id)
		time.Sleep(5 * time.Second) // the request is noticed within 2 s
		if r := s.await(id, func(runs.Run) bool { return true }); r.Status != lifecycle.Cancelled {
			t.Errorf("%s", r.Status)
		}
	})
}

func TestCancelKeepsOutputsThatAreStoredWhileTasksStop(t *testing.T) {
	onSlowStore(t, func(t *testing.T, s *harness, store *slowStore) {
		id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: sleep=1s output:o=1","outputs":{"o":{"path":"o"}}},{"id":"b","command":"# dummy: ignoreterm sleep=1h"}]}`, `{}`)
		time.Sleep(10 * time.Second)
		s.cancel(id)
		time.Sleep(3 * time.Second) // the second task is killed 5 s after it was asked to end
		close(store.released)
		if r := s.await(id, terminal); r.Status != lifecycle.Cancelled || len(s.outputs(id)) != 1 {
			t.Errorf("%s with %v", r.Status, s.outputs(id))
		}
	})
}

func TestItemsStartWhileOutputsAreStored(t *testing.T) {
	onSlowStore(t, func(t *testing.T, s *harness, store *slowStore) {
		id := s.submit(items("[1,2,3,4,5,6]"), `{}`)
		time.Sleep(time.Minute)
		if s.cluster.started() != 6 {
			t.Errorf("%d of 6 items have started", s.cluster.started())
		}
		close(store.released)
		r := s.await(id, terminal)
		if _, most := store.counts(); r.Status != lifecycle.Completed || len(s.outputs(id)) != 6 || most > 4 {
			t.Errorf("%s with %v; %d were stored at once: %s", r.Status, s.outputs(id), most, r.ErrorMessage)
		}
	})
}

// TestUnstoredOutputsAreBounded checks that a run does not fill the disk with outputs
// faster than they are stored.
func TestUnstoredOutputsAreBounded(t *testing.T) {
	onSlowStore(t, func(t *testing.T, s *harness, store *slowStore) {
		numbers := strings.Repeat("1,", 99) + "1"
		id := s.submit(items("["+numbers+"]"), `{}`)
		time.Sleep(2 * time.Minute)
		if n := s.cluster.started(); n > 20 {
			t.Errorf("%d items have started while nothing is stored", n)
		}
		close(store.released)
		if r := s.await(id, terminal); r.Status != lifecycle.Completed || s.cluster.started() != 100 {
			t.Errorf("%s after %d items: %s", r.Status, s.cluster.started(), r.ErrorMessage)
		}
	})
}

func TestHoldsAndLimitsApplyWhileOutputsAreStored(t *testing.T) {
	onSlowStore(t, func(t *testing.T, s *harness, store *slowStore) {
		id := s.submit(items("[1]"), `{}`)
		time.Sleep(10 * time.Minute)
		if held, err := s.db.HeldFor(t.Context(), string(id)); err != nil || held < 600*2800 {
			t.Errorf("%v is held after ten minutes, %v", held, err)
		}
		time.Sleep(time.Hour)
		if r := s.await(id, func(runs.Run) bool { return true }); r.Status != lifecycle.Interrupted || r.ErrorCode != lifecycle.PlanTimeLimit {
			t.Errorf("%s %s after an hour", r.Status, r.ErrorCode)
		}
	})
}

// TestStoreThatHangsIsNotBilled has a run wait ten minutes for a store that takes nothing.
func TestStoreThatHangsIsNotBilled(t *testing.T) {
	onSlowStore(t, func(t *testing.T, s *harness, store *slowStore) {
		store.hangs = true
		id := s.submit(items("[1,2]"), `{}`)
		time.Sleep(10 * time.Minute)
		close(store.released)
		if r := s.await(id, terminal); r.Status != lifecycle.Completed || r.Billed < time.Second || r.Billed > 5*time.Second {
			t.Errorf("%s, billed for %s", r.Status, r.Billed)
		}
	})
}

// slowInputs is an object store that gives a byte a second, or hangs for half a minute.
type slowInputs struct {
	engine.Objects
	hangs bool
}

func (o slowInputs) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := o.Objects.Open(ctx, key, offset, length)
	if err == nil && o.hangs {
		<-time.After(30 * time.Second)
		return r, nil
	}
	return slowReader{r}, err
}

type slowReader struct{ io.ReadCloser }

func (r slowReader) Read(p []byte) (int, error) {
	<-time.After(time.Second)
	return r.ReadCloser.Read(p[:1])
}

// TestStagingIsBilledWhileItMoves has the input of a task take half a minute.
func TestStagingIsBilledWhileItMoves(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hangs    bool
		from, to time.Duration
	}{"a byte a second": {false, 32 * time.Second, 35 * time.Second}, "a store that hangs": {true, 2 * time.Second, 5 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.SQLite(t)
			synctest.Test(t, func(t *testing.T) {
				s := newHarness(t, url)
				s.store = func(o engine.Objects) engine.Objects { return slowInputs{o, tt.hangs} }
				s.open("w")
				id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: sleep=1s output:o=`+strings.Repeat("x", 30)+`","outputs":{"o":{"path":"o"}}},{"id":"b","command":"# dummy: sleep=1s"}],
					"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`, `{}`)
				if r := s.await(id, terminal); r.Status != lifecycle.Completed || r.Billed < tt.from || r.Billed > tt.to {
					t.Errorf("%s, billed for %s, want %s to %s: %s", r.Status, r.Billed, tt.from, tt.to, r.ErrorMessage)
				}
			})
		})
	}
}
