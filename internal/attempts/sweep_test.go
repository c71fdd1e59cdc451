package attempts_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
)

// rows are the ids of attempts that there are.
type rows []string

func (rows) RemoveEndedAttempts(context.Context, time.Time) (int, error) { return 0, nil }

func (r rows) UnknownAttempts(_ context.Context, ids []string) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(r, id) }), nil
}

// What a server has staged for an attempt that it never submitted goes when it is
// old. What belongs to an attempt stays, and so does everything else.
func TestWhatNoAttemptOwnsIsSwept(t *testing.T) {
	t.Parallel()
	keep, err := disk.Open(t.Context(), filepath.Join(t.TempDir(), "objects"), disk.NewSigner([]byte("0123456789abcdef")), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	all := objects.Kept{Store: keep, Presigner: keep}
	mine, left, other := attempts.StagedKey("run_1.a.0.1", "f", 0), attempts.StagedKey("run_1.b.0.1", "f", 0), "teams/1/a"
	for _, key := range []string{mine, left, attempts.StagedKey("run_1.b.0.1", "f", 1), other} {
		if err := all.Upload(t.Context(), key, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	for later, want := range map[time.Duration]int{time.Hour: 0, 49 * time.Hour: 2} {
		n, next, err := attempts.Sweep(t.Context(), rows{"run_1.a.0.1"}, all, "", time.Now().Add(later))
		if err != nil || n != want || next == "" {
			t.Errorf("after %s: %d, then %q, %v", later, n, next, err)
		}
		if _, next, err = attempts.Sweep(t.Context(), rows{}, all, next, time.Now()); err != nil || next != "" {
			t.Errorf("at the end: %q, %v", next, err)
		}
	}
	for key, there := range map[string]bool{mine: true, left: false, other: true} {
		if _, err := all.Size(t.Context(), key); (err == nil) != there {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// fresh has one of the objects come just now.
type fresh struct {
	objects.Kept
	key string
	at  time.Time
}

func (f fresh) Keys(ctx context.Context, prefix, after string, limit int) ([]string, []time.Time, error) {
	keys, since, err := f.Kept.Keys(ctx, prefix, after, limit)
	if i := slices.Index(keys, f.key); i >= 0 {
		since[i] = f.at
	}
	return keys, since, err
}

// An old object is no reason to take away what is being staged beside it.
func TestAnAttemptThatIsBeingStagedIsNotSwept(t *testing.T) {
	t.Parallel()
	keep, err := disk.Open(t.Context(), filepath.Join(t.TempDir(), "objects"), disk.NewSigner([]byte("0123456789abcdef")), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(49 * time.Hour)
	all := fresh{objects.Kept{Store: keep, Presigner: keep}, attempts.StagedKey("run_1.a.0.1", "f", 1), later.Add(-time.Minute)}
	for i := range 2 {
		if err := all.Upload(t.Context(), attempts.StagedKey("run_1.a.0.1", "f", i), strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if n, _, err := attempts.Sweep(t.Context(), rows{}, all, "", later); err != nil || n != 0 {
		t.Errorf("%d were taken, %v", n, err)
	}
	all.key = ""
	if n, _, err := attempts.Sweep(t.Context(), rows{}, all, "", later); err != nil || n != 2 {
		t.Errorf("%d were taken when all were old, %v", n, err)
	}
}
