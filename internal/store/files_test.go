package store

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/files"
)

// Two files of the same bytes: they go with the last one.
func TestSharedBytesGoWithTheirLastFile(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		r := files.Reservation{
			Key: "teams/a/one", Team: team, ID: "1", Name: "one", ContentType: "text/plain", Size: 10,
			CreatedBy: owner, CreatedAt: august, ExpiresAt: august.Add(time.Minute),
		}
		if err := db.Reserve(ctx, r, 100); err != nil {
			t.Fatal(err)
		}
		for range 2 { // kept twice, counted once
			if err := db.Keep(ctx, r.Key, files.Blob{Key: r.Key, Size: 10, Mark: "m"}, august); err != nil {
				t.Fatal(err)
			}
		}
		err := db.inTx(ctx, func(tx *DB) error {
			if _, err := tx.changed(ctx, `UPDATE blobs SET refs = refs + 1 WHERE key = $1`, r.Key); err != nil {
				return err
			}
			_, err := tx.changed(ctx, `
				INSERT INTO files (key, team_id, source, rank, id, name, content_type, size, blob_key, created_by, created_at)
				VALUES ('teams/a/two', $1, 'output', 1, '2', 'two', 'text/plain', 10, $2, $3, 1)`, team, r.Key, owner)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		list, err := db.Files(ctx, team, files.Filter{}, files.Place{}, 10)
		if err != nil || len(list) != 2 || list[0].Source != files.FromUpload {
			t.Fatalf("%+v, %v", list, err)
		}
		for i, key := range []string{r.Key, "teams/a/two"} {
			if _, err := db.DeleteFile(ctx, team, key); err != nil {
				t.Fatal(err)
			}
			pending, err := db.PendingDeletes(ctx, "", 10)
			if err != nil || len(pending) != i {
				t.Errorf("after %d deletions %v is to be deleted (%v)", i+1, pending, err)
			}
			unknown, err := db.Unknown(ctx, []string{r.Key})
			if err != nil || len(unknown) != i {
				t.Errorf("after %d deletions %v is unknown (%v)", i+1, unknown, err)
			}
		}
		b, err := db.Balance(ctx, team, august)
		if err != nil || b.Stored != 0 {
			t.Errorf("%d bytes are counted, %v", b.Stored, err)
		}
	})
}

func TestTheLastRoomIsReservedOnce(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, owner := newTeam(t, db)
		results := make(chan error, 50)
		for i := range 50 {
			go func() {
				results <- db.Reserve(t.Context(), files.Reservation{
					Key: string(rune('a'+i%26)) + time.Duration(i).String(), Team: team, ID: "x",
					Name: "n", Size: 10, CreatedBy: owner, CreatedAt: august, ExpiresAt: august,
				}, 100)
			}()
		}
		var fit int
		for range 50 {
			if err := <-results; err == nil {
				fit++
			}
		}
		if fit != 10 {
			t.Errorf("%d of 50 fit into the room for 10", fit)
		}
	})
}
