package shim

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// gone is a file of a megabyte in a working folder that has no name any more.
func gone(t *testing.T, d *disk) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(d.folders[0], "gone"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	return f
}

func watched(t *testing.T) *disk {
	t.Helper()
	f := Folder(t.TempDir())
	if err := os.Mkdir(f.path(WorkFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	return newDisk(f, 100<<20)
}

// This process plays the command; the tests take turns, since each would see
// what the other hides.
func TestAFileIsCountedOrKnownToBeHidden(t *testing.T) {
	t.Run("in a message", func(t *testing.T) {
		d := watched(t)
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(ends[0])
		f := gone(t, d)
		if err := unix.Sendmsg(ends[0], []byte("x"), unix.UnixRights(int(f.Fd())), nil, 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if _, hidden := d.count(os.Getpid()); !hidden && d.used.bytes < 1<<20 {
			t.Errorf("%d bytes and nothing hidden", d.used.bytes)
		}
		unix.Close(ends[1])
		if _, hidden := d.count(os.Getpid()); hidden {
			t.Error("something is hidden when the message is gone")
		}
	})
	t.Run("in memory", func(t *testing.T) {
		d := watched(t)
		f := gone(t, d)
		memory, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if _, hidden := d.count(os.Getpid()); !hidden && d.used.bytes < 1<<20 {
			t.Errorf("%d bytes and nothing hidden", d.used.bytes)
		}
		if err := unix.Munmap(memory); err != nil {
			t.Fatal(err)
		}
		if _, hidden := d.count(os.Getpid()); hidden || d.used.bytes > 0 {
			t.Errorf("%d bytes, hidden: %t, when it is gone", d.used.bytes, hidden)
		}
	})
}

func TestHidingForLongWhileTheDiskShrinksIsTooMuch(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1000, 0)
	after := func(d time.Duration) time.Time { return begin.Add(d) }
	for name, tt := range map[string]struct {
		lost  int64
		looks map[time.Duration]bool // whether something was hidden then
		want  bool
	}{
		"for long":                {200, map[time.Duration]bool{0: true, longHidden: true}, true},
		"for a moment":            {200, map[time.Duration]bool{longHidden: true}, false},
		"but the disk has room":   {100, map[time.Duration]bool{0: true, longHidden: true}, false},
		"now and then":            {200, map[time.Duration]bool{0: true, longHidden / 2: false, longHidden: true}, false},
		"nothing, and others did": {200, map[time.Duration]bool{0: false, longHidden: false}, false},
	} {
		d := &disk{most: 100, first: space{bytes: 1000}, left: space{bytes: 1000 - tt.lost}}
		var got bool
		for _, at := range []time.Duration{0, longHidden / 2, longHidden} {
			if hidden, looked := tt.looks[at]; looked {
				got = d.hides(after(at), hidden)
			}
		}
		if got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
