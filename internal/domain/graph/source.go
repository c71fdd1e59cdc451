package graph

import (
	"errors"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Source is the code that commands find at SOURCE_DIR: a folder of a Git
// repository, as it is at a commit.
type Source struct {
	Git        string `json:"git"`
	Ref        string `json:"ref,omitempty"`        // a branch, a tag or a commit; empty: the default branch
	Path       string `json:"path,omitempty"`       // of the folder; empty: all of it
	Connection string `json:"connection,omitempty"` // whose credentials are used; empty: none
	Submodules bool   `json:"submodules,omitempty"`
}

const (
	maxAddress = 2_000
	maxRef     = 250
	maxSource  = 1_000 // bytes of a path
)

// SourceVariable names the variable that holds the folder of the code.
const SourceVariable = "SOURCE_DIR"

var sourceFields = []string{"git", "ref", "path", "connection", "submodules"}

func (c *checker) source(v *value) {
	if v.kind != object {
		c.wrong(v, nil, "an object")
		return
	}
	s, here := &Source{}, at(v, nil)
	for i := range v.items {
		f := &v.items[i]
		switch f.name {
		case "git":
			if s.Git = c.text(f, here, maxAddress); s.Git != "" {
				if _, err := s.Address(); err != nil {
					c.p.add(at(f, here), "%s", err)
				}
			}
		case "ref":
			if s.Ref = c.text(f, here, maxRef); s.Ref != "" && !validRef(s.Ref) {
				c.p.add(at(f, here), "`%s` is no name of a branch, a tag or a commit", short(s.Ref))
			}
		case "path":
			if s.Path = c.text(f, here, maxSource); s.Path != "" && !validFolder(s.Path) {
				c.p.add(at(f, here), "`%s` is not the path of a folder in the repository, such as `analysis/scripts`", short(s.Path))
			}
		case "connection":
			if s.Connection = c.text(f, here, maxName); s.Connection != "" && !validName(s.Connection) {
				c.p.add(at(f, here), "`%s` is not the id of a connection", short(s.Connection))
			}
		case "submodules":
			s.Submodules = c.boolean(f, here)
		default:
			c.unknown(f, here, sourceFields)
		}
	}
	c.g.Source = s
}

var (
	sourceHost = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)(:[0-9]{1,5})?$`)
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
	case err != nil, !slices.Contains([]string{"https", "http", "ssh"}, u.Scheme), !sourceHost.MatchString(u.Host),
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

// validRef follows the rules that git has for names.
func validRef(ref string) bool {
	for _, part := range strings.Split(ref, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") || strings.HasSuffix(part, ".") {
			return false
		}
	}
	return !strings.HasPrefix(ref, "-") && !strings.Contains(ref, "..") && !strings.Contains(ref, "@{") && ref != "@" &&
		!strings.ContainsAny(ref, " ~^:?*[\\") && !strings.ContainsFunc(ref, unicode.IsControl)
}

func validFolder(p string) bool {
	p = strings.TrimSuffix(p, "/")
	if p == "" || path.IsAbs(p) || path.Clean(p) != p || strings.ContainsFunc(p, unicode.IsControl) || strings.Contains(p, `\`) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return part == ".." || part == "." || strings.EqualFold(part, ".git") })
}

// UsesSource reports whether a command mentions the folder of the code. Others do
// not see it, so that a change of it changes nothing for them.
func (n *Node) UsesSource() bool {
	return strings.Contains(n.Command, SourceVariable) ||
		slices.ContainsFunc(slices.Collect(maps.Values(n.Env)), func(v string) bool { return strings.Contains(v, SourceVariable) })
}

// NamesSource reports whether a definition may name code.
func NamesSource(definition []byte) bool { return strings.Contains(string(definition), `"source"`) }
