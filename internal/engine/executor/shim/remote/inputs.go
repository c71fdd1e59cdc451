package remote

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// atOnce is how many files are on their way at the same time.
const atOnce = 4

// stage brings what the command reads.
func stage(ctx context.Context, c *client, t Task) error {
	for _, dir := range []string{t.Launch.Dir, t.Temp, t.In} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(t.In)
	if err != nil {
		return err
	}
	defer root.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, in := range t.Inputs {
		g.Go(func() error {
			if err := root.MkdirAll(filepath.Dir(in.Path), 0o755); err != nil {
				return err
			}
			if in.Object == 0 {
				return root.WriteFile(in.Path, in.Text, 0o644)
			}
			return again(ctx, func() error { return fetch(ctx, c, root, in) })
		})
	}
	err = g.Wait()
	if err == nil && t.File != "" {
		err = os.WriteFile(t.File, []byte(t.Script), 0o600)
	}
	return err
}

var errChanged = refused{text: "an input is not what it was when the run was started"}

func fetch(ctx context.Context, c *client, root *os.Root, in Input) error {
	body, err := c.input(ctx, in.Object-1)
	if err != nil {
		return err
	}
	defer body.Close()
	arriving := &arrival{r: body}
	err = write(root, in, arriving)
	if err != nil && arriving.err == nil && err != errChanged {
		return refused{text: "an input cannot be put into its place: " + err.Error()} // which does not pass
	}
	return err
}

// arrival reads what a server sends, and keeps what is wrong with that.
type arrival struct {
	r   io.Reader
	err error
}

func (a *arrival) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if err != nil && err != io.EOF {
		a.err = err
	}
	return n, err
}

func write(root *os.Root, in Input, r io.Reader) error {
	if in.Folder {
		return errors.Join(root.RemoveAll(in.Path), unpack(root, in.Path, r))
	}
	f, err := root.OpenFile(in.Path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), r)
	if err = errors.Join(err, f.Close()); err == nil && in.SHA256 != "" && hex.EncodeToString(sum.Sum(nil)) != in.SHA256 {
		return errChanged
	}
	return err
}

// unpack makes a folder of an archive. Nothing in it leads out of the root.
func unpack(root *os.Root, dir string, r io.Reader) error {
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, r) // to its end, so that one that is cut short is noticed
			return err
		}
		if err != nil {
			return err
		}
		name := path.Join(dir, path.Clean("/"+h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, 0o755)
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, name)
		case tar.TypeReg:
			err = unpackFile(root, name, h.FileInfo().Mode().Perm(), archive)
		default:
			err = fmt.Errorf("%s is neither file nor folder", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, mode os.FileMode, r io.Reader) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
