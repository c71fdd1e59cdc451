package files_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// bucket takes uploads by itself, as S3 does, and counts what it is asked.
type bucket struct {
	objects.Kept
	before func(ctx context.Context, method, key string) error // what an answer waits for, if anything

	mu      sync.Mutex
	staged  map[string]bool
	listed  int // calls of Staged
	arrived map[string]int
	busy    int
	most    int // of Arrived at the same time
}

func (b *bucket) send(key, text string) error {
	b.mu.Lock()
	b.staged[key] = true
	b.mu.Unlock()
	_, err := b.Put(context.Background(), key, "text/plain", strings.NewReader(text), int64(len(text)))
	return err
}

func (b *bucket) wait(ctx context.Context, method, key string) error {
	if b.before == nil {
		return nil
	}
	return b.before(ctx, method, key)
}

func (b *bucket) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := b.wait(ctx, "Open", key); err != nil {
		return nil, err
	}
	return b.Kept.Open(ctx, key, offset, length)
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	if err := b.wait(ctx, "Delete", key); err != nil {
		return err
	}
	return b.Kept.Delete(ctx, key)
}

func (b *bucket) Staged(ctx context.Context, prefix, after string, limit int) (keys []string, err error) {
	if err := b.wait(ctx, "Staged", ""); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed++
	for _, key := range slices.Sorted(maps.Keys(b.staged)) {
		if strings.HasPrefix(key, prefix) && key > after && len(keys) < limit {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func (b *bucket) Arrived(ctx context.Context, key string) (files.Blob, error) {
	b.mu.Lock()
	b.arrived[key]++
	b.busy++
	b.most = max(b.most, b.busy)
	b.mu.Unlock()
	late := b.wait(ctx, "Arrived", key)
	blob, err := b.Stat(ctx, key)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy--
	if late != nil {
		return files.Blob{}, late
	}
	if !b.staged[key] && err == nil {
		return blob, err
	}
	if !b.staged[key] {
		return files.Blob{}, fault.NotFound("nothing has arrived")
	}
	delete(b.staged, key)
	return blob, err
}

func (b *bucket) calls() (listed, arrived int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.arrived {
		arrived += n
	}
	listed = b.listed
	b.listed, b.arrived = 0, map[string]int{}
	return listed, arrived
}

// bucketRoom is the room on a bucket, with a team.
type bucketRoom struct {
	*files.Service
	t      *testing.T
	db     *store.DB
	bucket *bucket
	owner  access.Caller
}

func newBucketRoom(t *testing.T, url string) *bucketRoom {
	t.Helper()
	db, clock := storetest.Open(t, url), storetest.NewClock()
	keeper, err := disk.Open(t.Context(), t.TempDir(), disk.NewSigner([]byte("key")), clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keeper.Close() })
	b := &bucket{Kept: objects.Kept{Store: keeper, Presigner: keeper}, staged: map[string]bool{}, arrived: map[string]int{}}
	room := files.NewService(db.FileStores(), files.Bytes{Presigner: b, Objects: b, Sweep: b}, credits.DefaultCatalog(), clock.Now)
	return &bucketRoom{room, t, db, b, storetest.Owner(t, db, "ada")}
}

// presign allows so many uploads of four bytes.
func (r *bucketRoom) presign(n int) (keys []string) {
	r.t.Helper()
	for i := range n {
		p, err := r.Presign(r.t.Context(), r.owner, files.Presign{Name: fmt.Sprintf("f%d.txt", i), ContentType: "text/plain", Size: 4, Base: "http://a"})
		if err != nil {
			r.t.Fatal(err)
		}
		keys = append(keys, p.Key)
	}
	return keys
}

func (r *bucketRoom) send(keys ...string) {
	r.t.Helper()
	for _, key := range keys {
		if err := r.bucket.send(key, "text"); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *bucketRoom) list() (keys []string) {
	r.t.Helper()
	list, _, err := r.Files(r.t.Context(), r.owner, files.Filter{}, files.Place{}, 2000, "http://a")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range list {
		keys = append(keys, f.Key)
	}
	return keys
}

// With 2,000 uploads open, a request asks the object store about what it needs, and
// upkeep does the rest.
func TestRequestsSettleOnlyWhatTheyNeed(t *testing.T) {
	t.Parallel()
	room, ctx := newBucketRoom(t, storetest.SQLite(t)), t.Context()
	b, owner := room.bucket, room.owner
	keys := room.presign(2000)
	if n := len(room.list()); n != 0 {
		t.Errorf("%d files are listed before any arrives", n)
	}
	if listed, arrived := b.calls(); listed > 1 || arrived > 0 {
		t.Errorf("%d lists and %d questions for nothing", listed, arrived)
	}
	room.send(keys[1000:1003]...)
	if n := len(room.list()); n != 3 {
		t.Errorf("%d of 3 files are listed", n)
	}
	if listed, arrived := b.calls(); listed > 1 || arrived != 3 {
		t.Errorf("%d lists and %d questions for 3 files", listed, arrived)
	}
	room.send(keys[:1000]...)
	room.send(keys[1003:]...)
	wanted := append(slices.Clone(keys[:5]), keys[990:1003]...)
	if err := room.SettleKeys(ctx, owner.Team, wanted); err != nil { // the inputs of a run
		t.Fatal(err)
	}
	if listed, arrived := b.calls(); listed > 0 || arrived != 15 {
		t.Errorf("%d lists and %d questions for 15 files", listed, arrived)
	}
	if missing, err := room.db.MissingFiles(ctx, owner.Team, wanted); err != nil || len(missing) > 0 {
		t.Errorf("%d are missing, %v", len(missing), err)
	}
	if err := room.Delete(ctx, owner, files.FromUpload, keys[1999]); err != nil {
		t.Fatal(err)
	}
	if listed, arrived := b.calls(); listed > 0 || arrived != 1 {
		t.Errorf("%d lists and %d questions for one file", listed, arrived)
	}
	newest := slices.Clone(keys[1999-48 : 1999])
	slices.Reverse(newest)
	if got := room.list(); len(got) != 18+48 || !slices.Equal(got[:48], newest) {
		t.Errorf("%d files are listed, and they do not begin with the newest 48", len(got))
	}
	if listed, arrived := b.calls(); listed > 1 || arrived != 48 {
		t.Errorf("%d lists and %d questions for a list", listed, arrived)
	}
	done := 0
	for after, more := "", true; more; {
		r, next, err := room.Cleaner(room.db.FileStores()).SettleArrived(ctx, after)
		if err != nil || r.Skipped > 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		done, after, more = done+r.Done, next, r.More
	}
	if n := len(room.list()); n != 1999 || done == 0 {
		t.Errorf("%d files are listed, after upkeep has settled %d", n, done)
	}
	if b.most > 16 {
		t.Errorf("%d questions at the same time", b.most)
	}
}

// An object store that answers only when several questions are open at the same time is
// asked several at the same time.
func TestUploadsAreSettledInParallel(t *testing.T) {
	for name, settle := range map[string]func(ctx context.Context, r *bucketRoom, keys []string) error{
		"for a list": func(_ context.Context, r *bucketRoom, _ []string) error { r.list(); return nil },
		"for a run": func(ctx context.Context, r *bucketRoom, keys []string) error {
			return r.SettleKeys(ctx, r.owner.Team, keys)
		},
		"by upkeep": func(ctx context.Context, r *bucketRoom, _ []string) error {
			_, _, err := r.Cleaner(r.db.FileStores()).SettleArrived(ctx, "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.SQLite(t)
			synctest.Test(t, func(t *testing.T) {
				room := newBucketRoom(t, url)
				const atOnce = 16
				keys := room.presign(atOnce)
				room.send(keys...)
				var waiting atomic.Int32
				all := make(chan struct{})
				room.bucket.before = func(ctx context.Context, method, _ string) error {
					if method == "Arrived" && waiting.Add(1) == atOnce {
						close(all)
					}
					if method == "Arrived" {
						select {
						case <-all:
						case <-ctx.Done():
						}
					}
					return ctx.Err()
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := settle(ctx, room, keys); err != nil {
					t.Error(err)
				}
				if missing, err := room.db.MissingFiles(t.Context(), room.owner.Team, keys); err != nil || len(missing) > 0 {
					t.Errorf("%d of %d are not settled, %v", len(missing), atOnce, err)
				}
			})
		})
	}
}

// While the object store hangs, the list has what is known.
func TestAHangingBucketDoesNotHoldUpTheList(t *testing.T) {
	for _, hangs := range []string{"Staged", "Arrived"} {
		t.Run(hangs, func(t *testing.T) {
			t.Parallel()
			url := storetest.SQLite(t)
			synctest.Test(t, func(t *testing.T) {
				room := newBucketRoom(t, url)
				keys := room.presign(60)
				room.send(keys...)
				if err := room.SettleKeys(t.Context(), room.owner.Team, keys[:1]); err != nil {
					t.Fatal(err)
				}
				room.bucket.before = func(ctx context.Context, method, _ string) error {
					if method == hangs {
						<-ctx.Done()
					}
					return ctx.Err()
				}
				began := time.Now()
				if got := room.list(); !slices.Equal(got, keys[:1]) {
					t.Errorf("%d files are listed", len(got))
				}
				if took := time.Since(began); took > 10*time.Second { // by the clock of the test
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// A file whose bytes stop coming is left out, and the next one is hashed.
func TestAFileThatStopsComingIsNotHashed(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		room := newBucketRoom(t, url)
		keys := room.presign(3)
		room.send(keys...)
		if err := room.SettleKeys(t.Context(), room.owner.Team, keys); err != nil {
			t.Fatal(err)
		}
		room.bucket.before = func(ctx context.Context, method, key string) error {
			if method == "Open" && key == keys[1] {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		r, _, err := room.Cleaner(room.db.FileStores()).Hash(t.Context(), "")
		if err != nil || r.Done != 2 || r.Skipped != 1 || r.Why == nil {
			t.Errorf("%+v, %v", r, err)
		}
		if left, err := room.db.Unhashed(t.Context(), "", 10); err != nil || !slices.Equal(left, keys[1:2]) {
			t.Errorf("%v are left, %v", left, err)
		}
	})
}
