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

type moveCommand struct {
	databaseSettings `embed:""`
	StorageURL       string `name:"storage-url" help:"s3://bucket?endpoint=…&region=… for objects; without it they stay in --data." group:"storage"`
	StorageURLFile   string `name:"storage-url-file" help:"File with the value of --storage-url." group:"storage"`
	AllowMissing     bool   `help:"Move even if objects that the database names are missing." group:"storage"`
}

// Run moves what is in the data folder to where the settings point, with which a
// server is started afterwards.
func (c *moveCommand) Run(w console) error {
	if c.Embedded() {
		return errors.New("--database-url must name the PostgreSQL database to move to")
	}
	release, err := c.LockData()
	if err != nil {
		return err
	}
	defer release()
	if err := c.checkKey(w.ctx); err != nil {
		return err
	}
	plan := installation.Move{Database: c.File(), Objects: filepath.Join(c.Data, "objects"), DatabaseURL: c.DatabaseURL, StorageURL: c.StorageURL, AllowMissing: c.AllowMissing, Out: w.out}
	if err := plan.Run(w.ctx); err != nil {
		return err
	}
	db, err := c.OpenStore(w.ctx, credits.DefaultCatalog())
	if err != nil {
		return err
	}
	if err := errors.Join(db.WritePending(w.audited("operator.installation_moved", audit.Installation, "").ctx), db.Close()); err != nil {
		return err
	}
	key := "the same --secret-key"
	if c.SecretKey == "" {
		key = "the --secret-key that is in " + filepath.Join(c.Data, installation.KeyName)
	}
	_, err = fmt.Fprintf(w.out, "Moved. Start servers with the same --database-url and --storage-url; those on other machines need %s.\n", key)
	return err
}

// checkKey opens the database where it is now: without its key nothing shall
// move.
func (c *moveCommand) checkKey(ctx context.Context) error {
	now := c.databaseSettings
	if !installation.HasMoved(c.File()) {
		now.DatabaseURL = ""
		if err := now.MustExist(); err != nil {
			return err
		}
		if _, err := store.Migrate(ctx, now.URL()); err != nil {
			return err
		}
	}
	db, err := now.OpenStore(ctx, credits.DefaultCatalog())
	if err != nil {
		return err
	}
	return db.Close()
}
