package shim

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// A command can keep a file where nobody can look it up: in a message between
// two of its sockets, in a folder whose name changes all the time, or, where the
// shim is a plain user, in its memory or with a process that closes itself to others. Then what the file system has lost since
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

// unnamed adds up what a process holds that has no name any more: files that it
// has open or in its memory, its program, and the folder that it works in. Its
// threads share all that, as the filter of system calls has it.
func (c *counter) unnamed(pid int) {
	proc := processes.Living(pid)
	c.held(proc + "/exe")
	c.held(proc + "/cwd")
	for _, list := range []string{proc + "/fd", proc + "/map_files"} {
		entries, err := os.ReadDir(list)
		c.hidden = c.hidden || errors.Is(err, fs.ErrPermission) // it has closed itself to a plain user
		for _, entry := range entries {
			var s unix.Stat_t
			err := unix.Stat(list+"/"+entry.Name(), &s)
			switch {
			case err == unix.EPERM: // what is mapped is root's to see
				c.hidden = c.hidden || c.mapsUnnamed(proc)
				return
			case err == nil && c.unnamedHere(s):
				c.add(s)
			case err == nil && s.Mode&unix.S_IFMT == unix.S_IFSOCK:
				c.hidden = c.hidden || line(proc+"/fdinfo/"+entry.Name(), "scm_fds:") > 0
			}
		}
	}
}

// held adds up what a link of the kernel's leads to, if that has no name any more.
func (c *counter) held(link string) {
	var s unix.Stat_t
	if unix.Stat(link, &s) == nil && c.unnamedHere(s) {
		c.add(s)
	}
}

// unnamedHere reports whether something has no name any more, and lies where the
// folders are.
func (c *counter) unnamedHere(s unix.Stat_t) bool { return s.Nlink == 0 && s.Dev == c.dev }

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
