package treecache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// errBusy says that somebody else has the lock.
var errBusy = errors.New("the folder is being made or removed")

// Every tree has a lock: shared by those who use it, held alone by who makes or
// removes it. The kernel gives it back, whatever happens to its holder. The
// files stay, since a lock on a removed file guards nothing.
func (c *Cache) lock(hex string, how int) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(c.Folder, locksFolder, hex), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if err == nil {
		return file, nil
	}
	file.Close()
	if err == unix.EWOULDBLOCK {
		return nil, errBusy
	}
	return nil, err
}

func (c *Cache) lockShared(hex string) (*os.File, error)    { return c.lock(hex, unix.LOCK_SH) }
func (c *Cache) lockExclusive(hex string) (*os.File, error) { return c.lock(hex, unix.LOCK_EX) }

// waitExclusive holds the lock alone, once everybody else has let go of it.
func (c *Cache) waitExclusive(ctx context.Context, hex string) (*os.File, error) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		file, err := c.lockExclusive(hex)
		if !errors.Is(err, errBusy) {
			return file, err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// flight is a tree in the making that several may wait for.
type flight struct {
	done    chan struct{}
	err     error
	waiting int
	stop    context.CancelFunc
}

// Share does something that others may be doing already. It goes on while
// anybody waits for it, whoever came first.
func (c *Cache) Share(ctx context.Context, hex string, do func(context.Context) error) error {
	c.mu.Lock()
	f := c.flights[hex]
	if f == nil {
		f = c.startFlight(ctx, hex, do)
	}
	f.waiting++
	c.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	f.waiting--
	last := f.waiting == 0
	if last && c.flights[hex] == f {
		delete(c.flights, hex) // nobody joins what is being stopped
	}
	c.mu.Unlock()
	if last {
		f.stop()
		<-f.done
	}
	return ctx.Err()
}

// startFlight starts a flight. The lock is held.
func (c *Cache) startFlight(ctx context.Context, hex string, do func(context.Context) error) *flight {
	wide, stop := context.WithTimeout(context.WithoutCancel(ctx), c.Time)
	f := &flight{done: make(chan struct{}), stop: stop}
	c.flights[hex] = f
	go func() {
		defer close(f.done)
		defer stop()
		f.err = do(wide)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.flights[hex] == f {
			delete(c.flights, hex)
		}
	}()
	return f
}
