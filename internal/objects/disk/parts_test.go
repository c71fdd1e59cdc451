package disk

import (
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
