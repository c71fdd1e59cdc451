package shim

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func openedJournal(t *testing.T) (*journal, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), journalFile)
	j, _, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(j.fd) })
	return j, path
}

// A shim that serves for months must not have a journal of all that it ever did.
func TestAJournalThatIsMostlyBlankIsWrittenAnew(t *testing.T) {
	t.Parallel()
	j, path := openedJournal(t)
	s := newShim(j)
	for i, id := range []string{"kept", "released"} {
		r := &Record{ID: id, Fence: "f", Metadata: json.RawMessage(strconv.Itoa(i))}
		s.records[id] = r
		if err := j.write(*r); err != nil {
			t.Fatal(err)
		}
		j.size += maxBlank / 2 // of others that are gone
	}
	if err := j.write(Record{ID: "released", Fence: "f", Exit: &Exit{Code: 3}}); err != nil {
		t.Fatal(err)
	}
	s.release("released")
	info, err := os.Stat(path)
	if err != nil || info.Size() > 4096 || j.size != info.Size() {
		t.Errorf("%d bytes, of which %d count, %v", info.Size(), j.size, err)
	}
	if err := j.write(Record{ID: "kept", Fence: "f", Exit: &Exit{Code: 4}}); err != nil { // it goes on in the new one
		t.Fatal(err)
	}
	records, err := replay(path)
	if err != nil || len(records) != 1 || records["kept"].Exit == nil || string(records["kept"].Metadata) != "0" {
		t.Errorf("%+v, %v", records, err)
	}
}

// What a shim that died while it wrote the journal anew has left is no journal.
func TestAJournalThatWasNotWrittenToItsEndIsNotRead(t *testing.T) {
	t.Parallel()
	j, path := openedJournal(t)
	if err := j.write(Record{ID: "a", Fence: "f", Exit: &Exit{Code: 3}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(`{"id":"b","fence":"g"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	next, records, err := openJournal(path)
	if err != nil || len(records) != 1 || records["a"] == nil || records["a"].Exit.Code != 3 {
		t.Fatalf("%+v, %v", records, err)
	}
	defer unix.Close(next.fd)
	if _, err := os.Stat(path + ".new"); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// Nothing of an attempt that was released is left, wherever in the journal it stood, and
// those beside it are as they were.
func TestWhatIsErasedIsGone(t *testing.T) {
	t.Parallel()
	j, path := openedJournal(t)
	ids := []string{"first", "second", "third"}
	for range 2 {
		for _, id := range ids {
			if err := j.write(Record{ID: id, Fence: "f", Metadata: json.RawMessage(`"` + id + ` \u0000 ü"`)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, id := range []string{"second", "none", "first", "third"} {
		if err := j.erase(id); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.Contains(text, []byte(id)) {
			t.Errorf("%s is in %q, %v", id, text, err)
		}
		if records, err := replay(path); err != nil || len(records) != []int{2, 2, 1, 0}[i] {
			t.Errorf("after %s: %d, %v", id, len(records), err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("%d bytes are left, %v", info.Size(), err)
	}
}
