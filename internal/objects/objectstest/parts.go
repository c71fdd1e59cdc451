package objectstest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/objects"
)

// PartStore is a store that takes objects in parts.
type PartStore struct {
	objects.Store
	objects.Presigner
	files.PartObjects
}

// leastPart is the least that S3 takes of any part but the last.
const leastPart = 5 << 20

// RunParts holds a store to what it promises of objects that arrive in parts. Send
// puts a part, by the store's address or by its own hand.
func RunParts(t *testing.T, fresh func(t *testing.T) PartStore, send func(t *testing.T, s PartStore, p files.PartAddress, text string) error) {
	first, last := strings.Repeat("0123456789abcdef", leastPart/16), "the end"
	address := func(id, key string, number int, text string) files.PartAddress {
		return files.PartAddress{Key: key, StorageID: id, Number: number, Size: int64(len(text)), Expires: time.Now().Add(time.Minute)}
	}
	begun := func(t *testing.T, key string) (PartStore, string) {
		t.Helper()
		s := fresh(t)
		id, err := s.BeginParts(t.Context(), key, "text/csv")
		if err != nil {
			t.Fatal(err)
		}
		return s, id
	}
	put := func(t *testing.T, s PartStore, id, key string, number int, text string) {
		t.Helper()
		if err := send(t, s, address(id, key, number, text), text); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("parts in any order, one of them twice, become one object", func(t *testing.T) {
		t.Parallel()
		const key = "teams/a/by-parts/f/k"
		s, id := begun(t, key)
		put(t, s, id, key, 2, last)
		put(t, s, id, key, 1, strings.Repeat("x", leastPart))
		before, err := s.ArrivedParts(t.Context(), key, id)
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, id, key, 1, first)
		parts, err := s.ArrivedParts(t.Context(), key, id)
		if err != nil || len(parts) != 2 || parts[0].Number != 1 || parts[0].Size != leastPart || parts[1].Size != int64(len(last)) || parts[0].ETag == before[0].ETag {
			t.Fatalf("%+v, before %+v, %v", parts, before, err)
		}
		if _, err := s.Stat(t.Context(), key); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("it is seen before it is joined: %v", err)
		}
		for range 2 { // who lost the answer asks again
			b, err := s.JoinParts(t.Context(), key, id, parts)
			if err != nil || b.Size != int64(len(first+last)) || b.Mark == "" {
				t.Fatalf("%+v, %v", b, err)
			}
		}
		r, err := s.Open(t.Context(), key, 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got, err := io.ReadAll(r); err != nil || string(got) != first+last {
			t.Errorf("%d bytes, or others; %v", len(got), err)
		}
		if err := send(t, s, address(id, key, 1, first), first); err == nil {
			t.Error("a part was taken after the parts were joined")
		}
		if _, err := s.ArrivedParts(t.Context(), key, id); !fault.Is(err, fault.KindNotFound) {
			t.Error(err)
		}
	})
	t.Run("what is called off is gone, and nothing of it comes back", func(t *testing.T) {
		t.Parallel()
		const key = "teams/a/by-parts/f/k"
		s, id := begun(t, key)
		put(t, s, id, key, 1, first)
		for range 2 {
			if err := s.AbortParts(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		if err := send(t, s, address(id, key, 1, first), first); err == nil {
			t.Error("a part was taken after all was called off")
		}
		if _, err := s.ArrivedParts(t.Context(), key, id); !fault.Is(err, fault.KindNotFound) {
			t.Error(err)
		}
		if _, err := s.JoinParts(t.Context(), key, id, nil); !fault.Is(err, fault.KindNotFound) {
			t.Error(err)
		}
	})
	t.Run("sweeping leaves what is on its way, and deleting its prefix does not", func(t *testing.T) {
		t.Parallel()
		const key = "teams/a/by-parts/f/k"
		s, id := begun(t, key)
		put(t, s, id, key, 1, last)
		if _, err := s.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if parts, err := s.ArrivedParts(t.Context(), key, id); err != nil || len(parts) != 1 {
			t.Errorf("%+v, %v", parts, err)
		}
		if _, err := s.DeletePrefix(t.Context(), "teams/a/"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ArrivedParts(t.Context(), key, id); !fault.Is(err, fault.KindNotFound) {
			t.Error(err)
		}
	})
	t.Run("a part of another length is refused", func(t *testing.T) {
		t.Parallel()
		const key = "teams/a/by-parts/f/k"
		s, id := begun(t, key)
		if err := send(t, s, address(id, key, 1, last), last+"!"); err == nil {
			t.Error("it was taken")
		}
		if parts, err := s.ArrivedParts(t.Context(), key, id); err != nil || len(parts) != 0 {
			t.Errorf("%+v, %v", parts, err)
		}
	})
}

// SendPart puts a part to a store's own address.
func SendPart(t *testing.T, s PartStore, p files.PartAddress, text string) error {
	t.Helper()
	address, err := s.PresignPart(t.Context(), p)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader(text))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the bucket answered %s", resp.Status)
	}
	return nil
}
