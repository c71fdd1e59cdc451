package tasklog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// read is what a log has from an offset on, up to its end or to where something is
// missing.
func read(t interface{ Fatal(...any) }, folder string, offset int64, ended bool) (Log, string) {
	log, err := Open(folder, offset, ended)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(log)
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	return log, string(text)
}

// taken is how much a folder takes up.
func taken(t interface{ Fatal(...any) }, folder string) (bytes int64) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		info, failed := e.Info()
		if err = errors.Join(err, failed); failed == nil {
			bytes += info.Size()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// However long a log is and however it arrives, what is kept is its beginning and its
// end, at the offsets that they have in the whole, and no more than was asked for. One
// that fits is kept whole.
func TestBeginningAndEndOfALogAreKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		folder, err := os.MkdirTemp("", "tasklog")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(folder)
		most := rapid.Int64Range(64, 2000).Draw(t, "most")
		w := NewWriter(folder, most)
		var all []byte
		for i := range rapid.IntRange(0, 60).Draw(t, "pieces") {
			piece := bytes.Repeat([]byte{byte('a' + i%26)}, rapid.IntRange(0, 300).Draw(t, "piece"))
			w.Write(piece, i%2 == 1)
			all = append(all, piece...)
		}
		w.Close()
		if w.Size() != int64(len(all)) {
			t.Fatalf("%d bytes of %d", w.Size(), len(all))
		}
		head, text := read(t, folder, 0, true)
		if head.Size != w.Size() && len(all) > 0 || text != string(all[:len(text)]) || len(text) < min(len(all), int(most/2)) {
			t.Fatalf("the beginning has %d bytes of %d, most %d", len(text), head.Size, most)
		}
		kept := int64(len(text))
		if int64(len(all)) <= most && kept != int64(len(all)) {
			t.Fatalf("%d bytes of %d, of which %d may be kept", kept, len(all), most)
		}
		if kept < int64(len(all)) {
			end, text := read(t, folder, kept, true)
			if end.Offset <= kept || end.Size != w.Size() || text != string(all[end.Offset:]) || int64(len(text)) < most/partOf {
				t.Fatalf("the end has %d bytes from %d of %d", len(text), end.Offset, end.Size)
			}
			kept += int64(len(text))
			for _, offset := range []int64{end.Offset - 1, end.Offset, end.Offset + 1} { // in what is missing, and behind it
				if again, text := read(t, folder, offset, true); text != string(all[max(offset, end.Offset):]) || again.Offset != max(offset, end.Offset) {
					t.Fatalf("from %d: %d bytes from %d", offset, len(text), again.Offset)
				}
			}
		}
		if kept > most {
			t.Fatalf("%d bytes are kept, and not %d", kept, most)
		}
	})
}

// The files are bounded, also the marks of a command that writes to one stream after
// the other, and know when the end was written.
func TestLogIsBoundedOnDisk(t *testing.T) {
	t.Parallel()
	const most = 256 << 10
	folder := t.TempDir()
	w := NewWriter(folder, most)
	defer w.Close()
	for i := range 600_000 {
		w.Write([]byte("\n"), i%2 == 1)
	}
	if n := taken(t, folder); n > most+3*fewMarks+most/markPart {
		t.Errorf("it takes up %d bytes", n)
	}
	marks, err := Marks(folder, 0)
	if err != nil || len(marks) < 5000 || !marks[1].Stderr || marks[1].Offset != 1 {
		t.Errorf("%d marks, %v", len(marks), err)
	}
	end, _ := read(t, folder, most, true)
	if marks, err := Marks(folder, end.Offset); err != nil || len(marks) < 100 || marks[0].Offset != end.Offset {
		t.Errorf("%d marks of the end, %v", len(marks), err)
	}
}

// While a command runs, its end may not stay, and is not shown.
func TestEndIsShownWhenTheCommandHasEnded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if log, text := read(t, folder, 5, false); text != "" || log.Size != 0 || log.Offset != 5 {
		t.Errorf("before there is one: %q, %+v", text, log)
	}
	w := NewWriter(folder, 80)
	w.Write(bytes.Repeat([]byte("0123456789"), 7), false)
	if log, text := read(t, folder, 50, false); text != "0123456789" || log.Size != 60 {
		t.Errorf("%q of %d", text, log.Size)
	}
	if log, text := read(t, folder, 60, false); text != "" || log.Offset != 60 {
		t.Errorf("%q from %d", text, log.Offset)
	}
	w.Close()
	if log, text := read(t, folder, 50, true); text != "01234567890123456789" || log.Size != 70 {
		t.Errorf("%q of %d", text, log.Size)
	}
	for offset, want := range map[int64]string{69: "9", 70: "", 1000: ""} {
		if _, text := read(t, folder, offset, true); text != want {
			t.Errorf("from %d: %q", offset, text)
		}
	}
}

