package files_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/store/storetest"
)

const leastPart = 32 << 20

// parts is a real keeper of parts, between whose steps a test can do something.
type parts struct {
	files.PartObjects
	joined func() error // after parts became an object
	began  func() error // after room was made
}

func (p *parts) JoinParts(ctx context.Context, key, storageID string, list []files.Part) (files.Blob, error) {
	b, err := p.PartObjects.JoinParts(ctx, key, storageID, list)
	if then := p.joined; err == nil && then != nil {
		p.joined = nil
		err = then()
	}
	return b, err
}

func (p *parts) BeginParts(ctx context.Context, key, contentType string) (string, error) {
	id, err := p.PartObjects.BeginParts(ctx, key, contentType)
	if then := p.began; err == nil && then != nil {
		p.began = nil
		err = then()
	}
	return id, err
}

// uploads is the part of the room that takes large files.
func (b *bench) uploads() (*files.Uploads, *parts) {
	b.t.Helper()
	keeper, ok := b.objects.Store.(files.PartObjects)
	if !ok {
		b.t.Fatal("the store takes no parts")
	}
	p := &parts{PartObjects: keeper}
	return files.NewUploads(b.db, p, b.Service), p
}

// begin begins an upload of a text and sends it as its only part.
func (b *bench) begin(u *files.Uploads, text string) files.LargeUpload {
	b.t.Helper()
	up, err := u.Begin(b.t.Context(), b.owner, files.Presign{Name: "a.csv", ContentType: "text/csv", Size: int64(len(text)), Base: "http://a"})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := u.Receive(b.t.Context(), up.Key, 1, strings.NewReader(text)); err != nil {
		b.t.Fatal(err)
	}
	return up
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// stored is how many bytes the team's files and uploads count.
func (b *bench) stored() int64 {
	b.t.Helper()
	balance, err := b.db.Balance(b.t.Context(), b.owner.Team, b.clock.Now())
	if err != nil {
		b.t.Fatal(err)
	}
	return balance.Stored
}

func TestPartsAreAsFewAsMayBeAndNotTooMany(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		if err := b.db.SetPlan(t.Context(), b.owner.Team, "pro", b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		u, _ := b.uploads()
		for size, want := range map[int64]struct {
			part  int64
			count int
			last  int64
		}{
			1:                           {leastPart, 1, 1},
			leastPart:                   {leastPart, 1, leastPart},
			leastPart + 1:               {leastPart, 2, 1},
			10_000 * leastPart:          {leastPart, 10_000, leastPart},
			10_000*leastPart + 1:        {leastPart + 1<<20, 9697, 10_000*leastPart + 1 - 9696*(leastPart+1<<20)},
			5 << 40:                     {525 << 20, 9987, 5<<40 - 9986*(525<<20)},
			10_000 * (leastPart + 1000): {leastPart + 1<<20, 9698, 10_000*(leastPart+1000) - 9697*(leastPart+1<<20)},
		} {
			got, err := u.Begin(t.Context(), b.owner, files.Presign{Name: "a.csv", ContentType: "text/csv", Size: size})
			if err != nil {
				t.Fatal(err)
			}
			if got.PartSize != want.part || got.PartCount() != want.count || got.PartLength(got.PartCount()) != want.last || got.PartCount() > 10_000 {
				t.Errorf("%d bytes: %d parts of %d, the last of %d", size, got.PartCount(), got.PartSize, got.PartLength(got.PartCount()))
			}
			if err := u.Abort(t.Context(), b.owner, got.ID); err != nil {
				t.Fatal(err)
			}
		}
		if n := b.stored(); n != 0 {
			t.Errorf("%d bytes count", n)
		}
	})
}

// What a server that died left half done is done by who asks again.
func TestAnUploadOutlivesTheServerThatTakesIt(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		u, p := b.uploads()
		died := errors.New("the server died")
		p.joined = func() error { return died }
		up := b.begin(u, "some data")
		if _, err := u.Complete(t.Context(), b.owner, up.ID, files.Finish{}); !errors.Is(err, died) {
			t.Fatal(err)
		}
		for range 2 {
			f, err := u.Complete(t.Context(), b.owner, up.ID, files.Finish{SHA256: strings.ToUpper(sum("some data"))})
			if err != nil || f.Key != up.Key || f.Size != 9 || f.SHA256 != sum("some data") {
				t.Errorf("%+v, %v", f, err)
			}
		}
		if n := b.stored(); n != 9 {
			t.Errorf("%d bytes count", n)
		}
		// One whose server died before the object store knew of it goes on, too.
		p.began = func() error { return died }
		if _, err := u.Begin(t.Context(), b.owner, files.Presign{Name: "b.csv", ContentType: "text/csv", Size: 4}); !errors.Is(err, died) {
			t.Fatal(err)
		}
		stale, err := b.db.StaleUploads(t.Context(), b.clock.Now(), "", 10)
		if err != nil || len(stale) != 2 {
			t.Fatalf("%+v, %v", stale, err)
		}
		for _, s := range stale {
			if s.Name != "b.csv" {
				continue
			}
			if got, arrived, err := u.Upload(t.Context(), b.owner, s.ID); err != nil || got.StorageID == "" || len(arrived) != 0 {
				t.Errorf("%+v, %v, %v", got, arrived, err)
			}
		}
	})
}

