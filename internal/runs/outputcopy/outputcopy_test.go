package outputcopy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// world is all that a copier sees.
type world struct {
	mu      sync.Mutex
	copy    outputto.Copy
	time    time.Time
	list    []runs.Listed
	objects map[string][]byte // in the bucket
	refused map[string]bool   // by the bucket
	slow    time.Duration     // how long an object takes
	aborted []string
}

func newWorld(names ...string) (*world, *Copier) {
	w := &world{time: time.Unix(1_000_000, 0), objects: map[string][]byte{}, refused: map[string]bool{}}
	w.copy = outputto.Copy{Target: outputto.Target{URL: "s3://lab/", Connection: "conn_1"}, Run: "run_1", Team: "team_1", State: outputto.Copying}
	for _, name := range names {
		sum := sha256.Sum256([]byte(name))
		w.list = append(w.list, runs.Listed{Output: runs.Output{Node: "a", Port: "o", Name: name, Blob: name, Size: int64(len(name)), SHA256: hex.EncodeToString(sum[:])}})
	}
	return w, &Copier{Store: w, Outputs: w, Objects: w, Buckets: w, Log: slog.New(slog.DiscardHandler), Now: w.now}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.time
}

func (w *world) ClaimOutputCopy(context.Context, string, time.Time, time.Time) (outputto.Copy, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.copy, nil
}

func (w *world) SaveOutputCopy(_ context.Context, _ string, c outputto.Copy, _ time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.copy = c
	return nil
}

func (w *world) OutputsToCopy(context.Context, ids.Team, ids.Run) (runs.Run, []runs.Listed, error) {
	return runs.Run{ID: "run_1"}, w.list, nil
}

func (w *world) Open(_ context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	text := []byte(key)
	if length < 0 {
		length = int64(len(text))
	}
	return io.NopCloser(bytes.NewReader(text[min(offset, int64(len(text))):min(offset+length, int64(len(text)))])), nil
}

func (w *world) OpenBucket(context.Context, ids.Team, outputto.Target) (Bucket, error) { return w, nil }

func (w *world) Put(_ context.Context, o Object, r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused[o.Name] {
		return fault.Unavailable("not now")
	}
	w.time = w.time.Add(w.slow)
	w.objects[o.Name] = text
	return nil
}

// PutLarge takes one part and no more.
func (w *world) PutLarge(ctx context.Context, _ Object, in outputto.Large) error {
	if in.Upload == "" {
		if err := in.Begun(ctx, "upload_1"); err != nil {
			return err
		}
	}
	for range 2 {
		part, err := in.Open(ctx, 0, 1)
		if err != nil {
			return err
		}
		_ = part.Close()
		w.mu.Lock()
		w.time = w.time.Add(w.slow)
		w.mu.Unlock()
	}
	return fault.Unavailable("not now")
}

func (w *world) Abort(_ context.Context, name, upload string) error {
	w.aborted = append(w.aborted, name+" "+upload)
	return nil
}

// What is done is counted from the first file on. When an output in front is deleted
// between two attempts, none after it may be skipped.
func TestADeletedOutputHasNoOtherSkipped(t *testing.T) {
	t.Parallel()
	w, c := newWorld("one", "second", "the third", "the fourth one")
	w.refused["a/o/the third"] = true
	c.Round(t.Context())
	if w.copy.Done != 2 || w.copy.Files != 4 || w.copy.State != outputto.Copying {
		t.Fatalf("%+v", w.copy)
	}
	w.list, w.refused = w.list[1:], nil
	c.Round(t.Context())
	if w.copy.State != outputto.Completed || w.copy.Done != 3 || w.copy.Copied != w.copy.Bytes || w.copy.Bytes != int64(len("secondthe thirdthe fourth one")) {
		t.Errorf("%+v", w.copy)
	}
	var m manifest
	if err := json.Unmarshal(w.objects[manifestName], &m); err != nil || len(m.Files) != 3 {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, f := range m.Files {
		if int64(len(w.objects[f.Name])) != f.Size {
			t.Errorf("%s is not there", f.Name)
		}
	}
}

// Nobody goes on with an upload after the last attempt.
func TestAnUploadIsAbortedAfterTheLastAttempt(t *testing.T) {
	t.Parallel()
	w, c := newWorld("big")
	w.list[0].Size = large + 1
	for range pauses {
		c.Round(t.Context())
	}
	if w.copy.State != outputto.Copying || w.copy.Upload != "upload_1" || len(w.aborted) != 0 {
		t.Fatalf("%+v, aborted %q", w.copy, w.aborted)
	}
	c.Round(t.Context())
	if w.copy.State != outputto.Failed || w.copy.Upload != "" || len(w.aborted) != 1 || w.aborted[0] != "a/o/big upload_1" {
		t.Errorf("%+v, aborted %q", w.copy, w.aborted)
	}
}

// Nor with that of an output which is deleted before the next attempt.
func TestTheUploadOfADeletedOutputIsAborted(t *testing.T) {
	t.Parallel()
	for name, left := range map[string][]string{"others are left": {"small"}, "none is left": nil} {
		w, c := newWorld("big")
		w.list[0].Size = large + 1
		if c.Round(t.Context()); w.copy.Upload != "upload_1" || w.copy.UploadOf != "a/o/big" {
			t.Fatalf("%+v", w.copy)
		}
		others, _ := newWorld(left...)
		w.list = others.list
		if c.Round(t.Context()); w.copy.State != outputto.Completed || w.copy.Upload != "" || len(w.aborted) != 1 || w.aborted[0] != "a/o/big upload_1" {
			t.Errorf("%s: %+v, aborted %q", name, w.copy, w.aborted)
		}
	}
}

// Older versions did not write down whose upload it is.
func TestAnUploadOfAnOlderVersionGoesOn(t *testing.T) {
	t.Parallel()
	w, c := newWorld("big")
	w.list[0].Size = large + 1
	c.Round(t.Context())
	w.copy.UploadOf = ""
	if c.Round(t.Context()); w.copy.Upload != "upload_1" || w.copy.UploadOf != "a/o/big" || len(w.aborted) != 0 {
		t.Errorf("%+v, aborted %q", w.copy, w.aborted)
	}
}

// A copy that takes long lets others go first, and goes on where it was.
func TestALongCopyLetsOthersGoFirst(t *testing.T) {
	t.Parallel()
	var names []string
	for range 4 * atOnce {
		names = append(names, string(rune('a'+len(names)%26))+time.Duration(len(names)).String())
	}
	w, c := newWorld(names...)
	w.slow = turn
	rounds := 0
	for last := -1; w.copy.State == outputto.Copying; rounds++ {
		if w.copy.Done <= last || w.copy.Attempts != 0 || w.copy.NextAt.After(w.time) {
			t.Fatalf("after %d rounds: %+v", rounds, w.copy)
		}
		last = w.copy.Done
		c.Round(t.Context())
	}
	if w.copy.State != outputto.Completed || rounds < 2 || len(w.objects) != len(names)+1 {
		t.Errorf("after %d rounds %d objects, %+v", rounds, len(w.objects), w.copy)
	}
	w, c = newWorld("big")
	w.list[0].Size, w.slow = large+1, turn
	c.Round(t.Context())
	if w.copy.State != outputto.Copying || w.copy.Attempts != 0 || w.copy.Upload != "upload_1" || !w.copy.NextAt.Equal(w.time) {
		t.Errorf("%+v", w.copy)
	}
}
