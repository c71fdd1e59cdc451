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
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/store"
)

// File is the embedded database in the data folder.
const File = "millrace.db"

// Settings say where things are kept; every command reads them.
type Settings struct {
	Config kong.ConfigFlag `placeholder:"FILE" help:"File with settings, one a line: name = value. Flags and variables win over it." group:"storage"`

	Data            string `default:"./millrace-data" help:"Folder of the embedded default: database, objects, mail, keys. One server owns it." group:"storage"`
	DatabaseURL     string `name:"database-url" help:"postgres://… for several replicas; default: SQLite in --data." group:"storage"`
	DatabaseURLFile string `name:"database-url-file" help:"File with the value of --database-url." group:"storage"`
	Connections     int    `name:"database-connections" default:"15" help:"Connections to PostgreSQL that one process opens at most, from 5 on. All processes together must leave some of the server's max_connections to others." group:"storage"`
	SecretKey       string `help:"Seals keys in the database; all replicas share it. Default: made in --data." group:"storage"`
	SecretKeyFile   string `help:"File with the value of --secret-key." group:"storage"`
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

// CheckSettings refuses an address of a database that is neither SQLite nor PostgreSQL, and a secret
// key that is too short.
func (s *Settings) CheckSettings() error {
	var errs []error
	if scheme, _, found := strings.Cut(s.DatabaseURL, "://"); found && !slices.Contains([]string{"postgres", "postgresql", "sqlite"}, scheme) {
		errs = append(errs, fmt.Errorf("--database-url: Millrace does not know %s databases: give postgres://user:password@host/database, or leave the setting out for SQLite in --data", scheme))
	}
	if s.SecretKey != "" {
		errs = append(errs, store.CheckSecretKey(s.SecretKey))
	}
	return errors.Join(errs...)
}

// Migrate brings the schema of the database up to date, after checking that it has the
// secret key of this server.
func (s *Settings) Migrate(ctx context.Context) (applied []string, err error) {
	if err := s.CheckSettings(); err != nil {
		return nil, err
	}
	key := s.SecretKey
	if key == "" {
		if key, err = readKey(s.Data); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	switch sealed, err := store.ProveKey(ctx, s.URL(), key); {
	case errors.Is(err, store.ErrWrongKey) && s.SecretKey == "" && keyIsChanging(s.Data):
		return nil, errChanging
	case err != nil:
		return nil, err
	case sealed && key == "":
		return nil, s.noKey()
	}
	return store.Migrate(ctx, s.URL())
}

func (s *Settings) noKey() error {
	return fmt.Errorf("the database has a secret key, and there is none in %s: put the %s of the first server there, from a backup if need be, or give it as --secret-key-file", s.Data, KeyName)
}

var errChanging = errors.New("a change of the secret key was not finished: run `millrace admin rotate-key` again to finish it, or with --undo to go back to the old key")

// MakeData makes the data folder.
func (s *Settings) MakeData() error {
	if err := s.CheckSettings(); err != nil {
		return err
	}
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
		return "", errors.Join(err, s.noKey())
	}
	return makeKey(s.Data)
}

// OpenStore opens a database whose schema is current.
func (s *Settings) OpenStore(ctx context.Context, c credits.Catalog) (*store.DB, error) {
	if err := s.CheckSettings(); err != nil {
		return nil, err
	}
	key, err := s.key(ctx)
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, store.Options{URL: s.URL(), SecretKey: key, Catalog: c, MaxConnections: s.Connections})
	if errors.Is(err, store.ErrWrongKey) && s.SecretKey == "" && keyIsChanging(s.Data) {
		return nil, errChanging
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
	if _, err := os.Stat(s.URL()); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("user %s cannot reach the data folder %s: run this command as its owner or as root, and let its owner pass through the folders above it", userName(os.Geteuid()), s.Data)
	} else if err != nil {
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
