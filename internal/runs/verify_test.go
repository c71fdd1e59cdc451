package runs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
)

// counted counts how often objects are opened.
type counted struct {
	runs.Objects
	mu     sync.Mutex
	opened map[string]int
}

func (c *counted) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	c.mu.Lock()
	c.opened[filepath.Base(key)]++
	c.mu.Unlock()
	return c.Objects.Open(ctx, key, offset, length)
}

// settled waits until nothing is being hashed any more.
func settled(t *testing.T, v *runs.Verifier, list []runs.Output) []bool {
	t.Helper()
	for {
		got, err := v.Begin(t.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		if got.Pending == 0 {
			return got.Changed
		}
		<-got.Ended
	}
}

// Objects whose marks have changed are hashed once, and not again by another process.
func TestVerifierRenewsAndRejectsMarks(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		folder := filepath.Join(t.TempDir(), "objects")
		d, err := disk.Open(t.Context(), folder, nil, b.clock.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		all := objects.Kept{Store: d, Presigner: d}
		r := b.start(b.owner, b.workflow(`{"nodes":[{"id":"a","command":"true","outputs":{"o":{"path":"*","many":true}}}]}`))
		place := fmt.Sprintf("teams/%s/runs/%s/", b.owner.Team, r.ID)
		var made []runs.Output
		for _, name := range []string{"copied", "changed", "longer", "gone", "same", "empty", "folder", "part"} {
			o := b.put(all, place+name, strings.TrimPrefix("text of "+name, "text of empty"))
			o.Node, o.Port = "a", "o"
			if name == "folder" || name == "part" {
				data := b.put(all, place+"data-"+name, "bytes of "+name)
				o.Folder = &runs.Folder{Data: data.Blob, SHA256: data.SHA256, Mark: data.Mark, Bytes: data.Size, Files: 1}
			}
			made = append(made, o)
		}
		b.carryOut(r.ID, lifecycle.Completed, runs.Step{Outputs: made})
		list := func() []runs.Output {
			t.Helper()
			l, err := b.db.OutputsOf(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		file := func(name string) string { return filepath.Join(folder, "objects", place, name) }
		rewrite := func(name, text string) {
			t.Helper()
			if err := errors.Join(os.Rename(file(name), file(name)+"~"), os.WriteFile(file(name), []byte(text), 0o600), os.Remove(file(name)+"~")); err != nil {
				t.Fatal(err)
			}
		}
		rewrite("copied", "text of copied")
		rewrite("changed", "other of change")
		rewrite("longer", "text of longer!")
		rewrite("empty", "")
		rewrite("data-folder", "bytes of folder")
		rewrite("data-part", "others of par")
		if err := os.Remove(file("gone")); err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{"copied": false, "changed": true, "longer": true, "gone": true, "same": false, "empty": false, "folder": false, "part": true}
		read := map[string]int{"copied": 1, "changed": 1, "data-folder": 1, "data-part": 1}
		before := list()
		for range 2 { // the second has a process of its own, which knows what is recorded
			c := &counted{Objects: all, opened: map[string]int{}}
			v := b.verifier(c)
			for _, outputs := range [][]runs.Output{before, list()} { // also with what was known before
				for i, changed := range settled(t, v, outputs) {
					if name := outputs[i].Name; changed != want[name] {
						t.Errorf("%s is changed: %v", name, changed)
					}
				}
			}
			c.mu.Lock()
			for name, n := range c.opened {
				if n != read[name] {
					t.Errorf("%s was read %d times, want %d", name, n, read[name])
				}
			}
			c.mu.Unlock()
			clear(read)
		}
		rewrite("changed", "text of changed") // as it was
		if got := settled(t, b.verifier(all), list()); got[slices.IndexFunc(list(), func(o runs.Output) bool { return o.Name == "changed" })] {
			t.Error("what was restored is refused")
		}
	})
}

// stubs are objects and what is recorded of them. Opening one waits for what is sent on
// its team's channel, if there is one.
type stubs struct {
	mu     sync.Mutex
	text   map[string][]byte // zeros
	sum    map[int]string    // of so many of them
	mark   string
	opens  int
	gates  map[ids.Team]chan error
	marked map[string]string
}

func (s *stubs) StatOutput(_ context.Context, key string) (runs.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text[key] == nil {
		panic(errPanic)
	}
	return runs.Stored{Size: int64(len(s.text[key])), Mark: s.mark}, nil
}

func (*stubs) PresignOutput(context.Context, runs.Output, time.Time, string) (string, error) {
	return "", nil
}

func (s *stubs) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	s.mu.Lock()
	s.opens++
	gate, text := s.gates[teamOf(key)], s.text[key]
	s.mu.Unlock()
	if gate != nil {
		select {
		case err := <-gate:
			if errors.Is(err, errPanic) {
				panic(err)
			}
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return io.NopCloser(bytes.NewReader(text[offset : offset+length])), nil
}

func teamOf(key string) ids.Team { return ids.Team(strings.Split(key, "/")[0]) }

func (s *stubs) RecordedObject(_ context.Context, key string) (runs.Recorded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return runs.Recorded{Key: key, Team: teamOf(key), Size: int64(len(s.text[key])), SHA256: s.sum[len(s.text[key])], Mark: s.marked[key]}, nil
}

func (s *stubs) RenewMark(_ context.Context, key, _, mark string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked[key] = mark
	return nil
}

func (*stubs) RejectMark(context.Context, string, string, string) error {
	return errors.New("nothing has changed")
}

// add adds objects of a team, as outputs.
func (s *stubs) add(team ids.Team, n, size int) (list []runs.Output) {
	zeros := make([]byte, size)
	sum := sha256.Sum256(zeros)
	s.sum[size] = hex.EncodeToString(sum[:])
	for i := range n {
		key := fmt.Sprintf("%s/%d", team, i)
		s.text[key] = zeros
		list = append(list, runs.Output{Blob: key, Size: int64(size), Mark: "old"})
	}
	return list
}

// restored runs a verifier of objects that all have new marks.
func restored(t *testing.T, test func(t *testing.T, s *stubs, v *runs.Verifier)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stubs{text: map[string][]byte{}, sum: map[int]string{}, mark: "new", gates: map[ids.Team]chan error{}, marked: map[string]string{}}
		v := runs.NewVerifier(s, s)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = v.Run(ctx) })
		test(t, s, v)
		stop()
		running.Wait()
	})
}

