package installation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lockName is what is locked, in the folder. It names the owner.
const lockName = "lock"

// lockFolder makes this process the owner of a folder until release. The lock is the
// kernel's: it ends with the process, however that ends.
func lockFolder(folder string) (release func(), err error) {
	path := filepath.Join(folder, lockName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the data folder: %w", err)
	}
	if owner, ok := takeLock(f); !ok {
		f.Close()
		return nil, fmt.Errorf("the data folder %s is in use by another server (process %s): stop that one, or give this one its own --data", folder, owner)
	}
	// The number only names the owner to others; the lock does not need it.
	_ = f.Truncate(0)
	_, _ = fmt.Fprintln(f, os.Getpid())
	return func() { f.Close() }, nil
}

// takeLock takes the lock, or says who has it. A process that was killed while
// it started another one leaves the lock to that one until it has become what
// it is to be: a moment, which is waited for.
func takeLock(f *os.File) (owner string, ok bool) {
	for range 250 {
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return "", true
		}
		text := make([]byte, 20)
		n, _ := f.ReadAt(text, 0)
		owner = strings.TrimSpace(string(text[:n]))
		if pid, err := strconv.Atoi(owner); err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return owner, false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return owner, false
}
