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

// Spec is what a node asks for: packages of Python or of conda, or a lock in their
// place.
type Spec struct {
	Python   string   `json:"python,omitempty"` // such as 3.12; empty: the newest there is
	Pip      []string `json:"pip,omitempty"`
	Conda    []string `json:"conda,omitempty"`
	Channels []string `json:"channels,omitempty"` // of conda packages, the first that has one counts; empty: all that the operator allows
	Lock     string   `json:"lock,omitempty"`
}

// List is its list of that name; nil where there is none.
func (s *Spec) List(name string) *[]string {
	return map[string]*[]string{"pip": &s.Pip, "conda": &s.Conda, "channels": &s.Channels}[name]
}

// Empty reports whether nothing is asked for.
func (s Spec) Empty() bool { return len(s.Pip) == 0 && len(s.Conda) == 0 && s.Lock == "" }

// IsConda reports whether conda packages are asked for, and of which channels.
func (s Spec) IsConda() (channels []string, conda bool) {
	if strings.HasPrefix(s.Lock, condaHead) {
		lock, _ := ParseLock(s.Lock)
		return lock.Channels(), true
	}
	return s.Channels, len(s.Conda) > 0
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
	s.Pip = canonicalList(s.Pip, func(text string) (fmt.Stringer, error) { return ParseRequirement(text) })
	s.Conda = canonicalList(s.Conda, func(text string) (fmt.Stringer, error) { return ParseMatchSpec(text) })
	if lock, err := ParseLock(s.Lock); s.Lock != "" && err == nil {
		s.Lock = lock.String()
	}
	text, _ := json.Marshal(s) // strings always can be
	return string(text)
}

func canonicalList(list []string, parse func(string) (fmt.Stringer, error)) (canonical []string) {
	for _, text := range list {
		if one, err := parse(text); err == nil {
			text = one.String()
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
	File    File     // of a conda package
}

// Lock is what was chosen for a Spec. Whatever is built from the same lock is
// the same.
type Lock struct {
	Python   string   // of Python packages
	Platform string   // of conda packages, such as linux-64
	Packages []Locked // by name
}

const lockHead = "# python "

// String is the lock as people keep it. That of Python packages is a
// requirements file that every installer of them can read.
func (l Lock) String() string {
	if l.Platform != "" {
		return l.condaString()
	}
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
	head, body, _ := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	parse := parseLocked
	if platform, ok := strings.CutPrefix(head, condaHead); ok {
		l.Platform = strings.TrimSpace(platform)
		parse = l.parseCondaLocked
		if !condaPlatform.MatchString(l.Platform) {
			return l, fmt.Errorf("begins with `%slinux-64`, or whichever platform it is for", condaHead)
		}
	} else if l.Python, ok = strings.CutPrefix(strings.TrimSpace(head), lockHead); !ok || CheckPython(l.Python) != "" {
		return l, fmt.Errorf("begins with `%s3.12` or `%slinux-64`, or whatever it is for", lockHead, condaHead)
	}
	body = strings.ReplaceAll(body, "\\\n", " ")
	for line := range strings.SplitSeq(body, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p, err := parse(strings.Fields(line))
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
