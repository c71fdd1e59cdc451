//go:build pretend

package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/cmd/millrace/executors"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/engine/executor/local"
)

// openLocal opens an executor that starts no processes, for measuring everything
// else at a scale that no machine has (bench/cmd/scaleload).
func openLocal(_ context.Context, c local.Config) (executors.Driver, error) {
	d, err := dummy.New(c.Folder, c.Now)
	p := pretender{d, c}
	return executors.Driver{Driver: p, Watcher: d, Meter: p, Preparer: p, Freezer: p, Closer: d}, err
}

// pretender does for the dummy what only drivers of processes have to, and has the
// capacity of the settings.
type pretender struct {
	*dummy.Driver
	config local.Config
}

func (p pretender) Capabilities(ctx context.Context) (executor.Capabilities, error) {
	c, err := p.Driver.Capabilities(ctx)
	c.VCPU, c.MemoryBytes = p.config.VCPU, p.config.MemoryBytes
	return c, err
}

func (p pretender) Prepare(_ context.Context, k executor.Key) error {
	return os.MkdirAll(filepath.Join(p.config.Folder, k.Folder(), "work"), 0o700)
}

func (pretender) Freeze(context.Context) ([]executor.Size, error) { return nil, nil }
func (pretender) Evict(context.Context, string) error             { return nil }
func (pretender) Thaw(context.Context) error                      { return nil }

func (pretender) Usage(context.Context, executor.Handle) (executor.Usage, error) {
	return executor.Usage{}, fault.NotFound("nobody measures what only pretends")
}

func (pretender) Marks(context.Context, executor.Handle, int64) ([]executor.LogMark, error) {
	return nil, nil
}
