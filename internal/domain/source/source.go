// Package source says where the code of a workflow is: a folder of a Git
// repository, at a branch, a tag or a commit.
package source

import (
	"errors"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Variable names the variable that holds the folder of the code.
const Variable = "SOURCE_DIR"

// Source is the code that commands find at SOURCE_DIR: a folder of a Git
// repository, as it is at a commit.
type Source struct {
	Git        string `json:"git"`
	Ref        string `json:"ref,omitempty"`        // a branch, a tag or a commit; empty: the default branch
	Path       string `json:"path,omitempty"`       // of the folder; empty: all of it
	Connection string `json:"connection,omitempty"` // whose credentials are used; empty: none
	Submodules bool   `json:"submodules,omitempty"`
}

// The longest of each, in bytes.
const (
	MaxAddress = 2_000
	MaxRef     = 250
	MaxPath    = 1_000
)

var (
	hostName   = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)(:[0-9]{1,5})?$`)
	scpAddress = regexp.MustCompile(`^([A-Za-z0-9._-]+@)?([A-Za-z0-9][A-Za-z0-9.-]*):([^/:].*|/[^/].*)$`)

	errAddress  = errors.New("is not the address of a Git repository, such as https://github.com/you/analysis.git or ssh://git@github.com/you/analysis.git")
	errUserInfo = errors.New("has a user or a password in it: make a connection for them, and name that")
)

// Address reads where the repository is. The form git@host:path means SSH.
func (s Source) Address() (*url.URL, error) {
	text := s.Git
	if !strings.Contains(text, "://") {
		m := scpAddress.FindStringSubmatch(text)
		if m == nil {
			return nil, errAddress
		}
		text = "ssh://" + m[2] + "/" + strings.TrimPrefix(m[3], "/")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, !slices.Contains([]string{"https", "http", "ssh"}, u.Scheme), !hostName.MatchString(u.Host),
		strings.Trim(u.Path, "/") == "", u.RawQuery != "", u.Fragment != "", strings.ContainsFunc(u.Path, unicode.IsControl), !utf8.ValidString(u.Path):
		return nil, errAddress
	case u.User != nil && (u.Scheme != "ssh" || hasPassword(u)):
		return nil, errUserInfo
	}
	u.User = nil // a connection says who we are
	return u, nil
}

func hasPassword(u *url.URL) bool {
	_, ok := u.User.Password()
	return ok
}

// ValidRef follows the rules that git has for names.
func ValidRef(ref string) bool {
	for _, part := range strings.Split(ref, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") || strings.HasSuffix(part, ".") {
			return false
		}
	}
	return !strings.HasPrefix(ref, "-") && !strings.Contains(ref, "..") && !strings.Contains(ref, "@{") && ref != "@" &&
		!strings.ContainsAny(ref, " ~^:?*[\\") && !strings.ContainsFunc(ref, unicode.IsControl)
}

// ValidFolder reports whether a path is that of a folder in a repository.
func ValidFolder(p string) bool {
	p = strings.TrimSuffix(p, "/")
	if p == "" || path.IsAbs(p) || path.Clean(p) != p || strings.ContainsFunc(p, unicode.IsControl) || strings.Contains(p, `\`) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return part == ".." || part == "." || strings.EqualFold(part, ".git") })
}
