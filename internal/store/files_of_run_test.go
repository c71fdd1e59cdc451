package store

import (
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// uploaded is a file of a team that has arrived.
func uploaded(t *testing.T, db *DB, team ids.Team, by ids.User, key string, size int64) {
	t.Helper()
	r := files.Reservation{Key: key, Team: team, ID: ids.NewFile(), Name: key, ContentType: "text/plain", Size: size, CreatedBy: by, CreatedAt: august, ExpiresAt: august.Add(time.Hour)}
	must(t, db.Reserve(t.Context(), r, 0))
	must(t, db.Keep(t.Context(), key, files.Blob{Key: key, Size: size, SHA256: "sum of " + key, Mark: "m"}, august))
}

// started is a run with these inputs that a worker has begun.
func started(t *testing.T, db *DB, team ids.Team, inputs string) runs.Run {
	t.Helper()
	r := newRun(team)
	r.Inputs = []byte(inputs)
	must(t, db.SubmitRun(t.Context(), r, 60*r.Price, nil))
	claimed, err := db.ClaimRuns(t.Context(), claim("w1", 10), august, august.Add(time.Minute))
	if err != nil || len(claimed.Runs) != 1 {
		t.Fatalf("%+v, %v", claimed, err)
	}
	return claimed.Runs[0]
}

// A file that is given to two inputs is one file: whoever deletes the files of the
// run deletes it once.
func TestTheFilesOfARunAreListedOnceEach(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		other, stranger := newTeam(t, db)
		uploaded(t, db, team, owner, "teams/a/x", 10)
		uploaded(t, db, team, owner, "teams/a/y", 20)
		uploaded(t, db, other, stranger, "teams/b/z", 30)
		r := started(t, db, team, `{"left":["teams/a/x","teams/a/y","teams/a/x"],"right":["teams/a/x"],"gone":["teams/a/deleted"],"theirs":["teams/b/z"]}`)
		if _, _, err := db.FilesOfRun(ctx, team, r.ID); !fault.Is(err, fault.KindConflict) {
			t.Errorf("of one that is running: %v", err)
		}
		made := runs.Output{Key: "teams/a/runs/out", Blob: "teams/a/runs/out", Node: "n", Port: "p", Name: "out", Size: 40, Mark: "m"}
		must(t, db.EndRun(ctx, r.ID, r.Fence, runs.Ending{Status: lifecycle.Completed, Last: &runs.Step{Outputs: []runs.Output{made}}}, august))
		list, starter, err := db.FilesOfRun(ctx, team, r.ID)
		if err != nil || starter != "user_1" {
			t.Fatal(starter, err)
		}
		var keys []string
		for _, f := range list {
			keys = append(keys, f.Key)
		}
		slices.Sort(keys)
		if want := []string{"teams/a/runs/out", "teams/a/x", "teams/a/y"}; !slices.Equal(keys, want) {
			t.Errorf("%q, want %q", keys, want)
		}
		for _, f := range list {
			if _, err := db.DeleteFile(ctx, team, f.Key); err != nil {
				t.Errorf("deleting %s: %v", f.Key, err)
			}
		}
		if b, err := db.Balance(ctx, team, august); err != nil || b.Stored != 0 {
			t.Errorf("%d bytes are counted, %v", b.Stored, err)
		}
		if _, _, err := db.FilesOfRun(ctx, other, r.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another team: %v", err)
		}
	})
}
