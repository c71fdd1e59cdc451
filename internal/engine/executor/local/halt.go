package local

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
)

// Bounds of what it may take to halt all attempts, and to end one and remove its files, of
// which there may be very many.
const (
	freezeTimeout = time.Minute
	evictTimeout  = 5 * time.Minute
)

// Freeze halts what runs, and starts nothing until Thaw.
func (c *cluster) Freeze(ctx context.Context) ([]executor.Size, error) {
	c.mu.Lock()
	c.halted = true
	c.mu.Unlock()
	c.awaitStart()
	return halt(ctx, c.running())
}

// Thaw lets everything go on.
func (c *cluster) Thaw(context.Context) error {
	var failed []error
	for _, f := range c.running() {
		failed = append(failed, tell(f, job.Thaw))
	}
	c.mu.Lock()
	c.halted = false
	c.mu.Unlock()
	c.startQueued()
	return errors.Join(failed...)
}

// Evict ends a task for the space that it takes up, and returns when its files are
// removed.
func (c *cluster) Evict(ctx context.Context, id string) error {
	c.mu.Lock()
	t := c.tasks[id]
	runs := t != nil && t.started
	c.mu.Unlock()
	if !runs {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	if err := tell(t.folder, job.Evict); err != nil {
		return err
	}
	select {
	case <-t.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// running are the folders of the tasks whose process is there.
func (c *cluster) running() map[string]job.Folder {
	c.mu.Lock()
	defer c.mu.Unlock()
	folders := map[string]job.Folder{}
	for id, t := range c.tasks {
		if t.started && !t.isOver() {
			folders[id] = t.folder
		}
	}
	return folders
}

// tell sends a signal to the process of a task, if it lives.
func tell(f job.Folder, s unix.Signal) error {
	h, lives, err := f.Holder()
	if err != nil || !lives {
		return nil //nolint:nilerr // nothing runs there
	}
	if err = h.Signal(s); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// How long a task is waited for that does not stand still, since it is in the middle of
// writing, how often it is looked at, and after how many looks it is told again.
const (
	haltTimeout = 2 * time.Second
	haltLook    = 5 * time.Millisecond
	haltAgain   = 50
)

// halt freezes tasks, and returns what each takes up whose command runs, when none of
// them writes any more.
func halt(ctx context.Context, folders map[string]job.Folder) (sizes []executor.Size, err error) {
	look := time.NewTicker(haltLook)
	defer look.Stop()
	until := time.Now().Add(haltTimeout)
	for looks := 0; len(folders) > 0; looks++ {
		for id, f := range folders {
			if looks%haltAgain == 0 {
				err = errors.Join(err, tell(f, job.Freeze))
			}
			size, done := halted(id, f, time.Now().After(until))
			if size != nil {
				sizes = append(sizes, *size)
			}
			if done {
				delete(folders, id)
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return sizes, ctx.Err()
		}
	}
	return sizes, err
}

// halted reports whether a task needs not be waited for any more, and what it takes up if
// its command is there.
func halted(id string, f job.Folder, late bool) (*executor.Size, bool) {
	h, lives, err := f.Holder()
	if err != nil || !lives {
		return nil, err == nil || late // it has not claimed its folder yet
	}
	said, err := f.State()
	if err != nil || said.Before == nil || said.Exit != nil {
		return nil, said.Exit != nil || late
	}
	command := said.Before.Command(h.PID)
	if len(command) == 0 { // it begins, and is frozen then, or has ended
		return nil, late
	}
	if !late && !standStill(command) {
		return nil, false
	}
	size := said.Before.Size(id, shim.Folder(f), h.PID)
	return &size, true
}

// standStill reports whether no process of a command runs.
func standStill(pids []int) bool {
	if isFrozen(pids[0]) {
		return true
	}
	for _, pid := range pids {
		if !processes.Stopped(pid) {
			return false
		}
	}
	return true
}
