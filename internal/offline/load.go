package offline

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bundle is one that was made elsewhere. Nothing in it is believed before it was
// checked.
type Bundle struct {
	List
	SHA256 string // of the list, which covers all that the bundle has

	root *os.Root
}

var definitionFile = regexp.MustCompile(`^` + definitions + `/[A-Za-z0-9_-]{1,100}\.json$`)

// Open reads the list of a bundle. The caller closes it.
func Open(folder string) (b *Bundle, err error) {
	b = &Bundle{}
	if b.root, err = os.OpenRoot(folder); err != nil {
		return nil, fmt.Errorf("cannot open the bundle: %w", err)
	}
	if err := b.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s cannot be loaded: %w", folder, err), b.Close())
	}
	return b, nil
}

// Close ends reading.
func (b *Bundle) Close() error { return b.root.Close() }

func (b *Bundle) read() error {
	f, size, err := b.open(listFile)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it has no " + listFile + ", so it is no bundle, or one that was not finished")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if size > maxListBytes {
		return errors.New("its list is too large")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxListBytes))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &b.List); err != nil {
		return fmt.Errorf("its list cannot be read: %w", err)
	}
	sum := sha256.Sum256(text)
	b.SHA256 = hex.EncodeToString(sum[:])
	switch {
	case b.Version != version:
		return fmt.Errorf("it has the format %d, and this version of Millrace reads %d", b.Version, version)
	case b.Platform != Platform():
		return fmt.Errorf("it was made for %q, and this machine is %s", b.Platform, Platform())
	}
	for _, item := range b.Items {
		if !slices.Contains(kinds, item.Kind) {
			return fmt.Errorf("it has something of the kind %q, which this version of Millrace does not know", item.Kind)
		}
		for _, blob := range item.Blobs {
			if !isHash.MatchString(blob.SHA256) || blob.Size < 0 {
				return fmt.Errorf("the content of %s %q is not named by a hash", item.Kind, item.Name)
			}
		}
	}
	for _, d := range b.Workflows {
		if !definitionFile.MatchString(d.File) {
			return fmt.Errorf("%q is not the name of a workflow's file", d.File)
		}
	}
	return nil
}

// open opens a plain file of the bundle, of which it says how large it is.
func (b *Bundle) open(name string) (f *os.File, size int64, err error) {
	// A pipe must not have us wait.
	if f, err = b.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0); err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a plain file", name)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// copy writes what must have a hash.
func (b *Bundle) copy(ctx context.Context, name string, want Blob, w io.Writer) error {
	f, size, err := b.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), &untilDone{ctx, io.LimitReader(f, want.Size+1)})
	if err == nil && (n != want.Size || size != want.Size || hex.EncodeToString(sum.Sum(nil)) != want.SHA256) {
		err = fmt.Errorf("%s is not what the list says: the bundle is damaged, or was changed", name)
	}
	return err
}

// untilDone ends a copy with its context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

// Loading is how a bundle is taken in.
type Loading struct {
	Data string // the folder of the server, which may be running
	Into string // the name of the folder in it
	// Check refuses an item whose content is here, for a reason that its kind has.
	Check func(Item, Folder) error
	// Loaded hears of each item.
	Loaded func(item Item, done, of int)
	// Copying hears of content that is being copied, each time that some of it is.
	Copying func(n int)
}

// Load takes in all items of the bundle, each of them whole or not at all. What is here
// already is left as it is, so that it can be repeated. A name that is known stands for
// what this bundle says from then on.
func (b *Bundle) Load(ctx context.Context, how Loading) error {
	data, err := os.OpenRoot(how.Data)
	if err != nil {
		return err
	}
	defer data.Close()
	t := &target{how: how, bundle: b}
	if err := t.open(data); err != nil {
		return err
	}
	defer t.close()
	if err := b.checkWorkflows(ctx); err != nil {
		return err
	}
	if err := t.checkSpace(); err != nil {
		return err
	}
	for i, item := range b.Items {
		if err := t.take(ctx, item); err != nil {
			return fmt.Errorf("%s %q cannot be loaded: %w", item.Kind, item.Name, err)
		}
		how.Loaded(item, i+1, len(b.Items))
	}
	return nil
}

