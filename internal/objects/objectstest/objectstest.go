// Package objectstest is what every store of objects is held to. Each test
// works in a store of its own.
package objectstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
)

// Subject is a store under test.
type Subject struct {
	objects.Store
	objects.Presigner
}

// Opener gives an empty store until the test ends, and the origin that serves
// its addresses where the store does not know it.
type Opener func(t *testing.T) (s Subject, base string)

// Run holds the stores that open gives to all promises. It must not run
// beside other tests, because it watches the memory of the process.
func Run(t *testing.T, open Opener) {
	t.Helper()
	t.Run("a large object passes through little memory", func(t *testing.T) { largeObject(t, open) })
	for name, test := range map[string]func(*testing.T, Subject, string){
		"what was put is there":                      putIsThere,
		"a part can be read":                         ranges,
		"an object is never overwritten":             neverOverwritten,
		"of writers at the same time one wins":       oneWriterWins,
		"a source that fails leaves nothing":         failedSource,
		"a source of another length leaves nothing":  otherLength,
		"deleting is final and may be repeated":      deletes,
		"a prefix does not touch its neighbour":      neighbours,
		"lists go on where they stopped":             pages,
		"a link lives on its own":                    links,
		"hostile keys are refused":                   hostileKeys,
		"keys with odd letters work everywhere":      oddKeys,
		"a sweep leaves alone what is settled":       sweeps,
		"an upload is there when it is settled":      uploadArrives,
		"a second upload changes nothing":            secondUpload,
		"those who settle at once see the same":      settledOnce,
		"an upload is taken only as it was signed":   uploadAsSigned,
		"no parameter of an upload can be changed":   uploadTampered,
		"a download is an attachment with its name":  downloads,
		"no parameter of a download can be changed":  downloadTampered,
		"a link expires":                             linkExpires,
		"what makes no sense is not signed":          nonsenseIsNotSigned,
		"an unsettled upload goes with its prefix":   unsettledUploadIsDeleted,
		"a cancelled upload ends and leaves nothing": cancelled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, base := open(t)
			test(t, s, base)
		})
	}
}

func putIsThere(t *testing.T, s Subject, _ string) {
	for name, size := range map[string]int64{"known": 5, "unknown": -1} {
		key := "teams/a/" + name
		put, err := s.Put(t.Context(), key, "text/plain", strings.NewReader("hello"), size)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte("hello"))
		if put.Key != key || put.Size != 5 || put.ContentType != "text/plain" || put.SHA256 != hex.EncodeToString(sum[:]) ||
			put.Mark == "" || put.ModifiedAt.IsZero() {
			t.Errorf("put: %+v", put)
		}
		o, err := s.Stat(t.Context(), key)
		if err != nil || o.Key != key || o.Size != 5 || o.Mark != put.Mark {
			t.Errorf("stat: %+v, %v", o, err)
		}
		want(t, s, key, "hello")
	}
	if _, err := s.Put(t.Context(), "empty", "text/plain", strings.NewReader(""), 0); err != nil {
		t.Fatal(err)
	}
	want(t, s, "empty", "")
	absent(t, s, "teams/a")
	absent(t, s, "teams/a/known/below")
}

func ranges(t *testing.T, s Subject, _ string) {
	put(t, s, "k", "0123456789")
	for _, tt := range []struct {
		offset, length int64
		want           string
	}{
		{0, -1, "0123456789"},
		{3, -1, "3456789"},
		{3, 2, "34"},
		{3, 0, ""},
		{0, 0, ""},
		{8, 100, "89"},
		{10, -1, ""},
		{10, 5, ""},
	} {
		if got := read(t, s, "k", tt.offset, tt.length); got != tt.want {
			t.Errorf("%d+%d: %q, want %q", tt.offset, tt.length, got, tt.want)
		}
	}
	for _, offset := range []int64{-1, 11} {
		_, err := s.Open(t.Context(), "k", offset, 1)
		wantKind(t, err, fault.KindInvalid)
	}
	for _, length := range []int64{-1, 0, 1} {
		_, err := s.Open(t.Context(), "absent", 0, length)
		wantKind(t, err, fault.KindNotFound)
	}
}

