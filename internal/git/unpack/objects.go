package unpack

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// What we read of Git's objects is two lines of text and the entries of folders.
// go-git's own types for them link OpenPGP, and compute differences.

var errMalformed = errors.New("an object is malformed")

// entry is a file, a folder, a link or a submodule in a folder.
type entry struct {
	name string
	mode filemode.FileMode
	hash plumbing.Hash
}

// content is all of an object whose size was checked.
func content(o plumbing.EncodedObject) ([]byte, error) {
	r, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// named is the hash in the first line of a commit or tag: "tree" and a hash, or
// "object" and a hash.
func named(o plumbing.EncodedObject, key string) (plumbing.Hash, error) {
	text, err := content(o)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	word, rest, _ := bytes.Cut(line, []byte(" "))
	var h plumbing.Hash
	if string(word) != key || hex.DecodedLen(len(rest)) != len(h) {
		return plumbing.ZeroHash, errMalformed
	}
	if _, err := hex.Decode(h[:], rest); err != nil {
		return plumbing.ZeroHash, errMalformed
	}
	return h, nil
}

// entries are those of a folder: for each its mode in octal, a space, its name, a zero
// byte and its hash.
func entries(o plumbing.EncodedObject) ([]entry, error) {
	if o.Type() != plumbing.TreeObject {
		return nil, errMalformed
	}
	text, err := content(o)
	if err != nil {
		return nil, err
	}
	var list []entry
	for len(text) > 0 {
		var e entry
		mode, rest, _ := bytes.Cut(text, []byte(" "))
		name, rest, _ := bytes.Cut(rest, []byte{0})
		given, err := filemode.New(string(mode))
		if err != nil || len(name) == 0 || len(rest) < len(e.hash) {
			return nil, errMalformed
		}
		e.name, e.mode = string(name), canonical(given)
		text = rest[copy(e.hash[:], rest):]
		list = append(list, e)
	}
	return list, nil
}

// canonical is a mode as Git understands it: old ones have other permissions.
func canonical(m filemode.FileMode) filemode.FileMode {
	switch m & 0o170000 {
	case filemode.Dir:
		return filemode.Dir
	case 0o100000:
		if m&0o111 != 0 {
			return filemode.Executable
		}
		return filemode.Regular
	case filemode.Symlink:
		return filemode.Symlink
	}
	return filemode.Submodule
}
