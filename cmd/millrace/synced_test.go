package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/store/storetest"
)

// silentBucket takes uploads without telling anybody, as a bucket does.
type silentBucket struct {
	objects.Kept
	mu     sync.Mutex
	asked  []string
	broken error
}

func (b *silentBucket) Arrived(ctx context.Context, key string) (files.Blob, error) {
	b.mu.Lock()
	b.asked = append(b.asked, key)
	b.mu.Unlock()
	if b.broken != nil {
		return files.Blob{}, b.broken
	}
	return b.Kept.Arrived(ctx, key)
}

// The inputs of a run may be uploads that have arrived and that nobody has listed: of
// them, and of no others, the object store is asked.
func TestMissingFilesSettlesUploadsThatHaveArrived(t *testing.T) {
	t.Parallel()
	ctx, db, clock := t.Context(), storetest.Open(t, storetest.SQLite(t)), storetest.NewClock()
	keeper, err := disk.Open(ctx, t.TempDir(), disk.NewSigner([]byte("key")), clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keeper.Close() })
	bucket := &silentBucket{Kept: objects.Kept{Store: keeper, Presigner: keeper}}
	room := files.NewService(db.FileStores(), files.Bytes{Presigner: bucket, Objects: bucket, Sweep: bucket}, credits.DefaultCatalog(), clock.Now)
	s := syncedStore{db, nil, room}
	ada, eve := storetest.Owner(t, db, "ada"), storetest.Owner(t, db, "eve")
	presign := func(as access.Caller, name string, send bool) string {
		t.Helper()
		p, err := room.Presign(ctx, as, files.Presign{Name: name, ContentType: "text/plain", Size: 4, Base: "http://a"})
		if err == nil && send {
			_, err = bucket.Put(ctx, p.Key, "text/plain", strings.NewReader("text"), 4)
		}
		if err != nil {
			t.Fatal(err)
		}
		return p.Key
	}
	first, second, idle := presign(ada, "first.txt", true), presign(ada, "second.txt", true), presign(ada, "idle.txt", true)
	pending, theirs := presign(ada, "pending.txt", false), presign(eve, "theirs.txt", true)
	want := func(wanted, missing, asked []string) {
		t.Helper()
		bucket.asked = nil
		got, err := s.MissingFiles(ctx, ada.Team, wanted)
		if err != nil || !slices.Equal(got, missing) {
			t.Errorf("missing are %v, want %v, %v", got, missing, err)
		}
		slices.Sort(bucket.asked)
		slices.Sort(asked)
		if !slices.Equal(bucket.asked, asked) {
			t.Errorf("the store is asked for %v, want %v", bucket.asked, asked)
		}
	}
	want([]string{first, pending, "unknown", theirs}, []string{pending, "unknown", theirs}, []string{first, pending})
	want([]string{first}, nil, nil)
	if missing, err := db.MissingFiles(ctx, ada.Team, []string{idle}); err != nil || len(missing) != 1 {
		t.Errorf("an upload that the run does not need is settled: %v, %v", missing, err)
	}
	bucket.broken = errors.New("the store is away")
	if missing, err := s.MissingFiles(ctx, ada.Team, []string{second}); !errors.Is(err, bucket.broken) {
		t.Errorf("%v, %v", missing, err)
	}
}
