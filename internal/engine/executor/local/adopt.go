package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/sharedfolder"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// sparePrefix begins the names of empty folders that servers before this one
// kept for attempts to come.
const sparePrefix = ".spare-"

// ofFileSystem is a folder that file systems have at their top, for which the
// folder of attempts may be one of its own.
const ofFileSystem = "lost+found"

// adopt takes over what an earlier server left in the folder.
func (c *cluster) adopt() error {
	taken, err := c.slots.taken()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, by := range taken {
		c.adoptTask(n, by)
	}
	return c.tidy()
}

// adoptTask takes over the task that uses a slot. The lock is held.
func (c *cluster) adoptTask(n int, by share) {
	t := c.newTask(by.Key.Folder())
	process, lives := awaitClaim(t.folder, filepath.Join(c.slots.folder, strconv.Itoa(n)))
	fd, err := -1, os.ErrProcessDone
	if lives {
		fd, err = process.Descriptor()
	}
	if err != nil {
		if !errors.Is(err, os.ErrProcessDone) {
			c.log.Error("cannot watch a task of an earlier server", slog.String("attempt", t.id), slog.Any("error", err))
		}
		return
	}
	t.ready, t.started, t.share, t.slot, t.process = true, true, by, n, process
	c.slots.used[n] = true
	c.room.occupy(by)
	c.tasks[t.id] = t
	c.watch(t, fd, func() {})
}

// claimWithin is how long a process may take to claim its attempt once it is started.
const claimWithin = 10 * time.Second

// awaitClaim returns the process that holds an attempt, and whether it lives. One that an
// earlier server had just started has its slot before.
func awaitClaim(f job.Folder, slot string) (h job.Holder, lives bool) {
	for until := time.Now().Add(claimWithin); ; {
		h, lives, err := f.Holder()
		if err == nil || !errors.Is(err, fs.ErrNotExist) || !isLocked(slot) || time.Now().After(until) {
			return h, lives
		}
		_, _ = unix.Poll(nil, 5)
	}
}

func isLocked(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}

// tidy removes what was prepared and never submitted, or never started: it is of no use
// to anybody. What began before the machine was last started counts as lost, even if it
// says that it has ended: nothing brings what a task writes to the disk before the server
// stores it. The lock is held.
func (c *cluster) tidy() error {
	entries, err := os.ReadDir(c.folder)
	for _, entry := range entries {
		name := entry.Name()
		spare := strings.HasPrefix(name, sparePrefix)
		if !entry.IsDir() || name[0] == '.' && !spare || name == ofFileSystem || c.tasks[name] != nil {
			continue
		}
		f := job.Folder(c.dir(name))
		if spare || useless(f) {
			err = errors.Join(err, folder.RemoveAll(c.dir(name)))
		} else if h, _, herr := f.Holder(); herr == nil && h.IsOfEarlierBoot() {
			err = errors.Join(err, sharedfolder.ForgetEnd(f, h.Fence))
		}
	}
	return err
}

// useless reports whether nothing was ever done in a folder, and nothing will be. Nothing
// can begin there then.
func useless(f job.Folder) bool {
	_, err := f.Job()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true
	case err != nil: // another one cannot read it either
		_, lives, _ := f.Holder()
		return !lives
	case f.Claimed():
		return false
	}
	ours, err := f.Withdraw()
	return err == nil && ours
}
