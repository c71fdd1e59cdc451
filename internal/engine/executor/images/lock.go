package images

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// errBusy says that somebody else has the lock.
var errBusy = errors.New("the image is being pulled or removed")

// Every image has a lock: shared by those who use it, held alone by who pulls
// or removes it. The kernel gives it back, whatever happens to its holder. The
// files stay, since a lock on a removed file guards nothing.
func (s *Store) lock(hex string, how int) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(s.Folder, locksFolder, hex), os.O_RDWR|os.O_CREATE, 0o600)
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

func (s *Store) lockShared(hex string) (*os.File, error)    { return s.lock(hex, unix.LOCK_SH) }
func (s *Store) lockExclusive(hex string) (*os.File, error) { return s.lock(hex, unix.LOCK_EX) }

// waitExclusive holds the lock alone, once everybody else has let go of it.
func (s *Store) waitExclusive(ctx context.Context, hex string) (*os.File, error) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		file, err := s.lockExclusive(hex)
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

// flight is a pull that several may wait for.
type flight struct {
	done    chan struct{}
	err     error
	waiting int
	stop    context.CancelFunc
}

// shareFlight does something that others may be doing already. It goes on while
// anybody waits for it, whoever came first.
func (s *Store) shareFlight(ctx context.Context, hex string, do func(context.Context) error) error {
	s.mu.Lock()
	f := s.flights[hex]
	if f == nil {
		f = s.startFlight(ctx, hex, do)
	}
	f.waiting++
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	f.waiting--
	last := f.waiting == 0
	if last && s.flights[hex] == f {
		delete(s.flights, hex) // nobody joins what is being stopped
	}
	s.mu.Unlock()
	if last {
		f.stop()
		<-f.done
	}
	return ctx.Err()
}

// startFlight starts a flight. The lock is held.
func (s *Store) startFlight(ctx context.Context, hex string, do func(context.Context) error) *flight {
	wide, stop := context.WithTimeout(context.WithoutCancel(ctx), pullTime)
	f := &flight{done: make(chan struct{}), stop: stop}
	s.flights[hex] = f
	go func() {
		defer close(f.done)
		defer stop()
		f.err = do(wide)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.flights[hex] == f {
			delete(s.flights, hex)
		}
	}()
	return f
}
