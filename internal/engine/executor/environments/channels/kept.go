package channels

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What channels have is kept as they sent it, and used only when the channel says
// that it has not changed. It is named by the whole address, credentials included:
// whoever was given something else under the same name is never given it here.

const (
	maxKept      = 4 << 30 // bytes of all lists that are kept
	maxKeptFiles = 200
	newPrefix    = "new-"    // of what is still being written
	newLife      = time.Hour // what is older was left by a killed server
	// settled is how much older than its answer a list must be for its date to
	// tell it from a later one: dates are in seconds, and clocks differ.
	settled = time.Minute
)

// kept are the lists in a folder, which several processes may share.
type kept struct {
	folder string
	log    *slog.Logger
	now    func() time.Time
}

// sent is what is known of a list that was kept.
type sent struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
	SHA256   string `json:"sha256"`
}

// Keep has lists kept in a folder of nobody else's.
func (c *Channels) Keep(folder string, log *slog.Logger, now func() time.Time) error {
	c.kept = &kept{folder, log, now}
	return os.MkdirAll(folder, 0o700)
}

// Clean removes lists beyond what may be kept, and what killed servers left.
func (c *Channels) Clean() error {
	if c.kept == nil {
		return nil
	}
	return c.kept.clean()
}

// sent is a list as the channel sends it, or as it sent it before where it has not
// changed since.
func (c *Channels) sent(ctx context.Context, channel string, parts ...string) (io.ReadCloser, error) {
	base := c.bases[channel]
	if c.kept == nil || base == nil {
		answer, err := c.open(ctx, nil, channel, parts...)
		if err != nil {
			return nil, err
		}
		return answer.Body, nil
	}
	address := base.JoinPath(parts...).String()
	file, known := c.kept.open(address)
	answer, err := c.open(ctx, known, channel, parts...)
	if err == nil && answer.StatusCode == http.StatusNotModified {
		c.kept.touch(address)
		return file, answer.Body.Close()
	}
	if file != nil {
		file.Close()
	}
	if err != nil {
		return nil, err
	}
	return c.kept.copy(address, answer), nil
}

// keep keeps the list, once all of it was read and understood. That it cannot be
// kept is nobody's failure.
func (t *text) keep(ctx context.Context) {
	c, ok := t.body.(*copying)
	if !ok {
		return
	}
	rest, err := io.Copy(io.Discard, io.LimitReader(t, maxRecord)) // its end has a checksum
	if err == nil && rest < maxRecord {
		err = c.keep()
	}
	if err != nil {
		c.kept.log.WarnContext(ctx, "cannot keep what a conda channel has", slog.Any("error", err))
	}
}

func (k *kept) paths(address string) (list, known string) {
	sum := sha256.Sum256([]byte(address))
	name := filepath.Join(k.folder, hex.EncodeToString(sum[:]))
	return name + ".list", name + ".json"
}

// open opens the list that an address sent; nil where none is kept, or what is
// there is not what was sent.
func (k *kept) open(address string) (*os.File, *sent) {
	var s sent
	list, known := k.paths(address)
	text, err := os.ReadFile(known)
	if err != nil || json.Unmarshal(text, &s) != nil {
		return nil, nil
	}
	f, err := os.Open(list)
	if err != nil {
		return nil, nil
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil || hex.EncodeToString(sum.Sum(nil)) != s.SHA256 {
		f.Close()
		return nil, nil
	}
	return f, &s
}

// ask has the channel answer with a list only where it is another.
func (s *sent) ask(r *http.Request) {
	if s.ETag != "" {
		r.Header.Set("If-None-Match", s.ETag)
	} else {
		r.Header.Set("If-Modified-Since", s.Modified)
	}
}

// validators are what a channel can be asked by whether a list has changed.
func validators(answer *http.Response) (s sent, ok bool) {
	if strings.Contains(answer.Header.Get("Cache-Control"), "no-store") {
		return s, false
	}
	if s.ETag = answer.Header.Get("ETag"); s.ETag != "" {
		return s, true
	}
	s.Modified = answer.Header.Get("Last-Modified")
	modified, err := http.ParseTime(s.Modified)
	date, dateErr := http.ParseTime(answer.Header.Get("Date"))
	return s, errors.Join(err, dateErr) == nil && date.Sub(modified) >= settled
}

// copying is a list that is being read, and written down meanwhile. That it cannot
// be written does not keep anybody from reading it.
type copying struct {
	io.Reader
	body    io.Closer
	kept    *kept
	address string
	known   sent
	file    *os.File
	sum     hash.Hash
	failed  bool
}

// copy begins to keep what a channel sends, where that can be asked for later.
func (k *kept) copy(address string, answer *http.Response) io.ReadCloser {
	known, ok := validators(answer)
	if !ok {
		return answer.Body
	}
	f, err := os.CreateTemp(k.folder, newPrefix)
	if err != nil {
		return answer.Body
	}
	return &copying{Reader: io.LimitReader(answer.Body, maxList), body: answer.Body, kept: k, address: address, known: known, file: f, sum: sha256.New()}
}

func (c *copying) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if n > 0 && !c.failed {
		c.sum.Write(p[:n])
		_, writeErr := c.file.Write(p[:n])
		c.failed = writeErr != nil
	}
	c.failed = c.failed || err != nil && err != io.EOF
	return n, err
}

// Close throws away what was not kept.
func (c *copying) Close() error {
	c.file.Close()
	_ = os.Remove(c.file.Name())
	return c.body.Close()
}

// keep puts the list in its place. A server that is killed between the two files
// leaves a hash of something else.
func (c *copying) keep() error {
	if _, err := io.Copy(io.Discard, c); err != nil || c.failed {
		return err
	}
	c.known.SHA256 = hex.EncodeToString(c.sum.Sum(nil))
	text, err := json.Marshal(c.known)
	if err != nil {
		return err
	}
	list, known := c.kept.paths(c.address)
	if err := errors.Join(c.file.Sync(), c.file.Close(), os.Rename(c.file.Name(), list), writeWhole(known, text)); err != nil {
		return err
	}
	return c.kept.clean()
}

func writeWhole(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), newPrefix)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close(), os.Rename(f.Name(), path))
}

// clean removes lists beyond maxKept, those first that were not sent or confirmed
// for longest, and what killed servers left.
func (k *kept) clean() error {
	entries, err := os.ReadDir(k.folder)
	if err != nil {
		return err
	}
	var all []fs.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			continue // removed in the meantime
		}
		if !strings.HasPrefix(info.Name(), newPrefix) {
			all = append(all, info)
		} else if k.now().Sub(info.ModTime()) > newLife {
			err = os.Remove(filepath.Join(k.folder, info.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return k.trim(all, maxKept)
}

func (k *kept) trim(all []fs.FileInfo, most int64) error {
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var total int64
	for i, info := range all {
		if total += info.Size(); total <= most && i < maxKeptFiles {
			continue
		}
		if err := os.Remove(filepath.Join(k.folder, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// touch notes that a list was confirmed.
func (k *kept) touch(address string) {
	list, known := k.paths(address)
	now := k.now()
	_, _ = os.Chtimes(list, now, now), os.Chtimes(known, now, now)
}
