// Package installation is what a server keeps in its data folder and its database: the
// folder itself, its lock and the secret key. Commands open all of them here.
package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/store"
)

// File is the embedded database in the data folder.
const File = "millrace.db"

// Settings say where things are kept; every command reads them.
type Settings struct {
	Config kong.ConfigFlag `placeholder:"FILE" help:"File with settings, one a line: name = value. Flags and variables win over it." group:"storage"`

	Data        string `default:"./millrace-data" help:"Folder of the embedded default: database, objects, mail, keys. One server owns it." group:"storage"`
	DatabaseURL string `name:"database-url" help:"postgres://… for several replicas; default: SQLite in --data." group:"storage"`
	Connections int    `name:"database-connections" default:"15" help:"Connections to PostgreSQL that one process opens at most, from 5 on. All processes together must leave some of the server's max_connections to others." group:"storage"`
	SecretKey   string `help:"Seals keys in the database; all replicas share it. Default: made in --data." group:"storage"`
}

// Embedded reports whether the database lives in the data folder.
func (s *Settings) Embedded() bool { return s.DatabaseURL == "" }

// URL is the database's.
func (s *Settings) URL() string {
	if s.Embedded() {
		return s.File()
	}
	return s.DatabaseURL
}

// File is where the embedded database is.
func (s *Settings) File() string { return filepath.Join(s.Data, File) }

// MakeData makes the data folder.
func (s *Settings) MakeData() error {
	if s.Embedded() {
		if err := checkMoved(s.File()); err != nil {
			return err
		}
	}
	if err := s.CheckFinished(); err != nil {
		return err
	}
	return makeFolder(s.Data, File, KeyName, lockName)
}

// CheckFinished refuses a data folder into which a backup or a restore was not completed.
func (s *Settings) CheckFinished() error { return checkFinished(s.Data) }

// LockData makes this process the owner of the data folder until release: of the
// embedded database, and of the tasks that run from it.
func (s *Settings) LockData() (release func(), err error) { return lockFolder(s.Data) }

// key is the given one, or one that is made once and kept in the data
// folder.
func (s *Settings) key(ctx context.Context) (string, error) {
	if s.SecretKey != "" {
		return s.SecretKey, nil
	}
	key, err := readKey(s.Data)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	// A new key would open nothing of what is there.
	if sealed, err := store.HasKey(ctx, s.URL()); err != nil || sealed {
		return "", errors.Join(err, fmt.Errorf("the database has a secret key, and there is none in %s: put the %s of the first server there, from a backup if need be, or give it as --secret-key", s.Data, KeyName))
	}
	return makeKey(s.Data)
}

// OpenStore opens a database whose schema is current.
func (s *Settings) OpenStore(ctx context.Context, c credits.Catalog) (*store.DB, error) {
	key, err := s.key(ctx)
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, store.Options{URL: s.URL(), SecretKey: key, Catalog: c, MaxConnections: s.Connections})
	if errors.Is(err, store.ErrWrongKey) && s.SecretKey == "" && keyIsChanging(s.Data) {
		return nil, errors.New("a change of the secret key was not finished: run `millrace admin rotate-key` again to finish it, or with --undo to go back to the old key")
	}
	return db, err
}

// OpenBeside opens the database for a command that runs beside a server: it
// makes nothing and migrates nothing.
func (s *Settings) OpenBeside(ctx context.Context, c credits.Catalog) (*store.DB, error) {
	if err := s.CheckFinished(); err != nil {
		return nil, err
	}
	if s.Embedded() {
		if err := s.MustExist(); err != nil {
			return nil, err
		}
	}
	return s.OpenStore(ctx, c)
}

// MustExist says what to do where there is no embedded database.
func (s *Settings) MustExist() error {
	if _, err := os.Stat(s.URL()); err != nil {
		return fmt.Errorf("there is no database in %s: is --data (or MILLRACE_DATA) the folder of your server?", s.Data)
	}
	return nil
}

// Beside opens the database beside a server, runs a command and closes it.
func (s *Settings) Beside(ctx context.Context, do func(*store.DB) error) error {
	db, err := s.OpenBeside(ctx, credits.DefaultCatalog())
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}
