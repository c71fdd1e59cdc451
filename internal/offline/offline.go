// Package offline keeps what a machine without network cannot fetch: content by its
// SHA-256, and what names stand for. It arrives in bundles. What a name means is decided
// by those who look it up, before they ask a network.
package offline

import (
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
)

// Folder is where content is kept. An empty one has none.
type Folder string

// Kind says what a name is the name of.
type Kind string

// The kinds, each with its name and what the name stands for.
const (
	Image       Kind = "image"       // a reference: the digest of its manifest
	Commit      Kind = "commit"      // an address and a branch or tag: the commit
	Pack        Kind = "pack"        // an address and a commit: the hash of the pack
	Environment Kind = "environment" // the key of what was asked for: the digest of its lock
	Package     Kind = "package"     // a hash: the file's name
	Input       Kind = "input"       // an address: the hash of what is there
)

var kinds = []Kind{Image, Commit, Pack, Environment, Package, Input}

// Blob is some content.
type Blob struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// Item is a name, what it stands for, and the content that this takes.
type Item struct {
	Kind  Kind   `json:"kind"`
	Name  string `json:"name"`
	Value string `json:"value"`
	Blobs []Blob `json:"blobs,omitempty"`
}

var isHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

const blobFolder = "blobs/sha256" // as in an OCI layout

// blobPath is where content lies in a folder.
func blobPath(sum string) string { return filepath.Join(blobFolder, sum) }

// namePath is where a name lies in a folder.
func namePath(kind Kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join("names", string(kind), hex.EncodeToString(sum[:]))
}

// Open opens content; what is not here is fs.ErrNotExist.
func (f Folder) Open(sum string) (*os.File, error) {
	if f == "" || !isHash.MatchString(sum) {
		return nil, fmt.Errorf("content %q: %w", sum, fs.ErrNotExist)
	}
	return os.Open(filepath.Join(string(f), blobPath(sum)))
}

// Read reads content of at most so many bytes, and compares its hash.
func (f Folder) Read(sum string, most int64) ([]byte, error) {
	file, err := f.Open(sum)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	if found := sha256.Sum256(text); int64(len(text)) > most || hex.EncodeToString(found[:]) != sum {
		return nil, fmt.Errorf("%s is damaged: load its bundle again", file.Name())
	}
	return text, nil
}

// Lookup is what a name stands for, if it is known here.
func (f Folder) Lookup(kind Kind, name string) (value string, known bool, err error) {
	if f == "" {
		return "", false, nil
	}
	text, err := os.ReadFile(filepath.Join(string(f), namePath(kind, name)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	var found Item
	if err := json.Unmarshal(text, &found); err != nil {
		return "", false, fmt.Errorf("what was loaded for %s %s cannot be read: load its bundle again: %w", kind, name, err)
	}
	return found.Value, true, nil
}
