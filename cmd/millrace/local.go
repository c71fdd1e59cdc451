//go:build !pretend

package main

import (
	"context"

	"github.com/millrace/millrace/cmd/millrace/executors"
	"github.com/millrace/millrace/internal/engine/executor/local"
)

// openLocal opens the executor that runs tasks on this machine.
func openLocal(ctx context.Context, c local.Config) (executors.Driver, error) {
	d, err := local.New(ctx, c)
	return executors.Driver{Driver: d, Watcher: d, Meter: d, Preparer: d, Freezer: d, Closer: d}, err
}