func neverOverwritten(t *testing.T, s Subject, _ string) {
	put(t, s, "a/k", "first")
	for _, size := range []int64{6, -1} {
		_, err := s.Put(t.Context(), "a/k", "text/plain", strings.NewReader("second"), size)
		wantKind(t, err, fault.KindConflict)
	}
	put(t, s, "b", "other")
	wantKind(t, s.Link(t.Context(), "b", "a/k"), fault.KindConflict)
	want(t, s, "a/k", "first")
}

func oneWriterWins(t *testing.T, s Subject, _ string) {
	const writers = 8
	var wg sync.WaitGroup
	errs := make([]error, writers)
	bodies := make([]string, writers)
	for i := range writers {
		bodies[i] = strings.Repeat(string(rune('a'+i)), 100_000)
		wg.Go(func() {
			_, errs[i] = s.Put(t.Context(), "teams/a/k", "text/plain", strings.NewReader(bodies[i]), 100_000)
		})
	}
	wg.Wait()
	won := slices.Index(errs, nil)
	for i, err := range errs {
		if i != won {
			wantKind(t, err, fault.KindConflict)
		}
	}
	if won < 0 || read(t, s, "teams/a/k", 0, -1) != bodies[won] {
		t.Errorf("writer %d won, and the object is another's", won)
	}
}

// broken fails after a few bytes.
func broken(why error) io.Reader {
	return io.MultiReader(strings.NewReader(strings.Repeat("x", 200_000)), readerFunc(func([]byte) (int, error) { return 0, why }))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func failedSource(t *testing.T, s Subject, _ string) {
	why := errors.New("the cable was pulled")
	for _, size := range []int64{300_000, -1} {
		if _, err := s.Put(t.Context(), "a/k", "text/plain", broken(why), size); !errors.Is(err, why) {
			t.Errorf("announced %d: %v", size, err)
		}
		nothing(t, s)
	}
	put(t, s, "a/k", "whole")
}

func otherLength(t *testing.T, s Subject, _ string) {
	for _, size := range []int64{0, 1, 4, 6, 100} {
		_, err := s.Put(t.Context(), "a/k", "text/plain", strings.NewReader("hello"), size)
		wantKind(t, err, fault.KindInvalid)
		nothing(t, s)
	}
}

func cancelled(t *testing.T, s Subject, _ string) {
	ctx, cancel := context.WithCancel(t.Context())
	endless := readerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	})
	if _, err := s.Put(ctx, "a/k", "text/plain", endless, -1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	nothing(t, s)
}

