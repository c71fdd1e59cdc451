package shim

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// A command can keep a file where nobody can look it up: in a message between
// two of its sockets, in a folder whose name changes all the time, or, where the
// shim is a plain user, in its memory. Then what the file system has lost since
// the command began is held against it. An honest program has such a thing for a
// moment; files come and go, but rarely between every two of several looks.
const (
	longHidden = 3 * time.Second
	maxLooks   = 5
)

// lost is what the file system has lost since the command began, whoever took
// it.
func (d *disk) lost() int64 { return d.first.bytes - d.left.bytes }

// hides reports whether the command has kept files hidden for long, while
// the file system has lost more than it may use.
func (d *disk) hides(now time.Time, hidden bool) bool {
	if !hidden {
		d.hiddenSince = time.Time{}
		return false
	}
	if d.hiddenSince.IsZero() {
		d.hiddenSince = now
	}
	return now.Sub(d.hiddenSince) >= longHidden && d.lost() > d.most
}

// unnamed adds up files that a process has open, or has in its memory, and that
// have no name any more.
func (c *counter) unnamed(pid int) {
	proc := "/proc/" + strconv.Itoa(pid)
	for _, list := range []string{proc + "/fd", proc + "/map_files"} {
		entries, _ := os.ReadDir(list)
		for _, entry := range entries {
			var s unix.Stat_t
			err := unix.Stat(list+"/"+entry.Name(), &s)
			switch kind := s.Mode & unix.S_IFMT; {
			case err == unix.EPERM: // what is mapped is root's to see
				c.hidden = c.hidden || c.mapsUnnamed(proc)
				return
			case err == nil && kind == unix.S_IFREG && s.Nlink == 0 && s.Dev == c.dev:
				c.add(s)
			case err == nil && kind == unix.S_IFSOCK:
				c.hidden = c.hidden || line(proc+"/fdinfo/"+entry.Name(), "scm_fds:") > 0
			}
		}
	}
}

// mapsUnnamed reports whether a process has a file in its memory that has no
// name any more and that was not counted.
func (c *counter) mapsUnnamed(proc string) bool {
	text, _ := rawfile.Read(proc + "/maps")
	for l := range strings.Lines(string(text)) {
		f := strings.Fields(l) // addresses, permissions, offset, device, inode, path
		if len(f) < 7 || f[len(f)-1] != "(deleted)" {
			continue
		}
		major, minor, _ := strings.Cut(f[3], ":")
		high, err := strconv.ParseUint(major, 16, 32)
		low, lowErr := strconv.ParseUint(minor, 16, 32)
		ino, inoErr := strconv.ParseUint(f[4], 10, 64)
		if err != nil || lowErr != nil || inoErr != nil || unix.Mkdev(uint32(high), uint32(low)) != c.dev {
			continue
		}
		if !c.seen[inode{c.dev, ino}] {
			return true
		}
	}
	return false
}
