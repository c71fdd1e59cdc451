package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// answers is a remote that does as it is told with each question.
type answers struct {
	asked atomic.Int64
	read  func(ask, from, length int64) (io.Reader, error)
}

func (a *answers) Open(_ context.Context, _ ids.Team, _ addresses.Object, from, length int64) (io.ReadCloser, error) {
	r, err := a.read(a.asked.Add(1), from, length)
	return io.NopCloser(r), err
}

// brokenOff gives a text and then fails.
func brokenOff(text string, err error) io.Reader {
	return io.MultiReader(strings.NewReader(text), &failingReader{err})
}

type failingReader struct{ err error }

func (f *failingReader) Read([]byte) (int, error) { return 0, f.err }

const secretLink = "https://data.example.org/reads.fq?sig=secret"

// What is worth another try is tried, and what a person reads in the end says what
// to do and nothing that is secret.
func TestWhatARemoteRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err         error
		code, words string
		asked       int64
	}{
		"a broken line":      {errors.New("reset by peer"), unreachableCode, "breaks off again and again", maxTries},
		"a busy server":      {fault.Unavailable("come back"), unreachableCode, "breaks off again and again", maxTries},
		"nobody may":         {fault.Forbidden("the bucket refuses it"), unreachableCode, "cannot be read: the bucket refuses it", 1},
		"it is gone":         {fault.NotFound("there is no such object"), unreachableCode, "there is no such object", 1},
		"it is another":      {fault.Conflict("etag"), changedCode, "start it again to use what is there now", 1},
		"our disk is full":   {fmt.Errorf("write: %w", unix.ENOSPC), diskFullCode, "no room for reads.fq", 1},
		"our quota is full":  {unix.EDQUOT, diskFullCode, "no room for reads.fq", 1},
		"the guard says low": {fault.Conflict("no room").WithCode(diskFullCode), diskFullCode, "no room", 1},
	} {
		for _, etag := range []string{"e", ""} {
			t.Run(name+" "+etag, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					remote := &answers{read: func(_, _, _ int64) (io.Reader, error) { return brokenOff("", tt.err), nil }}
					o := addresses.Object{Address: addresses.Address{URL: secretLink}, Size: 10, ETag: etag}
					_, err := NewFetched(t.TempDir(), remote, 1<<40, neverLow).Fetch(t.Context(), "team_1", "run_1", o, ignore)
					if codeOf(err) != tt.code || !strings.Contains(err.Error(), tt.words) || strings.Contains(err.Error(), "secret") {
						t.Errorf("%v (%s)", err, codeOf(err))
					}
					if n := remote.asked.Load(); n != tt.asked {
						t.Errorf("asked %d times", n)
					}
				})
			})
		}
	}
}

// A line that breaks off again and again, and brings something each time, gets there.
func TestATransferThatMovesIsNotGivenUp(t *testing.T) {
	t.Parallel()
	const text = "one byte at a time, more often than there are tries"
	synctest.Test(t, func(t *testing.T) {
		remote := &answers{read: func(_, from, length int64) (io.Reader, error) {
			if from+length != int64(len(text)) {
				t.Errorf("%d bytes from %d on are asked for", length, from)
			}
			return brokenOff(text[from:from+1], errors.New("broken off")), nil
		}}
		dir := t.TempDir()
		s := NewFetched(dir, remote, 1<<40, neverLow)
		o := object(len(text))
		sum, err := s.Fetch(t.Context(), "team_1", "run_1", o, ignore)
		if err != nil || remote.asked.Load() != int64(len(text)) {
			t.Fatal(remote.asked.Load(), err)
		}
		o.Learnt = sum
		f, err := s.Open("team_1", o)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got, err := io.ReadAll(f); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// Without an etag nothing says which bytes belong together, so that all come in one
// go, for one run alone.
func TestWhatHasNoETag(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		size       int64
		text, code string
		breaksOff  bool // the first time
	}{
		"as large as it was":         {size: 10, text: "0123456789"},
		"of a size nobody knows":     {size: -1, text: "0123456789"},
		"shorter than it was":        {size: 11, text: "0123456789", code: changedCode},
		"longer than it was":         {size: 9, text: "0123456789", code: changedCode},
		"read from the first again":  {size: 10, text: "0123456789", breaksOff: true},
		"empty":                      {size: 0},
		"empty, which nobody knows":  {size: -1},
		"empty, and once was longer": {size: 1, code: changedCode},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				remote := &answers{read: func(ask, from, length int64) (io.Reader, error) {
					if from != 0 || length != -1 {
						t.Errorf("%d bytes from %d on are asked for", length, from)
					}
					if tt.breaksOff && ask == 1 {
						return brokenOff("98765", errors.New("broken off")), nil
					}
					return strings.NewReader(tt.text), nil
				}}
				dir := t.TempDir()
				s := NewFetched(dir, remote, 1<<40, neverLow)
				o := addresses.Object{Address: addresses.Address{URL: "https://data.example.org/a"}, Size: tt.size}
				sum, err := s.Fetch(t.Context(), "team_1", "run_1", o, ignore)
				if codeOf(err) != tt.code || (tt.code == "") != (err == nil) {
					t.Fatal(err)
				}
				if err != nil {
					return
				}
				before := remote.asked.Load()
				if again, err := s.Fetch(t.Context(), "team_1", "run_2", o, ignore); err != nil || again != sum || remote.asked.Load() != before+1 {
					t.Errorf("another run was given what the first has read: %s, %v", again, err)
				}
				if left := onDisk(t, dir, ""); len(left) != 1 {
					t.Errorf("%q", left)
				}
			})
		})
	}
}

