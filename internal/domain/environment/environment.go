// Package environment is the software that a node brings along instead of a
// container image: what an author may ask for, and the lock that says exactly
// what was chosen. How it is built is left to others.
package environment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What one environment may hold.
const (
	MaxPackages    = 200
	MaxRequirement = 256       // characters
	MaxLock        = 512 << 10 // bytes
	maxHashes      = 500       // of one package
)

// Spec is what a node asks for: packages, or a lock in their place.
type Spec struct {
	Python string   `json:"python,omitempty"` // such as 3.12; empty: the newest there is
	Pip    []string `json:"pip,omitempty"`
	Lock   string   `json:"lock,omitempty"`
}

var pythonVersion = regexp.MustCompile(`^3\.(?:[89]|[1-9][0-9])$`)

// CheckPython says what is wrong with the version of an interpreter, or nothing.
func CheckPython(version string) string {
	if !pythonVersion.MatchString(version) {
		return "is not a version of Python such as `3.12`"
	}
	return ""
}

// Canonical is the form that all spellings of the same wish share.
func (s Spec) Canonical() string {
	s.Pip = canonicalList(s.Pip)
	if lock, err := ParseLock(s.Lock); s.Lock != "" && err == nil {
		s.Lock = lock.String()
	}
	text, _ := json.Marshal(s) // strings always can be
	return string(text)
}

func canonicalList(list []string) (canonical []string) {
	for _, text := range list {
		if r, err := ParseRequirement(text); err == nil {
			text = r.String()
		}
		canonical = append(canonical, text)
	}
	slices.Sort(canonical)
	return slices.Compact(canonical)
}

// Key names what was asked for.
func (s Spec) Key() string {
	sum := sha256.Sum256([]byte(s.Canonical()))
	return hex.EncodeToString(sum[:])
}

// Read is the opposite of Canonical.
func Read(canonical string) (s Spec, err error) { return s, json.Unmarshal([]byte(canonical), &s) }

// Locked is one package of a lock.
type Locked struct {
	Name    string
	Version string
	Hashes  []string // hex SHA-256 of the files that may be installed
}

// Lock is what was chosen for a Spec. Whatever is built from the same lock is
// the same.
type Lock struct {
	Python   string
	Packages []Locked // by name
}

const lockHead = "# python "

// String is the lock as people keep it: a requirements file that every
// installer of Python packages can read.
func (l Lock) String() string {
	var b strings.Builder
	b.WriteString(lockHead + l.Python + "\n")
	for _, p := range l.Packages {
		b.WriteString(p.Name + "==" + p.Version)
		for _, hash := range p.Hashes {
			b.WriteString(" \\\n    --hash=sha256:" + hash)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Digest names the lock.
func (l Lock) Digest() string {
	sum := sha256.Sum256([]byte(l.String()))
	return hex.EncodeToString(sum[:])
}

var (
	lockedPackage = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)$`)
	lockedHash    = regexp.MustCompile(`^--hash=sha256:([0-9a-f]{64})$`)
)

// ParseLock reads a lock, and nothing that a requirements file may hold beside:
// each line is a package with one version and its hashes.
func ParseLock(text string) (l Lock, err error) {
	if len(text) > MaxLock {
		return l, fmt.Errorf("is larger than %d KB", MaxLock>>10)
	}
	head, body, _ := strings.Cut(text, "\n")
	version, ok := strings.CutPrefix(head, lockHead)
	if l.Python = strings.TrimSpace(version); !ok || CheckPython(l.Python) != "" {
		return l, fmt.Errorf("begins with `%s3.12`, or whichever version it is for", lockHead)
	}
	body = strings.ReplaceAll(body, "\\\n", " ")
	for line := range strings.SplitSeq(body, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p, err := parseLocked(strings.Fields(line))
		if err != nil {
			return l, err
		}
		if l.Packages = append(l.Packages, p); len(l.Packages) > 5*MaxPackages {
			return l, fmt.Errorf("has more than %d packages", 5*MaxPackages)
		}
	}
	slices.SortFunc(l.Packages, func(a, b Locked) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(l.Packages); i++ {
		if l.Packages[i].Name == l.Packages[i-1].Name {
			return l, fmt.Errorf("has `%s` twice", l.Packages[i].Name)
		}
	}
	if len(l.Packages) == 0 {
		return l, fmt.Errorf("has no packages")
	}
	return l, nil
}

func parseLocked(words []string) (p Locked, err error) {
	found := lockedPackage.FindStringSubmatch(words[0])
	if found == nil {
		return p, fmt.Errorf("`%s` is not of the form `name==version`", short(words[0]))
	}
	p.Name, p.Version = normalName(found[1]), found[2]
	for _, word := range words[1:] {
		hash := lockedHash.FindStringSubmatch(word)
		if hash == nil {
			return p, fmt.Errorf("`%s` of `%s` is not a `--hash=sha256:…`: a lock has nothing else", short(word), p.Name)
		}
		p.Hashes = append(p.Hashes, hash[1])
	}
	slices.Sort(p.Hashes)
	p.Hashes = slices.Compact(p.Hashes)
	if len(p.Hashes) == 0 || len(p.Hashes) > maxHashes {
		return p, fmt.Errorf("`%s` needs between 1 and %d hashes", p.Name, maxHashes)
	}
	return p, nil
}

// short cuts what is quoted in a message.
func short(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