// Somebody completes the same upload while another's check fails: the file that
// one of them has made stays whole.
func TestAFailedCheckTakesNoFileAway(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		u, p := b.uploads()
		up := b.begin(u, "some data")
		p.joined = func() error {
			_, err := u.Complete(t.Context(), b.owner, up.ID, files.Finish{SHA256: sum("some data")})
			return err
		}
		_, err := u.Complete(t.Context(), b.owner, up.ID, files.Finish{SHA256: sum("other data")})
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != "sha256_mismatch" {
			t.Fatal(err)
		}
		if names := b.names(b.owner); len(names) != 1 || !b.there(up.Key) || b.stored() != 9 {
			t.Errorf("the list has %v, its bytes are there: %v, %d bytes count", names, b.there(up.Key), b.stored())
		}
		// Alone, a failed check leaves nothing.
		up = b.begin(u, "more data")
		if _, err := u.Complete(t.Context(), b.owner, up.ID, files.Finish{SHA256: sum("other data")}); err == nil {
			t.Error("it was kept")
		}
		if b.there(up.Key) || b.stored() != 9 {
			t.Errorf("its bytes are there: %v, %d bytes count", b.there(up.Key), b.stored())
		}
	})
}

// Whoever calls an upload off while it is completed leaves no bytes behind.
func TestAnUploadThatIsCalledOffMeanwhileIsNoFile(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		u, p := b.uploads()
		up := b.begin(u, "some data")
		p.joined = func() error { return u.Abort(t.Context(), b.owner, up.ID) }
		_, err := u.Complete(t.Context(), b.owner, up.ID, files.Finish{})
		storetest.Refused(t, "completing it", err, fault.KindNotFound)
		if names := b.names(b.owner); len(names) != 0 || b.there(up.Key) || b.stored() != 0 {
			t.Errorf("the list has %v, its bytes are there: %v, %d bytes count", names, b.there(up.Key), b.stored())
		}
		_, err = u.Receive(t.Context(), up.Key, 1, strings.NewReader("some data"))
		storetest.Refused(t, "a part that comes late", err, fault.KindNotFound)
	})
}

func TestWhatIsSaidOfPartsMustBeSo(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		u, _ := b.uploads()
		up := b.begin(u, "some data")
		ctx := t.Context()
		_, arrived, err := u.Upload(ctx, b.owner, up.ID)
		if err != nil || len(arrived) != 1 || arrived[0].Size != 9 {
			t.Fatalf("%+v, %v", arrived, err)
		}
		etag := arrived[0].ETag
		for name, tt := range map[string]struct {
			in   files.Finish
			kind fault.Kind
		}{
			"another part":     {files.Finish{Parts: []files.Part{{Number: 2, ETag: etag}}}, fault.KindInvalid},
			"part nought":      {files.Finish{Parts: []files.Part{{Number: 0, ETag: etag}}}, fault.KindInvalid},
			"a part twice":     {files.Finish{Parts: []files.Part{{Number: 1, ETag: etag}, {Number: 1, ETag: etag}}}, fault.KindInvalid},
			"another content":  {files.Finish{Parts: []files.Part{{Number: 1, ETag: "x"}}}, fault.KindConflict},
			"a short hash":     {files.Finish{SHA256: "abc"}, fault.KindInvalid},
			"a hash of others": {files.Finish{SHA256: strings.Repeat("g", 64)}, fault.KindInvalid},
		} {
			_, err := u.Complete(ctx, b.owner, up.ID, tt.in)
			storetest.Refused(t, name, err, tt.kind)
		}
		for name, numbers := range map[string][]int{"none": nil, "nought": {0}, "below": {-1}, "beyond": {1, 2}, "too many": make([]int, files.MaxPartsAtOnce+1)} {
			_, err := u.Parts(ctx, b.owner, up.ID, numbers, "http://a")
			storetest.Refused(t, name, err, fault.KindInvalid)
		}
		signed, err := u.Parts(ctx, b.owner, up.ID, []int{1}, "http://a")
		if err != nil || len(signed) != 1 || signed[0].Size != 9 || !strings.HasPrefix(signed[0].URL, "http://a/") {
			t.Errorf("%+v, %v", signed, err)
		}
		// A part may be sent again, and one that breaks off is said so.
		_, err = u.Receive(ctx, up.Key, 1, iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("some data"))))
		storetest.Refused(t, "a part that breaks off", err, fault.KindInvalid)
		again, err := u.Receive(ctx, up.Key, 1, strings.NewReader("SOME DATA"))
		if err != nil || again == etag {
			t.Errorf("%s, %v", again, err)
		}
		f, err := u.Complete(ctx, b.owner, up.ID, files.Finish{Parts: []files.Part{{Number: 1, ETag: `"` + again + `"`}}, SHA256: sum("SOME DATA")})
		if err != nil || f.Size != 9 {
			t.Errorf("%+v, %v", f, err)
		}
		_, err = u.Parts(ctx, b.owner, up.ID, []int{1}, "http://a")
		storetest.Refused(t, "a part of a file", err, fault.KindConflict)
		_, _, err = u.Upload(ctx, b.owner, up.ID)
		storetest.Refused(t, "the parts of a file", err, fault.KindConflict)
	})
}

