package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/store"
)

// What an embedded installation keeps beside its folders.
const (
	databaseFile = "millrace.db"
	keyFile      = "secret.key"
	lockFile     = "lock"
)

// embedded reports whether the database lives in the data folder.
func (s *databaseSettings) embedded() bool { return s.DatabaseURL == "" }

func (s *databaseSettings) url() string {
	if s.embedded() {
		return filepath.Join(s.Data, databaseFile)
	}
	return s.DatabaseURL
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

// lockData makes this process the owner of the data folder until release: of the
// embedded database, and of the tasks that run from it. The lock is the
// kernel's: it ends with the process, however that ends.
func (s *databaseSettings) lockData() (release func(), err error) {
	path := filepath.Join(s.Data, lockFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the data folder: %w", err)
	}
	if owner, ok := takeLock(f); !ok {
		f.Close()
		return nil, fmt.Errorf("the data folder %s is in use by another server (process %s): stop that one, or give this one its own --data", s.Data, owner)
	}
	// The number only names the owner to others; the lock does not need it.
	_ = f.Truncate(0)
	_, _ = fmt.Fprintln(f, os.Getpid())
	return func() { f.Close() }, nil
}

// secretKey is the given one, or one that is made once and kept in the data
// folder.
func (s *databaseSettings) secretKey(ctx context.Context) (string, error) {
	if s.SecretKey != "" {
		return s.SecretKey, nil
	}
	path := filepath.Join(s.Data, keyFile)
	if _, err := os.Stat(filepath.Join(s.Data, nextKeyFile)); err == nil {
		return "", errors.New("a change of the secret key was begun and not finished: run `millrace admin rotate-key` again")
	}
	text, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot read the secret key: %w", err)
	}
	// A new key would open nothing of what is there.
	if sealed, err := store.HasKey(ctx, s.url()); err != nil || sealed {
		return "", errors.Join(err, fmt.Errorf("the database has a secret key, and there is none in %s: put the %s of the first server there, from a backup if need be, or give it as --secret-key", s.Data, keyFile))
	}
	key := rand.Text() + rand.Text()
	if err := writeOnce(path, key+"\n"); err != nil {
		return "", fmt.Errorf("cannot keep a secret key: %w", err)
	}
	return key, nil
}

// writeOnce leaves a whole file or none, on disk before it returns.
func writeOnce(path, text string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".secret-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err = tmp.WriteString(text); err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// openStore opens a database whose schema is current.
func (s *databaseSettings) openStore(ctx context.Context, c credits.Catalog) (*store.DB, error) {
	key, err := s.secretKey(ctx)
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, store.Options{URL: s.url(), SecretKey: key, Catalog: c, MaxConnections: s.Connections})
}

// openBeside opens the database for a command that runs beside a server: it
// makes nothing and migrates nothing.
func (s *databaseSettings) openBeside(ctx context.Context, c credits.Catalog) (*store.DB, error) {
	if s.embedded() {
		if err := s.mustExist(); err != nil {
			return nil, err
		}
	}
	return s.openStore(ctx, c)
}

func (s *databaseSettings) mustExist() error {
	if _, err := os.Stat(s.url()); err != nil {
		return fmt.Errorf("there is no database in %s: is --data (or MILLRACE_DATA) the folder of your server?", s.Data)
	}
	return nil
}
