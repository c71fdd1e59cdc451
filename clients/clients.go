// Package clients has what people install to use a server from another machine: the
// wheels of the Python client and of the Snakemake plugin, which it makes from their
// sources, and the files that the operator put into a folder. Package httpapi serves
// them.
package clients

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Files are the sources of the Python packages, each below the folder of its project.
//
//go:embed python/pyproject.toml python/README.md python/src/millrace/*.py python/src/millrace/*/*.py python/src/millrace/py.typed
//go:embed snakemake/pyproject.toml snakemake/README.md snakemake/src/snakemake_logger_plugin_millrace/*.py snakemake/src/snakemake_logger_plugin_millrace/py.typed
var Files embed.FS

// Kind says what a file is.
type Kind string

// The kinds of files.
const (
	Python    Kind = "python"    // the wheel of the Python client
	Snakemake Kind = "snakemake" // the wheel of the Snakemake plugin
	Program   Kind = "program"   // the command line, for one platform
	Other     Kind = "other"     // what else the operator put beside it
)

// File is one that people can download.
type File struct {
	Name       string
	Kind       Kind
	Project    string // what installers call it; empty: it is no wheel
	Version    string // of a wheel
	Platform   string // of a program, such as "darwin/arm64"
	Size       int64
	SHA256     string    // in hex
	ModifiedAt time.Time // zero: it has always been this
}

// Content is what is in a file. The caller closes it.
type Content interface {
	io.ReadSeeker
	io.Closer
}

// The limits on the operator's folder.
const (
	MaxFiles    = 100
	MaxFileSize = 1 << 30

	maxEntries = 10 * MaxFiles // that are looked at, whatever they are
)

// Catalog lists what a server offers. All methods may be called at the same time.
type Catalog struct {
	folder string
	wheels func() ([]wheel, error)

	mu     sync.Mutex
	hashes map[string]hashed // by name, of the files in the folder
}

// hashed is a file in the folder whose hash is known as long as it does not change.
type hashed struct {
	info   fs.FileInfo
	sha256 string
}

// New makes a catalog of the wheels and the files in a folder. An empty folder name
// means that there are only the wheels.
func New(folder string) *Catalog {
	return &Catalog{folder: folder, wheels: sync.OnceValues(makeWheels), hashes: map[string]hashed{}}
}

// Check reports why files in the folder are not offered.
func (c *Catalog) Check() error {
	if c.folder == "" {
		return nil
	}
	root, err := os.OpenRoot(c.folder)
	if err != nil {
		return err
	}
	defer root.Close()
	infos, refused, err := look(root)
	if len(infos) > MaxFiles {
		refused = append(refused, fmt.Errorf("%s has %d files, and the first %d of them are offered", c.folder, len(infos), MaxFiles))
	}
	return errors.Join(append(refused, err)...)
}

