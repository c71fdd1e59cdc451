package local

import (
	"errors"
	"io/fs"
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
	if !lives {
		return
	}
	t.ready, t.started, t.share, t.slot, t.process = true, true, by, n, process
	c.slots.used[n] = true
	c.room.occupy(by)
	c.tasks[t.id] = t
	c.watch(t, func() bool {
		return c.awaitProcess(process, func() bool {
			_, lives, err := t.folder.Holder()
			return err == nil && !lives
		})
	})
}

// claimWithin is how long a process may take to claim its attempt once it is started.
const claimWithin = 10 * time.Second

// awaitClaim returns the process that holds an attempt, and whether it lives. One that an
// earlier server had just started has its slot before.
func awaitClaim(f job.Folder, slot string) (h job.Holder, lives bool) {
	for until := time.Now().Add(claimWithin); ; {
		h, lives, err := f.Holder()
		if err == nil || !errors.Is(err, fs.ErrNotExist) || !isLocked(slot) || isGone(f) || time.Now().After(until) {
			return h, lives
		}
		_, _ = unix.Poll(nil, 5)
	}
}

// isGone reports whether the folder of a task was removed, whose process ends what is left
// of its command.
func isGone(f job.Folder) bool {
	_, err := os.Stat(string(f))
	return errors.Is(err, fs.ErrNotExist)
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
		} else if j, jerr := f.Job(); jerr == nil && isOfEarlierBoot(f) {
			err = errors.Join(err, sharedfolder.ForgetEnd(f, j.Launch.Fence))
		}
	}
	return err
}

// isOfEarlierBoot reports whether a task began before the machine was last started. Its claim
// may not have reached the disk whole.
func isOfEarlierBoot(f job.Folder) bool {
	h, _, err := f.Holder()
	return errors.Is(err, job.ErrTorn) || err == nil && h.IsOfEarlierBoot()
}

// useless reports whether nothing was ever done in a folder, and nothing will be. Nothing
// can begin there then.
func useless(f job.Folder) bool {
	_, err := f.Job()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true
	case errors.Is(err, job.ErrTorn): // nobody can read it
		_, lives, _ := f.Holder()
		return !lives
	case err != nil: // another server may
		return false
	case f.Claimed():
		return false
	}
	ours, err := f.Withdraw()
	return err == nil && ours
}
