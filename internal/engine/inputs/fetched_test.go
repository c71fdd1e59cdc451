package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// far is an object elsewhere, whose host breaks off as it is told.
type far struct {
	bytes []byte

	mu    sync.Mutex
	left  int64 // bytes until it refuses everything; negative: it never does
	given int64
	asked int
}

func (f *far) Open(ctx context.Context, _ ids.Team, _ addresses.Object, from, length int64) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.left == 0 {
		return nil, fault.Forbidden("not now")
	}
	end := int64(len(f.bytes))
	if length >= 0 {
		end = from + length
	}
	return &stretch{f, ctx, from, end}, nil
}

type stretch struct {
	f        *far
	ctx      context.Context
	from, to int64
}

func (s *stretch) Read(p []byte) (int, error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.ctx.Err() != nil {
		return 0, s.ctx.Err()
	}
	if s.from == s.to {
		return 0, io.EOF
	}
	n := min(int64(len(p)), s.to-s.from)
	if s.f.left >= 0 {
		if n = min(n, s.f.left); n == 0 {
			return 0, errors.New("broken off")
		}
		s.f.left -= n
	}
	copy(p, s.f.bytes[s.from:s.from+n])
	s.from, s.f.given = s.from+n, s.f.given+n
	return int(n), nil
}

func (s *stretch) Close() error { return nil }

func random(size int) ([]byte, string) {
	bytes := make([]byte, size)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(bytes)
	sum := sha256.Sum256(bytes)
	return bytes, hex.EncodeToString(sum[:])
}

func object(size int) addresses.Object {
	return addresses.Object{Address: addresses.Address{URL: "s3://lab/large"}, Endpoint: "https://s3.example.org", Size: int64(size), ETag: "e"}
}

func neverLow() bool { return false }

// A worker that was killed, or sent away, goes on with the parts that are whole.
func TestATransferGoesOnWhereItBrokeOff(t *testing.T) {
	t.Parallel()
	bytes, sum := random(5*partSize + 7)
	dir := t.TempDir()
	f := &far{bytes: bytes, left: 4*partSize + 100}
	_, err := NewFetched(dir, f, 1<<40, neverLow).Fetch(t.Context(), "team_1", "run_1", object(len(bytes)), func(int64) {})
	if known, ok := errors.AsType[*fault.Error](err); !ok || known.Code != unreachableCode {
		t.Fatal(err)
	}
	marks, err := filepath.Glob(filepath.Join(dir, fetchedFolder, "team_1", "*", "*"+marksSuffix))
	if err != nil || len(marks) != 1 {
		t.Fatal(marks, err)
	}
	text, err := os.ReadFile(marks[0])
	if err != nil {
		t.Fatal(err)
	}
	missing := int64(len(bytes))
	for n, mark := range text {
		if mark == 1 {
			missing -= min(partSize, int64(len(bytes)-n*partSize))
		}
	}
	if missing == int64(len(bytes)) {
		t.Fatal("nothing was whole")
	}
	f.mu.Lock()
	f.left, f.given = -1, 0
	f.mu.Unlock()
	s := NewFetched(dir, f, 1<<40, neverLow) // as the next process does
	got, err := s.Fetch(t.Context(), "team_1", "run_1", object(len(bytes)), func(int64) {})
	if err != nil || got != sum {
		t.Fatal(got, err)
	}
	if f.given != missing {
		t.Errorf("%d bytes were read, and %d were missing", f.given, missing)
	}
	left, err := filepath.Glob(filepath.Join(dir, fetchedFolder, "team_1", "*", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != sum {
		t.Errorf("%q, %v", left, err)
	}
}

func TestManyWhoWantTheSameShareOneTransfer(t *testing.T) {
	t.Parallel()
	bytes, sum := random(1000)
	f := &far{bytes: bytes, left: -1}
	s := NewFetched(t.TempDir(), f, 1<<40, neverLow)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			got, err := s.Fetch(t.Context(), "team_1", ids.Run([]string{"run_1", "run_2"}[n%2]), object(len(bytes)), func(int64) {})
			if err != nil || got != sum {
				t.Error(got, err)
			}
		})
	}
	all.Wait()
	if f.asked != 1 {
		t.Errorf("asked %d times", f.asked)
	}
	// Another team, and another endpoint, have nothing of it, whatever they say it is.
	o := object(len(bytes))
	o.Learnt = sum
	if s.Has("team_2", "run_3", o) {
		t.Error("another team's")
	}
	o.Endpoint = "https://evil.example.org"
	if s.Has("team_1", "run_3", o) {
		t.Error("another endpoint's")
	}
}

func TestATransferThatNobodyWantsEnds(t *testing.T) {
	t.Parallel()
	bytes, _ := random(1000)
	entered := make(chan struct{})
	s := NewFetched(t.TempDir(), blocked{&far{bytes: bytes, left: -1}, entered}, 1<<40, neverLow)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if _, err := s.Fetch(ctx, "team_1", "run_1", object(len(bytes)), func(int64) {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// blocked never answers.
type blocked struct {
	*far
	entered chan struct{}
}

func (b blocked) Open(ctx context.Context, _ ids.Team, _ addresses.Object, _, _ int64) (io.ReadCloser, error) {
	close(b.entered)
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestWhatNoRunUsesMakesRoom(t *testing.T) {
	t.Parallel()
	bytes, sum := random(1000)
	f := &far{bytes: bytes, left: -1}
	s := NewFetched(t.TempDir(), f, 10, neverLow)
	o := object(len(bytes))
	if _, err := s.Fetch(t.Context(), "team_1", "run_1", o, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	o.Learnt = sum
	if err := s.MakeRoom(); err != nil || !s.Has("team_1", "run_1", o) {
		t.Error("it went while a run used it", err)
	}
	if err := s.Release("run_1"); err != nil || s.Has("team_1", "run_1", o) {
		t.Error("it stayed beyond the limit", err)
	}
}

func TestAFullDiskIsSaid(t *testing.T) {
	t.Parallel()
	bytes, _ := random(1000)
	s := NewFetched(t.TempDir(), &far{bytes: bytes, left: -1}, 10, func() bool { return true })
	_, err := s.Fetch(t.Context(), "team_1", "run_1", object(len(bytes)), func(int64) {})
	if known, ok := errors.AsType[*fault.Error](err); !ok || known.Code != diskFullCode {
		t.Error(err)
	}
}
