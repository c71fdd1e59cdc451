// Package transfer moves files to and from signed addresses: whole, checked by
// SHA-256, with a bar where a person watches. The address is the permission:
// no token is ever sent along, whoever it points to.
package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/millrace/millrace/internal/cli/screen"
)

const maxTries = 4

// Folder takes downloads, and nothing beside it is touched: names come from
// whoever made the files.
type Folder struct {
	screen.Console
	HTTP  *http.Client
	Force bool // replace files that differ

	root *os.Root
}

// Open makes the folder if it is not there.
func (d *Folder) Open(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(path)
	d.root = root
	return err
}

// Close lets go of the folder.
func (d *Folder) Close() error { return d.root.Close() }

// File is one to fetch.
type File struct {
	Path string // below the folder, with slashes
	URL  string
	Sum  string // SHA-256 in hex; empty: not known
	Size int64

	Renew func() (url string, err error) // another address, when this one has expired; nil: there is none
}

// safeName refuses a name that is more than a name.
func safeName(name string) error {
	bad := name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, unicode.IsControl)
	if bad {
		return fmt.Errorf("%q is not a valid file name here; download it from its URL (shown by --json)", name)
	}
	return nil
}

// Fetch writes the file whole or not at all. A part that an earlier try left
// is gone on with.
func (d *Folder) Fetch(f File) error {
	if err := safePath(f.Path); err != nil {
		return err
	}
	have, err := d.hashOf(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case have == f.Sum:
		return nil // it is there already
	case !d.Force && f.Sum == "":
		return fmt.Errorf("%s already exists: replace it with --force, or choose another folder with --to", f.Path)
	case !d.Force:
		return fmt.Errorf("%s already exists and differs: replace it with --force, or choose another folder with --to", f.Path)
	}
	if folder := path.Dir(f.Path); folder != "." {
		if err := d.root.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	part := partName(f.Path, "."+shortSum(f))
	fill := d.fill
	if f.Size >= LargeFrom && f.Sum != "" {
		fill = d.fillRanges
	}
	err = fill(part, f)
	if errors.Is(err, errNoRanges) {
		_ = d.root.Remove(part + marksSuffix)
		err = d.fill(part, f)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	return d.root.Rename(part, f.Path)
}

// maxFileName is how many bytes file systems let a name have.
const maxFileName = 255

// partName is what a file is called until it is whole, hidden beside it. A name that
// leaves no room for more is there by its hash.
func partName(name, tag string) string {
	base := path.Base(name)
	if len("."+base+tag+".part"+marksSuffix) > maxFileName {
		sum := sha256.Sum256([]byte(base))
		base = hex.EncodeToString(sum[:16])
	}
	return path.Join(path.Dir(name), "."+base+tag+".part")
}

// shortSum tells parts of different contents from one another.
func shortSum(f File) string {
	if len(f.Sum) >= 12 {
		return f.Sum[:12]
	}
	return strconv.FormatInt(f.Size, 10)
}

func (d *Folder) hashOf(name string) (string, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// fill brings the part to the whole file and checks it.
func (d *Folder) fill(name string, f File) error {
	part, err := d.root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer part.Close()
	h := sha256.New()
	have, err := io.Copy(h, part)
	if err != nil {
		return err
	}
	if f.Sum == "" || have > f.Size { // a part without a hash cannot be trusted
		if have, err = restart(part, h); err != nil {
			return err
		}
	}
	for try := 1; have < f.Size; try++ {
		got, err := d.more(part, h, have, f)
		have = got
		if err == nil && have >= f.Size {
			break
		}
		if err == nil {
			err = fmt.Errorf("the storage closed the connection after %d of %d bytes", have, f.Size)
		}
		if try >= maxTries || d.Ctx.Err() != nil || errors.Is(err, errRefused) {
			return errors.Join(err, d.Ctx.Err())
		}
		if err := d.Sleep(d.Ctx, time.Duration(try)*time.Second); err != nil {
			return err
		}
	}
	if f.Sum == "" && have > f.Size {
		_ = d.root.Remove(name)
		return fmt.Errorf("was damaged in transfer: it has more than %d bytes", f.Size)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); f.Sum != "" && sum != f.Sum {
		_ = d.root.Remove(name) // going on from it would never help
		return damaged(sum, f.Sum)
	}
	return errors.Join(part.Sync(), part.Close())
}

func damaged(sum, want string) error {
	return fmt.Errorf("was damaged in transfer: its SHA-256 is %s, expected %s", sum, want)
}

var errRefused = errors.New("refused")

// more asks for what is missing behind have bytes, and returns how many there
// are then.
func (d *Folder) more(part *os.File, h hash.Hash, have int64, f File) (int64, error) {
	r, err := http.NewRequestWithContext(d.Ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return have, err
	}
	if have > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	resp, err := d.HTTP.Do(r)
	if err != nil {
		return have, unsigned(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK:
		if have, err = restart(part, h); err != nil {
			return have, err
		}
	case resp.StatusCode == http.StatusPartialContent && strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)):
	case resp.StatusCode < http.StatusInternalServerError:
		return have, fmt.Errorf("%w: %w", errRefused, refusal(resp))
	default:
		return have, refusal(resp)
	}
	shown := newMeter(d.Console, f.Path, have, f.Size)
	defer shown.bar.Close()
	n, err := io.Copy(io.MultiWriter(part, h, shown), io.LimitReader(resp.Body, f.Size-have+1))
	return have + n, err
}

// restart forgets a part.
func restart(part *os.File, h hash.Hash) (int64, error) {
	h.Reset()
	_, err := part.Seek(0, io.SeekStart)
	return 0, errors.Join(err, part.Truncate(0))
}