// List gives the wheels and then the files in the folder by name. A file is read
// once, and again after it changed.
func (c *Catalog) List() ([]File, error) {
	wheels, err := c.wheels()
	if err != nil {
		return nil, err
	}
	list := make([]File, 0, len(wheels))
	for _, w := range wheels {
		list = append(list, w.File)
	}
	if c.folder == "" {
		return list, nil
	}
	root, err := os.OpenRoot(c.folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	infos, _, err := look(root)
	if err != nil {
		return nil, err
	}
	infos = infos[:min(len(infos), MaxFiles)]
	c.forget(infos)
	for _, info := range infos {
		if slices.ContainsFunc(wheels, func(w wheel) bool { return w.Name == info.Name() }) {
			continue
		}
		f, content, err := c.open(root, info.Name())
		if errors.Is(err, fs.ErrNotExist) { // it was removed, or is being written
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, f)
		_ = content.Close() // it was only read
	}
	return list, nil
}

// Open opens a file of the list by its name. The error is fs.ErrNotExist where the
// list has no such file.
func (c *Catalog) Open(name string) (File, Content, error) {
	wheels, err := c.wheels()
	if err != nil {
		return File{}, nil, err
	}
	for _, w := range wheels {
		if w.Name == name {
			return w.File, inMemory{bytes.NewReader(w.content)}, nil
		}
	}
	if c.folder == "" || !offered.MatchString(name) {
		return File{}, nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(c.folder)
	if err != nil {
		return File{}, nil, err
	}
	defer root.Close()
	return c.open(root, name)
}

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// offered are the names of files that are offered. Others would need care in
// addresses, headers and shells.
var offered = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`)

// look lists the regular files of the folder that may be offered, by name, and says
// why others are not.
func look(root *os.Root) (infos []fs.FileInfo, refused []error, err error) {
	folder, err := root.Open(".")
	if err != nil {
		return nil, nil, err
	}
	defer folder.Close()
	entries, err := folder.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	if len(entries) > maxEntries {
		refused, entries = append(refused, fmt.Errorf("%s has more than %d entries, and the others are not looked at", root.Name(), maxEntries)), entries[:maxEntries]
	}
	for _, e := range entries {
		info, err := root.Lstat(e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if reason := unfit(info); reason != "" {
			refused = append(refused, fmt.Errorf("%q in %s is not offered: %s", e.Name(), root.Name(), reason))
			continue
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return infos, refused, nil
}

// unfit is why a file is not offered, or nothing.
func unfit(info fs.FileInfo) string {
	switch {
	case !info.Mode().IsRegular():
		return "it is not a regular file"
	case !offered.MatchString(info.Name()) || info.Name() == Index:
		return "its name must consist of letters, digits and ._+-, begin with a letter or a digit and differ from " + Index
	case info.Size() > MaxFileSize:
		return "it is larger than 1 GB"
	}
	return ""
}

// Index is the name under which the list itself is served.
const Index = "index.json"

// open opens a regular file of the folder, and hashes it unless it is unchanged.
func (c *Catalog) open(root *os.Root, name string) (f File, content *os.File, err error) {
	info, err := root.Lstat(name)
	if err != nil {
		return f, nil, err
	}
	if unfit(info) != "" {
		return f, nil, fs.ErrNotExist
	}
	// A link or a pipe may have taken its place: nothing waits for a pipe, and what
	// was opened must be the file that was looked at.
	if content, err = root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return f, nil, err
	}
	defer func() {
		if err != nil {
			_ = content.Close() // it was only read
		}
	}()
	opened, err := content.Stat()
	if err != nil {
		return f, nil, err
	}
	if !os.SameFile(info, opened) {
		return f, nil, fs.ErrNotExist
	}
	sum, err := c.hash(name, content, opened)
	if err != nil {
		return f, nil, err
	}
	f = File{Name: name, Kind: Other, Size: opened.Size(), SHA256: sum, ModifiedAt: opened.ModTime().UTC()}
	if m := platformed.FindStringSubmatch(name); m != nil {
		f.Kind, f.Platform = Program, m[1]+"/"+m[2]
	}
	return f, content, nil
}

var platformed = regexp.MustCompile(`^millrace.*-(linux|darwin|windows)-(amd64|arm64)(\.exe)?$`)

// hash is the hash of an open file. One file at a time is read, so that many who ask
// at once cost no more than one. A file that changes meanwhile does not exist yet.
func (c *Catalog) hash(name string, content *os.File, info fs.FileInfo) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, known := c.hashes[name]; known && same(h.info, info) {
		return h.sha256, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(content, MaxFileSize+1)); err != nil {
		return "", err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	now, err := content.Stat()
	if err != nil {
		return "", err
	}
	if !same(info, now) {
		return "", fs.ErrNotExist
	}
	h := hashed{info, hex.EncodeToString(sum.Sum(nil))}
	c.hashes[name] = h
	return h.sha256, nil
}

func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// forget drops the hashes of files that are gone.
func (c *Catalog) forget(there []fs.FileInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.hashes {
		if !slices.ContainsFunc(there, func(i fs.FileInfo) bool { return i.Name() == name }) {
			delete(c.hashes, name)
		}
	}
}
