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
	StorageURLFile   string `name:"storage-url-file" help:"File with the value of --storage-url." group:"storage"`
	Folder           string `arg:"" help:"Folder to create; it must not exist."`
}

// Run copies an installation into a folder that `millrace restore` takes. It works beside
// a running server. The database comes first: what is added meanwhile is then left over,
// and nothing is missing.
func (c *backupCommand) Run(w console) error {
	if err := c.CheckFinished(); err != nil {
		return err
	}
	if c.Embedded() {
		if err := c.MustExist(); err != nil {
			return err
		}
	}
	into, err := installation.CreateBackup(c.Folder)
	if err != nil {
		return fmt.Errorf("cannot create the backup folder: %w", err)
	}
	err = c.copyInto(w.ctx, into)
	if err == nil {
		err = into.Close()
	}
	if err != nil { // half a backup is worse than none
		return errors.Join(err, os.RemoveAll(c.Folder))
	}
	fmt.Fprintf(w.out, "%s is a complete backup of %s; restore it with: millrace restore %s --data FOLDER\n", c.Folder, c.Data, c.Folder)
	if c.StorageURL != "" {
		fmt.Fprintln(w.out, "uploads and outputs are in the bucket, which is not copied")
	}
	if c.SecretKey != "" {
		fmt.Fprintln(w.out, "the secret key is a setting and is not in the backup: keep a copy of it elsewhere")
	}
	return nil
}

func (c *backupCommand) copyInto(ctx context.Context, into *installation.Backup) error {
	release, err := c.mark(ctx)
	if err != nil {
		return err
	}
	defer release()
	name, dump := installation.File, store.Copy
	if !c.Embedded() {
		name, dump = installation.DumpName, installation.Dump
	}
	if err := dump(ctx, c.URL(), filepath.Join(c.Folder, name)); err != nil {
		return err
	}
	if err := into.Add(name); err != nil {
		return err
	}
	for _, name := range []string{installation.KeyName, installation.NextKeyName, "objects/objects", "mail"} {
		if err := into.Copy(ctx, c.Data, name); err != nil {
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
