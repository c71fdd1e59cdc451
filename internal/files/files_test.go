package files_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
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

// bench is the room on a real database and a real folder, with a team.
type bench struct {
	*files.Service
	t       *testing.T
	db      *store.DB
	objects *troubled
	clock   *storetest.Clock
	owner   access.Caller
}

// troubled is an object store that fails when a test says so.
type troubled struct {
	objects.Kept
	stuck string   // the key that cannot be deleted
	past  []string // the keys of uploads that went past us
}

func (o *troubled) Staged(context.Context, string, string, int) ([]string, error) { return o.past, nil }

// sendPast puts bytes where a client's PUT straight to the object store does.
func (b *bench) sendPast(key, text string) {
	b.t.Helper()
	if _, err := b.objects.Put(b.t.Context(), key, "text/csv", strings.NewReader(text), int64(len(text))); err != nil {
		b.t.Fatal(err)
	}
	b.objects.past = append(b.objects.past, key)
}

func (o *troubled) Delete(ctx context.Context, key string) error {
	if key == o.stuck {
		return errors.New("it cannot be deleted")
	}
	return o.Kept.Delete(ctx, key)
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := storetest.NewClock()
		keeper, err := disk.Open(t.Context(), t.TempDir(), disk.NewSigner([]byte("key")), clock.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { keeper.Close() })
		o := &troubled{Kept: objects.Kept{Store: keeper, Presigner: keeper}}
		test(t, &bench{files.NewService(db.FileStores(), files.Bytes{Presigner: o, Objects: o, Sweep: o}, credits.DefaultCatalog(), clock.Now), t, db, o, clock, storetest.Owner(t, db, "ada")})
	})
}

func (b *bench) presign(as access.Caller, name string, size int64) (files.Presigned, error) {
	return b.Presign(b.t.Context(), as, files.Presign{Name: name, ContentType: "text/csv", Size: size, Base: "http://a"})
}

// upload brings a file.
func (b *bench) upload(as access.Caller, name, text string) string {
	b.t.Helper()
	p, err := b.presign(as, name, int64(len(text)))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.Receive(b.t.Context(), p.Key, strings.NewReader(text)); err != nil {
		b.t.Fatal(err)
	}
	return p.Key
}

func (b *bench) names(as access.Caller) (names []string) {
	b.t.Helper()
	list, _, err := b.Files(b.t.Context(), as, files.Filter{}, files.Place{}, 100, "http://a")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

// there reports whether bytes lie under a key.
func (b *bench) there(key string) bool {
	b.t.Helper()
	_, err := b.objects.Stat(b.t.Context(), key)
	if err != nil && !fault.Is(err, fault.KindNotFound) {
		b.t.Fatal(err)
	}
	return err == nil
}

func TestWhatMayNotBeUploadedIsRefusedBeforeAnyByteMoves(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for name, tt := range map[string]struct {
			in   files.Presign
			kind fault.Kind
		}{
			"nothing wrong":        {files.Presign{Name: "a.csv", ContentType: "text/csv", Size: 1}, ""},
			"a charset":            {files.Presign{Name: "a.csv", ContentType: "text/csv; charset=utf-8", Size: 1}, ""},
			"an empty file":        {files.Presign{Name: "a.csv", ContentType: "text/csv"}, ""},
			"no name":              {files.Presign{ContentType: "text/csv", Size: 1}, fault.KindInvalid},
			"a folder":             {files.Presign{Name: "../a.csv", ContentType: "text/csv", Size: 1}, fault.KindInvalid},
			"a folder of Windows":  {files.Presign{Name: `a\b.csv`, ContentType: "text/csv", Size: 1}, fault.KindInvalid},
			"dots":                 {files.Presign{Name: "..", ContentType: "text/csv", Size: 1}, fault.KindInvalid},
			"a NUL":                {files.Presign{Name: "a\x00.csv", ContentType: "text/csv", Size: 1}, fault.KindInvalid},
			"no UTF-8":             {files.Presign{Name: "a\xff.csv", ContentType: "text/csv", Size: 1}, fault.KindInvalid},
			"a blank at its end":   {files.Presign{Name: "a.csv ", ContentType: "text/csv", Size: 1}, fault.KindInvalid},
			"201 bytes":            {files.Presign{Name: strings.Repeat("a", 201), ContentType: "text/csv", Size: 1}, fault.KindInvalid},
			"no type":              {files.Presign{Name: "a.csv", Size: 1}, fault.KindInvalid},
			"half a type":          {files.Presign{Name: "a.csv", ContentType: "text", Size: 1}, fault.KindInvalid},
			"less than nothing":    {files.Presign{Name: "a.csv", ContentType: "text/csv", Size: -1}, fault.KindInvalid},
			"more than 5 GB":       {files.Presign{Name: "a.csv", ContentType: "text/csv", Size: 5*credits.GB + 1}, fault.KindTooLarge},
			"a program":            {files.Presign{Name: "a.EXE", ContentType: "text/csv", Size: 1}, fault.KindUnsupported},
			"one behind dots":      {files.Presign{Name: "a.sh...", ContentType: "text/csv", Size: 1}, fault.KindUnsupported},
			"a program of Java":    {files.Presign{Name: "a.tar.jar", ContentType: "text/csv", Size: 1}, fault.KindUnsupported},
			"a library":            {files.Presign{Name: "lib.so", ContentType: "text/csv", Size: 1}, fault.KindUnsupported},
			"a script of R":        {files.Presign{Name: "a.R", ContentType: "text/csv", Size: 1}, fault.KindUnsupported},
			"a type with more":     {files.Presign{Name: "a.txt", ContentType: "application/x-msdownload; charset=binary", Size: 1}, fault.KindUnsupported},
			"a second line":        {files.Presign{Name: "a.txt", ContentType: "text/plain\r\nX: y", Size: 1}, fault.KindInvalid},
			"a script by its type": {files.Presign{Name: "a.txt", ContentType: "Text/X-Python", Size: 1}, fault.KindUnsupported},
		} {
			_, err := b.Presign(t.Context(), b.owner, tt.in)
			storetest.Refused(t, name, err, tt.kind)
		}
		viewer := b.owner
		viewer.Role = access.Viewer
		_, err := b.presign(viewer, "a.csv", 1)
		storetest.Refused(t, "a viewer", err, fault.KindForbidden)
		b.RefuseWhile(func(context.Context) error { return fault.Unavailable("full") })
		_, err = b.presign(b.owner, "a.csv", 1)
		storetest.Refused(t, "a full disk", err, fault.KindUnavailable)
	})
}

