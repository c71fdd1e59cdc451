package shim

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// A command that writes to one stream after the other makes a mark each time.
func TestMarksHaveAnEnd(t *testing.T) {
	t.Parallel()
	l := newLog(Folder(t.TempDir()), 1<<20, nil)
	defer l.close()
	for i := range 200_000 {
		l.write([]byte("\n"), i%2 == 1)
	}
	info, err := os.Stat(l.folder.path(marksFile))
	if err != nil || info.Size() > 512<<10 {
		t.Errorf("they take up %d bytes, %v", info.Size(), err)
	}
	marks, err := l.folder.Marks(0)
	if err != nil || len(marks) < 5000 || !marks[1].Stderr || marks[1].Offset != 1 {
		t.Errorf("%d marks, %v", len(marks), err)
	}
}

func TestALogHasAnEnd(t *testing.T) {
	t.Parallel()
	l := newLog(Folder(t.TempDir()), 100, nil)
	in, err := l.stream(1)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := rawfile.WriteAll(in, []byte(strings.Repeat("z", 999)+"\n")); err != nil {
			t.Fatal(err)
		}
		for l.streams[0].read(l) {
		}
	}
	unix.Close(in)
	l.drain(time.Now().Add(time.Minute))
	l.close()
	text, err := os.ReadFile(l.folder.Log())
	if err != nil || string(text) != strings.Repeat("z", 100)+logCut || l.size != int64(len(text)) {
		t.Errorf("%d bytes, %v: %q", l.size, err, text)
	}
}

func TestAnAbsenceIsCountedFromTheLookBefore(t *testing.T) {
	t.Parallel()
	start := time.Now()
	p := newServerPresence(10 * time.Second)
	p.looked, p.since = start, start
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	if p.stayedAway(at(9), 0) {
		t.Error("away too early")
	}
	if p.stayedAway(at(12), 1) { // seen at 12, so it came after 9
		t.Error("away although renewed")
	}
	if p.stayedAway(at(18), 1) || !p.stayedAway(at(19), 1) {
		t.Error("not away at 19")
	}
}

func TestAJournalIsReadOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), journalFile)
	j, records, err := openJournal(path)
	if err != nil || len(records) != 0 {
		t.Fatal(records, err)
	}
	about := json.RawMessage(`{"slot":1}`)
	for _, r := range []Record{
		{ID: "released", Fence: "f"},
		{ID: "ended", Fence: "f", Metadata: about},
		{ID: "released", Exit: &Exit{}},
		{ID: "ended", Fence: "f", Exit: &Exit{Code: 3}},
		{ID: "runs", Fence: "f", Metadata: about},
	} {
		if err := j.write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.erase("released"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte("released")) {
		t.Errorf("what was released is still there: %s, %v", text, err)
	}
	if _, err := unix.Pwrite(j.fd, []byte(`{"id":"torn","fe`), j.size); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what was rewritten is read the same
		_, records, err = openJournal(path)
		if err != nil || len(records) != 2 {
			t.Fatalf("%d records, %v", len(records), err)
		}
		if r := records["ended"]; r.Lost || r.Exit == nil || r.Exit.Code != 3 || string(r.Metadata) != string(about) {
			t.Errorf("ended: %+v", r)
		}
		if r := records["runs"]; !r.Lost || r.Exit != nil || r.Fence != "f" {
			t.Errorf("what ran: %+v", r)
		}
	}
}
