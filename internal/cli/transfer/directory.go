package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/folders"
)

// Directory is a folder to fetch.
type Directory struct {
	Path     string // below the folder that takes it, with slashes
	Manifest string // the address of what says what is in it
	Sum      string // SHA-256 of the manifest in hex; empty: not known
	Data     string // the address of the bytes of all files, one after the other
	Bytes    int64

	Renew func() (data string, err error) // another address of the bytes, when this one has expired
}

// FetchDirectory writes the files, links and folders of a folder, each whole or not at
// all. Files that are there already are not fetched, so that the same call goes on with a
// download that broke off.
func (d *Folder) FetchDirectory(f Directory) error {
	if err := safePath(f.Path); err != nil {
		return err
	}
	entries, err := d.manifest(f)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if err := d.root.MkdirAll(f.Path, 0o755); err != nil {
		return err
	}
	data := &dataReader{folder: d, of: f, shown: NewMeter(d.Console, f.Path, f.Bytes)}
	defer data.shown.Close()
	defer data.close()
	fetch := directoryFetch{d, data, map[stamp][]placed{}}
	at := int64(0)
	for _, e := range entries {
		place := path.Join(f.Path, e.Path)
		err := fetch.entry(place, e, at)
		if err == nil && !e.Folder {
			err = fetch.keep(place)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		at += e.Size
	}
	return nil
}

func safePath(name string) error {
	for segment := range strings.SplitSeq(name, "/") {
		if err := safeName(segment); err != nil {
			return err
		}
	}
	return nil
}

// manifest is what a folder has, in the order of its bytes, if all of it stays in the folder.
func (d *Folder) manifest(f Directory) ([]folders.Entry, error) {
	text, err := d.text(f.Manifest)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:]); f.Sum != "" && got != f.Sum {
		return nil, damaged(got, f.Sum)
	}
	var m folders.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("the server sent no list of its files: %w", err)
	}
	for _, e := range m.Entries {
		if err := safePath(e.Path); err != nil {
			return nil, err
		}
	}
	return m.Entries, m.Check()
}

// text is what an address has, once all of it is here.
func (d *Folder) text(url string) (text []byte, err error) {
	for try := 1; ; try++ {
		resp, err := d.get(url, 0)
		if err == nil {
			text, err = io.ReadAll(resp.Body)
			err = errors.Join(err, resp.Body.Close())
		}
		if err == nil || try >= maxTries || errors.Is(err, errRefused) {
			return text, err
		}
		if err := d.Sleep(d.Ctx, time.Duration(try)*time.Second); err != nil {
			return nil, err
		}
	}
}

// get asks for what is behind some bytes.
func (d *Folder) get(url string, behind int64) (*http.Response, error) {
	r, err := http.NewRequestWithContext(d.Ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if behind > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", behind))
	}
	resp, err := d.HTTP.Do(r)
	if err != nil {
		return nil, unsigned(err)
	}
	ranged := resp.StatusCode == http.StatusPartialContent && strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", behind))
	if ranged || behind == 0 && resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode < http.StatusInternalServerError {
		return nil, fmt.Errorf("%w: %w", errRefused, refusal(resp))
	}
	return nil, refusal(resp)
}

// directoryFetch is one call of FetchDirectory.
type directoryFetch struct {
	*Folder
	data   *dataReader
	placed map[stamp][]placed // what is in place by now
}

// placed is a file or link of the folder, as it is on this disk.
type placed struct {
	place string
	info  fs.FileInfo
}

// stamp is what two names of one file have in common.
type stamp struct{ size, modified int64 }

func stampOf(info fs.FileInfo) stamp { return stamp{info.Size(), info.ModTime().UnixNano()} }

// keep notes what is in place.
func (d directoryFetch) keep(place string) error {
	info, err := d.root.Lstat(place)
	if err == nil {
		d.placed[stampOf(info)] = append(d.placed[stampOf(info)], placed{place, info})
	}
	return err
}