func TestReservationsCountAgainstTheQuotaUntilTheyEnd(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		allowed := 0
		for range 8 { // the free plan keeps 5 GB
			wg.Go(func() {
				_, err := b.presign(b.owner, "a.csv", 2*credits.GB)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					allowed++
				} else if !fault.Is(err, fault.KindPayment) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if allowed != 2 {
			t.Errorf("%d uploads of 2 GB were allowed", allowed)
		}
		b.clock.Pass(time.Hour)
		r, next, err := b.Cleaner(b.db.FileStores()).EndUploads(t.Context(), "")
		if err != nil || r.Done != 2 || r.Skipped != 0 || r.More || next == "" {
			t.Errorf("%+v %q %v", r, next, err)
		}
		_, err = b.presign(b.owner, "a.csv", 5*credits.GB)
		storetest.Refused(t, "when they have ended", err, "")
		if err := b.db.SetPlan(t.Context(), b.owner.Team, credits.Pro, b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		_, err = b.presign(b.owner, "b.csv", 1)
		storetest.Refused(t, "where the plan keeps more", err, "")
	})
}

func TestBytesBecomeAFileWhenTheyAreWhole(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		p, err := b.presign(b.owner, "a.csv", 3)
		if err != nil {
			t.Fatal(err)
		}
		receive := func(body io.Reader) error { return b.Receive(t.Context(), p.Key, body) }
		storetest.Refused(t, "too few bytes", receive(strings.NewReader("ab")), fault.KindInvalid)
		storetest.Refused(t, "a sender who hangs up", receive(io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(errors.New("gone")))), fault.KindInvalid)
		if got := b.names(b.owner); got != nil || b.there(p.Key) {
			t.Errorf("half a file is listed: %v", got)
		}
		storetest.Refused(t, "all of it", receive(strings.NewReader("abc")), "")
		storetest.Refused(t, "all of it again", receive(strings.NewReader("xyz")), fault.KindConflict)
		if got := b.names(b.owner); fmt.Sprint(got) != "[a.csv]" {
			t.Errorf("%v", got)
		}
		content, err := b.Content(t.Context(), p.Key)
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		if text, err := io.ReadAll(content); err != nil || string(text) != "abc" {
			t.Errorf("%q %v", text, err)
		}
		late, err := b.presign(b.owner, "b.csv", 1)
		if err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(files.UploadLife)
		storetest.Refused(t, "when its time is over", b.Receive(t.Context(), late.Key, strings.NewReader("b")), fault.KindConflict)
		storetest.Refused(t, "nobody's", b.Receive(t.Context(), "teams/x/uploads/y/z", strings.NewReader("b")), fault.KindConflict)
	})
}