// A request that cannot wait for the end is answered, and the work goes on. Further
// requests wait for the same work.
func TestVerifierAnswersBeforeItHasHashed(t *testing.T) {
	restored(t, func(t *testing.T, s *stubs, v *runs.Verifier) {
		list := s.add("red", 3000, 10)
		s.gates["red"] = make(chan error)
		for range 3 {
			_, err := v.Changed(t.Context(), list)
			e, ok := errors.AsType[*fault.Error](err)
			if !ok || e.Kind != fault.KindUnavailable || e.Code != "outputs_verifying" || e.RetryAfter == 0 || !strings.Contains(e.Message, "3000 files") {
				t.Fatalf("%v", err)
			}
		}
		close(s.gates["red"])
		changed, err := v.Changed(t.Context(), list)
		if err != nil || slices.Contains(changed, true) || s.opens != 3000 {
			t.Errorf("%v, opened %d times", err, s.opens)
		}
	})
}

// While large objects of one team are hashed, another team's object has its turn.
func TestVerifierGivesEachTeamItsTurn(t *testing.T) {
	restored(t, func(t *testing.T, s *stubs, v *runs.Verifier) {
		large, small := s.add("red", 8, 40<<20), s.add("blue", 1, 10)
		s.gates["red"] = make(chan error)
		if got, err := v.Begin(t.Context(), large); err != nil || got.Pending != 8 {
			t.Fatalf("%+v, %v", got, err)
		}
		synctest.Wait() // all workers are busy with the first slices
		got, err := v.Begin(t.Context(), small)
		if err != nil || got.Pending != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		for range 2 {
			s.gates["red"] <- nil
		}
		<-got.Ended
		if got, err := v.Begin(t.Context(), append(small, large...)); err != nil || got.Pending != 8 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A failure is the answer of whoever waits, and the next one tries again.
func TestVerifierTriesAgainAfterAFailure(t *testing.T) {
	restored(t, func(t *testing.T, s *stubs, v *runs.Verifier) {
		list, failure := s.add("red", 1, 10), errors.New("no answer")
		s.gates["red"] = make(chan error, 1)
		s.gates["red"] <- failure
		if _, err := v.Changed(t.Context(), list); !errors.Is(err, failure) {
			t.Errorf("%v", err)
		}
		s.gates["red"] <- failure
		got, err := v.Begin(t.Context(), list)
		for err == nil && got.Pending > 0 { // somebody who does not wait hears of it later
			<-got.Ended
			got, err = v.Begin(t.Context(), list)
		}
		if !errors.Is(err, failure) {
			t.Errorf("%v", err)
		}
		s.gates["red"] <- nil
		if changed, err := v.Changed(t.Context(), list); err != nil || changed[0] {
			t.Errorf("%v, %v", changed, err)
		}
	})
}

// errPanic has a store of objects panic.
var errPanic = errors.New("out of order")

// Objects are hashed in goroutines of their own, in which a panic would end the server.
func TestPanicOverAnObjectIsAFailureToVerifyIt(t *testing.T) {
	restored(t, func(t *testing.T, s *stubs, v *runs.Verifier) {
		list := s.add("red", 1, 10)
		s.gates["red"] = make(chan error, 1)
		s.gates["red"] <- errPanic
		if _, err := v.Changed(t.Context(), list); !panics.Is(err) {
			t.Errorf("%v", err)
		}
		s.gates["red"] <- nil
		if changed, err := v.Changed(t.Context(), list); err != nil || changed[0] {
			t.Errorf("%v, %v", changed, err)
		}
	})
}

func TestPanicOverAnOutputIsAFailureToLookAtIt(t *testing.T) {
	restored(t, func(t *testing.T, s *stubs, v *runs.Verifier) {
		list := []runs.Output{{Blob: "red/none", Mark: "old"}}
		if _, err := v.Changed(t.Context(), list); !panics.Is(err) {
			t.Errorf("%v", err)
		}
	})
}

// After an outage one request hears of all objects that failed, and the next one tries all
// of them again.
func TestVerifierForgetsAllFailuresAtOnce(t *testing.T) {
	restored(t, func(t *testing.T, s *stubs, v *runs.Verifier) {
		list, failure := s.add("red", 20, 10), errors.New("no answer")
		gate := make(chan error)
		s.gates["red"] = gate
		go func() {
			for range list {
				gate <- failure
			}
			close(gate)
		}()
		if _, err := v.Changed(t.Context(), list); !errors.Is(err, failure) {
			t.Errorf("%v", err)
		}
		if changed, err := v.Changed(t.Context(), list); err != nil || slices.Contains(changed, true) {
			t.Errorf("%v, %v", changed, err)
		}
	})
}

// Failures that nobody asks about do not keep the team's other objects from being hashed.
func TestVerifierForgetsFailuresThatNobodyAsksAbout(t *testing.T) {
	restored(t, func(t *testing.T, s *stubs, v *runs.Verifier) {
		list := s.add("red", 10_001, 10)
		gate := make(chan error)
		s.gates["red"] = gate
		if _, err := v.Begin(t.Context(), list[:10_000]); err != nil {
			t.Fatal(err)
		}
		for range 10_000 {
			gate <- errors.New("no answer")
		}
		close(gate)
		time.Sleep(2 * time.Minute) // of the bubble's clock
		if changed, err := v.Changed(t.Context(), list[10_000:]); err != nil || changed[0] {
			t.Errorf("%v, %v", changed, err)
		}
	})
}

// An object that is deleted while it is hashed is missing, which is no failure.
func TestVerifierTakesADeletedObjectAsMissing(t *testing.T) {
	restored(t, func(t *testing.T, s *stubs, v *runs.Verifier) {
		list := s.add("red", 1, 10)
		s.gates["red"] = make(chan error, 1)
		s.gates["red"] <- fault.NotFound("no such object")
		if changed, err := v.Changed(t.Context(), list); err != nil || !changed[0] {
			t.Errorf("%v, %v", changed, err)
		}
	})
}

// An object that is replaced while it is read is not verified by what was read.
func TestVerifierNoticesAReplacedObject(t *testing.T) {
	restored(t, func(t *testing.T, s *stubs, v *runs.Verifier) {
		list := s.add("red", 1, 10)
		s.gates["red"] = make(chan error)
		if _, err := v.Begin(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.mark = "newer"
		s.mu.Unlock()
		close(s.gates["red"])
		if _, err := v.Changed(t.Context(), list); !fault.Is(err, fault.KindUnavailable) || len(s.marked) > 0 {
			t.Errorf("%v, recorded %v", err, s.marked)
		}
		if changed, err := v.Changed(t.Context(), list); err != nil || changed[0] || s.marked["red/0"] != "newer" {
			t.Errorf("%v, %v, recorded %v", changed, err, s.marked)
		}
	})
}
