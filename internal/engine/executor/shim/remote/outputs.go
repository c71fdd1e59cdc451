package remote

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"sync/atomic"

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
	return sendBytes(ctx, c, name, f, o)
}

// sendBytes sends what was collected, if it is still there.
func sendBytes(ctx context.Context, c *client, name string, r io.Reader, o shim.Output) error {
	body := &collected{r: r, left: o.Size}
	err := c.output(ctx, name, body, o.Size)
	if err != nil && body.changed.Load() {
		return refused{text: o.Path + " has changed"} // which does not pass
	}
	return err
}

// collected reads as many bytes as there were, and keeps whether there are less. A
// client may read on after it has answered.
type collected struct {
	r       io.Reader
	left    int64
	changed atomic.Bool
}

func (c *collected) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if err != nil && c.left > 0 {
		c.changed.Store(true)
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

// sendFolder sends the bytes of all files, then what they are.
func sendFolder(ctx context.Context, c *client, name, work string, o shim.Output) error {
	f, err := outputs.OpenFolder(work, o)
	if err != nil {
		return refused{text: o.Path + " is not there any more"}
	}
	defer f.Close()
	if err := sendBytes(ctx, c, name, f, o); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, f); err != nil {
		return refused{text: o.Path + " has changed"}
	}
	manifest := f.Manifest()
	return c.output(ctx, name+ManifestSuffix, bytes.NewReader(manifest), int64(len(manifest)))
}