func TestUploadsAreTheirTeams(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		u, _ := b.uploads()
		up := b.begin(u, "some data")
		ctx := t.Context()
		eve := storetest.Owner(t, b.db, "eve")
		viewer, member := b.owner, storetest.Join(t, b.db, b.owner, "bob", access.Member)
		viewer.Role = access.Viewer
		for name, tt := range map[string]struct {
			as   access.Caller
			kind fault.Kind
		}{"another team": {eve, fault.KindNotFound}, "a viewer": {viewer, fault.KindForbidden}} {
			storetest.Refused(t, name+" knows it", u.Known(ctx, tt.as, up.ID), tt.kind)
			_, err := u.Parts(ctx, tt.as, up.ID, []int{1}, "")
			storetest.Refused(t, name+" sends parts", err, tt.kind)
			_, err = u.Complete(ctx, tt.as, up.ID, files.Finish{})
			storetest.Refused(t, name+" completes it", err, tt.kind)
			storetest.Refused(t, name+" calls it off", u.Abort(ctx, tt.as, up.ID), tt.kind)
		}
		storetest.Refused(t, "a member calls off another's", u.Abort(ctx, member, up.ID), fault.KindForbidden)
		full := fault.Unavailable("the disk is nearly full")
		b.RefuseWhile(func(context.Context) error { return full })
		_, err := u.Begin(ctx, b.owner, files.Presign{Name: "a.csv", ContentType: "text/csv", Size: 4})
		storetest.Refused(t, "beginning on a full disk", err, fault.KindUnavailable)
		_, err = u.Parts(ctx, b.owner, up.ID, []int{1}, "")
		storetest.Refused(t, "addresses on a full disk", err, fault.KindUnavailable)
		_, err = u.Receive(ctx, up.Key, 1, strings.NewReader("some data"))
		storetest.Refused(t, "a part on a full disk", err, fault.KindUnavailable)
		b.RefuseWhile(nil)
		// After a week it goes, also where it is a file by now: then only the note.
		if _, err := u.Complete(ctx, member, up.ID, files.Finish{}); err != nil {
			t.Fatal(err)
		}
		left := b.begin(u, "left behind")
		b.clock.Pass(files.LargeLife - time.Minute)
		if r, _, err := u.EndStale(ctx, b.db, ""); err != nil || r.Done != 0 {
			t.Errorf("too early: %+v, %v", r, err)
		}
		b.clock.Pass(2 * time.Minute)
		if r, _, err := u.EndStale(ctx, b.db, ""); err != nil || r.Done != 2 || r.Skipped != 0 || r.More {
			t.Errorf("%+v, %v", r, err)
		}
		storetest.Refused(t, "what was left behind", u.Known(ctx, b.owner, left.ID), fault.KindNotFound)
		if names := b.names(b.owner); len(names) != 1 || !b.there(up.Key) || b.stored() != 9 {
			t.Errorf("the list has %v, its bytes are there: %v, %d bytes count", names, b.there(up.Key), b.stored())
		}
	})
}