func deletes(t *testing.T, s Subject, _ string) {
	put(t, s, "a/b/c", "one")
	put(t, s, "a/b/d", "two")
	for range 2 {
		if err := s.Delete(t.Context(), "a/b/c"); err != nil {
			t.Fatal(err)
		}
		absent(t, s, "a/b/c")
	}
	for _, key := range []string{"a/b", "a/b/d/below", "never/was"} {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	want(t, s, "a/b/d", "two")
	put(t, s, "a/b/c", "again")
}

func neighbours(t *testing.T, s Subject, _ string) {
	for _, key := range []string{"teams/a/1", "teams/a/x/2", "teams/a/x/y/3", "teams/ab/4", "teams/a-/5", "teams/b"} {
		put(t, s, key, "x")
	}
	for _, wantN := range []int{3, 0} {
		if n, err := s.DeletePrefix(t.Context(), "teams/a/"); err != nil || n != wantN {
			t.Errorf("deleted %d, %v; want %d", n, err, wantN)
		}
	}
	wantKeys(t, s, "", "", 10, "teams/a-/5", "teams/ab/4", "teams/b")
	for _, prefix := range []string{"", "/", "teams", "teams/../", "../"} {
		_, err := s.DeletePrefix(t.Context(), prefix)
		wantKind(t, err, fault.KindInvalid)
	}
	wantKeys(t, s, "", "", 10, "teams/a-/5", "teams/ab/4", "teams/b")
}

func pages(t *testing.T, s Subject, _ string) {
	nothing(t, s)
	// A slash sorts after a hyphen and a dot, and before digits and letters.
	all := []string{"a-b", "a.b/1", "a/1", "a/2/x", "a/2/y", "a/3", "a0", "ab/1", "b"}
	for _, key := range slices.Backward(all) {
		put(t, s, key, key)
	}
	for size := 1; size <= len(all)+1; size++ {
		var got []string
		for after := ""; ; {
			page, err := s.List(t.Context(), "", after, size)
			if err != nil || len(page) > size {
				t.Fatalf("%d objects, %v", len(page), err)
			}
			for _, o := range page {
				got = append(got, o.Key)
			}
			if len(page) < size {
				break
			}
			after = page[len(page)-1].Key
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("pages of %d: %s", size, diff)
		}
	}
	wantKeys(t, s, "a/", "", 10, "a/1", "a/2/x", "a/2/y", "a/3")
	wantKeys(t, s, "a/", "a/2/x", 2, "a/2/y", "a/3")
	wantKeys(t, s, "a/", "a/2", 2, "a/2/x", "a/2/y")
	wantKeys(t, s, "a/", "b", 10)
	wantKeys(t, s, "ab/", "a", 10, "ab/1")
	wantKeys(t, s, "b/", "", 10)
	page, err := s.List(t.Context(), "a/2/", "", 1)
	if err != nil || len(page) != 1 || page[0].Size != 5 || page[0].Mark == "" || page[0].ModifiedAt.IsZero() {
		t.Errorf("%+v, %v", page, err)
	}
	for _, bad := range []struct {
		prefix, after string
		limit         int
	}{{"a", "", 1}, {"../", "", 1}, {"", "../x", 1}, {"", "", 0}, {"", "", objects.MaxPage + 1}} {
		_, err := s.List(t.Context(), bad.prefix, bad.after, bad.limit)
		wantKind(t, err, fault.KindInvalid)
	}
}

func links(t *testing.T, s Subject, _ string) {
	put(t, s, "a/1", "bytes")
	if err := s.Link(t.Context(), "a/1", "b/c/2"); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "a/1"); err != nil {
		t.Fatal(err)
	}
	want(t, s, "b/c/2", "bytes")
	wantKind(t, s.Link(t.Context(), "a/1", "b/3"), fault.KindNotFound)
	wantKind(t, s.Link(t.Context(), "b/c", "b/3"), fault.KindNotFound)
	wantKeys(t, s, "", "", 10, "b/c/2")
}

func sweeps(t *testing.T, s Subject, _ string) {
	put(t, s, "a/1", "bytes")
	for _, before := range []time.Duration{-time.Hour, time.Hour} {
		if n, err := s.Sweep(t.Context(), time.Now().Add(before)); err != nil || n != 0 {
			t.Errorf("swept %d, %v", n, err)
		}
	}
	want(t, s, "a/1", "bytes")
}

func put(t *testing.T, s Subject, key, body string) {
	t.Helper()
	if _, err := s.Put(t.Context(), key, "text/plain", strings.NewReader(body), int64(len(body))); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
}

func read(t *testing.T, s Subject, key string, offset, length int64) string {
	t.Helper()
	r, err := s.Open(t.Context(), key, offset, length)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	var b bytes.Buffer
	_, err = b.ReadFrom(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return b.String()
}

func want(t *testing.T, s Subject, key, body string) {
	t.Helper()
	if got := read(t, s, key, 0, -1); got != body {
		t.Errorf("%s: %q, want %q", key, got, body)
	}
}

func wantKeys(t *testing.T, s Subject, prefix, after string, limit int, keys ...string) {
	t.Helper()
	page, err := s.List(t.Context(), prefix, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range page {
		got = append(got, o.Key)
	}
	if diff := cmp.Diff(keys, got); diff != "" {
		t.Errorf("%d below %q after %q: %s", limit, prefix, after, diff)
	}
}

func nothing(t *testing.T, s Subject) {
	t.Helper()
	wantKeys(t, s, "", "", 10)
}

func absent(t *testing.T, s Subject, key string) {
	t.Helper()
	_, err := s.Stat(t.Context(), key)
	wantKind(t, err, fault.KindNotFound)
}

func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%v, want a fault of kind %s", err, kind)
	}
}
