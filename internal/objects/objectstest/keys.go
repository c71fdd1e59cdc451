package objectstest

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
)

func hostileKeys(t *testing.T, s Subject, _ string) {
	put(t, s, "safe", "x")
	for _, key := range []string{
		"", "/", "/etc/passwd", "a/", "a//b", ".", "..", "./a", "a/.", "../a", "a/../../b", "a/..",
		`a\b`, `..\a`, "a\x00b", "a\nb", "a\x7fb", "a\u0085b", "a\xff",
		strings.Repeat("x", 256), strings.Repeat("x/", 500) + "x",
	} {
		_, err := s.Put(t.Context(), key, "text/plain", strings.NewReader("x"), 1)
		wantKind(t, err, fault.KindInvalid)
		_, err = s.Stat(t.Context(), key)
		wantKind(t, err, fault.KindInvalid)
		_, err = s.Open(t.Context(), key, 0, -1)
		wantKind(t, err, fault.KindInvalid)
		_, err = s.Arrived(t.Context(), key)
		wantKind(t, err, fault.KindInvalid)
		_, err = s.PresignPut(t.Context(), objects.Upload{Key: key, ContentType: "text/plain", Size: 1, Expires: soon()})
		wantKind(t, err, fault.KindInvalid)
		_, err = s.PresignGet(t.Context(), objects.Download{Key: key, ContentType: "text/plain", Expires: soon()})
		wantKind(t, err, fault.KindInvalid)
		wantKind(t, s.Delete(t.Context(), key), fault.KindInvalid)
		wantKind(t, s.Link(t.Context(), "safe", key), fault.KindInvalid)
		wantKind(t, s.Link(t.Context(), key, "other"), fault.KindInvalid)
		if t.Failed() {
			t.Fatalf("the key was %q", key)
		}
	}
	wantKeys(t, s, "", "", 10, "safe")
}

func oddKeys(t *testing.T, s Subject, base string) {
	for _, key := range []string{
		"a b/ c ", "x/50%", "x/%2e%2e", "x/a+b&c=d?e#f;g:h@i", "x/żółw – 亀.csv", "...", "x/~$!*'(),", "staging/k", "tmp/k", "objects/k",
		strings.Repeat("n", 255), "x/" + strings.Repeat(strings.Repeat("d", 90)+"/", 9) + "deep",
	} {
		put(t, s, key, key)
		want(t, s, key, key)
		address, err := s.PresignGet(t.Context(), objects.Download{Key: key, Name: "n", ContentType: "text/plain", Expires: soon(), Base: base})
		if err != nil {
			t.Fatal(err)
		}
		if got := request(t, "GET", address, "", ""); got.status != 200 || got.body != key {
			t.Errorf("%q: %d, %q", key, got.status, got.body)
		}
		uploaded := key + "+up"
		if len(key) == 255 {
			continue // it has no room for more
		}
		upload(t, s, base, uploaded, "sent")
		if _, err := s.Arrived(t.Context(), uploaded); err != nil {
			t.Fatal(err)
		}
		want(t, s, uploaded, "sent")
	}
}

// digits is an endless source that costs nothing.
func digits(p []byte) (int, error) {
	for i := range p {
		p[i] = byte('0' + i%10)
	}
	return len(p), nil
}

func largeObject(t *testing.T, open Opener) {
	const size, most = 64 << 20, 40 << 20
	s, _ := open(t)
	for name, announced := range map[string]int64{"known": size, "unknown": -1} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		source := sha256.New()
		o, err := s.Put(t.Context(), name, "text/plain", io.TeeReader(io.LimitReader(readerFunc(digits), size), source), announced)
		if err != nil {
			t.Fatal(err)
		}
		if o.Size != size || o.SHA256 != hex.EncodeToString(source.Sum(nil)) {
			t.Errorf("put: %+v", o)
		}
		if got := hashOf(t, s, name); got != o.SHA256 {
			t.Errorf("%s was put, and %s comes back", o.SHA256, got)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > most {
			t.Errorf("%d MiB of memory for %d MiB of %s length", used>>20, size>>20, name)
		}
	}
}

func hashOf(t *testing.T, s Subject, key string) string {
	t.Helper()
	r, err := s.Open(t.Context(), key, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var h hash.Hash = sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}
