package outputcopy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// What stays as it is ends a copy with its words. What may be otherwise the next time
// is tried again, and what nobody foresaw is not shown.
func TestWhichFailuresEndACopy(t *testing.T) {
	t.Parallel()
	const unreachable = "the bucket cannot be reached, or the connection to it broke"
	for name, tt := range map[string]struct {
		trouble func(h *troubled, err error)
		err     error
		ends    bool
		says    string
	}{
		"the run is gone":            {func(h *troubled, err error) { h.list = func() error { return err } }, fault.NotFound("no such run"), true, "no such run"},
		"an output has changed":      {func(h *troubled, err error) { h.list = func() error { return err } }, fault.Conflict("x has changed"), true, "x has changed"},
		"our database is away":       {func(h *troubled, err error) { h.list = func() error { return err } }, errors.New("dial tcp 10.0.0.7"), false, unreachable},
		"the connection is gone":     {func(h *troubled, err error) { h.bucket = func() error { return err } }, fault.NotFound("no such connection"), true, "no such connection"},
		"it is for another bucket":   {func(h *troubled, err error) { h.bucket = func() error { return err } }, fault.Invalid("it is not for this bucket"), true, "it is not for this bucket"},
		"it is not the team's":       {func(h *troubled, err error) { h.bucket = func() error { return err } }, fault.Forbidden("not yours"), true, "not yours"},
		"the bucket does not answer": {func(h *troubled, err error) { h.bucket = func() error { return err } }, fault.Unavailable("it does not answer"), false, "it does not answer"},
		"the bucket says no":         {func(h *troubled, err error) { h.put = func(context.Context, Object) error { return err } }, fault.Forbidden("access denied"), false, "access denied"},
		"the line breaks":            {func(h *troubled, err error) { h.put = func(context.Context, Object) error { return err } }, errors.New("secret of the store"), false, unreachable},
		"an output is gone":          {func(h *troubled, err error) { h.open = func(string) (io.ReadCloser, error) { return nil, err } }, fault.NotFound("no such object"), true, "the output a/o/one is not there any more"},
		"our store is away":          {func(h *troubled, err error) { h.open = func(string) (io.ReadCloser, error) { return nil, err } }, errors.New("disk"), false, unreachable},
		"an output is cut off": {func(h *troubled, err error) {
			h.open = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("on")), err }
		}, nil, false, unreachable},
		"looking for outputs panics": {func(h *troubled, _ error) { h.list = func() error { panic("out of order") } }, nil, false, "an internal error stopped the copy"},
		"reading an output panics": {func(h *troubled, _ error) {
			h.open = func(string) (io.ReadCloser, error) { panic("out of order") }
		}, nil, false, "an internal error stopped the copy"},
		"an output has grown": {func(h *troubled, err error) {
			h.open = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("One more")), err }
		}, nil, true, "an output has changed since it was verified"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, c := inTrouble("one")
			tt.trouble(h, tt.err)
			if !c.Round(t.Context()) {
				t.Fatal("there was nothing to do")
			}
			want := outputto.Copying
			if tt.ends {
				want = outputto.Failed
			}
			if h.copy.State != want || h.copy.Message != tt.says || h.copy.Attempts != 1 || len(h.objects) > 0 {
				t.Errorf("%+v, objects %q", h.copy, h.objects)
			}
			if tt.ends == h.copy.EndedAt.IsZero() || tt.ends != h.copy.NextAt.IsZero() {
				t.Errorf("ended at %s, goes on at %s", h.copy.EndedAt, h.copy.NextAt)
			}
		})
	}
}

// The manifest says that everything is there: when it alone fails, nothing is written
// a second time.
func TestTheManifestAloneIsWrittenAgain(t *testing.T) {
	t.Parallel()
	h, c := inTrouble("one", "two")
	h.refused[manifestName] = true
	c.Round(t.Context())
	if h.copy.State != outputto.Copying || h.copy.Done != 2 || h.objects[manifestName] != nil {
		t.Fatalf("%+v", h.copy)
	}
	h.refused = nil
	c.Round(t.Context())
	if h.copy.State != outputto.Completed || h.copy.Message != "" || h.copy.Attempts != 0 || h.written("a/o/one") != 1 || h.written("a/o/two") != 1 || h.written(manifestName) != 1 {
		t.Errorf("%+v, written %q", h.copy, h.puts)
	}
}

// A run without outputs has a manifest that says so.
func TestACopyOfNothingIsComplete(t *testing.T) {
	t.Parallel()
	h, c := inTrouble()
	c.Round(t.Context())
	if text := string(h.objects[manifestName]); h.copy.State != outputto.Completed || h.copy.Files != 0 || !strings.Contains(text, `"files": []`) {
		t.Errorf("%+v, %s", h.copy, text)
	}
}

