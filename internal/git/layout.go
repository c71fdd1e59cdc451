package git

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/git/unpack"
)

// layout is a folder that is being filled. What it is given comes out of a
// sandbox, and is believed no more than what went in.
type layout struct {
	root   *os.Root
	prefix string // of the submodule that is being filled
	limits Limits
	hash   hash.Hash
	links  []string // names of symbolic links

	entries    int
	bytes      int64
	submodules int
}

func newLayout(dir string, l Limits) (*layout, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	return &layout{root: root, limits: l, hash: sha256.New()}, err
}

func (l *layout) close() { _ = l.root.Close() }

// sum is the hash of all that was laid out; the order is that of Git, which
// sorts.
func (l *layout) sum() string { return hex.EncodeToString(l.hash.Sum(nil)) }

// note counts an entry and puts it into the hash.
func (l *layout) note(kind, name, content string) error {
	if l.entries++; l.entries > l.limits.Files {
		return fault.Invalid("it has more than %d files and folders", l.limits.Files)
	}
	fmt.Fprintf(l.hash, "%s %q %q\n", kind, name, content)
	return nil
}

// within fills a folder that is there and empty.
func (l *layout) within(folder string, fill func() error) error {
	before := l.prefix
	at := path.Join(before, folder)
	if !validName(at) {
		return fault.Invalid("its folder cannot be used")
	}
	if info, err := l.root.Lstat(at); err != nil || !info.IsDir() {
		return fault.Invalid("its folder is not there")
	}
	l.prefix = at
	defer func() { l.prefix = before }()
	return fill()
}

// take lays out what an archive holds.
func (l *layout) take(r io.Reader) (list []unpack.Submodule, err error) {
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			if err := json.Unmarshal([]byte(h.PAXRecords[unpack.SubmodulesRecord]), &list); err != nil {
				return nil, err
			}
			continue
		}
		name := path.Join(l.prefix, strings.TrimSuffix(h.Name, "/"))
		if !validName(strings.TrimSuffix(h.Name, "/")) {
			return nil, fault.Invalid("the name %s cannot be used", printable(h.Name))
		}
		if err := l.entry(archive, h, name); errors.Is(err, fs.ErrExist) {
			return nil, fault.Invalid("the name %s occurs twice", printable(h.Name))
		} else if err != nil {
			return nil, err
		}
	}
}

func (l *layout) entry(archive io.Reader, h *tar.Header, name string) error {
	switch h.Typeflag {
	case tar.TypeDir:
		if err := l.note("folder", name, ""); err != nil {
			return err
		}
		return errors.Join(l.root.Mkdir(name, 0o755), l.root.Chmod(name, 0o755))
	case tar.TypeSymlink:
		if !staysInside(name, h.Linkname) {
			return fault.Invalid("the link %s leads out of it", printable(name))
		}
		if err := l.note("link", name, h.Linkname); err != nil {
			return err
		}
		l.links = append(l.links, name)
		return l.root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		return l.file(archive, h, name)
	}
	return fault.Invalid("%s is neither a file, a folder nor a link", printable(name))
}

func (l *layout) file(archive io.Reader, h *tar.Header, name string) error {
	if l.bytes += h.Size; h.Size > l.limits.File || l.bytes > l.limits.Tree {
		return fault.Invalid("its files are larger than %s, or one of them than %s", sizeText(l.limits.Tree), sizeText(l.limits.File))
	}
	kind, mode := "file", fs.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		kind, mode = "program", 0o755
	}
	f, err := l.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	content := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, content), archive)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return l.note(kind, name, hex.EncodeToString(content.Sum(nil)))
}

const (
	maxPath = 2_000
	maxPart = 255
)

// validName reports whether a name may be that of a file here. Git's own folder
// may not: whoever runs git beside it would run what is written in it.
func validName(name string) bool {
	if len(name) > maxPath || strings.ContainsRune(name, 0) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		low := strings.ToLower(strings.TrimRight(part, ". "))
		if part == "" || part == "." || part == ".." || len(part) > maxPart || low == ".git" || low == "git~1" || low == "" && strings.Trim(part, ".") == "" {
			return false
		}
	}
	return true
}

// staysInside reports whether a link leads to a place in the same tree.
func staysInside(name, target string) bool {
	if target == "" || len(target) > maxPath || path.IsAbs(target) || strings.ContainsRune(target, 0) {
		return false
	}
	at := strings.Split(path.Dir(name), "/")
	if path.Dir(name) == "." {
		at = nil
	}
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if len(at) == 0 {
				return false
			}
			at = at[:len(at)-1]
		default:
			at = append(at, part)
		}
	}
	return true
}

// outward finds a link that leads out by way of others, which only shows when all
// of them are there. One that leads nowhere harms nobody.
func (l *layout) outward() (link string, found bool) {
	for _, name := range l.links {
		_, err := l.root.Stat(name) // never leaves the folder
		nowhere := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENAMETOOLONG)
		if err != nil && !nowhere {
			return name, true
		}
	}
	return "", false
}

// printable is a stranger's text, fit to be shown.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if runes := []rune(text); len(runes) > 200 {
		return string(runes[:200]) + "…"
	}
	return text
}
