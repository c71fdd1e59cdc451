package treecache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
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

// waitExclusive holds a lock alone, once everybody else has let go of it. It returns
// no lock when a tree is there, which makes waiting, and making it, unnecessary.
func (c *Cache) waitExclusive(ctx context.Context, name, hex string) (*os.File, error) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		file, err := c.lockExclusive(name)
		if err == nil && c.isHere(hex) {
			return nil, file.Close()
		}
		if !errors.Is(err, errBusy) {
			return file, err
		}
		if c.isHere(hex) {
			return nil, nil
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

// Share does something that others may be doing already. It goes on while anybody
// waits for it, whoever came first. Who has to begin it waits for a turn of their
// team; who joins needs none.
func (c *Cache) Share(ctx context.Context, team ids.Team, name string, do func(context.Context) error) error {
	f := c.joinFlight(name)
	if f == nil {
		giveBack, err := c.turns.Take(ctx, team)
		if err != nil {
			return err
		}
		f = c.startFlight(ctx, name, do, giveBack)
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	f.waiting--
	last := f.waiting == 0
	if last && c.flights[name] == f {
		delete(c.flights, name) // nobody joins what is being stopped
	}
	c.mu.Unlock()
	if last {
		f.stop()
		<-f.done
	}
	return ctx.Err()
}

// joinFlight waits with the others for a flight that is under way; nil if there is none.
func (c *Cache) joinFlight(name string) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flights[name]
	if f != nil {
		f.waiting++
	}
	return f
}

// startFlight starts a flight, or joins one that another has started meanwhile. The turn
// is given back at its end.
func (c *Cache) startFlight(ctx context.Context, name string, do func(context.Context) error, giveBack func()) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[name]; f != nil {
		f.waiting++
		giveBack()
		return f
	}
	wide, stop := context.WithTimeout(context.WithoutCancel(ctx), c.Time)
	f := &flight{done: make(chan struct{}), stop: stop, waiting: 1}
	c.flights[name] = f
	go func() {
		defer close(f.done)
		defer giveBack()
		defer stop()
		f.err = panics.Catch(func() error { return do(wide) })
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.flights[name] == f {
			delete(c.flights, name)
		}
	}()
	return f
}