// A key may be as long as a bucket takes, and no longer.
func TestTheLongestKeyIsCopied(t *testing.T) {
	t.Parallel()
	for beyond, want := range []outputto.State{outputto.Completed, outputto.Failed} {
		h, c := inTrouble("one")
		h.copy.URL = "s3://lab/" + strings.Repeat("x", outputto.MaxKey-len("/a/o/one")+beyond) + "/"
		if c.Round(t.Context()); h.copy.State != want {
			t.Errorf("%d bytes too long: %s, %s", beyond, h.copy.State, h.copy.Message)
		}
	}
}

// A server that stops leaves what it did for another, who need not wait and does not
// count it as an attempt.
func TestAServerThatStopsLeavesACopyToOthers(t *testing.T) {
	t.Parallel()
	h, c := inTrouble("one", "two", "three")
	ctx, stop := context.WithCancel(t.Context())
	h.put = func(within context.Context, o Object) error {
		if o.Name != "a/o/two" {
			return nil
		}
		stop()
		<-within.Done()
		return within.Err()
	}
	var last time.Time
	h.save = func(_ outputto.Copy, until time.Time) error { last = until; return nil }
	h.copy.Attempts = 3
	c.Round(ctx)
	if h.copy.State != outputto.Copying || h.copy.Attempts != 3 || h.copy.Message != "" || !h.copy.NextAt.IsZero() || !last.IsZero() {
		t.Fatalf("%+v, it is the server's until %s", h.copy, last)
	}
	h.put = nil
	c.Round(t.Context())
	if h.copy.State != outputto.Completed || len(h.objects) != 4 {
		t.Errorf("%+v", h.copy)
	}
}

// Who has lost a copy to another stops, and writes nothing down over what that one did.
func TestWhoHasLostACopyStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, c := inTrouble("one")
		h.copy.Upload, h.copy.UploadOf = "upload_of_another", "a/o/one"
		before := h.copy
		var saves atomic.Int64
		h.save = func(outputto.Copy, time.Time) error {
			if saves.Add(1) == 1 {
				return errors.New("the database is away for a moment")
			}
			return fault.Conflict("it is another's")
		}
		h.put = func(ctx context.Context, _ Object) error {
			<-ctx.Done()
			return ctx.Err()
		}
		if !c.Round(t.Context()) {
			t.Fatal("there was nothing to do")
		}
		if h.copy != before || saves.Load() != 2 || len(h.aborted) > 0 || len(h.objects) > 0 {
			t.Errorf("%+v after %d times, aborted %q", h.copy, saves.Load(), h.aborted)
		}
	})
}

// A copy that takes long shows again and again how far it is, and stays its owner's.
func TestALongCopyShowsHowFarItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, c := inTrouble("one", "second")
		c.Now = time.Now
		var seen []string
		h.save = func(now outputto.Copy, until time.Time) error {
			if !until.IsZero() && !until.Equal(time.Now().Add(lease)) {
				t.Errorf("it is the owner's until %s", until)
			}
			seen = append(seen, fmt.Sprintf("%d of %d bytes", now.Copied, now.Bytes))
			return nil
		}
		h.put = func(_ context.Context, o Object) error {
			if o.Name == "a/o/second" {
				time.Sleep(2*beat + time.Second)
			}
			return nil
		}
		c.Round(t.Context())
		if want := []string{"3 of 9 bytes", "3 of 9 bytes", "9 of 9 bytes"}; !slices.Equal(seen, want) {
			t.Errorf("%q", seen)
		}
	})
}

// A claim that fails is no work: the next look is later. Nor is there any without a run.
func TestWithoutACopyThereIsNothingToDo(t *testing.T) {
	t.Parallel()
	h, c := inTrouble("one")
	h.claim = func() error { return errors.New("the database is away") }
	if c.Round(t.Context()) || len(h.objects) > 0 {
		t.Error("something was done")
	}
	h.claim, h.copy = nil, outputto.Copy{}
	if c.Round(t.Context()) || len(h.objects) > 0 {
		t.Error("something was done")
	}
}

