package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/store"
)

type restoreCommand struct {
	databaseSettings `embed:""`
	StorageURL       string `name:"storage-url" help:"s3://bucket?endpoint=…&region=… with the copy of the bucket, if you use one." group:"storage"`
	StorageURLFile   string `name:"storage-url-file" help:"File with the value of --storage-url." group:"storage"`
	Backup           string `arg:"" help:"Folder that millrace backup has written."`
}

// Run restores a backup. The new folder counts as complete once every file was compared, the
// key opens the database, and a sample of outputs was opened.
func (c *restoreCommand) Run(w console) error {
	var sampled error
	check := func(ctx context.Context) (err error) {
		sampled, err = c.check(w)
		return err
	}
	restore := installation.Restore{Backup: c.Backup, To: &c.databaseSettings, Out: w.out}
	if err := restore.Run(w.ctx, check); err != nil {
		return err
	}
	if sampled != nil {
		return fmt.Errorf("the restore into %s is complete, but %w", c.Data, sampled)
	}
	_, err := fmt.Fprintf(w.out, "The restore into %s is complete. Start the server on it.\n", c.Data)
	return err
}

// check opens the restored database with its key. That the backup lacks outputs (sampled)
// keeps nobody from what it has.
func (c *restoreCommand) check(w console) (sampled, err error) {
	ctx := w.audited("operator.installation_restored", audit.Installation, filepath.Base(c.Backup)).ctx
	if c.Embedded() {
		if err := store.CheckIntegrity(ctx, c.URL()); err != nil {
			return nil, err
		}
		fmt.Fprintln(w.out, "the database is intact")
	}
	if _, err := c.Migrate(ctx); err != nil {
		return nil, err
	}
	db, err := c.OpenStore(ctx, credits.DefaultCatalog())
	if err != nil {
		return nil, err
	}
	how, sampled := sampleOutputs(ctx, db, c.StorageURL, filepath.Join(c.Data, "objects"))
	fmt.Fprintf(w.out, "sample of outputs%s\n", how)
	return sampled, errors.Join(db.WritePending(ctx), db.Close())
}
