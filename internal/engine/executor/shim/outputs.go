package shim

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// collection is what a command left in its working folder, as far as it was
// promised.
type collection struct {
	outputs []Output
	missing []string // ports that have nothing, or not all
	refused string   // why the first file of them cannot be kept, if one is there

	left  int64        // bytes of outputs that may follow
	looks int          // names that may still be looked at
	stop  func() error // an error once collecting must end
}

var errTooLarge = errors.New("the outputs are larger than the disk space of a task")

// collect finds and hashes. A file with holes may be longer than anything that
// was written, so lengths count and not blocks; no most means no bound.
func collect(work string, patterns []OutputPattern, most int64, stop func() error) (*collection, error) {
	c := &collection{left: most, looks: maxLooks, stop: stop}
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
				c.missing = append(c.missing, p.Port)
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
func Collect(work string, patterns []OutputPattern) (outputs []Output, missing []string) {
	c, _ := collect(work, patterns, 0, func() error { return nil })
	return c.outputs, c.missing
}

// port adds the files of a port, which is missing when one of them is there and
// cannot be kept.
func (c *collection) port(root *os.Root, p OutputPattern) error {
	names, err := c.names(root, p)
	if err != nil {
		c.refuse(p.Path, err)
		c.missing = append(c.missing, p.Port)
		return c.stop()
	}
	found, complete := 0, true
	for _, name := range names {
		out, err := c.file(root, name)
		if err != nil && (errors.Is(err, errTooLarge) || c.stop() != nil) {
			return err
		}
		if err == nil && unnameable(name) {
			err = errors.New("its name has a backslash, a control character or broken text in it")
		}
		if err != nil {
			complete = false
			c.refuse(name, err)
			continue
		}
		out.Port = p.Port
		c.outputs = append(c.outputs, out)
		found++
	}
	if !p.Optional && (!complete || found == 0) {
		c.missing = append(c.missing, p.Port)
	}
	return nil
}

// names are those of the files that a port may have.
func (c *collection) names(root *os.Root, p OutputPattern) ([]string, error) {
	if !p.Many {
		return []string{p.Path}, nil
	}
	g := glob{root: root, left: maxOutputs - len(c.outputs), looks: c.looks, stop: c.stop}
	names, err := g.matches(p.Path)
	c.looks = g.looks
	return names, err
}

// refuse keeps the first reason for which a file that is there is not kept.
func (c *collection) refuse(name string, why error) {
	if c.refused == "" && !errors.Is(why, fs.ErrNotExist) {
		c.refused = strconv.Quote(name) + ": " + why.Error()
	}
}

func (c *collection) file(root *os.Root, name string) (Output, error) {
	file, err := openRegular(root, name)
	if err != nil {
		return Output{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Output{}, err
	}
	if c.left -= info.Size(); c.left < 0 {
		return Output{}, errTooLarge
	}
	sum := sha256.New()
	size, err := io.Copy(sum, stoppable{file, c.stop})
	if err != nil {
		return Output{}, err
	}
	return Output{Path: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
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

// unnameable reports a name that no object can be kept under.
func unnameable(name string) bool {
	return !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || unicode.IsControl(r) })
}