// The copier looks again and again, goes on after failures of the database, and returns
// when it is told to.
func TestTheCopierRunsUntilItIsStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, c := inTrouble("one")
		var looks atomic.Int64
		h.claim = func() error {
			if looks.Add(1) != 11 {
				return errors.New("the database is away")
			}
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := looks.Load(); h.copy.State != outputto.Completed || n > 3+int64(time.Minute/look) {
			t.Errorf("%s after %d looks", h.copy.State, n)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// While ten teams, which one account can make in a day, have as many copies to slow
// buckets as they may, another team's outputs are copied.
func TestSlowBucketsHoldUpNoOtherTeam(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slow = 10 * TeamAtOnce
		h, c := inTrouble("one")
		ctx, stop := context.WithCancel(t.Context())
		var claims atomic.Int64
		h.claim = func() error {
			switch n := claims.Add(1); {
			case n <= slow:
				h.team(ids.Team(fmt.Sprint("team_slow", n/TeamAtOnce)))
			case n == slow+1:
				h.team("team_other")
			default:
				return errors.New("there is nothing more")
			}
			return nil
		}
		var holding, other atomic.Int64
		c.Outputs = outputs(func(team ids.Team) (runs.Run, []runs.Listed, error) {
			if team == "team_other" {
				other.Add(1)
				return runs.Run{}, nil, fault.NotFound("there is no more of this run")
			}
			holding.Add(1)
			<-ctx.Done()
			return runs.Run{}, nil, ctx.Err()
		})
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		if holding.Load() != slow || other.Load() != 1 {
			t.Errorf("%d slow copies are under way, and %d of the other team", holding.Load(), other.Load())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

type outputs func(team ids.Team) (runs.Run, []runs.Listed, error)

func (o outputs) OutputsToCopy(_ context.Context, team ids.Team, _ ids.Run) (runs.Run, []runs.Listed, error) {
	return o(team)
}

func (h *troubled) team(id ids.Team) {
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	h.copy.Team = id
}

// parts takes a large object in parts of a size, side by side, and completes it.
func (h *troubled) parts(size int64) func(context.Context, Object, outputto.Large) error {
	return func(ctx context.Context, o Object, in outputto.Large) error {
		if in.Upload == "" {
			if err := in.Begun(ctx, "upload_1"); err != nil {
				return err
			}
		}
		for from := int64(0); from < o.Size; from += size {
			part, err := in.Open(ctx, from, min(size, o.Size-from))
			if err != nil {
				return err
			}
			n, err := io.Copy(io.Discard, part)
			if err = errors.Join(err, part.Close()); err != nil {
				return err
			}
			in.Arrived(n)
		}
		if err := in.Whole(); err != nil {
			return err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.puts = append(h.puts, o.Name)
		return nil
	}
}

// A large file goes in parts; it becomes an object only when all of it is what was
// verified, and an upload that does not is aborted.
func TestALargeFileBecomesAnObjectWhenItIsWhole(t *testing.T) {
	t.Parallel()
	big := bytes.Repeat([]byte("0123456789abcdef"), large/16+1)
	for name, changed := range map[string]bool{"as it was verified": false, "another": true} {
		h, c := inTrouble("small", "big", "last")
		h.world.list[1].Size, h.world.list[1].SHA256 = int64(len(big)), sumOf(big)
		served := big
		if changed {
			served = bytes.Clone(big)
			served[len(served)-1] ^= 1
		}
		h.large = h.parts(16 << 20)
		c.Objects = objects(func(key string, from, length int64) (io.ReadCloser, error) {
			if key == "big" {
				return io.NopCloser(bytes.NewReader(served[from : from+length])), nil
			}
			return h.world.Open(t.Context(), key, from, length)
		})
		c.Round(t.Context())
		if !changed && (h.copy.State != outputto.Completed || h.copy.Upload != "" || h.copy.Copied != h.copy.Bytes || h.written("a/o/big") != 1 || h.written("a/o/last") != 1 || len(h.aborted) > 0) {
			t.Errorf("%s: %+v, written %q", name, h.copy, h.puts)
		}
		if changed && (h.copy.State != outputto.Failed || h.copy.Message != "an output has changed since it was verified" || h.written("a/o/big") != 0 || len(h.aborted) != 1 || h.copy.Upload != "") {
			t.Errorf("%s: %+v, written %q, aborted %q", name, h.copy, h.puts, h.aborted)
		}
	}
}

type objects func(key string, from, length int64) (io.ReadCloser, error)

func (o objects) Open(_ context.Context, key string, from, length int64) (io.ReadCloser, error) {
	return o(key, from, length)
}

// An upload that cannot be aborted, because the bucket or its connection is gone, does
// not keep a copy from ending.
func TestACopyEndsThoughNothingCanBeAborted(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(h *troubled){
		"the bucket refuses":     func(h *troubled) { h.abort = errors.New("no such upload") },
		"the connection is gone": func(h *troubled) { h.bucket = func() error { return fault.NotFound("no such connection") } },
	} {
		h, c := inTrouble("big")
		h.world.list[0].Size = large + 1
		if c.Round(t.Context()); h.copy.Upload != "upload_1" {
			t.Fatalf("%+v", h.copy)
		}
		trouble(h)
		h.copy.Attempts = len(pauses)
		if c.Round(t.Context()); h.copy.State != outputto.Failed || h.copy.EndedAt.IsZero() {
			t.Errorf("%s: %+v", name, h.copy)
		}
	}
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
