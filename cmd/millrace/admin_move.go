package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/millrace/millrace/cmd/millrace/move"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/credits"
)

type moveCommand struct {
	databaseSettings `embed:""`
	StorageURL       string `name:"storage-url" help:"s3://bucket?endpoint=…&region=… for objects; without it they stay in --data." group:"storage"`
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
	plan := move.Plan{Database: c.File(), Objects: filepath.Join(c.Data, "objects"), DatabaseURL: c.DatabaseURL, StorageURL: c.StorageURL, Out: w.out}
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
	_, err = fmt.Fprintf(w.out, "Moved. Start servers with the same --database-url and --storage-url; those on other machines need the --secret-key that is in %s.\n", filepath.Join(c.Data, "secret.key"))
	return err
}
