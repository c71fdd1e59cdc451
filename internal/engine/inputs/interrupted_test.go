package inputs

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/waittest"
)

// onDisk are the files of team_1 that end with a suffix.
func onDisk(t *testing.T, dir, suffix string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, fetchedFolder, "team_1", "*", "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// firstPartOnly refuses everything after the first part, once that is marked.
type firstPartOnly struct {
	*far
	marked func()
}

func (r firstPartOnly) Open(ctx context.Context, team ids.Team, o addresses.Object, from, length int64) (io.ReadCloser, error) {
	if from >= partSize {
		r.marked()
		return nil, fault.Forbidden("not this part")
	}
	return r.far.Open(ctx, team, o, from, length)
}

// Marks say of a file which of its parts are whole. They say nothing of the empty
// file that comes after it, where room was made.
func TestPartsAreReadAgainWhereTheirFileWentToMakeRoom(t *testing.T) {
	t.Parallel()
	bytes, sum := random(partSize + 7)
	dir := t.TempDir()
	whole := &far{bytes: bytes, left: -1}
	marked := func() {
		if !waittest.Until(func() bool {
			marks := onDisk(t, dir, marksSuffix)
			if len(marks) != 1 {
				return false
			}
			text, err := os.ReadFile(marks[0])
			return err == nil && len(text) > 0 && text[0] == 1
		}) {
			t.Error("the first part was never marked")
		}
	}
	s := NewFetched(dir, firstPartOnly{whole, marked}, 1000, neverLow)
	o := object(len(bytes))
	if _, err := s.Fetch(t.Context(), "team_1", "run_1", o, ignore); codeOf(err) != unreachableCode {
		t.Fatal(err)
	}
	if err := s.MakeRoom(); err != nil {
		t.Fatal(err)
	}
	if left := onDisk(t, dir, dataSuffix); len(left) != 0 {
		t.Fatalf("no room was made: %q", left)
	}
	got, err := NewFetched(dir, whole, 1<<40, neverLow).Fetch(t.Context(), "team_1", "run_2", o, ignore)
	if err != nil || got != sum {
		t.Errorf("%s, %v, want %s", got, err, sum)
	}
}

// A worker can be killed when a file has its name and its marks are still there.
func TestMarksThatAKilledWorkerLeftCountForNothing(t *testing.T) {
	t.Parallel()
	bytes, sum := random(1000)
	dir := t.TempDir()
	f := &far{bytes: bytes, left: -1}
	o := object(len(bytes))
	fetch := func(run ids.Run) {
		t.Helper()
		got, err := NewFetched(dir, f, 0, neverLow).Fetch(t.Context(), "team_1", run, o, ignore)
		if err != nil || got != sum {
			t.Fatalf("%s, %v, want %s", got, err, sum)
		}
	}
	fetch("run_1")
	kept := onDisk(t, dir, sum)
	if len(kept) != 1 {
		t.Fatal(kept)
	}
	version := filepath.Join(filepath.Dir(kept[0]), name(o.URL, o.ETag, string(o.Connection), o.SHA256))
	if err := errors.Join(os.Remove(kept[0]), os.WriteFile(version+marksSuffix, []byte{1}, 0o600)); err != nil {
		t.Fatal(err)
	}
	fetch("run_2")
	if f.asked != 2 {
		t.Errorf("asked %d times", f.asked)
	}
}
