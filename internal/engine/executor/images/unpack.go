package images

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"
)

const (
	folderMode  = 0o755
	programMode = 0o755
	fileMode    = 0o644

	maxDepth  = 128
	maxSteps  = 32        // for each entry that an image may have
	maxTop    = 512       // entries of the top folder: each is a mount of every task
	maxWindow = 128 << 20 // bytes of memory for one layer
	block     = 4 << 10
)

// unpacker puts layers over one another in a folder that they cannot leave.
// Owners, extended attributes and special bits are dropped: a task's user can
// read everything and gain nothing.
type unpacker struct {
	root *os.Root
	// What is left of the limits, of what comes out of the layers and of what
	// is written: holes in files make the second larger.
	stream, written int64
	entries         int
	steps           int // along paths, and over what whiteouts remove
	limit           int64
	occupied        int64

	made map[string]bool // by the layer at hand
	buf  []byte
}

func newUnpacker(dir string, limit int64, entries int) (*unpacker, error) {
	err := errors.Join(os.Mkdir(dir, folderMode), os.Chmod(dir, folderMode)) // whatever the umask
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	// Headers and padding are not what is bounded, as long as they are few.
	return &unpacker{root: root, stream: 2*limit + 1<<20, written: limit, entries: entries, steps: maxSteps * entries, limit: limit, buf: make([]byte, 256<<10)}, nil
}

func (u *unpacker) close() { u.root.Close() }

// layer unpacks a file that holds a layer, and checks that it was the one that
// the image means.
func (u *unpacker) layer(ctx context.Context, file string, want v1.Hash) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	plain, err := decompress(f)
	if err != nil {
		return defect("a layer is compressed in a way that is not known here")
	}
	defer plain.Close()
	sum := sha256.New()
	r := io.TeeReader(&bounded{ctx, plain, u}, sum)
	u.made = map[string]bool{}
	defer func() { u.made = nil }() // the next layer may be long in coming
	if err := u.apply(tar.NewReader(r)); err != nil {
		return u.classify(ctx, err)
	}
	if _, err := io.CopyBuffer(io.Discard, r, u.buf); err != nil { // what follows the end counts for the sum
		return u.classify(ctx, err)
	}
	if want.Algorithm != "sha256" || hex.EncodeToString(sum.Sum(nil)) != want.Hex {
		return defect("a layer is not what its configuration says")
	}
	return nil
}

// classify distinguishes our own failures from those of the layer.
func (u *unpacker) classify(ctx context.Context, err error) error {
	_, told := errors.AsType[defect](err)
	if told || isLocal(err) || ctx.Err() != nil {
		return err
	}
	return defectf("a layer cannot be read: %s", printable(err.Error()))
}

// decompress knows a format by its first bytes, whatever the manifest says.
func decompress(f io.Reader) (io.ReadCloser, error) {
	r := bufio.NewReaderSize(f, 256<<10)
	magic, _ := r.Peek(4)
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(r)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return io.NopCloser(r), nil
}

// bounded ends a layer that would fill the disk.
type bounded struct {
	ctx context.Context
	r   io.Reader
	u   *unpacker
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.r.Read(p)
	if b.u.stream -= int64(n); b.u.stream < 0 {
		return 0, tooLarge(b.u.limit)
	}
	return n, err
}

func (u *unpacker) apply(r *tar.Reader) error {
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := u.entry(h, r); err != nil {
			return err
		}
	}
}

// count keeps an image from using up the disk's entries.
func (u *unpacker) count() error {
	if u.entries--; u.entries < 0 {
		return defect("it has too many files")
	}
	return nil
}

// step keeps an image of few entries from keeping us busy.
func (u *unpacker) step() error {
	if u.steps--; u.steps < 0 {
		return defect("its links and whiteouts take too long to unpack")
	}
	return nil
}

const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
	special  = ".wh..wh." // of a file system, not of the image
)

func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	if err := u.count(); err != nil {
		return err
	}
	name, err := local(h.Name)
	if err != nil || name == "." {
		return err
	}
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	dir, err := u.folder(path.Dir(name))
	if err != nil {
		return err
	}
	base := path.Base(name)
	switch {
	case base == opaque:
		return u.empty(dir)
	case strings.HasPrefix(base, special):
		return nil
	case strings.HasPrefix(base, whiteout):
		return u.whiteOut(dir, base[len(whiteout):])
	}
	return u.put(path.Join(dir, base), h, r)
}

// local is a name inside the image; one that leads out of it is refused.
func local(name string) (string, error) {
	clean := path.Clean(strings.TrimLeft(name, "/"))
	if !filepath.IsLocal(clean) {
		return "", defectf("its file %q leads out of it", printable(name))
	}
	if strings.Count(clean, "/") >= maxDepth {
		return "", defect("its folders are too deep")
	}
	return clean, nil
}

// put makes one entry at a place that no link leads to.
func (u *unpacker) put(at string, h *tar.Header, r io.Reader) error {
	if err := u.mark(at); err != nil {
		return err
	}
	old, err := u.root.Lstat(at)
	if there := err == nil; there && old.IsDir() && h.Typeflag == tar.TypeDir {
		return nil
	} else if there && h.Typeflag != tar.TypeLink {
		if err := u.root.RemoveAll(at); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.mkdir(at)
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return u.file(at, h, r)
	case tar.TypeSymlink:
		u.occupied += block
		return u.root.Symlink(h.Linkname, at)
	case tar.TypeLink:
		return u.link(at, h.Linkname)
	}
	return nil // a device or a pipe: tasks have their own /dev
}

// mark remembers that this layer made a path, which its whiteouts spare.
func (u *unpacker) mark(at string) error {
	if top := !strings.Contains(at, "/"); top {
		if names, err := u.names("."); err != nil || len(names) >= maxTop {
			return errors.Join(err, defect("its top folder has too many entries"))
		}
	}
	for ; at != "."; at = path.Dir(at) {
		u.made[at] = true
	}
	return nil
}

func (u *unpacker) mkdir(at string) error {
	u.occupied += block
	if err := u.root.Mkdir(at, folderMode); err != nil {
		return err
	}
	return u.root.Chmod(at, folderMode)
}

func (u *unpacker) file(at string, h *tar.Header, r io.Reader) error {
	if h.Size < 0 || h.Size > u.written {
		return tooLarge(u.limit)
	}
	u.written -= h.Size
	u.occupied += (h.Size + block - 1) / block * block
	mode := os.FileMode(fileMode)
	if h.Mode&0o111 != 0 {
		mode = programMode
	}
	f, err := u.root.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(f, r, u.buf)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	// Compiled Python is used only while its source has the time it had.
	return u.root.Chtimes(at, h.ModTime, h.ModTime)
}

// link makes a second name for a file of the image.
func (u *unpacker) link(at, name string) error {
	name, err := local(name)
	if err != nil {
		return err
	}
	dir, err := u.find(path.Dir(name), false)
	if err != nil {
		return err
	}
	target := path.Join(dir, path.Base(name))
	info, err := u.root.Lstat(target)
	if err != nil || info.IsDir() {
		return defectf("its link %q leads to no file", printable(name))
	}
	if target == at {
		return nil
	}
	if err := u.root.RemoveAll(at); err != nil {
		return err
	}
	return u.root.Link(target, at)
}
