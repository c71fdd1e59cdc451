package outputs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/internal/domain/folders"
)

// maxNames is how many bytes the names in a folder may have together: they are kept
// in memory, that of all tasks.
const maxNames = 64 << 20

// maxHashers is how many files of a folder are hashed at the same time.
const maxHashers = 4

// folder hashes a folder. It is known by the hash of its manifest.
func (c *Found) folder(root *os.Root, name string) (File, error) {
	tree, err := openTree(root, name, c.stop)
	if err != nil {
		return File{}, err
	}
	defer tree.root.Close()
	if err := tree.hash(&c.left, c.stop); err != nil {
		return File{}, err
	}
	m, err := folders.New(tree.entries)
	if err != nil {
		return File{}, err
	}
	return File{Path: name, Size: m.Bytes(), SHA256: folders.Hash(m.Text()), Folder: true, Files: m.Files()}, nil
}

// tree is a folder that a command left, with what is in it.
type tree struct {
	root    *os.Root
	entries []folders.Entry // files without what is in them
	names   int             // bytes of all names, with where links lead
}

var (
	errOther = errors.New("it is neither a file, a folder nor a link")
	errNames = errors.New("its names are too long for so many files: put them into one, such as an archive")
)

// openTree finds what is in a folder. Links are not followed.
func openTree(work *os.Root, name string, stop func() error) (*tree, error) {
	root, err := work.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	t := &tree{root: root}
	for todo := []string{"."}; len(todo) > 0; {
		folder := todo[len(todo)-1]
		more, err := t.list(folder, stop)
		if err != nil {
			return nil, errors.Join(err, root.Close())
		}
		todo = append(todo[:len(todo)-1], more...)
	}
	return t, nil
}

// list adds what is directly in a folder, and returns the folders in it.
func (t *tree) list(folder string, stop func() error) (more []string, err error) {
	dir, err := t.root.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	empty := folder != "."
	for {
		found, end := dir.ReadDir(1000)
		if err := stop(); err != nil {
			return nil, err
		}
		for _, f := range found {
			empty = false
			name := path.Join(folder, f.Name())
			err := t.mayKeep(name)
			switch {
			case err == nil && f.IsDir():
				more = append(more, name)
			case err == nil:
				err = t.add(name, f.Type())
			}
			if err != nil {
				return nil, fmt.Errorf("%q: %w", name, err)
			}
		}
		if len(t.entries)+len(more) > folders.MaxEntries {
			return nil, fmt.Errorf("it has more than %d files: put them into one, such as an archive", folders.MaxEntries)
		}
		if errors.Is(end, io.EOF) {
			break
		}
		if end != nil {
			return nil, end
		}
	}
	if empty {
		t.entries = append(t.entries, folders.Entry{Path: folder, Folder: true})
	}
	return more, nil
}

// mayKeep counts a path, or where a link leads, as long as there may be more.
func (t *tree) mayKeep(name string) error {
	if len(name) > folders.MaxPath {
		return folders.ErrLongPath
	}
	if t.names += len(name); t.names > maxNames {
		return errNames
	}
	return nil
}

// add adds what is no folder.
func (t *tree) add(name string, kind fs.FileMode) error {
	e := folders.Entry{Path: name}
	switch kind {
	case 0:
	case fs.ModeSymlink:
		to, err := t.root.Readlink(name)
		if err != nil {
			return err
		}
		if err := t.mayKeep(to); err != nil {
			return err
		}
		e.Link = to
	default:
		return errOther
	}
	t.entries = append(t.entries, e)
	return nil
}

// hash reads all files, several at a time. Their lengths are taken from what may still
// be used.
func (t *tree) hash(left *int64, stop func() error) error {
	var (
		next, used atomic.Int64
		failed     atomic.Bool
		mu         sync.Mutex
		first      error
		work       sync.WaitGroup
	)
	may := *left
	oneAtATime := func() error {
		mu.Lock()
		defer mu.Unlock()
		return stop()
	}
	runtime.SetDefaultGOMAXPROCS() // until here one was enough
	for range min(maxHashers, runtime.GOMAXPROCS(0)) {
		work.Go(func() {
			buffer := make([]byte, 128<<10)
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(t.entries) {
					return
				}
				e := &t.entries[i]
				if !e.File() {
					continue
				}
				err := t.hashFile(e, buffer, oneAtATime)
				if err == nil && used.Add(e.Size) > may {
					err = ErrTooLarge
				}
				if err != nil && !failed.Swap(true) {
					first = err
				}
			}
		})
	}
	work.Wait()
	*left -= used.Load()
	return first
}

