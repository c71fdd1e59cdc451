package remote

import (
	"bytes"
	"context"
	"io"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
)

// ManifestSuffix follows the number of an output that is a folder.
const ManifestSuffix = ".manifest"

// send sends what a command has made, by number.
func send(ctx context.Context, c *client, work string, list []shim.Output) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, o := range list {
		g.Go(func() error {
			name := strconv.Itoa(i)
			if o.Folder {
				return again(ctx, func() error { return sendFolder(ctx, c, name, work, o) })
			}
			return again(ctx, func() error { return sendFile(ctx, c, name, work, o) })
		})
	}
	return g.Wait()
}

func sendFile(ctx context.Context, c *client, name, work string, o shim.Output) error {
	f, err := outputs.Open(work, o.Path)
	if err != nil {
		return refused{text: o.Path + " is not there any more"}
	}
	defer f.Close()
	return c.output(ctx, name, io.LimitReader(f, o.Size), o.Size)
}

// sendFolder sends the bytes of all files, then what they are.
func sendFolder(ctx context.Context, c *client, name, work string, o shim.Output) error {
	f, err := outputs.OpenFolder(work, o)
	if err != nil {
		return refused{text: o.Path + " is not there any more"}
	}
	defer f.Close()
	if err := c.output(ctx, name, io.LimitReader(f, o.Size), o.Size); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, f); err != nil {
		return refused{text: o.Path + " has changed"}
	}
	manifest := f.Manifest()
	return c.output(ctx, name+ManifestSuffix, bytes.NewReader(manifest), int64(len(manifest)))
}
