package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/cmd/millrace/executors"
	"github.com/millrace/millrace/internal/engine/executor/slurm"
)

// checkExecutor has a cluster run a task that does nothing.
func checkExecutor(ctx context.Context, x executors.Named) error {
	if x.Kind != "slurm" {
		return nil
	}
	c := x.Slurm.Config(make([]byte, 32), x.Capacity, slog.New(slog.DiscardHandler))
	c.Folder = filepath.Join(x.Slurm.SlurmFolder, "doctor-"+strings.ToLower(rand.Text()[:8])) // a server must not take it for its own
	defer os.RemoveAll(c.Folder)
	d, err := slurm.New(ctx, c)
	if err != nil {
		return err
	}
	defer d.Close()
	return executors.Probe(ctx, executors.Driver{Driver: d, Watcher: d, Preparer: d}, c.Folder)
}
