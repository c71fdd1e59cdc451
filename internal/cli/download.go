package cli

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
)

// downloads writes files into one folder, and never beside it: names come
// from whoever made the files.
type downloads struct {
	*session
	root  *os.Root
	force bool
}

func (s *session) downloads(folder string, force bool) (*downloads, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	return &downloads{session: s, root: root, force: force}, nil
}

// download is one file to fetch.
type download struct {
	path string // below the folder, with slashes
	url  string
	sum  string // SHA-256 in hex; empty: not known
	size int64
}

// safeName refuses a name that is more than a name.
func safeName(name string) error {
	bad := name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, unicode.IsControl)
	if bad {
		return fmt.Errorf("%q is no name for a file here; fetch it by its address (--json shows it)", name)
	}
	return nil
}

// fetch writes the file whole or not at all. A part that an earlier try left
// is gone on with.
func (d *downloads) fetch(f download) error {
	for segment := range strings.SplitSeq(f.path, "/") {
		if err := safeName(segment); err != nil {
			return err
		}
	}
	have, err := d.hashOf(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case have == f.sum:
		return nil // it is there already
	case !d.force:
		return fmt.Errorf("%s is there already and differs: replace it with --force, or choose another folder with --to", f.path)
	}
	if folder := path.Dir(f.path); folder != "." {
		if err := d.root.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	part := path.Join(path.Dir(f.path), "."+path.Base(f.path)+"."+shortSum(f)+".part")
	if err := d.fill(part, f); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return d.root.Rename(part, f.path)
}

// shortSum tells parts of different contents from one another.
func shortSum(f download) string {
	if len(f.sum) >= 12 {
		return f.sum[:12]
	}
	return strconv.FormatInt(f.size, 10)
}

func (d *downloads) hashOf(name string) (string, error) {
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
func (d *downloads) fill(name string, f download) error {
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
	if f.sum == "" || have > f.size { // a part without a hash cannot be trusted
		if have, err = restart(part, h); err != nil {
			return err
		}
	}
	for try := 1; have < f.size; try++ {
		got, err := d.more(part, h, have, f)
		have = got
		if err == nil && have >= f.size {
			break
		}
		if try >= maxTries || d.Ctx.Err() != nil || errors.Is(err, errRefused) {
			return errors.Join(err, d.Ctx.Err())
		}
		if err := d.Sleep(d.Ctx, time.Duration(try)*time.Second); err != nil {
			return err
		}
	}
	if sum := hex.EncodeToString(h.Sum(nil)); f.sum != "" && sum != f.sum {
		_ = d.root.Remove(name) // going on from it would never help
		return fmt.Errorf("arrived damaged: its SHA-256 is %s, and should be %s", sum, f.sum)
	}
	return errors.Join(part.Sync(), part.Close())
}

var errRefused = errors.New("refused")

// more asks for what is missing behind have bytes, and returns how many there
// are then.
func (d *downloads) more(part *os.File, h hash.Hash, have int64, f download) (int64, error) {
	r, err := http.NewRequestWithContext(d.Ctx, http.MethodGet, f.url, nil)
	if err != nil {
		return have, err
	}
	if have > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	// The address is the permission: no token is sent along.
	resp, err := d.calls.http.Do(r)
	if err != nil {
		return have, d.explain(err)
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
	shown := d.transfer(f.path, have, f.size)
	defer shown.bar.close()
	n, err := io.Copy(io.MultiWriter(part, h, shown), io.LimitReader(resp.Body, f.size-have+1))
	return have + n, err
}

// restart forgets a part.
func restart(part *os.File, h hash.Hash) (int64, error) {
	h.Reset()
	_, err := part.Seek(0, io.SeekStart)
	return 0, errors.Join(err, part.Truncate(0))
}
