package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/objects/s3"
	"github.com/millrace/millrace/internal/store"
)

// movedSuffix is added to the name of a database that has moved.
const movedSuffix = ".moved"

// checkMoved refuses to make a new database where one was that has moved: whoever
// starts a server on it has forgotten a setting.
func checkMoved(database string) error {
	if !HasMoved(database) {
		return nil
	}
	return fmt.Errorf("this installation was moved to PostgreSQL: give its --database-url, or rename %s if you want to go back to what it was then", database+movedSuffix)
}

// HasMoved reports whether a database was here and has moved.
func HasMoved(database string) bool {
	_, here := os.Stat(database)
	_, moved := os.Stat(database + movedSuffix)
	return errors.Is(here, fs.ErrNotExist) && moved == nil
}

// Move is where an installation is, and where it goes.
type Move struct {
	Database, Objects       string // a file and a folder of the data folder
	DatabaseURL, StorageURL string // without the second, objects stay
	AllowMissing            bool   // objects that the database names
	Out                     io.Writer
}

// Run moves it. No server uses either side. Objects come first: what the
// database names is there when the database is. It can be killed and run again
// until it has ended.
func (p Move) Run(ctx context.Context) error {
	m := store.Move{
		From: p.Database, To: p.DatabaseURL, AllowMissing: p.AllowMissing,
		Report: func(table string, rows int64) {
			if rows > 0 {
				fmt.Fprintf(p.Out, "%s: %d rows\n", table, rows)
			}
		},
		Moved: func() error { return os.Rename(p.Database, p.Database+movedSuffix) },
	}
	if HasMoved(p.Database) {
		if p.StorageURL == "" {
			return errors.New("the database has moved already: with --storage-url the objects follow it")
		}
		m.From = ""
	}
	if p.StorageURL != "" {
		bucket, err := p.moveObjects(ctx)
		if err != nil {
			return err
		}
		m.Objects = marks(bucket)
	}
	if _, err := store.Migrate(ctx, m.To); err != nil {
		return err
	}
	return store.MoveToPostgres(ctx, m)
}

// marks lists what a store has.
func marks(s objects.Store) func(ctx context.Context, after string) ([]store.MovedObject, error) {
	return func(ctx context.Context, after string) (page []store.MovedObject, err error) {
		list, err := s.List(ctx, "", after, objects.MaxPage)
		for _, o := range list {
			page = append(page, store.MovedObject{Key: o.Key, Mark: o.Mark})
		}
		return page, err
	}
}

// moveObjects copies every object into the bucket, but those that are there.
func (p Move) moveObjects(ctx context.Context) (objects.Store, error) {
	bucket, err := s3.Open(ctx, p.StorageURL, time.Now)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(p.Objects); errors.Is(err, fs.ErrNotExist) { // nothing was ever kept
		return bucket, nil
	}
	folder, err := disk.Open(ctx, p.Objects, nil, time.Now)
	if err != nil {
		return nil, err
	}
	c := copying{from: folder, to: bucket, out: p.Out}
	for after := ""; ; {
		page, err := folder.List(ctx, "", after, objects.MaxPage)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			c.print()
			return bucket, nil
		}
		for _, o := range page {
			if err := c.object(ctx, o); err != nil {
				return nil, fmt.Errorf("object %s: %w", o.Key, err)
			}
		}
		after = page[len(page)-1].Key
	}
}

// copying counts objects on their way.
type copying struct {
	from, to objects.Store
	out      io.Writer
	count    int
	bytes    int64
	printed  time.Time
}

func (c *copying) object(ctx context.Context, o objects.Object) error {
	there, err := c.to.Stat(ctx, o.Key)
	if fault.Is(err, fault.KindNotFound) {
		err = c.put(ctx, o)
	} else if err == nil && there.Size != o.Size {
		err = errors.New("the bucket has another object under this name: is it a bucket of its own?")
	}
	if err != nil {
		return err
	}
	c.count, c.bytes = c.count+1, c.bytes+o.Size
	if time.Since(c.printed) > 5*time.Second {
		c.print()
	}
	return nil
}

func (c *copying) put(ctx context.Context, o objects.Object) error {
	r, err := c.from.Open(ctx, o.Key, 0, -1)
	if err != nil {
		return err
	}
	_, err = c.to.Put(ctx, o.Key, "application/octet-stream", r, o.Size) // the database knows its type
	return errors.Join(err, r.Close())
}

func (c *copying) print() {
	c.printed = time.Now()
	fmt.Fprintf(c.out, "objects: %d, %.1f MB\n", c.count, float64(c.bytes)/1e6)
}
