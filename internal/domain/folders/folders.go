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
	b.WriteString(`{"version":1,"entries":[`)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i, e := range m.Entries {
		if i > 0 {
			b.Truncate(b.Len() - 1) // the end of the line before
			b.WriteString(",")
		}
		b.WriteString("\n")
		_ = enc.Encode(e) // texts and numbers alone
	}
	b.WriteString("]}\n")
	return b.Bytes()
}

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
	kinds, left := make(map[string]Entry, len(m.Entries)), int64(math.MaxInt64)
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
		kinds[e.Path] = e
	}
	steps := 0
	for _, e := range m.Entries {
		for above := path.Dir(e.Path); above != "."; above = path.Dir(above) {
			if _, both := kinds[above]; both {
				return fmt.Errorf("%q: it is both a folder with something in it and not", above)
			}
		}
		if e.Link != "" && leaves(e, kinds, &steps) {
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
	case slices.ContainsFunc(strings.Split(e.Path, "/"), func(name string) bool { return len(name) > maxName }):
		return fmt.Errorf("a name in its path is longer than %d bytes", maxName)
	case Unnameable(e.Path) || Unnameable(e.Link):
		return errors.New("its name has a backslash, a control character or broken text in it")
	case e.Size < 0 || !e.File() && (e.Size != 0 || e.SHA256 != "" || e.Executable) || e.Link != "" && e.Folder:
		return errors.New("it is not one thing")
	}
	return nil
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
func leaves(link Entry, all map[string]Entry, steps *int) bool {
	if path.IsAbs(link.Link) {
		return true
	}
	var at []string // where we are
	if dir := path.Dir(link.Path); dir != "." {
		at = strings.Split(dir, "/")
	}
	todo := strings.Split(link.Link, "/")
	for hops := 0; len(todo) > 0 && *steps <= maxSteps; *steps++ {
		next := todo[0]
		todo = todo[1:]
		switch next {
		case "", ".":
			continue
		case "..":
			if len(at) == 0 {
				return true
			}
			at = at[:len(at)-1]
			continue
		}
		over, isLink := all[strings.Join(append(at, next), "/")]
		if !isLink || over.Link == "" {
			at = append(at, next)
			continue
		}
		if hops++; hops > maxHops {
			return false
		}
		if path.IsAbs(over.Link) {
			return true
		}
		todo = append(strings.Split(over.Link, "/"), todo...)
	}
	return false
}
