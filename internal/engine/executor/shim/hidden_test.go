package shim

import (
	"os"
	"path/filepath"
	"strconv"
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
		if _, hidden := d.count(os.Getpid()); hidden || d.used.bytes >= 1<<20 {
			t.Errorf("%d bytes, hidden: %t, when it is gone", d.used.bytes, hidden)
		}
	})
}

// A folder that has another name whenever it is looked for.
func TestAFolderThatIsAlwaysRenamedIsCountedOrKnownToBeHidden(t *testing.T) {
	t.Parallel()
	d := watched(t)
	path := func(name string) string { return filepath.Join(d.folders[0], name) }
	for i := range 900 {
		if err := os.WriteFile(path("e"+strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(path("d0"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("d0/large"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	over, renamed := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for i := 0; err == nil; i++ {
			select {
			case <-over:
				renamed <- nil
				return
			default:
				err = os.Rename(path("d"+strconv.Itoa(i)), path("d"+strconv.Itoa(i+1)))
			}
		}
		renamed <- err
	}()
	d.first.bytes = d.left.bytes + 2*d.most // it seems that the disk has lost that much
	for range 100 {
		if _, hidden := d.count(0); !hidden && d.used.bytes < 1<<20 {
			t.Errorf("%d bytes and nothing hidden", d.used.bytes)
			break
		}
	}
	close(over)
	if err := <-renamed; err != nil {
		t.Fatal(err)
	}
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
