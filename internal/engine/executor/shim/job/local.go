package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// The signals by which the server tells a job of its own machine what it wants. A look
// is at Control, which the server has written before.
const (
	Look   = unix.SIGUSR1
	Freeze = unix.Signal(35) // the first that no C library takes for itself
	Thaw   = unix.Signal(36)
	Evict  = unix.Signal(37)
)

// The descriptors that a job of the server's own machine inherits, and its command does
// not: a file that is locked for as long as the job uses its slot of user and group, and
// what is to be done.
const (
	slotFD = 3 + iota
	launchFD
)

// Inherited returns the files that a local job inherits beside its standard input, output
// and errors. The caller closes them once the job has started. The lock of the slot is held
// until the caller and the job have closed it. The launch counts in place of the one in the
// job's file. It may contain secrets, so it is in memory alone.
func Inherited(slot *os.File, l shim.Launch) ([]*os.File, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	fd, err := rawfile.Memory(text)
	if err != nil {
		return nil, err
	}
	return []*os.File{slot, os.NewFile(uintptr(fd), "launch")}, nil
}

// inheritLaunch reads the launch that the server has handed over.
func inheritLaunch(l *shim.Launch) error {
	var handed shim.Launch
	text, err := rawfile.ReadDescriptor(launchFD)
	if err == nil {
		err = json.Unmarshal(text, &handed)
	}
	if err != nil {
		return fmt.Errorf("cannot read the launch: %w", err)
	}
	unix.Close(launchFD)
	if handed.Fence != l.Fence {
		return errors.New("the launch is of another attempt")
	}
	*l = handed
	return nil
}

// Measure is what an attempt takes up that has ended.
func Measure(id string, f Folder) shim.Size { return shim.Before{}.Size(id, shim.Folder(f), 0) }

// orders are what the server wants by a signal alone. It may say so before there is an
// attempt that can be told.
type orders struct {
	mu      sync.Mutex
	attempt *shim.Alone
	frozen  bool
	evicted bool
}

// receive takes orders from here on, to the end of the process: while nobody waited for a
// signal, it could be dropped.
func (o *orders) receive() {
	told := make(chan os.Signal, 8)
	signal.Notify(told, Freeze, Thaw, Evict)
	go func() {
		for s := range told {
			o.take(s)
		}
	}()
}

func (o *orders) take(s os.Signal) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch s {
	case Freeze, Thaw:
		o.frozen = s == Freeze
	case Evict:
		o.evicted = true
	}
	o.obey()
}

// give has an attempt obey all orders, also earlier ones.
func (o *orders) give(a *shim.Alone) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.attempt = a
	o.obey()
}

// obey has the attempt do what is wanted, if there is one. The lock is held.
func (o *orders) obey() {
	switch a := o.attempt; {
	case a == nil:
		return
	case o.frozen:
		a.Freeze()
	default:
		a.Thaw()
	}
	if o.evicted {
		o.attempt.Evict()
	}
}
