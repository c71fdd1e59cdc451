package installation

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/store"
)

// restorable are the files and folders of a backup that has no manifest.
var restorable = []string{File, KeyName, NextKeyName, DumpName, "objects/objects", "mail"}

// Restore copies a backup into a data folder that has nothing.
type Restore struct {
	Backup string
	To     *Settings
	Out    io.Writer

	owner   owner
	from    *os.Root
	to      *os.Root
	mark    string // what the folder is marked with until the end
	again   bool   // an earlier attempt was interrupted
	total   int
	count   int
	bytes   int64
	printed time.Time
}

// beingRestored is the file that is being copied, in the data folder.
const beingRestored = "unfinished.file"

// Run copies and verifies every file, and calls check as the owner of the data folder before
// the folder counts as complete. It can be interrupted and run again.
func (r *Restore) Run(ctx context.Context, check func(context.Context) error) (err error) {
	defer func() {
		for _, root := range []*os.Root{r.from, r.to} {
			if root != nil {
				err = errors.Join(err, root.Close())
			}
		}
	}()
	if err := r.plan(); err != nil {
		return err
	}
	release, err := r.claim(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := r.copyAll(ctx); err != nil {
		return err
	}
	if err := r.owner.become(); err != nil {
		return err
	}
	if !r.To.Embedded() {
		if err := loadDump(ctx, r.To.DatabaseURL, filepath.Join(r.To.Data, DumpName), r.again); err != nil {
			return err
		}
	}
	if err := check(ctx); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(r.To.Data, DumpName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return markFinished(r.To.Data)
}

// plan finds both folders and refuses what cannot be restored.
func (r *Restore) plan() (err error) {
	if r.Backup, err = realPath(r.Backup); err != nil {
		return err
	}
	if r.To.Data, err = realPath(r.To.Data); err != nil {
		return err
	}
	if within(r.Backup, r.To.Data) || within(r.To.Data, r.Backup) {
		return fmt.Errorf("the backup %s and the data folder %s must not be inside each other: choose another --data", r.Backup, r.To.Data)
	}
	if r.from, err = os.OpenRoot(r.Backup); err != nil {
		return fmt.Errorf("cannot open the backup: %w", err)
	}
	if err := checkFinished(r.Backup); err != nil {
		return err
	}
	if r.owner, err = ownerFor(r.To.Data); err != nil {
		return err
	}
	if err := r.owner.canReach(r.To.Data); err != nil {
		return err
	}
	_, noFile := r.from.Stat(File)
	_, noDump := r.from.Stat(DumpName)
	switch {
	case noFile != nil && noDump != nil:
		return fmt.Errorf("%s is not a backup: it has neither %s nor %s", r.Backup, File, DumpName)
	case noFile == nil && !r.To.Embedded():
		return errors.New("this backup has an embedded database: restore it without --database-url, then use `millrace admin move`")
	case noFile != nil && r.To.Embedded():
		return errors.New("this backup is of a PostgreSQL database: give the --database-url of an empty one to restore it to")
	}
	r.mark = fmt.Sprintf("`millrace restore %s --data %s`\n%x\n", r.Backup, r.To.Data, sha256.Sum256([]byte(r.To.DatabaseURL)))
	return nil
}

// claim makes the data folder, takes its lock and marks it.
func (r *Restore) claim(ctx context.Context) (release func(), err error) {
	if err := r.checkEmpty(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.To.Data, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the data folder: %w", err)
	}
	release, err = lockFolder(r.To.Data)
	if err != nil {
		return nil, err
	}
	err = r.checkEmpty() // another one may have ended meanwhile
	if err == nil {
		err = r.checkDatabase(ctx)
	}
	if err == nil {
		err = markUnfinished(r.To.Data, r.mark)
	}
	if err == nil {
		r.to, err = os.OpenRoot(r.To.Data)
	}
	for _, name := range []string{".", lockName, unfinishedName} {
		if err == nil {
			err = r.owner.give(r.to, name)
		}
	}
	if err == nil {
		err = os.Chmod(r.To.Data, 0o700)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// checkEmpty refuses a folder that has something, unless this same restore was interrupted.
func (r *Restore) checkEmpty() error {
	entries, err := os.ReadDir(r.To.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mark, err := unfinished(r.To.Data)
	switch {
	case err != nil:
		return err
	case mark == r.mark:
		r.again = true
		return nil
	case mark != "":
		what, _, _ := strings.Cut(mark, "\n")
		return fmt.Errorf("another command did not finish in %s: run it again (%s, with the same settings), or empty the folder", r.To.Data, what)
	}
	for _, e := range entries {
		// A file system of its own has lost+found.
		if e.Name() != lockName && e.Name() != "lost+found" {
			return fmt.Errorf("the data folder %s is not empty, and restore overwrites nothing: stop the server, and move what is in the folder away, or choose another --data", r.To.Data)
		}
	}
	return nil
}

// checkDatabase refuses a PostgreSQL database that has something. In the folder, it removes
// what an earlier attempt has left beside the database: it belongs to another copy of it.
func (r *Restore) checkDatabase(ctx context.Context) error {
	if r.To.Embedded() {
		var errs []error
		for _, suffix := range []string{"-wal", "-shm", "-journal"} {
			if err := os.Remove(r.To.File() + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	if r.again {
		return nil
	}
	empty, err := store.IsEmpty(ctx, r.To.DatabaseURL)
	if err == nil && !empty {
		err = errors.New("the database of --database-url is not empty, and restore overwrites nothing: create another one and give its address")
	}
	return err
}

func (r *Restore) copyAll(ctx context.Context) error {
	manifest, err := r.from.Open(ManifestName)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(r.Out, "the backup has no %s: the content of its files cannot be compared with what was copied\n", ManifestName)
		return r.copyUnlisted(ctx)
	}
	if err != nil {
		return err
	}
	defer manifest.Close()
	if err := readManifest(bufio.NewReader(manifest), func(string, string) error { r.total++; return nil }); err != nil {
		return err
	}
	if _, err := manifest.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var wrong []error
	err = readManifest(bufio.NewReader(manifest), func(name, sum string) error {
		if !slices.ContainsFunc(restorable, func(known string) bool { return within(name, known) }) {
			return fmt.Errorf("%s lists %s, which no backup has", ManifestName, name)
		}
		err := r.copy(ctx, name, sum)
		if _, is := errors.AsType[wrongFile](err); is && len(wrong) < 20 {
			wrong = append(wrong, err)
			return nil
		}
		return err
	})
	if err = errors.Join(append(wrong, err)...); err != nil {
		return fmt.Errorf("this backup cannot be restored: %w", err)
	}
	r.print()
	fmt.Fprintf(r.Out, "all files belong to user %s\n", userName(r.owner.uid))
	return nil
}

// copyUnlisted copies what a backup without a manifest has.
func (r *Restore) copyUnlisted(ctx context.Context) error {
	for _, name := range restorable {
		err := fs.WalkDir(r.from.FS(), name, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || e.IsDir() {
				return err
			}
			return r.copy(ctx, path, "")
		})
		if err != nil {
			return err
		}
	}
	r.print()
	return nil
}

// wrongFile is a file of a backup that is missing or was changed.
type wrongFile struct{ name, why string }

func (w wrongFile) Error() string { return w.name + " " + w.why }

// copy copies one file and compares its hash with sum, unless sum is empty. A file under its
// own name is complete: one that is there already is compared and kept.
func (r *Restore) copy(ctx context.Context, name, sum string) error {
	info, err := r.from.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return wrongFile{name, "is missing"}
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return wrongFile{name, "is not a plain file"}
	}
	if r.again && sum != "" {
		if there, err := r.hash(ctx, name); err == nil && there == sum {
			return r.done(info.Size())
		}
	}
	got, err := r.copyBytes(ctx, name)
	if err != nil {
		return err
	}
	if sum != "" && got != sum {
		return wrongFile{name, "does not have the content that was backed up"}
	}
	if err := r.makeFolders(filepath.Dir(name)); err != nil {
		return err
	}
	if err := r.to.Rename(beingRestored, name); err != nil {
		return err
	}
	return r.done(info.Size())
}

// hash is the hash of a file that is in the data folder.
func (r *Restore) hash(ctx context.Context, name string) (string, error) {
	f, err := r.to.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, interruptible{ctx, f})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// copyBytes copies a file to beingRestored and returns its hash.
func (r *Restore) copyBytes(ctx context.Context, name string) (string, error) {
	in, err := r.from.Open(name)
	if err != nil {
		return "", err
	}
	defer in.Close()
	if err := r.to.Remove(beingRestored); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	out, err := r.to.OpenFile(beingRestored, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), interruptible{ctx, in})
	if err == nil {
		err = r.owner.give(r.to, beingRestored)
	}
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, out.Chmod(0o600), out.Sync(), out.Close())
}

// makeFolders makes a folder and those above it, for the owner.
func (r *Restore) makeFolders(name string) error {
	if _, err := r.to.Stat(name); err == nil {
		return nil
	}
	if err := r.makeFolders(filepath.Dir(name)); err != nil {
		return err
	}
	return errors.Join(r.to.Mkdir(name, 0o700), r.owner.give(r.to, name))
}

func (r *Restore) done(bytes int64) error {
	r.count, r.bytes = r.count+1, r.bytes+bytes
	if time.Since(r.printed) > 5*time.Second {
		r.print()
	}
	return nil
}

func (r *Restore) print() {
	r.printed = time.Now()
	of := ""
	if r.total > 0 {
		of = fmt.Sprintf(" of %d", r.total)
	}
	fmt.Fprintf(r.Out, "restored %d%s files, %.1f MB\n", r.count, of, float64(r.bytes)/1e6)
}

// interruptible is a reader that ends with a context.
type interruptible struct {
	ctx context.Context
	io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.Reader.Read(p)
}

// realPath is a path without links. What is at its end need not be there.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if found, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return found, err
	}
	above, err := realPath(filepath.Dir(path))
	return filepath.Join(above, filepath.Base(path)), err
}

// within reports whether a path is another one or below it.
func within(path, folder string) bool {
	inside, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(inside)
}
