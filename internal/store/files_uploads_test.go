package store

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
)

// reserved is an upload of ten bytes that is allowed for a minute.
func reserved(t *testing.T, db *DB, team ids.Team, by ids.User, key string) files.Reservation {
	t.Helper()
	r := files.Reservation{Key: key, Team: team, ID: ids.NewFile(), Name: key, ContentType: "text/plain", Size: 10, CreatedBy: by, CreatedAt: august, ExpiresAt: august.Add(time.Minute)}
	must(t, db.Reserve(t.Context(), r, 0))
	return r
}

func stored(t *testing.T, db *DB, team ids.Team) int64 {
	t.Helper()
	b, err := db.Balance(t.Context(), team, august)
	must(t, err)
	return b.Stored
}

func TestARoomIsCountedToTheByte(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		r := files.Reservation{Key: "a", Team: team, ID: "1", Name: "a", Size: 60, CreatedBy: owner, CreatedAt: august, ExpiresAt: august.Add(time.Minute)}
		must(t, db.Reserve(ctx, r, 100))
		refused(t, "the same key again", db.Reserve(ctx, r, 0), fault.KindConflict, "")
		r.Key, r.Size = "b", 41
		refused(t, "a byte too many", db.Reserve(ctx, r, 100), fault.KindPayment, "storage_limit")
		if n := stored(t, db, team); n != 60 {
			t.Errorf("%d bytes are counted", n)
		}
		r.Size = 40
		must(t, db.Reserve(ctx, r, 100))
		r.Key, r.Size = "empty", 0
		must(t, db.Reserve(ctx, r, 100))
		r.Team = "team_nobody"
		refused(t, "of a team that is not there", db.Reserve(ctx, r, 100), fault.KindForbidden, "not_a_member")
		must(t, db.CloseTeam(ctx, team, account.Lifetimes{}, august))
		r.Key, r.Team = "late", team
		refused(t, "of a team that is being erased", db.Reserve(ctx, r, 0), fault.KindForbidden, "not_a_member")
	})
}

func TestWhatAPlanLeavesOfItsRoom(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		reserved(t, db, team, owner, "a")
		for _, tt := range []struct {
			plan credits.Plan
			want int64
		}{{credits.Free, 5*credits.GB - 10}, {credits.Pro, math.MaxInt64}, {"taken away", 5*credits.GB - 10}} {
			if _, err := db.changed(ctx, `UPDATE teams SET plan = $1 WHERE id = $2`, tt.plan, team); err != nil {
				t.Fatal(err)
			}
			if left, err := db.StorageLeft(ctx, team); err != nil || left != tt.want {
				t.Errorf("%s: %d, %v; want %d", tt.plan, left, err, tt.want)
			}
			if plan, err := db.PlanOf(ctx, team); err != nil || plan != tt.plan {
				t.Errorf("%s, %v", plan, err)
			}
		}
		for _, err := range []error{second(db.StorageLeft(ctx, "team_nobody")), second(db.PlanOf(ctx, "team_nobody"))} {
			refused(t, "a team that is not there", err, fault.KindNotFound, "")
		}
	})
}

func second[T any](_ T, err error) error { return err }

