package unpack

import (
	"archive/tar"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// tree writes a folder of a commit.
type tree struct {
	order   Order
	pack    *packfile.Packfile
	out     *tar.Writer
	entries int
	bytes   int64
}

func (t *tree) write() error {
	top, err := t.top()
	if err != nil {
		return err
	}
	if err := t.submodules(top); err != nil {
		return err
	}
	folder := top
	for part := range strings.SplitSeq(strings.Trim(t.order.Path, "/"), "/") {
		if part == "" {
			continue
		}
		if folder, err = t.child(folder, part); err != nil {
			return err
		}
	}
	return t.folder(folder, "", 0)
}

// top is the tree of the commit, which may be named by a tag.
func (t *tree) top() ([]entry, error) {
	at := plumbing.NewHash(t.order.Commit)
	for range 8 {
		o, err := t.get(at)
		if err != nil {
			return nil, refusef("the commit %s is not among what its host sent", t.order.Commit)
		}
		switch o.Type() {
		case plumbing.TagObject:
			if at, err = named(o, "object"); err != nil {
				return nil, broken(err)
			}
		case plumbing.CommitObject:
			top, err := named(o, "tree")
			if err != nil {
				return nil, broken(err)
			}
			return t.tree(top)
		default:
			return nil, refusef("%s is not a commit", t.order.Commit)
		}
	}
	return nil, refusef("the tag %s is about a tag, and so on", t.order.Commit)
}

// get is an object whose size was checked.
func (t *tree) get(h plumbing.Hash) (plumbing.EncodedObject, error) {
	at, err := t.pack.FindOffset(h)
	if err != nil {
		return nil, err
	}
	size, err := t.pack.GetSizeByOffset(at)
	if err != nil {
		return nil, err
	}
	if size > t.order.File {
		return nil, errTooLarge
	}
	return t.pack.GetByOffset(at)
}

var errTooLarge = errors.New("too large")

func (t *tree) tree(h plumbing.Hash) ([]entry, error) {
	o, err := t.get(h)
	if err != nil {
		return nil, broken(err)
	}
	found, err := entries(o)
	if err != nil {
		return nil, broken(err)
	}
	return found, nil
}

func (t *tree) child(in []entry, name string) ([]entry, error) {
	for _, e := range in {
		if e.name == name && e.mode == filemode.Dir {
			return t.tree(e.hash)
		}
	}
	return nil, refusef("it has no folder %s", t.order.Path)
}

const maxDepth = 60

// folder writes what is in a folder, and the folders below.
func (t *tree) folder(in []entry, at string, depth int) error {
	if depth > maxDepth {
		return refusef("its folders are deeper than %d", maxDepth)
	}
	for _, e := range in {
		if depth == 0 && len(t.order.Only) > 0 && !slices.Contains(t.order.Only, e.name) {
			continue
		}
		if t.entries++; t.entries > t.order.Files {
			return refusef("it has more than %d files and folders", t.order.Files)
		}
		if err := t.entry(e, join(at, e.name), depth); err != nil {
			return err
		}
	}
	return nil
}

// join leaves a name as it is, so that the reader sees what it refuses.
func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "/" + name
}

func (t *tree) entry(e entry, name string, depth int) error {
	switch e.mode {
	case filemode.Dir:
		if err := t.out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, Format: tar.FormatPAX}); err != nil {
			return err
		}
		below, err := t.tree(e.hash)
		if err != nil {
			return err
		}
		return t.folder(below, name, depth+1)
	case filemode.Submodule: // what belongs there is brought by whoever wants it
		return t.out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, Format: tar.FormatPAX})
	}
	o, err := t.get(e.hash)
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, plumbing.ErrObjectNotFound): // a host leaves out what is too large
		return refusef("the file %s is larger than %d MB", name, t.order.File>>20)
	case err != nil:
		return broken(err)
	case o.Type() != plumbing.BlobObject:
		return refusef("%s is neither a file nor a folder", name)
	}
	if t.bytes += o.Size(); t.bytes > t.order.Tree {
		return refusef("its files are larger than %d MB together", t.order.Tree>>20)
	}
	r, err := o.Reader()
	if err != nil {
		return broken(err)
	}
	defer r.Close()
	if e.mode == filemode.Symlink {
		target, err := io.ReadAll(io.LimitReader(r, 4096))
		if err != nil {
			return broken(err)
		}
		return t.out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: string(target), Mode: 0o777, Format: tar.FormatPAX})
	}
	mode := int64(0o644)
	if e.mode == filemode.Executable {
		mode = 0o755
	}
	if err := t.out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: o.Size(), Mode: mode, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = io.Copy(t.out, r)
	return err
}
