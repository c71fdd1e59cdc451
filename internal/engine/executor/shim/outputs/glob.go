package outputs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/folders"
)

// The most of what a pattern may find, and may look at on the way: links to
// folders can make a small tree endless.
const (
	maxOutputs = 10_000
	maxFolders = 100_000
	maxLooks   = 2_000_000
)

var (
	errTooMany = errors.New("it matches more than 10,000 files: put them into one, such as an archive")
	errTooWide = errors.New("it matches too many folders: name them more closely")
	errTooLong = fmt.Errorf("it matches a path of more than %d bytes", folders.MaxPath)
)

// glob finds the files that a pattern matches, as fs.Glob does, as long as it
// may.
type glob struct {
	root  *os.Root
	left  int // matches that may follow
	looks int // names that may still be looked at
	stop  func() error
}

// matches are in order.
func (g *glob) matches(pattern string) ([]string, error) {
	found := []string{"."}
	segments := strings.Split(path.Clean(pattern), "/")
	for i, segment := range segments {
		var next []string
		for _, folder := range found {
			names, err := g.below(folder, segment)
			if err != nil {
				return nil, err
			}
			next = append(next, names...)
			switch last := i == len(segments)-1; {
			case last && len(next) > g.left:
				return nil, errTooMany
			case len(next) > maxFolders:
				return nil, errTooWide
			}
		}
		found = next
	}
	return found, nil
}

// below lists what a part of a pattern matches in a folder. What is no folder,
// or cannot be read, has nothing.
func (g *glob) below(folder, segment string) ([]string, error) {
	if err := g.look(1); err != nil {
		return nil, err
	}
	if !strings.ContainsAny(segment, `*?[\`) {
		name := path.Join(folder, segment)
		if _, err := g.root.Stat(name); err != nil {
			return nil, nil //nolint:nilerr // it is not there
		}
		return []string{name}, nil
	}
	if info, err := g.root.Stat(folder); err != nil || !info.IsDir() {
		return nil, nil //nolint:nilerr // it is not there
	}
	dir, err := g.root.Open(folder)
	if err != nil {
		return nil, nil //nolint:nilerr // it cannot be read
	}
	defer dir.Close()
	return g.list(dir, folder, segment)
}

func (g *glob) list(dir *os.File, folder, segment string) (found []string, err error) {
	for {
		names, end := dir.Readdirnames(1000)
		if err := g.look(len(names)); err != nil {
			return nil, err
		}
		for _, name := range names {
			if ok, _ := path.Match(segment, name); !ok {
				continue
			}
			name = path.Join(folder, name)
			if len(name) > folders.MaxPath {
				return nil, errTooLong
			}
			found = append(found, name)
		}
		if end != nil {
			slices.Sort(found)
			return found, nil
		}
	}
}

// look takes note of names that are looked at.
func (g *glob) look(names int) error {
	if g.looks -= names; g.looks < 0 {
		return errTooWide
	}
	return g.stop()
}