func (t *tree) hashFile(e *folders.Entry, buffer []byte, stop func() error) error {
	file, err := openRegular(t.root, e.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	h := sha256.New()
	e.Size, err = io.CopyBuffer(onlyWriter{h}, stoppable{file, stop}, buffer)
	e.SHA256, e.Executable = hex.EncodeToString(h.Sum(nil)), info.Mode()&0o100 != 0
	return err
}

// onlyWriter hides that a writer could read by itself, into a buffer of its own.
type onlyWriter struct{ io.Writer }

// OpenFolder reads a folder that a command left as it was when it was collected: the
// files one after the other. One that has changed since is fs.ErrInvalid. The caller
// closes it.
func OpenFolder(work string, f File) (*Folder, error) {
	root, err := os.OpenRoot(work)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	t, err := openTree(root, f.Path, func() error { return nil })
	if err != nil {
		return nil, err
	}
	// They are read in the order of the manifest, which is not that of the folders.
	folders.Sort(t.entries)
	return &Folder{tree: t, want: f, left: f.Size}, nil
}

// Folder is the bytes of a folder's files.
type Folder struct {
	tree *tree
	want File
	at   int   // the next entry
	left int64 // bytes that may follow

	file     *os.File // that is being read
	hash     hash.Hash
	manifest []byte
}

// Manifest is known once everything was read.
func (f *Folder) Manifest() []byte { return f.manifest }

// Close ends reading.
func (f *Folder) Close() error {
	err := f.tree.root.Close()
	if f.file != nil {
		err = errors.Join(err, f.file.Close())
	}
	return err
}

func (f *Folder) changed() error {
	return &fs.PathError{Op: "read", Path: f.want.Path, Err: fs.ErrInvalid}
}

// Read ends with io.EOF only after what was there to be read.
func (f *Folder) Read(p []byte) (int, error) {
	for {
		if f.file == nil {
			more, err := f.open()
			if err != nil {
				return 0, err
			}
			if !more {
				return 0, f.end()
			}
		}
		n, err := f.file.Read(p)
		if n > 0 {
			e := &f.tree.entries[f.at]
			e.Size += int64(n)
			if f.left -= int64(n); f.left < 0 {
				return 0, f.changed()
			}
			_, _ = f.hash.Write(p[:n])
			return n, nil
		}
		if !errors.Is(err, io.EOF) {
			return 0, err
		}
		f.tree.entries[f.at].SHA256 = hex.EncodeToString(f.hash.Sum(nil))
		if err := f.file.Close(); err != nil {
			return 0, err
		}
		f.file, f.at = nil, f.at+1
	}
}

// open opens the next file, if there is one.
func (f *Folder) open() (bool, error) {
	for ; f.at < len(f.tree.entries); f.at++ {
		e := &f.tree.entries[f.at]
		if !e.File() {
			continue
		}
		file, err := openRegular(f.tree.root, e.Path)
		if err != nil {
			return false, f.changed()
		}
		info, err := file.Stat()
		if err != nil {
			return false, errors.Join(err, file.Close())
		}
		e.Executable = info.Mode()&0o100 != 0
		f.file, f.hash = file, sha256.New()
		return true, nil
	}
	return false, nil
}

// end holds what was read against what it was.
func (f *Folder) end() error {
	if f.manifest != nil {
		return io.EOF
	}
	m, err := folders.New(f.tree.entries)
	if err != nil {
		return f.changed()
	}
	text := m.Text()
	if f.left != 0 || folders.Hash(text) != f.want.SHA256 {
		return f.changed()
	}
	f.manifest = text
	return io.EOF
}
