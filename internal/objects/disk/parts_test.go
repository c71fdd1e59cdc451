package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/objects/objectstest"
)

func partStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), t.TempDir(), NewSigner([]byte("key")), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestAFolderTakesObjectsInParts(t *testing.T) {
	objectstest.RunParts(t, func(t *testing.T) objectstest.PartStore {
		s := partStore(t)
		return objectstest.PartStore{Store: s, Presigner: s, PartObjects: s}
	},
		func(t *testing.T, s objectstest.PartStore, p files.PartAddress, text string) error {
			const size = 5 << 20
			_, err := s.PutPart(t.Context(), p.Key, p.Number, int64(p.Number-1)*size, strings.NewReader(text), p.Size)
			return err
		})
}

// Parts that are being written keep the others from joining, and a part that broke
// off is none, also where it had arrived before.
func TestAPartThatIsOnItsWayIsNone(t *testing.T) {
	t.Parallel()
	s, key := partStore(t), "teams/a/by-parts/f/k"
	if _, err := s.BeginParts(t.Context(), key, "text/csv"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutPart(t.Context(), key, 1, 0, strings.NewReader("whole"), 5); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := s.PutPart(t.Context(), key, 1, 0, r, 5)
		ended <- err
	}()
	if _, err := w.Write([]byte("ha")); err != nil {
		t.Fatal(err)
	}
	if parts, err := s.ArrivedParts(t.Context(), key, ""); err != nil || len(parts) != 0 {
		t.Errorf("%+v, %v", parts, err)
	}
	if _, err := s.PutPart(t.Context(), key, 1, 0, strings.NewReader("other"), 5); !fault.Is(err, fault.KindConflict) {
		t.Error(err)
	}
	if _, err := s.JoinParts(t.Context(), key, "", nil); !fault.Is(err, fault.KindConflict) {
		t.Error(err)
	}
	w.CloseWithError(io.ErrUnexpectedEOF)
	if err := <-ended; err == nil {
		t.Error("half a part was taken")
	}
	if parts, err := s.ArrivedParts(t.Context(), key, ""); err != nil || len(parts) != 0 {
		t.Errorf("%+v, %v", parts, err)
	}
}

// The hash that joining gives is that of the bytes, also where a part was sent again
// after it was hashed, and by another process.
func TestJoiningKnowsTheHashOfWhatIsThere(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	process := func() *Store {
		s, err := Open(t.Context(), folder, NewSigner([]byte("key")), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	one, other := process(), process()
	for name, tt := range map[string]struct {
		again func(put func(s *Store, number int, text string))
		want  string
	}{
		"all by one":                     {func(func(*Store, int, string)) {}, "aaaabbbbcc"},
		"the first again":                {func(put func(*Store, int, string)) { put(one, 1, "AAAA") }, "AAAAbbbbcc"},
		"the second by another process":  {func(put func(*Store, int, string)) { put(other, 2, "BBBB") }, "aaaaBBBBcc"},
		"the same bytes once more":       {func(put func(*Store, int, string)) { put(other, 3, "cc") }, "aaaabbbbcc"},
		"the first and then the others":  {func(put func(*Store, int, string)) { put(one, 1, "AAAA"); put(one, 2, "BBBB") }, "AAAABBBBcc"},
		"by another process, then by us": {func(put func(*Store, int, string)) { put(other, 1, "AAAA"); put(one, 3, "CC") }, "AAAAbbbbCC"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := "teams/a/by-parts/f/" + strings.ReplaceAll(name, " ", "-")
			if _, err := one.BeginParts(t.Context(), key, "text/csv"); err != nil {
				t.Fatal(err)
			}
			put := func(s *Store, number int, text string) {
				t.Helper()
				if _, err := s.PutPart(t.Context(), key, number, int64(number-1)*4, strings.NewReader(text), int64(len(text))); err != nil {
					t.Fatal(err)
				}
			}
			put(one, 2, "bbbb")
			put(one, 1, "aaaa")
			put(one, 3, "cc")
			if p := one.prefixes.of(key); p.parts != 3 {
				t.Errorf("%d parts were hashed as they came", p.parts)
			}
			tt.again(put)
			parts, err := one.ArrivedParts(t.Context(), key, "")
			if err != nil {
				t.Fatal(err)
			}
			b, err := one.JoinParts(t.Context(), key, "", parts)
			if sum := sha256.Sum256([]byte(tt.want)); err != nil || b.SHA256 != hex.EncodeToString(sum[:]) {
				t.Errorf("%+v, %v", b, err)
			}
		})
	}
}

// A part that is sent again between looking and joining is not joined unseen.
func TestJoiningTakesThePartsThatWereSeen(t *testing.T) {
	t.Parallel()
	s, key := partStore(t), "teams/a/by-parts/f/k"
	if _, err := s.BeginParts(t.Context(), key, "text/csv"); err != nil {
		t.Fatal(err)
	}
	var seen []files.Part
	for _, text := range []string{"seen", "new!"} {
		if _, err := s.PutPart(t.Context(), key, 1, 0, strings.NewReader(text), 4); err != nil {
			t.Fatal(err)
		}
		if seen == nil {
			seen, _ = s.ArrivedParts(t.Context(), key, "")
		}
	}
	if _, err := s.JoinParts(t.Context(), key, "", seen); !fault.Is(err, fault.KindConflict) {
		t.Error(err)
	}
}

// Hashing that falls behind is gone on with at the end, unless most is left.
func TestJoiningHashesWhatIsLeft(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		order []int
		known bool
	}{
		"half is left": {[]int{2, 3, 1, 4}, true},
		"most is left": {[]int{4, 3, 2, 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, key := partStore(t), "teams/a/by-parts/f/k"
			s.prefixes.atOnce = 4
			if _, err := s.BeginParts(t.Context(), key, "text/csv"); err != nil {
				t.Fatal(err)
			}
			for _, n := range tt.order {
				if _, err := s.PutPart(t.Context(), key, n, int64(n-1)*4, strings.NewReader("abcd"), 4); err != nil {
					t.Fatal(err)
				}
			}
			parts, err := s.ArrivedParts(t.Context(), key, "")
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if sum := sha256.Sum256([]byte(strings.Repeat("abcd", 4))); tt.known {
				want = hex.EncodeToString(sum[:])
			}
			if b, err := s.JoinParts(t.Context(), key, "", parts); err != nil || b.SHA256 != want {
				t.Errorf("%+v, %v", b, err)
			}
		})
	}
}
