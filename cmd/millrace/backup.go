package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/store"
)

type backupCommand struct {
	databaseSettings `embed:""`
	StorageURL       string `name:"storage-url" help:"s3://bucket?endpoint=…&region=…, if you use one: it is not copied." group:"storage"`
	Folder           string `arg:"" help:"Folder to create; it must not exist."`
}

// Run copies an embedded installation into a folder that a server can be
// started on. It works beside a running server. The database comes first:
// what is added meanwhile is then left over, and nothing is missing.
func (c *backupCommand) Run(w console) error {
	if !c.Embedded() {
		return errors.New("millrace backup copies the embedded database: for PostgreSQL use pg_dump, and keep the secret key with it")
	}
	if err := c.MustExist(); err != nil {
		return err
	}
	if err := os.Mkdir(c.Folder, 0o700); err != nil {
		return fmt.Errorf("cannot create the backup folder: %w", err)
	}
	err := c.copyInto(w.ctx)
	if err != nil { // half a backup is worse than none
		return errors.Join(err, os.RemoveAll(c.Folder))
	}
	fmt.Fprintf(w.out, "%s holds a copy of %s; start it with: millrace serve --data %s\n", c.Folder, c.Data, c.Folder)
	if c.StorageURL != "" {
		fmt.Fprintln(w.out, "uploads and outputs are in the bucket, which is not copied")
	}
	return nil
}

func (c *backupCommand) copyInto(ctx context.Context) error {
	release, err := c.mark(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := store.Copy(ctx, c.URL(), filepath.Join(c.Folder, installation.File)); err != nil {
		return err
	}
	for _, name := range []string{installation.KeyName, installation.NextKeyName, "objects/objects", "mail"} {
		if err := installation.Copy(ctx, filepath.Join(c.Data, name), filepath.Join(c.Folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// mark shows a running server that a backup is being made, until release: it
// deletes no object meanwhile. The mark of one that was killed runs out.
func (c *backupCommand) mark(ctx context.Context) (release func(), err error) {
	const life = 5 * time.Minute
	db, err := c.OpenBeside(ctx, credits.DefaultCatalog())
	if err != nil { // of another version, whose server knows no marks
		return func() {}, nil
	}
	id := rand.Text()
	if err := db.MarkBackup(ctx, id, db.Now().Add(life)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for tick := time.Tick(life / 5); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
				_ = db.MarkBackup(ctx, id, db.Now().Add(life)) // the next one may succeed
			}
		}
	})
	return func() {
		stop()
		renewing.Wait()
		_ = errors.Join(db.UnmarkBackup(context.WithoutCancel(ctx), id), db.Close()) // it runs out by itself
	}, nil
}
