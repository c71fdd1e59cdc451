// Package outputs finds and hashes what a command has left, which is not trusted.
package outputs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/folders"
)

// File is one file that the command left.
type File struct {
	Port   string `json:"port"`
	Path   string `json:"path"` // below the working folder; open it with Open
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hex; of a folder, that of its manifest

	Folder bool `json:"folder,omitempty"` // Size is that of all its files; open it with OpenFolder
	Files  int  `json:"files,omitempty"`  // in the folder
}

// Pattern says where a port's files are expected.
type Pattern struct {
	Port     string `json:"port"`
	Path     string `json:"path"`               // below the working folder, a pattern as of path.Match if Many
	Many     bool   `json:"many,omitempty"`     // any number of files, but at least one
	Optional bool   `json:"optional,omitempty"` // nothing is fine too
	Folder   bool   `json:"folder,omitempty"`   // a folder, not a file
}

// Found is what a command left in its working folder, as far as it was
// promised.
type Found struct {
	Outputs []File
	Missing []string // ports that have nothing, or not all
	Refused string   // why the first file of them cannot be kept, if one is there

	left  int64        // bytes of outputs that may follow
	looks int          // names that may still be looked at
	stop  func() error // an error once collecting must end
}

var ErrTooLarge = errors.New("the outputs are larger than the disk space of a task")

// Within finds and hashes. A file with holes may be longer than anything that
// was written, so lengths count and not blocks; no most means no bound.
func Within(work string, patterns []Pattern, most int64, stop func() error) (*Found, error) {
	c := &Found{left: most, looks: maxLooks, stop: stop}
	if most == 0 {
		c.left = math.MaxInt64
	}
	if len(patterns) == 0 {
		return c, nil
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		for _, p := range patterns {
			if !p.Optional {
				c.Missing = append(c.Missing, p.Port)
			}
		}
		return c, nil //nolint:nilerr // the command has removed its folder
	}
	defer root.Close()
	for _, p := range patterns {
		if err := c.port(root, p); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Collect finds and hashes without a bound, and names the ports that have
// nothing.
func Collect(work string, patterns []Pattern) (outputs []File, missing []string) {
	c, _ := Within(work, patterns, 0, func() error { return nil })
	return c.Outputs, c.Missing
}

// port adds the files of a port, which is missing when one of them is there and
// cannot be kept.
func (c *Found) port(root *os.Root, p Pattern) error {
	names, err := c.names(root, p)
	if err != nil {
		c.refuse(p.Path, err)
		c.Missing = append(c.Missing, p.Port)
		return c.stop()
	}
	found, complete := 0, true
	for _, name := range names {
		out, err := c.output(root, name, p.Folder)
		if err != nil && (errors.Is(err, ErrTooLarge) || c.stop() != nil) {
			return err
		}
		if err == nil && folders.Unnameable(name) {
			err = errors.New("its name has a backslash, a control character or broken text in it")
		}
		if err != nil {
			complete = false
			c.refuse(name, err)
			continue
		}
		out.Port = p.Port
		c.Outputs = append(c.Outputs, out)
		found++
	}
	if !p.Optional && (!complete || found == 0) {
		c.Missing = append(c.Missing, p.Port)
	}
	return nil
}

// names are those of the files that a port may have.
func (c *Found) names(root *os.Root, p Pattern) ([]string, error) {
	if !p.Many {
		return []string{p.Path}, nil
	}
	g := glob{root: root, left: maxOutputs - len(c.Outputs), looks: c.looks, stop: c.stop}
	names, err := g.matches(p.Path)
	c.looks = g.looks
	return names, err
}

// refuse keeps the first reason for which a file that is there is not kept.
func (c *Found) refuse(name string, why error) {
	if c.Refused == "" && !errors.Is(why, fs.ErrNotExist) {
		c.Refused = strconv.Quote(name) + ": " + why.Error()
	}
}

var (
	errIsFolder = errors.New("it is a folder: declare the output with `directory`")
	errIsFile   = errors.New("it is a file, and the output is declared as a `directory`")
)

// output is what was promised, which must be of its kind.
func (c *Found) output(root *os.Root, name string, folder bool) (File, error) {
	if folder {
		if info, err := root.Stat(name); err == nil && !info.IsDir() {
			return File{}, errIsFile
		}
		return c.folder(root, name)
	}
	out, err := c.file(root, name)
	if errors.Is(err, fs.ErrInvalid) {
		if info, found := root.Stat(name); found == nil && info.IsDir() {
			err = errIsFolder
		}
	}
	return out, err
}

func (c *Found) file(root *os.Root, name string) (File, error) {
	file, err := openRegular(root, name)
	if err != nil {
		return File{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return File{}, err
	}
	if c.left -= info.Size(); c.left < 0 {
		return File{}, ErrTooLarge
	}
	sum := sha256.New()
	size, err := io.Copy(sum, stoppable{file, c.stop})
	if err != nil {
		return File{}, err
	}
	return File{Path: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// stoppable ends reading when it must.
type stoppable struct {
	io.Reader
	stop func() error
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.stop(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

// Open opens a file that a command left in one of its folders. The command
// is not trusted: a link that leaves the folder is an error, and a pipe, a folder
// or a device is fs.ErrInvalid. The caller closes it.
func Open(folder, path string) (*os.File, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return openRegular(root, path)
}

func openRegular(root *os.Root, path string) (*os.File, error) {
	file, err := root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
