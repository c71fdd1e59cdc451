package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// slow is a bucket whose objects take a while, unless nobody wants them.
type slow struct {
	bucket
	takes time.Duration
}

func (s slow) Open(ctx context.Context, team ids.Team, o addresses.Object, from, length int64) (io.ReadCloser, error) {
	select {
	case <-time.After(s.takes):
		return s.bucket.Open(ctx, team, o, from, length)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noted is known with what was noted of queued runs.
type noted struct {
	known
	notes  []string
	asked  int
	broken error
	gone   []ids.Team
}

func (n *noted) AddressesOf(ctx context.Context, team ids.Team, run ids.Run) ([]addresses.Object, error) {
	n.asked++
	if n.broken != nil {
		return nil, n.broken
	}
	return n.known.AddressesOf(ctx, team, run)
}

func (n *noted) InputsFetched(_ context.Context, owner string, run ids.Run, bytes, total int64) error {
	n.notes = append(n.notes, fmt.Sprint(owner, " ", run, " ", bytes, "/", total))
	return errors.New("the database is away") // which is no reason to stop
}

func (n *noted) TeamsGone(context.Context, []ids.Team) ([]ids.Team, error) { return n.gone, n.broken }

func objectOf(url, etag string) addresses.Object {
	return addresses.Object{Address: addresses.Address{URL: url}, Endpoint: "https://s3.example.org", Size: int64(len(url)), ETag: etag}
}

func worker(t *testing.T, n *noted, takes time.Duration) *Worker {
	t.Helper()
	n.learnt = map[string]string{}
	dir := t.TempDir()
	return &Worker{
		Dir: dir, Owner: "w1", Fetched: NewFetched(dir, slow{takes: takes}, 1<<30, func() bool { return false }), Known: n, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}
}

// A queued run's inputs are fetched, and people see how far they are.
func TestTheInputsOfAQueuedRunArePrepared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &noted{known: known{list: []addresses.Object{objectOf("s3://lab/a", "1"), objectOf("s3://lab/bb", "2")}}}
		w := worker(t, n, 5*time.Second)
		w.Prepare(t.Context(), "team_1", "run_1")
		if len(n.learnt) != 2 || !cmp.Equal(n.notes, []string{"w1 run_1 0/21", "w1 run_1 0/21"}) {
			t.Errorf("%v, %q", n.learnt, n.notes)
		}
		began := time.Now()
		w.Prepare(t.Context(), "team_1", "run_1") // all of it is here
		if time.Since(began) != 0 {
			t.Errorf("it took %s", time.Since(began))
		}
		w.Release("run_1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n.list, n.notes = []addresses.Object{objectOf("s3://lab/c", "3")}, nil
		w.Prepare(ctx, "team_1", "run_2")
		if time.Since(began) != time.Second || len(n.learnt) != 2 {
			t.Errorf("it went on for %s: %v", time.Since(began), n.learnt)
		}
		n.broken = errors.New("the database is away")
		w.Prepare(t.Context(), "team_1", "run_3")
	})
}

// Without an etag a run may find other bytes when it looks again, and must not go on
// with them.
func TestAnInputThatIsAnotherThanBefore(t *testing.T) {
	t.Parallel()
	n := &noted{known: known{list: []addresses.Object{objectOf("s3://lab/a", "")}}}
	w := worker(t, n, 0)
	n.learnt["s3://lab/a"] = strings.Repeat("0", 64) // by the worker that had the run before
	in := w.Of(t.Context(), runs.Run{ID: "run_1", Team: "team_1"})
	defer in.Close()
	if err := in.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	for err = in.Learn([]string{"s3://lab/a"}); errors.Is(err, ErrFetching); err = in.Learn([]string{"s3://lab/a"}) {
		<-in.Changed()
	}
	if CodeOf(err) != changedCode || !strings.Contains(err.Error(), "since the run first read it") {
		t.Error(err)
	}
	if err := in.Link(t.Context(), filepath.Join(t.TempDir(), "a"), false, "s3://lab/a"); CodeOf(err) != changedCode {
		t.Errorf("it was given: %v", err)
	}
}