// A file of unknown length cannot fill the disk on its way.
func TestATransferWithoutEndStopsWhenTheDiskIsLow(t *testing.T) {
	t.Parallel()
	var low atomic.Bool
	remote := &answers{read: func(_, _, _ int64) (io.Reader, error) { return &endlessZeros{&low}, nil }}
	o := addresses.Object{Address: addresses.Address{URL: "https://data.example.org/a"}, Size: -1}
	_, err := NewFetched(t.TempDir(), remote, 1<<40, low.Load).Fetch(t.Context(), "team_1", "run_1", o, ignore)
	if codeOf(err) != diskFullCode {
		t.Error(err)
	}
}

// endlessZeros have no end, and soon there is no room for them.
type endlessZeros struct{ low *atomic.Bool }

func (z *endlessZeros) Read(p []byte) (int, error) {
	z.low.Store(true)
	clear(p)
	return len(p), nil
}

// What is not what was asked for leaves nothing behind, so that the next try reads it anew.
func TestABadTransferIsReadAgain(t *testing.T) {
	t.Parallel()
	bytes, sum := random(1000)
	dir := t.TempDir()
	f := &far{bytes: append([]byte("x"), bytes[1:]...), left: -1}
	s := NewFetched(dir, f, 1<<40, neverLow)
	o := object(len(bytes))
	o.SHA256 = sum
	if _, err := s.Fetch(t.Context(), "team_1", "run_1", o, ignore); codeOf(err) != changedCode || !strings.Contains(err.Error(), sum) {
		t.Fatal(err)
	}
	if left := onDisk(t, dir, ""); len(left) != 0 {
		t.Errorf("%q", left)
	}
	f.mu.Lock()
	f.bytes = bytes
	f.mu.Unlock()
	if got, err := s.Fetch(t.Context(), "team_1", "run_1", o, ignore); err != nil || got != sum {
		t.Error(got, err)
	}
}

func TestATeamIsForgottenAlone(t *testing.T) {
	t.Parallel()
	bytes, sum := random(1000)
	dir := t.TempDir()
	s := NewFetched(dir, &far{bytes: bytes, left: -1}, 1<<40, neverLow)
	if teams, err := s.Teams(); err != nil || len(teams) != 0 {
		t.Errorf("before anything was fetched: %v, %v", teams, err)
	}
	o := object(len(bytes))
	for _, team := range []ids.Team{"team_1", "team_2"} {
		if _, err := s.Fetch(t.Context(), team, ids.Run("run_"+team), o, ignore); err != nil {
			t.Fatal(err)
		}
	}
	o.Learnt = sum
	given, err := s.Open("team_1", o)
	if err != nil {
		t.Fatal(err)
	}
	defer given.Close()
	if err := errors.Join(s.Forget("team_1"), s.Forget("team_1")); err != nil {
		t.Fatal(err)
	}
	if teams, err := s.Teams(); err != nil || fmt.Sprint(teams) != "[team_2]" {
		t.Errorf("%v, %v", teams, err)
	}
	if _, err := s.Open("team_1", o); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if got, err := io.ReadAll(given); err != nil || len(got) != len(bytes) {
		t.Errorf("who had it open read %d bytes: %v", len(got), err)
	}
	if !s.Has("team_2", "run_3", o) {
		t.Error("another team's went with it")
	}
	// What was in memory of it does not stand for the file.
	if got, err := s.Fetch(t.Context(), "team_1", "run_4", object(len(bytes)), ignore); err != nil || got != sum || !s.Has("team_1", "run_4", o) {
		t.Error(got, err)
	}
}

// A panic while a file is read is the error of those who wait for it. It gives its turn
// back, so that the next one is read.
func TestPanicIsAnErrorOfTheTransfer(t *testing.T) {
	t.Parallel()
	for name, etag := range map[string]string{"in parts": "e", "as a whole": ""} {
		broken := &answers{read: func(int64, int64, int64) (io.Reader, error) { panic("out of order") }}
		s := NewFetched(t.TempDir(), broken, 1<<40, neverLow)
		o := object(4)
		o.ETag = etag
		for range maxTeamFiles + 1 {
			if _, err := s.Fetch(t.Context(), "team_1", "run_1", o, func(int64) {}); !panics.Is(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		broken.read = func(int64, int64, int64) (io.Reader, error) { return strings.NewReader("text"), nil }
		if _, err := s.Fetch(t.Context(), "team_1", "run_1", o, func(int64) {}); err != nil {
			t.Errorf("%s, once it works: %v", name, err)
		}
	}
}
