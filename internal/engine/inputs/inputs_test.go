package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// bucket has objects whose bytes are their address, but for one that nobody may read.
type bucket struct{ refused string }

func (b bucket) Open(_ context.Context, _ ids.Team, o addresses.Object, from, length int64) (io.ReadCloser, error) {
	if o.URL == b.refused {
		return nil, fault.Forbidden("the bucket refuses it").WithCode(unreachableCode)
	}
	text := o.URL[from:]
	if length >= 0 {
		text = text[:length]
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// known remembers what was learnt.
type known struct {
	list []addresses.Object

	mu     sync.Mutex
	learnt map[string]string
}

func (k *known) AddressesOf(context.Context, ids.Team, ids.Run) ([]addresses.Object, error) {
	return k.list, nil
}

func (k *known) LearntHashes(_ context.Context, _ ids.Team, list []addresses.Object) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range list {
		list[i].Learnt = k.learnt[list[i].URL]
	}
	return nil
}

func (k *known) Learn(_ context.Context, _ ids.Team, _ ids.Run, o addresses.Object, sum string, _ time.Time) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.learnt[o.URL]
	k.learnt[o.URL] = sum
	return before, nil
}

func (k *known) InputsFetched(context.Context, string, ids.Run, int64, int64) error { return nil }

func (k *known) TeamsGone(context.Context, []ids.Team) ([]ids.Team, error) { return nil, nil }

const inBucket = "s3://lab/reads/"

// readsOf are the inputs of a run that takes a folder of n objects.
func readsOf(t *testing.T, n int, refused string) *Inputs {
	t.Helper()
	k := &known{learnt: map[string]string{}}
	for i := range n {
		url := fmt.Sprintf("%sd%d/r%d.fq", inBucket, i%3, i)
		k.list = append(k.list, addresses.Object{Address: addresses.Address{URL: url}, Endpoint: "https://s3.example.org", Size: int64(len(url)), ETag: "e"})
	}
	dir := t.TempDir()
	w := &Worker{Dir: dir, Fetched: NewFetched(dir, bucket{refused}, 1<<30, func() bool { return false }), Known: k, Now: time.Now}
	in := w.Of(t.Context(), runs.Run{ID: "run_1", Team: "team_1"})
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := in.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return in
}

// learn waits until it is known what the folder is.
func learn(t *testing.T, in *Inputs) error {
	t.Helper()
	for {
		err := in.Learn([]string{inBucket})
		if !errors.Is(err, ErrFetching) {
			return err
		}
		in.Progress([]string{inBucket})
		select {
		case <-in.Changed():
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// Several tasks are given a folder at the same time as its owner asks how far it is.
func TestAFolderOfABucketIsGivenToManyAtOnce(t *testing.T) {
	t.Parallel()
	const n = 40
	in := readsOf(t, n, "")
	if err := learn(t, in); err != nil {
		t.Fatal(err)
	}
	f, ok := in.File(inBucket)
	if !ok || f.Folder == nil || f.Folder.Files != n {
		t.Fatalf("%+v, %v", f, ok)
	}
	for !in.Ready(true, map[string]files.File{"in": f}) {
		<-in.Changed()
	}
	dir := t.TempDir()
	var tasks sync.WaitGroup
	for task := range 8 {
		tasks.Go(func() {
			to := filepath.Join(dir, fmt.Sprint(task))
			if err := in.Link(t.Context(), to, task%2 == 0, inBucket); err != nil {
				t.Error(err)
				return
			}
			got, err := os.ReadFile(filepath.Join(to, "d1", "r1.fq"))
			if err != nil || string(got) != inBucket+"d1/r1.fq" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	for range 100 {
		if arrived, total := in.Progress([]string{inBucket}); arrived != total {
			t.Errorf("%d of %d", arrived, total)
		}
	}
	tasks.Wait()
}

// A folder of which something cannot be had is no folder with less in it.
func TestAFolderThatIsNotWholeIsNotGiven(t *testing.T) {
	t.Parallel()
	in := readsOf(t, 5, inBucket+"d1/r1.fq")
	if err := learn(t, in); CodeOf(err) != unreachableCode {
		t.Errorf("%v", err)
	}
	to := filepath.Join(t.TempDir(), "in")
	if err := in.Link(t.Context(), to, false, inBucket); err == nil {
		t.Error("it was given")
	}
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something of it is there: %v", err)
	}
}
