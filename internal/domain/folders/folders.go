// Package folders is what a run keeps of a folder: a manifest that names every file
// in it, and the bytes of the files, one after the other in the order of the
// manifest.
package folders

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The most that a folder may have.
const (
	MaxEntries = 200_000
	MaxPath    = 1000 // bytes
	maxName    = 255  // bytes of one name in a path, as on Linux
)

// ErrLongPath is what is wrong with a path that has more than MaxPath bytes.
var ErrLongPath = fmt.Errorf("its path is longer than %d bytes", MaxPath)

// Entry is a file, a symbolic link, or a folder with nothing in it.
type Entry struct {
	Path       string `json:"path"` // below the folder
	Size       int64  `json:"size"`
	SHA256     string `json:"sha256,omitempty"` // of a file, in hex
	Executable bool   `json:"executable,omitempty"`
	Link       string `json:"link,omitempty"`   // where a link leads, relative to its own folder
	Folder     bool   `json:"folder,omitempty"` // an empty one
}

// File reports whether the entry has bytes, or could have.
func (e Entry) File() bool { return e.Link == "" && !e.Folder }

// Manifest is a folder. Its entries are in the order of their paths.
type Manifest struct {
	Entries []Entry
}

// New is a folder of entries in any order. One that cannot be is an error that says
// what is wrong with it.
func New(entries []Entry) (Manifest, error) {
	Sort(entries)
	m := Manifest{entries}
	return m, m.check()
}

// Sort brings entries into the order of a manifest.
func Sort(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
}

// Files counts the files, and Bytes what is in them.
func (m Manifest) Files() (n int) {
	for _, e := range m.Entries {
		if e.File() {
			n++
		}
	}
	return n
}

// Bytes are those of all files together.
func (m Manifest) Bytes() (n int64) {
	for _, e := range m.Entries {
		n += e.Size
	}
	return n
}

// Text is the one way in which a manifest is written: the same folder has the same
// hash. One entry is one line.
func (m Manifest) Text() []byte {
	var b bytes.Buffer
	b.WriteString(head)
	for i, e := range m.Entries {
		if i > 0 {
			b.Truncate(b.Len() - 1) // the end of the line before
			b.WriteString(",")
		}
		b.WriteString("\n")
		encode(&b, e)
	}
	b.WriteString(tail)
	return b.Bytes()
}

// The beginning and the end of a manifest's text.
const (
	head = `{"version":1,"entries":[`
	tail = "]}\n"
)

// encode writes an entry as one line.
func encode(b *bytes.Buffer, e Entry) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(e) // texts and numbers alone
}

// Size is how long the text of a manifest is once the hashes of its files are known.
func (m Manifest) Size() int64 {
	size := len(head) + len(tail)
	var line bytes.Buffer
	for _, e := range m.Entries {
		if e.File() {
			e.SHA256 = unknownHash
		}
		line.Reset()
		encode(&line, e)
		size += len("\n") + line.Len()
	}
	return int64(size)
}

var unknownHash = strings.Repeat("0", 2*sha256.Size)

// Hash is that of a manifest's text.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Parse reads a manifest, which need not be one of ours.
func Parse(text []byte) (Manifest, error) {
	var doc struct {
		Version int     `json:"version"`
		Entries []Entry `json:"entries"`
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		return Manifest{}, fmt.Errorf("not a manifest: %w", err)
	}
	if doc.Version != 1 {
		return Manifest{}, fmt.Errorf("a manifest of version %d", doc.Version)
	}
	m := Manifest{doc.Entries}
	return m, m.check()
}

// check finds what is wrong with a manifest.
func (m Manifest) check() error {
	if err := m.Check(); err != nil {
		return err
	}
	for _, e := range m.Entries {
		if e.File() && !isHash(e.SHA256) {
			return fmt.Errorf("%q: its sha256 is not known", e.Path)
		}
	}
	return nil
}

