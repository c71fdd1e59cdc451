package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
)

// inParts is an upload of a team in parts.
func inParts(team ids.Team, by ids.User, name string, size int64) files.LargeUpload {
	return files.LargeUpload{ID: "up " + name, Key: "teams/x/" + name, Team: team, FileID: ids.NewFile(), Name: name, ContentType: "text/plain", Size: size, PartSize: 5, CreatedBy: by, CreatedAt: august, TouchedAt: august}
}

func TestUploadsInPartsAreFewAndFit(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		if done, errs := atOnce(6, func(i int) error { return db.OpenUpload(ctx, inParts(team, owner, fmt.Sprint(i), 10), 0, 3) }); done != 3 {
			t.Errorf("%d were opened: %v", done, errs)
		}
		refused(t, "one more", db.OpenUpload(ctx, inParts(team, owner, "more", 10), 0, 3), fault.KindConflict, "too_many_uploads")
		refused(t, "a byte too many", db.OpenUpload(ctx, inParts(team, owner, "large", 71), 100, 9), fault.KindPayment, "storage_limit")
		if n := stored(t, db, team); n != 30 {
			t.Errorf("%d bytes are counted", n)
		}
		folder := inParts(team, owner, "folder", 70)
		folder.Manifest = 1
		refused(t, "a manifest too many", db.OpenUpload(ctx, folder, 100, 9), fault.KindPayment, "storage_limit")
		must(t, db.OpenUpload(ctx, inParts(team, owner, "fits", 70), 100, 9))
		must(t, db.CloseTeam(ctx, team, account.Lifetimes{}, august))
		refused(t, "of a team that is being erased", db.OpenUpload(ctx, inParts(team, owner, "late", 1), 0, 9), fault.KindForbidden, "not_a_member")
	})
}

func TestAnUploadInPartsBecomesOneFile(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		other, _ := newTeam(t, db)
		u := inParts(team, owner, "a", 12)
		must(t, db.OpenUpload(ctx, u, 0, 3))
		refused(t, "another team", second(db.LargeUpload(ctx, other, u.ID)), fault.KindNotFound, "")
		// Several ask the object store for an upload: one of their names counts.
		if done, errs := atOnce(4, func(i int) error { return db.SetStorageID(ctx, u.ID, fmt.Sprint("s", i)) }); done != 1 {
			t.Errorf("%d set it: %v", done, errs)
		}
		refused(t, "another name", db.SetStorageID(ctx, u.ID, "s9"), fault.KindConflict, "upload_busy")
		refused(t, "of none", db.SetStorageID(ctx, "up none", "s"), fault.KindConflict, "upload_busy")
		for after, want := range map[time.Duration]time.Duration{touchedAgain - time.Microsecond: 0, touchedAgain: touchedAgain} {
			if _, err := db.changed(ctx, `UPDATE large_uploads SET touched_at = $1`, micros(august)); err != nil {
				t.Fatal(err)
			}
			if _, err := db.TouchUpload(ctx, u.Key, august.Add(after)); err != nil {
				t.Fatal(err)
			}
			if got, err := db.LargeUpload(ctx, team, u.ID); err != nil || !got.TouchedAt.Equal(august.Add(want)) || got.StorageID == "" {
				t.Errorf("touched after %v: %+v, %v", after, got, err)
			}
		}
		_, errs := atOnce(4, func(int) error {
			return db.KeepUpload(ctx, u.Key, files.Blob{Key: u.Key, Size: 12, SHA256: "sum", Mark: "m"}, august)
		})
		for _, err := range errs {
			must(t, err)
		}
		if f, err := db.File(ctx, team, files.FromUpload, u.Key); err != nil || f.ID != u.FileID || f.Size != 12 || f.SHA256 != "sum" {
			t.Errorf("%+v, %v", f, err)
		}
		refused(t, "a part of what is a file", second(db.TouchUpload(ctx, u.Key, august.Add(time.Hour))), fault.KindNotFound, "")
		refused(t, "of none", db.KeepUpload(ctx, "teams/x/none", files.Blob{}, august), fault.KindNotFound, "")
		if n := stored(t, db, team); n != 12 {
			t.Errorf("%d bytes are counted", n)
		}
		for range 2 { // only the note goes
			must(t, db.DropUpload(ctx, u.Key))
		}
		if _, err := db.File(ctx, team, files.FromUpload, u.Key); err != nil || stored(t, db, team) != 12 {
			t.Errorf("%v; %d bytes", err, stored(t, db, team))
		}
		called := inParts(team, owner, "called off", 30)
		called.Manifest = 7
		must(t, db.OpenUpload(ctx, called, 0, 3))
		if _, errs := atOnce(3, func(int) error { return db.DropUpload(ctx, called.Key) }); errs[0] != nil {
			t.Error(errs)
		}
		refused(t, "one that was called off", db.KeepUpload(ctx, called.Key, files.Blob{}, august), fault.KindNotFound, "")
		if n := stored(t, db, team); n != 12 {
			t.Errorf("%d bytes are counted", n)
		}
	})
}

func TestUploadsInPartsThatNobodyGoesOnWith(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		for _, name := range []string{"b", "a", "c"} {
			must(t, db.OpenUpload(ctx, inParts(team, owner, name, 1), 0, 9))
		}
		_, err := db.TouchUpload(ctx, "teams/x/b", august.Add(time.Hour))
		must(t, err)
		stale := func(by time.Time, after string, limit int) (text string) {
			list, err := db.StaleUploads(ctx, by, after, limit)
			must(t, err)
			for _, u := range list {
				text += u.Name
			}
			return text
		}
		for want, got := range map[string]string{
			"": stale(august.Add(-time.Microsecond), "", 9), "ac": stale(august, "", 9), "a": stale(august, "", 1), "c": stale(august, "teams/x/a", 9), "abc": stale(august.Add(time.Hour), "", 9),
		} {
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		unknown, err := db.Unknown(ctx, []string{"teams/x/a", "teams/x/none"})
		if err != nil || len(unknown) != 1 || unknown[0] != "teams/x/none" {
			t.Errorf("%v, %v", unknown, err)
		}
	})
}
