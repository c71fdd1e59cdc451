package unpack

import (
	"archive/tar"
	"encoding/json"
	"io"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// maxModules bounds the file that says where submodules come from.
const maxModules = 256 << 10

// submodules writes which repositories belong into which folders.
func (t *tree) submodules(top []entry) error {
	addresses := map[string]string{}
	for _, e := range top {
		if e.name != ".gitmodules" || !e.mode.IsRegular() {
			continue
		}
		o, err := t.get(e.hash)
		if err != nil || o.Size() > maxModules {
			return refusef("its file .gitmodules cannot be read")
		}
		r, err := o.Reader()
		if err != nil {
			return broken(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return broken(err)
		}
		m := config.NewModules()
		if err := m.Unmarshal(text); err != nil {
			return refusef("its file .gitmodules cannot be read")
		}
		for _, s := range m.Submodules {
			addresses[s.Path] = s.URL
		}
	}
	var list []Submodule
	if err := t.links(top, "", 0, func(at string, commit plumbing.Hash) {
		list = append(list, Submodule{Path: at, URL: addresses[at], Commit: commit.String()})
	}); err != nil {
		return err
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return t.out.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "submodules", PAXRecords: map[string]string{SubmodulesRecord: string(text)}})
}

// links finds the folders that belong to other repositories.
func (t *tree) links(in []entry, at string, depth int, found func(string, plumbing.Hash)) error {
	if depth > maxDepth {
		return refusef("its folders are deeper than %d", maxDepth)
	}
	for _, e := range in {
		name := join(at, e.name)
		switch e.mode {
		case filemode.Submodule:
			found(name, e.hash)
		case filemode.Dir:
			if t.entries++; t.entries > t.order.Files {
				return refusef("it has more than %d files and folders", t.order.Files)
			}
			below, err := t.tree(e.hash)
			if err != nil {
				return err
			}
			if err := t.links(below, name, depth+1, found); err != nil {
				return err
			}
		}
	}
	if depth == 0 {
		t.entries = 0 // what is written is counted anew
	}
	return nil
}