// Check finds what cannot be put into a folder, or would leave it. The hashes of the
// files need not be known.
func (m Manifest) Check() error {
	if len(m.Entries) > MaxEntries {
		return fmt.Errorf("it has more than %d files: put them into one, such as an archive", MaxEntries)
	}
	left, links := int64(math.MaxInt64), map[string]string{}
	var above []string // the paths before this one with which it begins, the shortest first
	for i, e := range m.Entries {
		if err := e.check(); err != nil {
			return fmt.Errorf("%q: %w", e.Path[:min(len(e.Path), MaxPath)], err)
		}
		if left -= e.Size; left < 0 {
			return errors.New("nothing has that many bytes")
		}
		if i > 0 && m.Entries[i-1].Path >= e.Path {
			return fmt.Errorf("%q: it is there twice, or not in order", e.Path)
		}
		for len(above) > 0 && !strings.HasPrefix(e.Path, above[len(above)-1]) {
			above = above[:len(above)-1]
		}
		for _, start := range above {
			if e.Path[len(start)] == '/' {
				return fmt.Errorf("%q: it is both a folder with something in it and not", start)
			}
		}
		if above = append(above, e.Path); e.Link != "" {
			links[e.Path] = e.Link
		}
	}
	steps := 0
	for _, e := range m.Entries {
		if e.Link != "" && leaves(e, links, &steps) {
			return fmt.Errorf("%q: a link that leads out of the folder cannot be kept", e.Path)
		}
		if steps > maxSteps {
			return errors.New("its links lead through too many folders: put them into one file, such as an archive")
		}
	}
	return nil
}

func (e Entry) check() error {
	switch {
	case len(e.Path) > MaxPath || len(e.Link) > MaxPath:
		return ErrLongPath
	case e.Path == "" || path.Clean(e.Path) != e.Path || strings.HasPrefix(e.Path, "/") || e.Path == "." || strings.HasPrefix(e.Path, "../") || e.Path == "..":
		return errors.New("it is no path below the folder")
	case longNamed(e.Path):
		return fmt.Errorf("a name in its path is longer than %d bytes", maxName)
	case Unnameable(e.Path) || Unnameable(e.Link):
		return errors.New("its name has a backslash, a control character or broken text in it")
	case e.Size < 0 || !e.File() && (e.Size != 0 || e.SHA256 != "" || e.Executable) || e.Link != "" && e.Folder:
		return errors.New("it is not one thing")
	}
	return nil
}

func longNamed(path string) bool {
	length := 0
	for i := range len(path) {
		if length++; path[i] == '/' {
			length = 0
		} else if length > maxName {
			return true
		}
	}
	return false
}

func isHash(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size && text == strings.ToLower(text)
}

// Unnameable reports a name that no object can be kept under.
func Unnameable(name string) bool {
	return !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || unicode.IsControl(r) })
}

// maxHops is how many links may lead to one another, as on Linux. More never arrive
// anywhere. All links of a folder together may lead through maxSteps names.
const (
	maxHops  = 40
	maxSteps = 2_000_000
)

// leaves reports whether following a link ever goes above the folder, by way of other
// links, too. Where it leads need not be there. The steps that it takes are counted.
func leaves(link Entry, links map[string]string, steps *int) bool {
	if path.IsAbs(link.Link) {
		return true
	}
	at := []byte(link.Path[:max(0, strings.LastIndexByte(link.Path, '/'))]) // where we are
	todo := []string{link.Link}                                             // what is left of each link, the last one first
	for hops := 0; len(todo) > 0 && *steps <= maxSteps; *steps++ {
		next, rest, more := strings.Cut(todo[len(todo)-1], "/")
		if todo = todo[:len(todo)-1]; more {
			todo = append(todo, rest)
		}
		here := len(at)
		switch next {
		case "", ".":
			continue
		case "..":
			if here == 0 {
				return true
			}
			at = at[:max(0, bytes.LastIndexByte(at, '/'))]
			continue
		}
		if here > 0 {
			at = append(at, '/')
		}
		if at = append(at, next...); len(at) > MaxPath {
			continue // longer than any link's own path
		}
		over, isLink := links[string(at)]
		if !isLink {
			continue
		}
		if hops++; hops > maxHops {
			return false
		}
		if path.IsAbs(over) {
			return true
		}
		at, todo = at[:here], append(todo, over)
	}
	return false
}