// A task that can write to its own folder has nothing read from elsewhere, and nobody
// wait.
func TestWhatATaskPutsInPlaceOfItsLog(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(folder string) error{
		"a link":                func(folder string) error { return os.Symlink(secret, Path(folder)) },
		"a pipe":                func(folder string) error { return unix.Mkfifo(Path(folder), 0o600) },
		"a folder":              func(folder string) error { return os.Mkdir(Path(folder), 0o700) },
		"an end that is a link": func(folder string) error { return os.Symlink(secret, Path(folder)+".100") },
		"an end that is a pipe": func(folder string) error { return unix.Mkfifo(Path(folder)+".100", 0o600) },
		"an end far away": func(folder string) error {
			return os.WriteFile(Path(folder)+".9000000000000000000", []byte("x"), 0o600)
		},
		"a number that is not ours": func(folder string) error { return os.WriteFile(Path(folder)+".+100", []byte("x"), 0o600) },
		"a number with zeros":       func(folder string) error { return os.WriteFile(Path(folder)+".0100", []byte("x"), 0o600) },
		"a number below the first":  func(folder string) error { return os.WriteFile(Path(folder)+".-1", []byte("x"), 0o600) },
		"marks that are a pipe":     func(folder string) error { return unix.Mkfifo(Path(folder)+marksSuffix, 0o600) },
		"an end inside the beginning": func(folder string) error {
			return errors.Join(os.WriteFile(Path(folder), nil, 0o600), os.Mkdir(Path(folder)+".5", 0o700))
		},
	} {
		folder := t.TempDir()
		if err := put(folder); err != nil {
			t.Fatal(name, err)
		}
		if log, text := read(t, folder, 0, true); text != "" || log.Size != 0 {
			t.Errorf("%s: %q, %+v", name, text, log)
		}
		if marks, err := Marks(folder, 0); err != nil || len(marks) != 0 {
			t.Errorf("%s: %v, %v", name, marks, err)
		}
	}
	folder := t.TempDir()
	if err := errors.Join(os.WriteFile(Path(folder), []byte("0123456789"), 0o600), os.WriteFile(Path(folder)+".5", []byte("again"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if log, text := read(t, folder, 0, true); text != "0123456789" || log.Size != 10 {
		t.Errorf("two of the same stretch: %q of %d", text, log.Size)
	}
}

// What a log claims has bounds, wherever its parts begin and however long they are.
func TestLogHasASizeThatCanBeAddedTo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, size := range map[string]int64{"": 1 << 20, ".1048576": 1 << 43, fmt.Sprintf(".%d", maxSize-5): 1 << 43} {
		if err := os.WriteFile(Path(folder)+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(Path(folder)+name, size); err != nil {
			t.Skip("the file system has no files of this size: ", err)
		}
	}
	log, err := Open(folder, maxSize-3, true)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if text, err := io.ReadAll(io.LimitReader(log, 10)); err != nil || len(text) != 3 || log.Offset != maxSize-3 || log.Size != maxSize {
		t.Errorf("%d bytes from %d of %d, %v", len(text), log.Offset, log.Size, err)
	}
}

// When a line was written is worth less than the line.
func TestLogIsKeptWithoutItsMarks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Mkdir(Path(folder)+marksSuffix, 0o700); err != nil {
		t.Fatal(err)
	}
	w := NewWriter(folder, 1<<20)
	defer w.Close()
	w.Write([]byte("first\n"), false)
	w.Write([]byte("second\n"), true)
	if _, text := read(t, folder, 0, false); text != "first\nsecond\n" || w.Size() != int64(len(text)) {
		t.Errorf("%q of %d bytes", text, w.Size())
	}
}

func TestMarksThatAreTornAreLeftOut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "0 1000 1\n": 1, "0 1000 1\n5 2000 2\n": 2, "0 1000 1\n5 20": 1, "0 1000 1\n5 2000 2": 1, "0 1000\n": 0, "0 1000 one\n": 0,
	} {
		folder := t.TempDir()
		if err := errors.Join(os.WriteFile(Path(folder), []byte("0123456789"), 0o600), os.WriteFile(Path(folder)+marksSuffix, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if marks, err := Marks(folder, 0); err != nil || len(marks) != want {
			t.Errorf("%q: %v, %v", text, marks, err)
		}
	}
}

func TestMissingLineSaysHowMuchIsMissing(t *testing.T) {
	t.Parallel()
	if got := MissingLine(1234); got != fmt.Sprintf("\n[log cut: %d bytes are missing here]\n", 1234) {
		t.Error(got)
	}
}
