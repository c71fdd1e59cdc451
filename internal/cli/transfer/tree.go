package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"unicode/utf8"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/domain/folders"
)

// folderType is the content type of an upload that becomes a folder.
const folderType = "inode/directory"

// PutFolder sends a folder as one upload: what is in it, and the bytes of its files one
// after the other. It sends nothing if something in it cannot be uploaded.
func (u Large) PutFolder(dir string) (api.File, error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return api.File{}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return api.File{}, err
	}
	defer root.Close()
	t := &tree{root: root}
	if err := t.read(u.Console, filepath.Base(whole)); err != nil {
		return api.File{}, err
	}
	u.ContentType, u.entries = folderType, t.entries
	return u.put(content{t, filepath.Base(whole), whole, t.size, hex.EncodeToString(t.version)})
}

// tree is a folder on this machine. It reads as the bytes of its files, one after the
// other in the order of their paths.
type tree struct {
	root    *os.Root
	entries []api.FolderEntry
	files   []treeFile
	size    int64
	version []byte // changes with any file
}

type treeFile struct {
	path         string
	offset, size int64
}

// read finds what is in the folder.
func (t *tree) read(w screen.Console, name string) error {
	shown := screen.NewBar(w)
	defer shown.Close()
	changed := map[string]int64{} // when each file was
	full := map[string]bool{}     // folders with something in them
	err := fs.WalkDir(t.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == "." {
			return err
		}
		full[path.Dir(p)] = true
		entry, err := t.entry(p, d, changed)
		if err != nil {
			return err
		}
		if t.entries = append(t.entries, entry); len(t.entries) > folders.MaxEntries {
			return fmt.Errorf("it has more than %d files: put them into one, such as an archive", folders.MaxEntries)
		}
		shown.Show(fmt.Sprintf("Reading %s: %d files", screen.Clean(name), len(t.entries)))
		return nil
	})
	if err != nil {
		return err
	}
	t.lay(full, changed)
	return nil
}

// entry is what the server is told of one path.
func (t *tree) entry(p string, d fs.DirEntry, changed map[string]int64) (api.FolderEntry, error) {
	e := api.FolderEntry{Path: p}
	if !utf8.ValidString(p) {
		return e, fmt.Errorf("the name of %q is not UTF-8: rename it", p)
	}
	switch kind := d.Type(); {
	case d.IsDir():
		yes := true
		e.Folder = &yes
		return e, nil
	case kind&fs.ModeSymlink != 0:
		to, err := t.root.Readlink(p)
		to = filepath.ToSlash(to)
		e.Link = &to
		return e, err
	case !kind.IsRegular():
		return e, fmt.Errorf("%s is a pipe, a socket or a device, and cannot be uploaded", p)
	}
	f, err := t.root.Open(p) // now, so that nothing is sent of a folder that cannot be read
	if err != nil {
		return e, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return e, err
	}
	size := info.Size()
	e.Size, changed[p] = &size, info.ModTime().UnixNano()
	return e, nil
}

// lay brings the entries into their order, without the folders that have something in
// them, and the files to their places.
func (t *tree) lay(full map[string]bool, changed map[string]int64) {
	entries := t.entries[:0]
	for _, e := range t.entries {
		if e.Folder == nil || !full[e.Path] {
			entries = append(entries, e)
		}
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Path < entries[j].Path })
	t.entries = entries
	version := sha256.New()
	for _, e := range entries {
		link := ""
		if e.Link != nil {
			link = *e.Link
		}
		size := int64(0)
		if e.Size != nil {
			size = *e.Size
			t.files = append(t.files, treeFile{e.Path, t.size, size})
		}
		t.size += size
		fmt.Fprintf(version, "%q %q %d %d\n", e.Path, link, size, changed[e.Path])
	}
	t.version = version.Sum(nil)
}

// ReadAt reads from as many files as it takes.
func (t *tree) ReadAt(p []byte, offset int64) (n int, err error) {
	at := sort.Search(len(t.files), func(i int) bool { return t.files[i].offset+t.files[i].size > offset })
	for ; n < len(p) && at < len(t.files); at++ {
		f := t.files[at]
		from := offset + int64(n) - f.offset
		some := p[n:min(int64(len(p)), int64(n)+f.size-from)]
		if err := t.readFile(f.path, some, from); err != nil {
			return n, err
		}
		n += len(some)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (t *tree) readFile(name string, p []byte, from int64) error {
	if len(p) == 0 {
		return nil
	}
	f, err := t.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := f.ReadAt(p, from)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s became shorter during the upload: run the command again", name)
	}
	return err
}
