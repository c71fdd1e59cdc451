package git

import (
	"net/url"
	"strings"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/source"
)

// Repository is one on a Git host, and who we are there.
type Repository struct {
	url   *url.URL // https, http or ssh
	login login
}

// login is what a connection knows; empty: nobody in particular.
type login struct {
	user     string
	password string
	key      string // for SSH, in PEM
	hostKey  string // that of the host must be the same
}

// Open is the repository of a source. A connection's credentials go to its own
// host and to no other; nil is none.
func Open(s source.Source, c *connections.Connection, secret connections.Credentials) (Repository, error) {
	u, err := s.Address()
	if err != nil {
		return Repository{}, fault.Invalid("the address of the repository %s", err)
	}
	r := Repository{url: u}
	if c == nil { // what was loaded needs none
		return r, nil
	}
	switch {
	case c.Type != connections.Git:
		return r, fault.Invalid("the connection %s is not one to a Git host", c.Name)
	case !sameHost(c.Host, u):
		return r, fault.Invalid("the connection %s is for %s, not for %s", c.Name, c.Host, u.Host)
	case u.Scheme == "ssh" && secret.SSHKey == "":
		return r, fault.Invalid("the connection %s has no SSH key: use an address with https, or another connection", c.Name)
	case u.Scheme != "ssh" && secret.SSHKey != "":
		return r, fault.Invalid("the connection %s has an SSH key: use an address with ssh://", c.Name)
	case u.Scheme == "ssh" && c.HostKey == "":
		return r, fault.Invalid("the host key of %s is not known yet: test the connection %s first", c.Host, c.Name)
	}
	r.login = login{user: c.Username, password: secret.Password + secret.Token, key: secret.SSHKey, hostKey: c.HostKey}
	if r.login.user == "" {
		r.login.user = "x-access-token" // GitHub's and GitLab's word; others take any
		if r.url.Scheme == "ssh" {
			r.login.user = "git"
		}
	}
	return r, nil
}

// sameHost compares host and port; the port that nobody writes is the scheme's.
func sameHost(host string, u *url.URL) bool {
	usual := map[string]string{"https": ":443", "http": ":80", "ssh": ":22"}[u.Scheme]
	normal := func(h string) string { return strings.TrimSuffix(strings.ToLower(h), usual) }
	return normal(host) == normal(u.Host)
}

// submodule is a repository that another one names. Credentials go along only
// to the same host by the same scheme.
func (r Repository) submodule(address string) (Repository, error) {
	if strings.HasPrefix(address, "./") || strings.HasPrefix(address, "../") {
		above := *r.url
		above.Path = strings.TrimSuffix(above.Path, "/") + "/"
		u, err := above.Parse(address)
		if err != nil {
			return Repository{}, fault.Invalid("the submodule's address %q cannot be read", address)
		}
		address = u.String()
	}
	u, err := source.Source{Git: address}.Address()
	if err != nil {
		return Repository{}, fault.Invalid("its address %s", err)
	}
	other := Repository{url: u}
	if u.Scheme == r.url.Scheme && sameHost(r.url.Host, u) {
		other.login = r.login
	} else if u.Scheme == "ssh" {
		return other, fault.Invalid("a submodule over SSH must be on the same host as the repository")
	}
	return other, nil
}

// name is the address as people know it.
func (r Repository) name() string { return r.url.Host + r.url.Path }
