package transfer

import (
	"archive/zip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
)

// FetchArchive writes a zip archive whose length and hash nobody knows before its end:
// it is whole when it can be read as one. One that is there and has the same in it stays.
func (d *Folder) FetchArchive(name, url string) error {
	for segment := range strings.SplitSeq(name, "/") {
		if err := safeName(segment); err != nil {
			return err
		}
	}
	there := ""
	if _, err := d.root.Lstat(name); err == nil && !d.Force {
		if there, err = d.archiveSum(name); err != nil {
			return isThere(name)
		}
	}
	if err := d.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	part := partName(name, "")
	if err := d.receive(part, url); err != nil {
		_ = d.root.Remove(part)
		return fmt.Errorf("%s: %w", name, err)
	}
	if there == "" {
		return d.root.Rename(part, name)
	}
	sum, err := d.archiveSum(part)
	if err = errors.Join(err, d.root.Remove(part)); err == nil && sum != there {
		err = isThere(name)
	}
	return err
}

func isThere(name string) error {
	return fmt.Errorf("%s already exists: replace it with --force, or choose another folder with --to", name)
}

// archiveSum is a hash of what is in an archive, but for when that was written.
func (d *Folder) archiveSum(name string) (string, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() { // reading a pipe would wait
		return "", fs.ErrInvalid
	}
	file, err := d.root.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	r, err := zip.NewReader(file, info.Size())
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, f := range r.File {
		fmt.Fprintf(sum, "%q %o %d\n", f.Name, f.Mode(), f.UncompressedSize64)
		content, err := f.Open()
		if err != nil {
			return "", err
		}
		_, err = io.Copy(sum, content)
		if err = errors.Join(err, content.Close()); err != nil {
			return "", err
		}
	}
	return string(sum.Sum(nil)), nil
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
		err = fmt.Errorf("the download of the archive was interrupted, try again: %w", err)
	}
	return errors.Join(err, f.Sync(), f.Close())
}
