package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"sync"

	"github.com/millrace/millrace/internal/files"
)

// hashedAtOnce bounds how much whoever brings a part hashes before it is answered,
// and hashedUploads how many uploads are remembered.
const (
	hashedAtOnce  = 256 << 20
	hashedUploads = 1000
)

// prefix is the hash of the first parts of an upload, taken while others are still
// arriving, so that who joins them need not read all of it again. It lives in
// memory: what is lost with the process is hashed anew.
type prefix struct {
	mu    sync.Mutex
	bytes hash.Hash
	marks hash.Hash // of the marks of these parts: one that was sent again has another
	parts int
	size  int64
}

func newPrefix() *prefix { return &prefix{bytes: sha256.New(), marks: sha256.New()} }

// reset begins anew.
func (p *prefix) reset() {
	p.bytes.Reset()
	p.marks.Reset()
	p.parts, p.size = 0, 0
}

// prefixes are those of the uploads that parts came for last.
type prefixes struct {
	atOnce int64 // hashedAtOnce
	mu     sync.Mutex
	known  map[string]*prefix
}

func (p *prefixes) of(key string) *prefix {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.known[key]; known != nil {
		return known
	}
	if p.known == nil {
		p.known = map[string]*prefix{}
	}
	for other := range p.known {
		if len(p.known) < hashedUploads {
			break
		}
		delete(p.known, other)
	}
	p.known[key] = newPrefix()
	return p.known[key]
}

func (p *prefixes) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, key)
}

// hashArrived goes on with the hash of the first parts, unless somebody is at it.
func (s *Store) hashArrived(key string) {
	data, err := s.root.Open(path.Join(inParts, key, partsData))
	if err != nil {
		return
	}
	defer data.Close()
	p := s.prefixes.of(key)
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	for begun := p.size; p.size-begun < s.prefixes.atOnce; {
		next, there, err := s.mark(key, p.parts+1)
		if err != nil || !there || p.add(data, next) != nil {
			return
		}
	}
}

// add hashes the next part.
func (p *prefix) add(data *os.File, next files.Part) error {
	n, err := io.Copy(p.bytes, io.NewSectionReader(data, p.size, next.Size))
	if err == nil && n < next.Size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		p.reset()
		return err
	}
	noteMark(p.marks, next)
	p.parts, p.size = next.Number, p.size+next.Size
	return nil
}

func noteMark(h hash.Hash, p files.Part) { fmt.Fprintf(h, "%d %s %d\n", p.Number, p.ETag, p.Size) }

// longestWait is how many bytes are hashed at most while others are kept from writing.
const longestWait = 4 << 30

// hashOf is the SHA-256 of all parts, or nothing where most are left to hash. The
// caller keeps others from writing.
func (s *Store) hashOf(key string, parts []files.Part) (string, error) {
	p := s.prefixes.of(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.covers(parts) {
		p.reset()
	}
	var left int64
	for _, part := range parts[p.parts:] {
		left += part.Size
	}
	if left > max(s.prefixes.atOnce, min(p.size, longestWait)) {
		return "", nil
	}
	data, err := s.root.Open(path.Join(inParts, key, partsData))
	if err != nil {
		return "", foreseen(err)
	}
	defer data.Close()
	for _, part := range parts[p.parts:] {
		if err := p.add(data, part); err != nil {
			return "", err
		}
	}
	if info, err := data.Stat(); err != nil || info.Size() != p.size {
		return "", err
	}
	return hex.EncodeToString(p.bytes.Sum(nil)), nil
}

// covers tells whether the first of the parts are those that were hashed.
func (p *prefix) covers(parts []files.Part) bool {
	if len(parts) < p.parts {
		return false
	}
	marks := sha256.New()
	for _, part := range parts[:p.parts] {
		noteMark(marks, part)
	}
	return string(marks.Sum(nil)) == string(p.marks.Sum(nil))
}