// A run that names no address has nothing looked up.
func TestOnlyRunsWithAddressesAreLookedUp(t *testing.T) {
	t.Parallel()
	for inputs, asked := range map[string]int{
		`{}`: 0, `{"a": ["teams/t/x"]}`: 0, `{"a": ["teams/t/x", "s3://lab/a"]}`: 1, `{"a": ["https://e.org/a"]}`: 1, ``: 1, `{"a": "no list"}`: 1, `{"a": []}`: 0,
	} {
		n := &noted{}
		in := worker(t, n, 0).Of(t.Context(), runs.Run{ID: "run_1", Team: "team_1", Inputs: []byte(inputs)})
		if err := in.Load(t.Context()); err != nil || n.asked != asked {
			t.Errorf("%s: %d, %v", inputs, n.asked, err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Objects of another machine come once, before the tasks that share them; one that
// cannot be had is said to the task that needs it.
func TestSharedObjectsComeFirst(t *testing.T) {
	t.Parallel()
	w := worker(t, &noted{}, 0)
	w.Remote = true
	var mu sync.Mutex
	opened := map[string]int{}
	w.Objects = func(_ context.Context, key string) (io.ReadCloser, error) {
		mu.Lock()
		defer mu.Unlock()
		if opened[key]++; key == "gone" {
			return nil, fault.NotFound("no such object")
		}
		return io.NopCloser(strings.NewReader("object " + key)), nil
	}
	in := w.Of(t.Context(), runs.Run{ID: "run_1", Team: "team_1", Inputs: []byte(`{}`)})
	defer in.Close()
	list := map[string]files.File{"a": {Key: "a", Blob: "a"}, "gone": {Key: "gone", Blob: "gone"}}
	if !in.Ready(false, list) {
		t.Error("tasks that do not share wait for nothing")
	}
	if in.Ready(true, list) {
		t.Error("it is here at once")
	}
	for !in.Ready(true, list) {
		<-in.Changed()
	}
	dir := t.TempDir()
	for i := range 3 {
		file := filepath.Join(dir, fmt.Sprint(i))
		if err := in.Link(t.Context(), file, true, "a"); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "object a" {
			t.Errorf("%q, %v", text, err)
		}
	}
	if opened["a"] != 1 {
		t.Errorf("read %d times", opened["a"])
	}
	if err := in.Link(t.Context(), filepath.Join(dir, "gone"), true, "gone"); !fault.Is(err, fault.KindNotFound) {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestTeamsThatAreGoneLeaveNothing(t *testing.T) {
	t.Parallel()
	n := &noted{}
	w := worker(t, n, 0)
	if err := w.CleanUp(t.Context()); err != nil { // nothing was ever fetched
		t.Error(err)
	}
	for _, team := range []ids.Team{"team_1", "team_2"} {
		if _, err := w.Fetched.Fetch(t.Context(), team, "run_1", objectOf("s3://lab/a", "1"), func(int64) {}); err != nil {
			t.Fatal(err)
		}
	}
	n.broken = errors.New("the database is away")
	if err := w.CleanUp(t.Context()); !errors.Is(err, n.broken) {
		t.Error(err)
	}
	n.broken, n.gone = nil, []ids.Team{"team_2"}
	err := w.CleanUp(t.Context())
	if teams, terr := w.Fetched.Teams(); err != nil || terr != nil || !cmp.Equal(teams, []ids.Team{"team_1"}) {
		t.Errorf("%v, %v", teams, errors.Join(err, terr))
	}
}

func TestWhichFailuresAreOfInputs(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]lifecycle.ErrorCode{unreachableCode: "input_unreachable", changedCode: "input_changed", diskFullCode: "disk_full", "other": "", "": ""} {
		err := fmt.Errorf("staging: %w", fault.Invalid("no").WithCode(code))
		if got := CodeOf(err); got != want {
			t.Errorf("%q: %q", code, got)
		}
	}
	if CodeOf(errors.New("no")) != "" || CodeOf(nil) != "" {
		t.Error("a failure that nobody foresaw")
	}
}

func TestFilesArePlacedByTheirNumber(t *testing.T) {
	t.Parallel()
	var spec executor.Spec
	known := map[string]files.File{
		"a": {Name: "two words.fq", Blob: "blob-a", Size: 3, SHA256: "1"}, "f": {Name: "res", Blob: "blob-f", Size: 9, Folder: &files.Folder{Bytes: 100}},
	}
	paths := AddTo(&spec, known, []string{"a", "f", "a"}, "/inputs", "reads")
	if want := []string{"/inputs/reads/0/two_words.fq", "/inputs/reads/1/res", "/inputs/reads/2/two_words.fq"}; !cmp.Equal(paths, want) {
		t.Errorf("%q", paths)
	}
	want := []executor.Input{
		{Path: "reads/0/two_words.fq", Object: "blob-a", Size: 3, SHA256: "1"}, {Path: "reads/1/res", Object: "blob-f", Size: 100, Directory: true}, {Path: "reads/2/two_words.fq", Object: "blob-a", Size: 3, SHA256: "1"},
	}
	if diff := cmp.Diff(want, spec.Inputs); diff != "" {
		t.Error(diff)
	}
}

// panickyKnown is a database whose driver is out of order.
type panickyKnown struct{ *noted }

func (panickyKnown) Learn(context.Context, ids.Team, ids.Run, addresses.Object, string, time.Time) (string, error) {
	panic("out of order")
}

// A panic while an input is fetched is why it cannot be had, for the run alone.
func TestPanicIsWhyAnInputCannotBeHad(t *testing.T) {
	t.Parallel()
	n := &noted{known: known{list: []addresses.Object{objectOf("s3://lab/a", "1")}}}
	w := worker(t, n, 0)
	w.Known = panickyKnown{n}
	in := w.Of(t.Context(), runs.Run{ID: "run_1", Team: "team_1", Inputs: []byte(`{"a":["s3://lab/a"]}`)})
	if err := in.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := in.Learn([]string{"s3://lab/a"})
	for errors.Is(err, ErrFetching) {
		<-in.Changed()
		err = in.Learn([]string{"s3://lab/a"})
	}
	if !panics.Is(err) {
		t.Error(err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
}