// checkWorkflows reports whether the files of workflows are as the list says.
func (b *Bundle) checkWorkflows(ctx context.Context) error {
	for _, d := range b.Workflows {
		if err := b.copy(ctx, d.File, d.Blob, io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// target is the folder that a bundle is taken into. Whoever loads it may be root, and
// the folder another user's, who must be able to read all of it and to lead nothing
// elsewhere by a link.
type target struct {
	how    Loading
	bundle *Bundle
	root   *os.Root
	locked *os.File
	owner  *syscall.Stat_t
}

func (t *target) open(data *os.Root) error {
	info, err := data.Stat(".")
	if err != nil {
		return err
	}
	t.owner, _ = info.Sys().(*syscall.Stat_t)
	if me := os.Geteuid(); t.owner != nil && me != 0 && int(t.owner.Uid) != me {
		return fmt.Errorf("the data folder %s belongs to another user: run this command as that user or as root", t.how.Data)
	}
	if err := t.mkdir(data, t.how.Into); err != nil {
		return err
	}
	if t.root, err = data.OpenRoot(t.how.Into); err != nil {
		return err
	}
	folders := []string{"blobs", blobFolder, "names"}
	for _, kind := range kinds {
		folders = append(folders, filepath.Join("names", string(kind)))
	}
	for _, folder := range folders {
		if err := t.mkdir(t.root, folder); err != nil {
			return errors.Join(err, t.root.Close())
		}
	}
	if err := t.lock(); err != nil {
		return errors.Join(err, t.root.Close())
	}
	return nil
}

func (t *target) close() { _, _ = t.locked.Close(), t.root.Close() } // nothing was written to either

// lock keeps others from loading at the same time, and removes what one left that was
// killed. It ends with the process.
func (t *target) lock() error {
	f, err := t.root.OpenFile(".", os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(errors.New("another bundle is being loaded: try again when that has ended"), f.Close())
	}
	names, err := f.Readdirnames(-1)
	for _, name := range names {
		if strings.HasPrefix(name, unfinished) {
			err = errors.Join(err, t.root.RemoveAll(name))
		}
	}
	t.locked = f
	return err
}

func (t *target) mkdir(in *os.Root, name string) error {
	if err := in.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return t.give(in, name)
}

// give makes a file or folder that of the data folder's owner.
func (t *target) give(in *os.Root, name string) error {
	if t.owner == nil || int(t.owner.Uid) == os.Geteuid() {
		return nil
	}
	return in.Lchown(name, int(t.owner.Uid), int(t.owner.Gid))
}

// has reports whether content is here.
func (t *target) has(b Blob) bool {
	info, err := t.root.Lstat(blobPath(b.SHA256))
	return err == nil && info.Mode().IsRegular() && info.Size() == b.Size
}

// checkSpace refuses a bundle that does not fit, before any of it is copied.
func (t *target) checkSpace() error {
	var disk unix.Statfs_t
	if err := unix.Statfs(t.how.Data, &disk); err != nil {
		return err
	}
	free, missing, counted := int64(disk.Bavail)*disk.Bsize, int64(0), map[string]bool{} //nolint:gosec // no disk is that large
	for _, item := range t.bundle.Items {
		for _, b := range item.Blobs {
			if counted[b.SHA256] || t.has(b) {
				continue
			}
			counted[b.SHA256] = true
			if b.Size > free || missing > free-b.Size {
				return fmt.Errorf("the bundle does not fit on the disk of %s, where %d MB are free", t.how.Data, free>>20)
			}
			missing += b.Size
		}
	}
	return nil
}

// take takes in the content of an item, and then its name.
func (t *target) take(ctx context.Context, item Item) error {
	for _, blob := range item.Blobs {
		if t.has(blob) {
			continue
		}
		if err := t.write(blobPath(blob.SHA256), func(w io.Writer) error {
			return t.bundle.copy(ctx, blobPath(blob.SHA256), blob, &counter{w, t.how.Copying})
		}); err != nil {
			return err
		}
	}
	if err := t.how.Check(item, Folder(filepath.Join(t.how.Data, t.how.Into))); err != nil {
		return err
	}
	item.Blobs = nil // the name alone is looked up
	text, err := json.Marshal(item)
	if err != nil {
		return err
	}
	return t.write(namePath(item.Kind, item.Name), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// counter tells how much is written.
type counter struct {
	w    io.Writer
	tell func(n int)
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.tell(n)
	return n, err
}

// write leaves a whole file or none.
func (t *target) write(path string, fill func(io.Writer) error) error {
	temporary := unfinished + rand.Text()
	f, err := t.root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer t.root.Remove(temporary) //nolint:errcheck // of one that was not finished
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := t.give(t.root, temporary); err != nil {
		return err
	}
	return t.root.Rename(temporary, path)
}
