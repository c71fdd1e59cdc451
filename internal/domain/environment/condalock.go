package environment

import (
	"fmt"
	"regexp"
	"strings"
)

// File is a conda package as a channel has it.
type File struct {
	Channel string
	Folder  string // of the channel: a platform, or noarch
	Name    string
}

// Path is where a channel of that name has it.
func (f File) Path() string { return f.Channel + "/" + f.Folder + "/" + f.Name }

const condaHead = "# conda "

// Platforms are those that conda packages can be chosen for, by the name that Go
// has for them.
var Platforms = map[string]string{"amd64": "linux-64", "arm64": "linux-aarch64"}

// NoPlatform is the folder of packages that every platform can use.
const NoPlatform = "noarch"

var (
	condaFile     = regexp.MustCompile(`^([a-z0-9_][a-z0-9_.-]*)-([A-Za-z0-9_.!+]+)-([A-Za-z0-9_.+]+)\.(?:conda|tar\.bz2)$`)
	condaPlatform = regexp.MustCompile(`^linux-[a-z0-9_]{1,20}$`)
)

// SplitCondaFile reads the name of the file of a conda package.
func SplitCondaFile(file string) (name, version, build string, ok bool) {
	found := condaFile.FindStringSubmatch(file)
	if found == nil || len(file) > MaxRequirement {
		return "", "", "", false
	}
	return found[1], found[2], found[3], true
}

// condaString is a lock of conda packages as people keep it.
func (l Lock) condaString() string {
	var b strings.Builder
	b.WriteString(condaHead + l.Platform + "\n")
	for _, p := range l.Packages {
		b.WriteString(p.File.Path() + " --hash=sha256:" + p.Hashes[0] + "\n")
	}
	return b.String()
}

// parseCondaLocked reads a line of a lock of conda packages.
func (l Lock) parseCondaLocked(words []string) (p Locked, err error) {
	parts := strings.Split(words[0], "/")
	if len(parts) != 3 || CheckChannel(parts[0]) != "" || parts[1] != l.Platform && parts[1] != NoPlatform {
		return p, fmt.Errorf("`%s` is not of the form `channel/%s/name-version-build.conda`", short(words[0]), l.Platform)
	}
	name, version, _, ok := SplitCondaFile(parts[2])
	if !ok {
		return p, fmt.Errorf("`%s` is not the file of a conda package", short(parts[2]))
	}
	p = Locked{Name: name, Version: version, File: File{parts[0], parts[1], parts[2]}}
	if len(words) != 2 || lockedHash.FindStringSubmatch(words[1]) == nil {
		return p, fmt.Errorf("`%s` needs one `--hash=sha256:…` and nothing else", p.Name)
	}
	p.Hashes = lockedHash.FindStringSubmatch(words[1])[1:]
	return p, nil
}

// Channels are those whose packages are in it.
func (l Lock) Channels() (names []string) {
	seen := map[string]bool{}
	for _, p := range l.Packages {
		if c := p.File.Channel; c != "" && !seen[c] {
			seen[c] = true
			names = append(names, c)
		}
	}
	return names
}
