package shim

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// written puts files of so many bytes into a working folder.
func written(t *testing.T, d *disk, files map[string]int) {
	t.Helper()
	for name, size := range files {
		file := filepath.Join(d.folders[0], name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, make([]byte, size), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHowManyFilesACommandMayHave(t *testing.T) {
	t.Parallel()
	f := Folder(t.TempDir())
	for most, want := range map[int64]int64{
		1: fewFiles, fewFiles * block: fewFiles, (fewFiles + 1) * block: fewFiles + 1, maxFiles * block: maxFiles, (maxFiles + 1) * block: maxFiles, 1 << 62: maxFiles,
	} {
		if got := newDisk(f, most).files; got != want {
			t.Errorf("with %d bytes: %d files, want %d", most, got, want)
		}
	}
}

// Each file counts once and by its blocks, in both folders, whatever it is called.
func TestWhatTakesUpDisk(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for name, tt := range map[string]struct {
		make     func(t *testing.T, d *disk)
		from, to int64
		exactly  int64 // files
	}{
		"nothing":   {make: func(*testing.T, *disk) {}, to: 0},
		"a file":    {make: func(t *testing.T, d *disk) { written(t, d, map[string]int{"a": mb}) }, from: mb, to: mb + 64<<10, exactly: 1},
		"two names": {make: func(t *testing.T, d *disk) { written(t, d, map[string]int{"a": mb}); link(t, d, "a", "b") }, from: mb, to: mb + 64<<10, exactly: 1},
		"temporary ones": {make: func(t *testing.T, d *disk) {
			d.folders[0], d.folders[1] = d.folders[1], d.folders[0]
			written(t, d, map[string]int{"a": mb})
		}, from: mb, to: mb + 64<<10, exactly: 1},
		"holes take up nothing": {make: func(t *testing.T, d *disk) {
			written(t, d, map[string]int{"a": 0})
			if err := os.Truncate(filepath.Join(d.folders[0], "a"), 1<<40); err != nil {
				t.Fatal(err)
			}
		}, to: 64 << 10, exactly: 1},
		"a link to elsewhere": {make: func(t *testing.T, d *disk) {
			other := filepath.Join(t.TempDir(), "other")
			if err := errors.Join(os.WriteFile(other, make([]byte, 3*mb), 0o600), os.Symlink(other, filepath.Join(d.folders[0], "l")), os.Symlink(filepath.Dir(other), filepath.Join(d.folders[0], "f"))); err != nil {
				t.Fatal(err)
			}
		}, to: 64 << 10, exactly: 2},
		"in a closed folder": {make: func(t *testing.T, d *disk) {
			written(t, d, map[string]int{"closed/a": mb})
			if err := os.Chmod(filepath.Join(d.folders[0], "closed"), 0); err != nil {
				t.Fatal(err)
			}
		}, from: mb, to: mb + 64<<10, exactly: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := watched(t)
			if err := os.Mkdir(d.folders[1], 0o700); err != nil {
				t.Fatal(err)
			}
			tt.make(t, d)
			if exceeded, hidden := d.count(tree{}); exceeded || hidden || d.used.bytes < tt.from || d.used.bytes > tt.to || d.used.files != tt.exactly {
				t.Errorf("%+v, exceeded: %t, hidden: %t", d.used, exceeded, hidden)
			}
		})
	}
}

func link(t *testing.T, d *disk, from, to string) {
	t.Helper()
	if err := os.Link(filepath.Join(d.folders[0], from), filepath.Join(d.folders[0], to)); err != nil {
		t.Fatal(err)
	}
}

// What may be is not too much, and one more is.
func TestTheBoundsOfADisk(t *testing.T) {
	t.Parallel()
	d := watched(t)
	written(t, d, map[string]int{"a": 1 << 20, "b": 1 << 20, "c": 0})
	if _, hidden := d.count(tree{}); hidden || d.used.files != 3 {
		t.Fatalf("%+v", d.used)
	}
	used := d.used
	for name, tt := range map[string]struct {
		most, files    int64
		exceeded, full bool
	}{
		"room":               {used.bytes + 1, used.files, false, false},
		"just what it may":   {used.bytes, used.files, false, true},
		"a byte too much":    {used.bytes - 1, used.files, true, true},
		"a file too much":    {used.bytes + 1, used.files - 1, true, true},
		"nothing but a file": {1, used.files, true, true},
	} {
		d.most, d.files = tt.most, tt.files
		if exceeded, _ := d.count(tree{}); exceeded != tt.exceeded || d.full() != tt.full {
			t.Errorf("%s: exceeded %t, full %t", name, exceeded, d.full())
		}
	}
}

// Folders in folders are bounded: no program could name what is in them.
func TestFoldersInFoldersAreBounded(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]bool{maxDepth: false, maxDepth + 1: true} {
		d := watched(t)
		at, err := unix.Open(d.folders[0], unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		for i := 0; i < depth && err == nil; i++ {
			name := "d" + strconv.Itoa(i)
			below := -1
			if err = unix.Mkdirat(at, name, 0o700); err == nil {
				below, err = unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			}
			unix.Close(at)
			at = below
		}
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(at)
		if exceeded, _ := d.count(tree{}); exceeded != want {
			t.Errorf("%d deep: %t", depth, exceeded)
		}
	}
}

// The less a file system has left, the sooner it is looked at again: before all commands
// together could have filled it.
func TestAFileSystemIsLookedAtBeforeItCanBeFull(t *testing.T) {
	t.Parallel()
	const many = 1 << 30
	for name, tt := range map[string]struct {
		left space
		want time.Duration
	}{
		"much is left":   {space{1 << 40, many}, rest},
		"little is left": {space{almostNone + 400<<20, many}, 97656250 * time.Nanosecond},
		"few inodes":     {space{1 << 40, 1 << 17}, 125 * time.Millisecond},
		"nearly full":    {space{almostNone + 1, many}, leastDiskTick},
		"full":           {space{0, many}, leastDiskTick},
	} {
		if got := (&disk{most: 1 << 40, files: many, now: tt.left, left: tt.left}).lookAfter(); got != tt.want {
			t.Errorf("%s: after %s, want %s", name, got, tt.want)
		}
	}
	var none *disk
	if got := none.lookAfter(); got != rest {
		t.Errorf("without a limit: after %s", got)
	}
}

// The less a command may still use, the sooner its files are looked at.
func TestACommandIsLookedAtBeforeItHasUsedMuchMoreThanItMay(t *testing.T) {
	t.Parallel()
	room := space{1 << 40, 1 << 30}
	for name, tt := range map[string]struct {
		used, lost space
		want       time.Duration
	}{
		"it has used little":       {want: rest},
		"it has used half":         {used: space{bytes: 2 << 30}, want: 500 * time.Millisecond},
		"others have, or it has":   {lost: space{bytes: 2 << 30}, want: 500 * time.Millisecond},
		"it has used nearly all":   {used: space{bytes: 4<<30 - 1}, want: tick},
		"it has used too much":     {used: space{bytes: 5 << 30}, want: tick},
		"it has made half of them": {used: space{files: 1 << 19}, want: 500 * time.Millisecond},
	} {
		d := &disk{most: 4 << 30, files: 1 << 20, used: tt.used, left: room}
		d.now = space{room.bytes - tt.lost.bytes, room.files - tt.lost.files}
		if got := d.lookAfter(); got != tt.want {
			t.Errorf("%s: after %s, want %s", name, got, tt.want)
		}
	}
}

// The files of a command that does nothing are counted again all the same, but rarely.
func TestFilesOfAnIdleCommandAreCountedRarely(t *testing.T) {
	t.Parallel()
	d := watched(t)
	now := time.Now()
	d.over(now, tree{}, time.Second)
	due := d.countAt
	for name, tt := range map[string]struct {
		at     time.Time
		cpu    time.Duration
		hidden bool
		want   bool
	}{
		"it works":                   {due, 2 * time.Second, false, true},
		"it works, and it is early":  {due.Add(-1), 2 * time.Second, false, false},
		"it does nothing":            {due.Add((idleCounts - 1) * sampleEvery).Add(-1), time.Second, false, false},
		"it does nothing for long":   {due.Add((idleCounts - 1) * sampleEvery), time.Second, false, true},
		"it does nothing, and hides": {due, time.Second, true, true},
	} {
		d.hiddenSince = time.Time{}
		if tt.hidden {
			d.hiddenSince = now
		}
		if got := d.isDue(tt.at, tt.cpu); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Files are counted when it is time, or when the file system has lost what the command may
// still use; not with every look.
func TestFilesAreCountedWhenTheyMayBeTooMany(t *testing.T) {
	t.Parallel()
	d := watched(t)
	now := time.Now()
	if d.over(now, tree{}, 0) {
		t.Fatal("nothing is too much")
	}
	written(t, d, map[string]int{"a": 1 << 20})
	d.most = 1 << 19
	d.left.bytes -= 1 << 40 // the file system seems to have more than before
	d.left.files -= 1 << 20
	if d.over(now, tree{}, 0) {
		t.Error("it was counted without need")
	}
	if !d.over(now.Add(time.Hour), tree{}, 0) {
		t.Error("it was not counted when it was time")
	}
	d.countAt, d.used = now.Add(time.Hour), space{}
	d.left.bytes += 1 << 41 // it has lost more than the command may use
	if !d.over(now, tree{}, 0) {
		t.Error("it was not counted when the disk shrank")
	}
}