// slowly is a body of some megabytes that has a disk low from the middle on.
type slowly struct {
	left int
	low  func()
}

func (s *slowly) Read(p []byte) (int, error) {
	n := min(len(p), s.left)
	if s.left -= n; s.left < 8<<20 {
		s.low()
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// An upload under way ends when the disk is low, leaves nothing, and can be sent again.
func TestUploadUnderWayEndsWhenTheDiskIsLow(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		const size = 16 << 20
		var low bool
		b.RefuseWhile(func(context.Context) error {
			if low {
				return fault.Unavailable("the disk is nearly full").WithCode("disk_low")
			}
			return nil
		})
		refused := func(what string, err error) {
			t.Helper()
			if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != "disk_low" {
				t.Errorf("%s: %v", what, err)
			}
		}
		fills := func() (io.Reader, *slowly) {
			body := &slowly{left: size, low: func() { low = true }}
			return body, body
		}
		p, err := b.presign(b.owner, "a.bin", size)
		if err != nil {
			t.Fatal(err)
		}
		body, sent := fills()
		refused("an upload", b.Receive(t.Context(), p.Key, body))
		if sent.left == 0 || b.there(p.Key) {
			t.Errorf("%d bytes are not read, and it is there: %t", sent.left, b.there(p.Key))
		}
		low = false
		storetest.Refused(t, "again", b.Receive(t.Context(), p.Key, &slowly{left: size, low: func() {}}), "")

		u, _ := b.uploads()
		up, err := u.Begin(t.Context(), b.owner, files.Presign{Name: "b.bin", ContentType: "application/octet-stream", Size: size})
		if err != nil {
			t.Fatal(err)
		}
		body, sent = fills()
		_, err = u.Receive(t.Context(), up.Key, 1, body)
		refused("a part", err)
		if sent.left == 0 {
			t.Error("all of the part is read")
		}
	})
}

func TestAProgramIsRefusedByItsFirstBytes(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for _, head := range []string{"#!/bin/sh\n", "\x7fELF\x02", "MZ\x90", "\xef\xbb\xbf#!/x", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"} {
			p, err := b.presign(b.owner, "data.csv", int64(len(head)))
			if err != nil {
				t.Fatal(err)
			}
			storetest.Refused(t, head, b.Receive(t.Context(), p.Key, strings.NewReader(head)), fault.KindUnsupported)
			storetest.Refused(t, "again", b.Receive(t.Context(), p.Key, strings.NewReader("abcde"[:min(5, len(head))])), fault.KindConflict)
		}
		// One that went past us, straight to the object store.
		p, err := b.presign(b.owner, "data.csv", 5)
		if err != nil {
			t.Fatal(err)
		}
		b.sendPast(p.Key, "#!/ab")
		if got := b.names(b.owner); got != nil || b.there(p.Key) {
			t.Errorf("it is listed: %v", got)
		}
	})
}

func TestAnUploadPastUsIsFoundWhenItIsWhatWasAnnounced(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for name, text := range map[string]string{"good.csv": "12345", "longer.csv": "123456"} {
			p, err := b.presign(b.owner, name, 5)
			if err != nil {
				t.Fatal(err)
			}
			b.sendPast(p.Key, text)
		}
		if got := b.names(b.owner); fmt.Sprint(got) != "[good.csv]" {
			t.Errorf("%v", got)
		}
	})
}

// What somebody sent straight to the object store is not taken in when they have left
// the team meanwhile.
func TestAnUploadPastUsEndsWithMembership(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		member := storetest.Join(t, b.db, b.owner, "eve", access.Member)
		p, err := b.presign(member, "late.csv", 5)
		if err != nil {
			t.Fatal(err)
		}
		b.sendPast(p.Key, "12345")
		if err := b.db.RemoveMember(t.Context(), b.owner.Team, member.User, func(access.Role) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got := b.names(b.owner); got != nil || b.there(p.Key) {
			t.Errorf("it is listed: %v", got)
		}
		if open, err := b.db.ReservationsOf(t.Context(), []string{p.Key}); err != nil || len(open) > 0 {
			t.Errorf("%+v, %v", open, err)
		}
	})
}

