package files_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

type bundle struct {
	t    *testing.T
	db   *store.DB
	kept objects.Kept
	room *files.Service
	who  access.Caller
	now  time.Time
}

func setup(t *testing.T, db *store.DB) *bundle {
	t.Helper()
	b := &bundle{t: t, db: db, now: time.Now()}
	keeper, err := disk.Open(t.Context(), t.TempDir(), disk.NewSigner([]byte("a key of tests that is long enough")), func() time.Time { return b.now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keeper.Close() })
	b.kept = objects.Kept{Store: keeper, Presigner: keeper}
	b.room = files.NewService(db.FileStores(), b.kept.Bytes(), credits.DefaultCatalog(), func() time.Time { return b.now })
	a := builtin.NewAccount{
		Account: builtin.Account{User: identity.User{ID: ids.NewUser(), Email: "ada@example.org"}},
		Team:    identity.Team{ID: ids.NewTeam(), Plan: string(credits.Free)}, CreatedAt: b.now,
	}
	if err := db.SignUp(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	b.who = access.Caller{User: a.ID, Team: a.Team.ID, Role: access.Owner}
	return b
}

// arrived is a file that a client sent straight to the object store; without
// text its bytes are not there.
func (b *bundle) arrived(name, text string) string {
	b.t.Helper()
	p, err := b.room.Presign(b.t.Context(), b.who, files.Presign{Name: name, ContentType: "text/plain", Size: 4})
	if err != nil {
		b.t.Fatal(err)
	}
	blob := files.Blob{Key: p.Key, Size: 4, Mark: "m"}
	if text != "" {
		if _, err := b.kept.Put(b.t.Context(), p.Key, "text/plain", strings.NewReader(text), 4); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := b.db.Keep(b.t.Context(), p.Key, blob, b.now); err != nil {
		b.t.Fatal(err)
	}
	return p.Key
}

func TestAFileThatCannotBeReadStopsNoOther(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := setup(t, db)
		for i := range 30 { // more than a batch
			text := "text"
			if i%10 == 0 {
				text = ""
			}
			b.arrived(fmt.Sprint(i), text)
		}
		var done, skipped int
		for after, more := "", true; more; {
			r, next, err := b.room.Cleaner(db.FileStores()).Hash(t.Context(), after)
			if err != nil {
				t.Fatal(err)
			}
			done, skipped, after, more = done+r.Done, skipped+r.Skipped, next, r.More
		}
		if left, err := db.Unhashed(t.Context(), "", 100); done != 27 || skipped != 3 || len(left) != 3 || err != nil {
			t.Errorf("%d done, %d skipped, %d left, %v", done, skipped, len(left), err)
		}
	})
}

func TestNoObjectIsDeletedWhileABackupIsMade(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b, ctx := setup(t, db), t.Context()
		key, other := b.arrived("a", "text"), b.arrived("b", "text")
		if err := db.MarkBackup(ctx, "one", b.now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := b.room.Delete(ctx, b.who, files.FromUpload, key); err != nil {
			t.Fatal(err)
		}
		if _, err := b.kept.Stat(ctx, key); err != nil {
			t.Errorf("its bytes are gone: %v", err)
		}
		if err := db.UnmarkBackup(ctx, "one"); err != nil {
			t.Fatal(err)
		}
		if err := b.room.Delete(ctx, b.who, files.FromUpload, other); err != nil {
			t.Fatal(err)
		}
		if r, _, err := b.room.Cleaner(db.FileStores()).DeletePending(ctx, ""); r.Done != 1 || err != nil {
			t.Errorf("%+v, %v", r, err) // the other was deleted with its row
		}
		if left, err := b.kept.List(ctx, "teams/", "", 10); len(left) != 0 || err != nil {
			t.Errorf("%v, %v", left, err)
		}
	})
}

// What somebody deletes leaves the object store at once, however many outputs a run had.
// A backup that begins meanwhile keeps the rest, and so does a store that hangs.
func TestDeletedBytesLeaveAtOnce(t *testing.T) {
	const outputs = 1200 // several batches
	for name, tt := range map[string]struct {
		hangs, backup bool
		atMost        int
		all           bool
	}{
		"a store that answers": {atMost: outputs, all: true},
		"a backup":             {backup: true, atMost: 500},
		"a store that hangs":   {hangs: true, atMost: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.SQLite(t)
			synctest.Test(t, func(t *testing.T) {
				room := newBucketRoom(t, url)
				var keys []string
				for i := range outputs {
					keys = append(keys, fmt.Sprintf("teams/a/runs/r/%d", i))
				}
				var asked, deleted atomic.Int32
				room.bucket.before = func(ctx context.Context, _, _ string) error {
					n := asked.Add(1)
					if tt.backup && n == 1 {
						if err := room.db.MarkBackup(ctx, "one", storetest.NewClock().Now().Add(time.Hour)); err != nil {
							return err
						}
					}
					if tt.hangs && n > 10 {
						<-ctx.Done()
					}
					if ctx.Err() == nil {
						deleted.Add(1)
					}
					return ctx.Err()
				}
				if err := room.DeleteNow(t.Context(), keys); err != nil {
					t.Error(err)
				}
				if n := int(deleted.Load()); n > tt.atMost || n == 0 || tt.all && n != outputs {
					t.Errorf("%d of %d are deleted", n, outputs)
				}
			})
		})
	}
}
