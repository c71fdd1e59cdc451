package channels

import (
	"bufio"
	"bytes"
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

	"github.com/klauspost/compress/zstd"
)

// What channels have is kept as solvers are given it, one package a line: reading what
// they send takes most of the time. It is used only when the channel says that it has not changed.
// It is named by the whole address, credentials included: whoever was given something
// else under the same name is never given it here.

const (
	keptFormat   = "1 "    // what was kept otherwise is not found
	maxKept      = 4 << 30 // bytes of all lists that are kept
	maxKeptFiles = 200
	maxLine      = 8 * maxRecord // what is escaped is longer
	newPrefix    = "new-"        // of what is still being written
	newLife      = time.Hour     // what is older was left by a killed server
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

// listIn is a list in a file of a channel, which is read so, or as it was kept where it
// has not changed since.
func (c *Channels) listIn(ctx context.Context, channel, folder, name string, read func(io.ReadCloser) (*text, error)) (*text, error) {
	base := c.base(channel)
	if c.kept == nil || base == nil {
		answer, err := c.open(ctx, nil, channel, folder, name)
		if err != nil {
			return nil, err
		}
		return read(answer.Body)
	}
	address := base.JoinPath(folder, name).String()
	file, known := c.kept.open(address)
	answer, err := c.open(ctx, known, channel, folder, name)
	if err == nil && answer.StatusCode == http.StatusNotModified {
		answer.Body.Close()
		c.kept.touch(address)
		t, err := unpack(file)
		if err == nil {
			t.kept = true
		}
		return t, err
	}
	if file != nil {
		file.Close()
	}
	if err != nil {
		return nil, err
	}
	t, err := read(answer.Body)
	if err == nil {
		t.keeper = c.kept.begin(address, answer)
	}
	return t, err
}

// readKept hands over the packages of a list that was kept.
func readKept(r io.Reader, take func(entry) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		section, rest, _ := bytes.Cut(lines.Bytes(), []byte("\t"))
		name, text, _ := bytes.Cut(rest, []byte("\t"))
		if err := take(entry{string(section), string(name), text}); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (k *kept) paths(address string) (list, known string) {
	sum := sha256.Sum256([]byte(keptFormat + address))
	name := filepath.Join(k.folder, hex.EncodeToString(sum[:]))
	return name + ".list", name + ".json"
}

// open opens the list that an address sent; nil where none is kept, or what is
// there is not what was kept.
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

// keeper writes down a list while it is read. That it cannot be written does not keep
// anybody from reading it. A nil keeper keeps nothing.
type keeper struct {
	kept    *kept
	address string
	known   sent
	file    *os.File
	sum     hash.Hash
	w       *zstd.Encoder
	bytes   int64 // that were written, before they were packed
	err     error
}

// begin begins to keep what a channel sends, where that can be asked for later.
func (k *kept) begin(address string, answer *http.Response) *keeper {
	known, ok := validators(answer)
	if !ok {
		return nil
	}
	f, err := os.CreateTemp(k.folder, newPrefix)
	if err != nil {
		return nil
	}
	one := &keeper{kept: k, address: address, known: known, file: f, sum: sha256.New()}
	one.w, one.err = zstd.NewWriter(io.MultiWriter(f, one.sum), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	return one
}

func (k *keeper) add(e entry) {
	if k == nil || k.err != nil {
		return
	}
	line := make([]byte, 0, len(e.section)+len(e.name)+len(e.text)+3)
	for _, part := range [][]byte{[]byte(e.section), []byte("\t"), []byte(e.name), []byte("\t"), e.text, []byte("\n")} {
		line = append(line, part...)
	}
	if _, k.err = k.w.Write(line); k.err == nil && k.bytes > maxList {
		k.err = errTooLong
	}
	k.bytes += int64(len(line))
}

// close throws away what was not kept.
func (k *keeper) close() {
	if k == nil {
		return
	}
	if k.w != nil {
		_ = k.w.Close()
	}
	k.file.Close()
	_ = os.Remove(k.file.Name())
}

// keep puts the list in its place. A server that is killed between the two files
// leaves a hash of something else.
func (k *keeper) keep() error {
	if k.err != nil {
		return k.err
	}
	if err := errors.Join(k.w.Close(), k.file.Sync(), k.file.Close()); err != nil {
		return err
	}
	k.known.SHA256 = hex.EncodeToString(k.sum.Sum(nil))
	text, err := json.Marshal(k.known)
	if err != nil {
		return err
	}
	list, known := k.kept.paths(k.address)
	if err := errors.Join(os.Rename(k.file.Name(), list), writeWhole(known, text)); err != nil {
		return err
	}
	return k.kept.clean()
}

// keep keeps the list, once all of it was read and understood. That it cannot be
// kept is nobody's failure.
func (t *text) keep(ctx context.Context) {
	if t.keeper == nil {
		return
	}
	rest, err := io.Copy(io.Discard, io.LimitReader(t, maxRecord)) // its end has a checksum
	if err == nil && rest < maxRecord {
		err = t.keeper.keep()
	}
	if err != nil {
		t.keeper.kept.log.WarnContext(ctx, "cannot keep what a conda channel has", slog.Any("error", err))
	}
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
	return k.trim(all)
}

func (k *kept) trim(all []fs.FileInfo) error {
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var total int64
	for i, info := range all {
		if total += info.Size(); total <= maxKept && i < maxKeptFiles {
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
