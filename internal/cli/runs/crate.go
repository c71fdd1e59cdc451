package runs

import (
	"archive/zip"
	"fmt"
	"io"
	"os"

	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type runsCrate struct {
	session.Flags `embed:""`
	runArg        `embed:""`
	To            string `env:"-" placeholder:"FILE" help:"File to write. Default: the run's id with .crate.zip."`
	Force         bool   `env:"-" help:"Replace an existing file."`
}

// Run prints the name of the file when it is whole.
func (c *runsCrate) Run(w screen.Console) error {
	s, id, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	to := c.To
	if to == "" {
		to = id + ".crate.zip"
	}
	if _, err := os.Lstat(to); err == nil && !c.Force {
		return fmt.Errorf("%s already exists: replace it with --force, or choose another file with --to", to)
	}
	resp, err := s.API.DownloadRunCrate(s.Ctx, id, nil)
	if err != nil {
		return s.Explain(err)
	}
	defer resp.Body.Close()
	if err := writeWhole(to, resp.Body); err != nil {
		return err
	}
	return s.Emit(map[string]string{"file": to}, func() { s.Say("%s", to) })
}

// writeWhole writes a zip archive that appears under its name once it has come to its end.
func writeWhole(to string, r io.Reader) error {
	part := to + ".part"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = readable(part)
	}
	if err == nil {
		err = os.Rename(part, to)
	}
	if err != nil {
		_ = os.Remove(part)
		return fmt.Errorf("the download of the archive was interrupted, try again: %w", err)
	}
	return nil
}

func readable(file string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	return z.Close()
}