// An address takes one upload: while bytes arrive nobody else can begin, and who
// gave up can begin again.
func TestAnAddressTakesOneUploadAtATime(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		r := reserved(t, db, team, owner, "a")
		begin := func(now time.Time) error { return second(db.Begin(ctx, r.Key, now, now.Add(10*time.Second))) }
		if done, errs := atOnce(8, func(int) error { return begin(august) }); done != 1 {
			t.Errorf("%d of 8 began: %v", done, errs)
		}
		refused(t, "while bytes arrive", begin(august.Add(9*time.Second)), fault.KindConflict, "upload_closed")
		must(t, begin(august.Add(10*time.Second))) // the one before was killed
		must(t, db.Abandon(ctx, r.Key))
		must(t, begin(august.Add(11*time.Second)))
		must(t, db.ResetUploads(ctx))
		if open, err := db.ReservationsOf(ctx, []string{r.Key}); err != nil || len(open) != 1 || open[0] != r {
			t.Errorf("%+v, %v", open, err)
		}
		refused(t, "when its time is over", begin(r.ExpiresAt), fault.KindConflict, "upload_closed")
		must(t, begin(r.ExpiresAt.Add(-time.Microsecond)))
		if open, err := db.ReservationsOf(ctx, []string{r.Key}); err != nil || len(open) != 0 {
			t.Errorf("one that arrives is open: %+v, %v", open, err)
		}
		must(t, db.Keep(ctx, r.Key, files.Blob{Key: r.Key, Size: 10, SHA256: "s", Mark: "m"}, august))
		refused(t, "when it is a file", begin(august), fault.KindConflict, "upload_closed")
		refused(t, "by a key that nobody has", db.Keep(ctx, "unknown", files.Blob{}, august), fault.KindNotFound, "")
		if f, err := db.File(ctx, team, files.FromUpload, r.Key); err != nil || f.Size != 10 || f.SHA256 != "s" || f.Name != r.Name || f.CreatedBy != owner {
			t.Errorf("%+v, %v", f, err)
		}
		other, _ := newTeam(t, db)
		for _, err := range []error{
			second(db.File(ctx, other, files.FromUpload, r.Key)), second(db.File(ctx, team, files.FromRun, r.Key)), second(db.DeleteFile(ctx, other, r.Key)),
		} {
			refused(t, "another team, or as an output", err, fault.KindNotFound, "")
		}
	})
}

func TestNewestReservationsAreTheTeamsOpenOnes(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		other, stranger := newTeam(t, db)
		var list []files.Reservation
		for _, key := range []string{"d", "a", "c", "b"} {
			list = append(list, reserved(t, db, team, owner, key))
		}
		reserved(t, db, other, stranger, "e")
		must(t, second(db.Begin(ctx, "c", august, august.Add(time.Second))))
		want := []files.Reservation{list[3], list[1], list[0]}
		for limit := 1; limit <= 4; limit++ {
			got, err := db.NewestReservations(ctx, team, limit)
			if err != nil || !slices.Equal(got, want[:min(limit, 3)]) {
				t.Errorf("%d: %+v, %v", limit, got, err)
			}
		}
	})
}

// Whether an upload that ran out is dropped or kept is decided once, and what it
// counts is given back once.
func TestAnUploadIsKeptOrDropped(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		for i := range 8 {
			r := reserved(t, db, team, owner, fmt.Sprint("teams/x/", i))
			before := stored(t, db, team)
			errs := make(chan error, 3)
			go func() { errs <- db.Keep(ctx, r.Key, files.Blob{Key: r.Key, Size: 10, Mark: "m"}, august) }()
			for range 2 {
				go func() { errs <- db.Drop(ctx, r.Key) }()
			}
			for range 3 {
				if err := <-errs; err != nil && !fault.Is(err, fault.KindNotFound) {
					t.Error(err)
				}
			}
			_, err := db.File(ctx, team, files.FromUpload, r.Key)
			if after := stored(t, db, team); (err == nil) != (after == before) || err != nil && after != before-10 {
				t.Errorf("%d bytes became %d, and of the file: %v", before, after, err)
			}
		}
	})
}

func TestUploadsWhoseTimeIsOver(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		for _, key := range []string{"c", "a", "b"} {
			reserved(t, db, team, owner, key)
		}
		if _, err := db.Begin(ctx, "b", august, august.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		keys := func(by time.Time, after string, limit int) (text string) {
			list, err := db.ExpiredReservations(ctx, by, after, limit)
			must(t, err)
			for _, r := range list {
				text += r.Key
			}
			return text
		}
		for _, tt := range []struct {
			by    time.Duration
			after string
			limit int
			want  string
		}{
			{time.Minute - time.Microsecond, "", 9, ""},
			{time.Minute, "", 9, "ac"},
			{time.Minute, "", 1, "a"},
			{time.Minute, "a", 9, "c"},
			{time.Hour, "", 9, "abc"},
		} {
			if got := keys(august.Add(tt.by), tt.after, tt.limit); got != tt.want {
				t.Errorf("after %v, from %q on: %q, want %q", tt.by, tt.after, got, tt.want)
			}
		}
	})
}
