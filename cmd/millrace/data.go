package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/cmd/millrace/datafolder"
	"github.com/millrace/millrace/cmd/millrace/folderlock"
	"github.com/millrace/millrace/cmd/millrace/keyfile"
	"github.com/millrace/millrace/cmd/millrace/move"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/store"
)

// What an embedded installation keeps beside its folders.
const (
	databaseFile = "millrace.db"
	lockFile     = folderlock.File
)

// embedded reports whether the database lives in the data folder.
func (s *databaseSettings) embedded() bool { return s.DatabaseURL == "" }

func (s *databaseSettings) url() string {
	if s.embedded() {
		return s.file()
	}
	return s.DatabaseURL
}

func (s *databaseSettings) file() string { return filepath.Join(s.Data, databaseFile) }

func (s *databaseSettings) makeData() error {
	if s.embedded() {
		if err := move.Check(s.file()); err != nil {
			return err
		}
	}
	return datafolder.Make(s.Data, databaseFile, keyfile.Name, lockFile)
}

// lockData makes this process the owner of the data folder until release: of the
// embedded database, and of the tasks that run from it.
func (s *databaseSettings) lockData() (release func(), err error) { return folderlock.Take(s.Data) }

// secretKey is the given one, or one that is made once and kept in the data
// folder.
func (s *databaseSettings) secretKey(ctx context.Context) (string, error) {
	if s.SecretKey != "" {
		return s.SecretKey, nil
	}
	key, err := keyfile.Read(s.Data)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	// A new key would open nothing of what is there.
	if sealed, err := store.HasKey(ctx, s.url()); err != nil || sealed {
		return "", errors.Join(err, fmt.Errorf("the database has a secret key, and there is none in %s: put the %s of the first server there, from a backup if need be, or give it as --secret-key", s.Data, keyfile.Name))
	}
	return keyfile.Make(s.Data)
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
