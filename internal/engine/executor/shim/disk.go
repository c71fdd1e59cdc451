package shim

import (
	"math"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// disk watches what a command takes up in its folders. Counting files takes
// time, and a command can write a gigabyte meanwhile; so in between it looks at
// what the whole file system has left, which takes none. Only when that has
// shrunk by as much as the command still may write are its files counted again.
type disk struct {
	folders []string
	most    int64 // bytes
	files   int64 // at most

	used    space // when files were last counted
	left    space // of the file system, then
	now     space // of the file system, when it was last looked at
	countAt time.Time
	cpu     time.Duration // that the command had used when files were last counted

	first       space     // of the file system, when the command began
	hiddenSince time.Time // zero while everything can be seen
}

// space is an amount of a file system.
type space struct{ bytes, files int64 }

// How many files a command may have: as many as fit if each takes up a block,
// within bounds. Beyond the depth no program can name a file.
const (
	block    = 4 << 10
	fewFiles = 10_000
	maxFiles = 1_000_000
	maxDepth = 200
)

// A file system with less than almostNone left is full. A command that fails
// within blamedFor of that is taken to have failed for it.
const (
	almostNone = 16 << 20
	blamedFor  = 30 * time.Second
)

// full reports whether a file system with so much left is full.
func (left space) full() bool { return left.bytes < almostNone || left.files == 0 }

func newDisk(f Folder, most int64) *disk {
	d := &disk{folders: []string{f.path(WorkFolder), f.path(TempFolder)}, most: most}
	d.files = min(max(most/block, fewFiles), maxFiles)
	d.first = d.free()
	d.left, d.now, d.cpu = d.first, d.first, -1
	return d
}

// copiedInputs is what takes up space of what a command was given to read. A file with
// several names is others', too, and stays when the command ends.
func copiedInputs(f Folder) space {
	list := lists.Get().(*[]byte)
	defer lists.Put(list)
	c := counter{alone: true, list: *list}
	c.folder(unix.AT_FDCWD, f.path(InputFolder), 0)
	return c.space
}

// What all commands together write in a second at most, into memory, and how soon
// the file system is looked at again at least.
const (
	bytesPerSecond = 4 << 30
	filesPerSecond = 1 << 20
	leastDiskTick  = 20 * time.Millisecond
)

// lookAfter is how long the file system need not be looked at: less than all commands
// take to fill what it has left, and less than the command takes to use what it may. That
// a command takes up too much itself can wait for a tick while others have room.
func (d *disk) lookAfter() time.Duration {
	if d == nil {
		return rest
	}
	shrunk := space{bytes: max(0, d.left.bytes-d.now.bytes), files: max(0, d.left.files-d.now.files)}
	may := space{bytes: d.most - d.used.bytes - shrunk.bytes, files: d.files - d.used.files - shrunk.files}
	left := space{bytes: d.now.bytes - almostNone, files: d.now.files}
	return max(leastDiskTick, min(rest, left.lasts(), max(tick, may.lasts())))
}

// lasts is how long all commands together take to fill so much.
func (left space) lasts() time.Duration {
	seconds := min(float64(left.bytes)/bytesPerSecond, float64(left.files)/filesPerSecond, rest.Seconds())
	return time.Duration(seconds * float64(time.Second))
}

// idleCounts is how many times as long files need not be counted of a command that has
// used no processor since.
const idleCounts = 10

// isDue reports whether it is time to count files of a command that has used so much of
// the processor. A command that hides files is looked at each time.
func (d *disk) isDue(now time.Time, cpu time.Duration) bool {
	if cpu == d.cpu && d.hiddenSince.IsZero() {
		now = now.Add(-(idleCounts - 1) * sampleEvery)
	}
	return !now.Before(d.countAt)
}

// over reports whether the command with the processes of t takes up too much. It has used
// so much of the processor.
func (d *disk) over(now time.Time, t tree, cpu time.Duration) bool {
	left := d.free()
	d.now = left
	shrunk := d.left.bytes-left.bytes >= d.most-d.used.bytes || d.left.files-left.files >= d.files-d.used.files
	if !shrunk && !d.isDue(now, cpu) {
		return false
	}
	began := time.Now()
	d.left, d.cpu = left, cpu
	exceeded, hidden := d.count(t)
	exceeded = exceeded || d.hides(now, hidden)
	// A folder of very many files must not keep the shim busy.
	d.countAt = now.Add(max(sampleEvery, 20*time.Since(began)))
	return exceeded
}

// free is what the file system has left.
func (d *disk) free() space {
	var s unix.Statfs_t
	if unix.Statfs(d.folders[0], &s) != nil {
		return space{}
	}
	left := space{bytes: int64(s.Bavail) * s.Bsize, files: int64(s.Ffree)}
	if s.Files == 0 { // it counts none
		left.files = math.MaxInt32
	}
	return left
}

// count finds out what the command takes up, each file once, and reports
// whether that is too much, and whether there is more that it cannot see. Files
// that have no name any more count as long as they are open.
func (d *disk) count(t tree) (exceeded, hidden bool) {
	for range maxLooks {
		c := d.look(t)
		d.used = c.space
		exceeded = c.tooDeep || c.bytes > d.most || c.files > d.files
		hidden = c.hidden || c.vanished && d.lost() > d.most
		if exceeded || !hidden || !c.vanished {
			break
		}
	}
	return exceeded, hidden
}

func (d *disk) look(t tree) counter {
	var work unix.Stat_t
	_ = unix.Stat(d.folders[0], &work)
	list := lists.Get().(*[]byte)
	defer lists.Put(list)
	c := counter{dev: work.Dev, seen: map[inode]bool{}, list: *list}
	for _, folder := range d.folders {
		c.folder(unix.AT_FDCWD, folder, 0)
	}
	for _, pid := range t.command() {
		c.unnamed(pid)
	}
	return c
}

// lists are long enough to hold all names of a usual folder.
var lists = sync.Pool{New: func() any { list := make([]byte, 512<<10); return &list }}

// full reports whether the command has used what it may: a program that fails
// when it does ends by itself.
func (d *disk) full() bool {
	exceeded, _ := d.count(tree{})
	return exceeded || d.used.bytes >= d.most
}

type inode struct{ dev, ino uint64 }

// counter adds up files.
type counter struct {
	space
	dev     uint64 // where the folders are; what lies in memory is counted there
	seen    map[inode]bool
	alone   bool   // only what has a single name counts
	list    []byte // of names; what one call lists, it lists at one moment
	tooDeep bool

	hidden   bool // there are files that cannot be counted
	vanished bool // something was gone, or had another name, when it was looked at
}

func (c *counter) add(s unix.Stat_t) {
	if s.Mode&unix.S_IFMT != unix.S_IFDIR && s.Nlink != 1 {
		if c.alone || c.seen[inode{s.Dev, s.Ino}] {
			return
		}
		c.seen[inode{s.Dev, s.Ino}] = true
	}
	c.bytes += s.Blocks * 512
	c.files++
}

// folder adds up a folder by its name in another one: a path may be longer than
// the kernel takes. What is removed meanwhile takes up nothing.
func (c *counter) folder(parent int, name string, depth int) {
	if depth > maxDepth {
		c.tooDeep = true
		return
	}
	dir, err := openFolder(parent, name)
	if err != nil {
		c.vanished = c.vanished || depth > 0
		return
	}
	defer dir.Close()
	for !c.tooDeep {
		n, err := unix.ReadDirent(int(dir.Fd()), c.list)
		if n <= 0 || err != nil {
			return
		}
		_, _, names := unix.ParseDirent(c.list[:n], -1, nil)
		for _, name := range names {
			c.entry(int(dir.Fd()), name, depth)
		}
	}
}

func (c *counter) entry(dir int, name string, depth int) {
	var s unix.Stat_t
	if unix.Fstatat(dir, name, &s, unix.AT_SYMLINK_NOFOLLOW) != nil {
		c.vanished = true
		return
	}
	c.add(s)
	if s.Mode&unix.S_IFMT == unix.S_IFDIR {
		c.folder(dir, name, depth+1)
	}
}

// openFolder opens a folder even if the command has closed it to its owner.
func openFolder(parent int, name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(parent, name, flags, 0)
	if err == unix.EACCES && unix.Fchmodat(parent, name, 0o700, 0) == nil {
		fd, err = unix.Openat(parent, name, flags, 0)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
