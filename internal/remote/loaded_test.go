package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/offline"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// What was loaded for an address is there without its host, for those who ask as nobody.
func TestALoadedInputNeedsNoHost(t *testing.T) {
	t.Parallel()
	const address = "http://nobody.invalid/reads.fq"
	w, err := offline.Create(filepath.Join(t.TempDir(), "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	blob, err := w.Put(strings.NewReader("0123456789"))
	if err != nil {
		t.Fatal(err)
	}
	w.Add(offline.Item{Kind: offline.Input, Name: address, Value: blob.SHA256, Blobs: []offline.Blob{blob}})
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := offline.Open(string(w.Folder()))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	data := t.TempDir()
	if err := b.Load(t.Context(), offline.Loading{
		Data: data, Into: "offline", Check: func(offline.Item, offline.Folder) error { return nil }, Loaded: func(offline.Item, int, int) {}, Copying: func(int) {},
	}); err != nil {
		t.Fatal(err)
	}
	i := NewInputs(New(false), keptBy{}, false)
	i.Loaded = offline.Folder(filepath.Join(data, "offline"))
	a := addresses.Address{URL: address, SHA256: blob.SHA256}
	if err := i.Fits(t.Context(), "team_1", []addresses.Address{a}); err != nil {
		t.Error(err)
	}
	list, err := lookAt(t, i, a)
	if err != nil || len(list) != 1 || list[0].Size != 10 || list[0].ETag != blob.SHA256 || list[0].Address != a {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, tt := range []struct {
		from, length int64
		want         string
	}{{0, -1, "0123456789"}, {3, -1, "3456789"}, {3, 4, "3456"}, {10, 5, ""}} {
		if text, err := readAll(t, i, list[0], tt.from, tt.length); text != tt.want || err != nil {
			t.Errorf("from %d on %d are %q, %v", tt.from, tt.length, text, err)
		}
	}
	a.Connection = "conn_1"
	if _, err := lookAt(t, i, a); err == nil {
		t.Error("by a connection that is not there it is there")
	}
	if _, err := lookAt(t, i, addresses.Address{URL: "http://nobody.invalid/other.fq"}); err == nil {
		t.Error("another address is there")
	}
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(t, i, list[0], 0, -1); !fault.Is(err, fault.KindConflict) {
		t.Errorf("once it is removed: %v", err)
	}
}
