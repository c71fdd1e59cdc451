package transfer

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
)

// FetchArchive writes a zip archive whose length and hash nobody knows before its end:
// it is whole when it can be read as one.
func (d *Folder) FetchArchive(name, url string) error {
	for segment := range strings.SplitSeq(name, "/") {
		if err := safeName(segment); err != nil {
			return err
		}
	}
	if _, err := d.root.Lstat(name); err == nil && !d.Force {
		return fmt.Errorf("%s is there already: --force replaces it, --to names another folder", name)
	}
	if err := d.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	part := partName(name, "")
	if err := d.receive(part, url); err != nil {
		_ = d.root.Remove(part)
		return fmt.Errorf("%s: %w", name, err)
	}
	return d.root.Rename(part, name)
}

func (d *Folder) receive(part, url string) error {
	r, err := http.NewRequestWithContext(d.Ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := d.HTTP.Do(r)
	if err != nil {
		return unsigned(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp)
	}
	f, err := d.root.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	size, err := io.Copy(f, resp.Body)
	if err == nil {
		_, err = zip.NewReader(f, size)
	}
	if err != nil {
		err = fmt.Errorf("the archive broke off, try again: %w", err)
	}
	return errors.Join(err, f.Sync(), f.Close())
}