// mayReplace refuses to replace what differs, unless it is forced, and in any case another
// file of the folder: a disk that does not tell capital letters from small ones has one file
// for both names.
func (d directoryFetch) mayReplace(place string) error {
	info, err := d.root.Lstat(place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, other := range d.placed[stampOf(info)] {
		if os.SameFile(info, other.info) {
			return fmt.Errorf("is the same file as %s here, because this disk does not tell their names apart: choose a folder on another disk with --to", other.place)
		}
	}
	if !d.Force {
		return errDiffers
	}
	return nil
}

func (d directoryFetch) entry(place string, e folders.Entry, at int64) error {
	if err := d.root.MkdirAll(path.Dir(place), 0o755); err != nil {
		return err
	}
	switch {
	case e.Folder:
		return d.root.MkdirAll(place, 0o755)
	case e.Link != "":
		return d.link(place, e.Link)
	}
	have, err := d.hashOf(place)
	if err == nil && have == e.SHA256 {
		d.data.shown.add(e.Size)
		return nil // it is there already
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.mayReplace(place); err != nil {
		return err
	}
	d.data.moveTo(at)
	return d.bytes(place, e)
}

var errDiffers = errors.New("already exists and differs: replace it with --force, or choose another folder with --to")

// bytes writes a file, under its name once it is whole.
func (d directoryFetch) bytes(place string, e folders.Entry) error {
	part := partName(place, "."+shortSum(File{Sum: e.SHA256, Size: e.Size}))
	f, err := d.root.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.CopyN(io.MultiWriter(f, h), d.data, e.Size)
	if sum := hex.EncodeToString(h.Sum(nil)); err == nil && sum != e.SHA256 {
		err = damaged(sum, e.SHA256)
	}
	if err == nil && e.Executable {
		err = f.Chmod(0o755)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.root.Remove(part))
	}
	return d.root.Rename(part, place)
}

// link makes a symbolic link, which may lead nowhere.
func (d directoryFetch) link(place, to string) error {
	there, err := d.root.Readlink(place)
	if err == nil && there == to {
		return nil
	}
	if err := d.mayReplace(place); err != nil {
		return err
	}
	if err := d.root.Remove(place); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.root.Symlink(to, place)
}

// dataReader reads the bytes of a folder, and goes on where a connection broke.
type dataReader struct {
	folder *Folder
	of     Directory
	shown  *Meter
	at     int64
	body   io.ReadCloser
	tries  int // without a byte
}

func (r *dataReader) moveTo(at int64) {
	if at != r.at {
		r.close()
		r.at = at
	}
}

func (r *dataReader) close() {
	if r.body != nil {
		_ = r.body.Close()
		r.body = nil
	}
}

func (r *dataReader) Read(p []byte) (int, error) {
	for {
		n, err := r.once(p)
		if r.at += int64(n); n > 0 {
			r.tries = 0
			r.shown.add(int64(n))
			return n, nil
		}
		r.close()
		if r.tries++; r.tries >= maxTries || r.folder.Ctx.Err() != nil {
			return 0, errors.Join(err, r.folder.Ctx.Err())
		}
		if errors.Is(err, errRefused) {
			address, renewErr := r.of.Renew()
			if renewErr != nil || address == r.of.Data {
				return 0, errors.Join(err, renewErr)
			}
			r.of.Data = address
			continue
		}
		if err := r.folder.Sleep(r.folder.Ctx, time.Duration(r.tries)*time.Second); err != nil {
			return 0, err
		}
	}
}

func (r *dataReader) once(p []byte) (int, error) {
	if r.body == nil {
		resp, err := r.folder.get(r.of.Data, r.at)
		if err != nil {
			return 0, err
		}
		r.body = resp.Body
	}
	n, err := r.body.Read(p)
	if n == 0 && errors.Is(err, io.EOF) {
		err = fmt.Errorf("the storage closed the connection after %d of %d bytes", r.at, r.of.Bytes)
	}
	return n, err
}