func TestMembersDeleteWhatTheyBrought(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		member, viewer := storetest.Join(t, b.db, b.owner, "eve", access.Member), storetest.Join(t, b.db, b.owner, "bob", access.Viewer)
		mine, theirs := b.upload(member, "mine.csv", "m"), b.upload(b.owner, "theirs.csv", "t")
		del := func(as access.Caller, key string) error { return b.Delete(t.Context(), as, files.FromUpload, key) }
		storetest.Refused(t, "a viewer", del(viewer, mine), fault.KindForbidden)
		storetest.Refused(t, "a member another's", del(member, theirs), fault.KindForbidden)
		storetest.Refused(t, "another team", del(storetest.Owner(t, b.db, "mia"), mine), fault.KindNotFound)
		storetest.Refused(t, "of another kind", b.Delete(t.Context(), b.owner, files.FromRun, mine), fault.KindNotFound)
		storetest.Refused(t, "a member their own", del(member, mine), "")
		storetest.Refused(t, "again", del(member, mine), fault.KindNotFound)
		storetest.Refused(t, "an owner anybody's", del(b.owner, theirs), "")
		if b.there(mine) || b.there(theirs) {
			t.Error("the bytes stay")
		}
	})
}

// A backup copies bytes after rows: what is deleted meanwhile stays until the
// backup has ended.
func TestBytesStayWhileABackupIsMade(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		key := b.upload(b.owner, "a.csv", "a")
		if err := b.db.MarkBackup(t.Context(), "backup", b.clock.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		storetest.Refused(t, "deleting", b.Delete(t.Context(), b.owner, files.FromUpload, key), "")
		if !b.there(key) || b.names(b.owner) != nil {
			t.Error("the bytes are gone, or the file is still listed")
		}
		if err := b.db.UnmarkBackup(t.Context(), "backup"); err != nil {
			t.Fatal(err)
		}
		if r, _, err := b.Cleaner(b.db.FileStores()).DeletePending(t.Context(), ""); err != nil || r.Done != 1 || b.there(key) {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestWhatCannotBeDeletedStopsNothingElse(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		first, second := b.upload(b.owner, "a.csv", "a"), b.upload(b.owner, "b.csv", "b")
		b.objects.stuck = first
		if err := b.Delete(t.Context(), b.owner, files.FromUpload, first); err == nil {
			t.Error("nobody says that the bytes are still there")
		}
		storetest.Refused(t, "the other", b.Delete(t.Context(), b.owner, files.FromUpload, second), "")
		c := b.Cleaner(b.db.FileStores())
		if r, _, err := c.DeletePending(t.Context(), ""); err != nil || r.Done != 0 || r.Skipped != 1 || r.Why == nil {
			t.Errorf("%+v, %v", r, err)
		}
		b.objects.stuck = ""
		if r, _, err := c.DeletePending(t.Context(), ""); err != nil || r.Done != 1 || b.there(first) {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestBytesThatNobodyKnowsGoWhenTheyAreOld(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		known, orphan := b.upload(b.owner, "a.csv", "a"), "teams/"+string(b.owner.Team)+"/uploads/nobody/b.csv"
		if _, err := b.objects.Put(t.Context(), orphan, "text/csv", strings.NewReader("b"), 1); err != nil {
			t.Fatal(err)
		}
		sweep := func() {
			t.Helper()
			for after, more := "", true; more; {
				r, next, err := b.Cleaner(b.db.FileStores()).RemoveOrphans(t.Context(), after)
				if err != nil {
					t.Fatal(err)
				}
				after, more = next, r.More
			}
		}
		b.clock.Pass(time.Until(b.clock.Now())) // files on disk carry the real time
		sweep()
		if !b.there(orphan) {
			t.Error("what may still become a file is gone")
		}
		b.clock.Pass(49*time.Hour + time.Since(b.clock.Now()))
		sweep()
		if b.there(orphan) || !b.there(known) {
			t.Errorf("the orphan is there: %v, the file is there: %v", b.there(orphan), b.there(known))
		}
	})
}

func TestTheListPages(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for i := range 5 {
			b.upload(b.owner, fmt.Sprintf("%d.csv", i), "x")
		}
		var seen []string
		for after, more := (files.Place{}), true; more; more = after.ID != "" {
			var list []files.Listed
			var err error
			if list, after, err = b.Files(t.Context(), b.owner, files.Filter{}, after, 2, "http://a"); err != nil || len(list) == 0 {
				t.Fatal(list, err)
			}
			for _, f := range list {
				seen = append(seen, f.Name)
				if !strings.HasPrefix(f.URL, "http://a/") || !f.ExpiresAt.After(b.clock.Now()) {
					t.Errorf("%s until %s", f.URL, f.ExpiresAt)
				}
			}
		}
		if fmt.Sprint(seen) != "[4.csv 3.csv 2.csv 1.csv 0.csv]" {
			t.Errorf("%v", seen)
		}
		if got := b.names(storetest.Owner(t, b.db, "mia")); got != nil {
			t.Errorf("another team sees %v", got)
		}
	})
}
