package machine

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Pip is where pip takes packages from, and how it gets there.
type Pip struct {
	Indexes []string // in the order in which they are to be asked
	Default bool     // pip's own index comes after them
	Proxy   string   // its address; empty: there is none
	Cert    string   // the PEM file of the only certificates to trust; empty: those of the system
}

// pipOption is the setting that counts in place of pip's.
const pipOption = "--pip-index-url"

// Pip reads the configuration of pip. Indexes that it names in addition come first, so
// that nobody can put another package of the same name into the index that is everybody's.
func (m Machine) Pip() (p Pip, err error) {
	settings, err := m.pipSettings()
	if err != nil {
		return p, err
	}
	if none := settings["no-index"]; slices.Contains([]string{"1", "true", "t", "yes", "y", "on"}, strings.ToLower(none.value)) {
		return p, fmt.Errorf("%s has pip use no index (no-index)", none.from)
	}
	var list []setting
	for _, address := range strings.Fields(settings["extra-index-url"].value) {
		list = append(list, setting{address, settings["extra-index-url"].from})
	}
	if index := settings["index-url"]; index.value != "" {
		list = append(list, index)
	} else {
		p.Default = true
	}
	for _, s := range list {
		if err := checkAddress(s, pipOption); err != nil {
			return Pip{}, err
		}
		if !slices.Contains(p.Indexes, s.value) {
			p.Indexes = append(p.Indexes, s.value)
		}
	}
	if p.Proxy, err = proxyOf(settings["proxy"]); err != nil {
		return Pip{}, err
	}
	p.Cert, err = m.certOf(settings["cert"])
	return p, err
}

// proxyOf reads the address of a proxy. It may have credentials, which stay in the server. An
// error does not name them.
func proxyOf(s setting) (string, error) {
	if s.value == "" {
		return "", nil
	}
	if !strings.Contains(s.value, "://") {
		s.value = "http://" + s.value
	}
	u, err := url.Parse(s.value)
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) || strings.Trim(u.Path, "/") != "" {
		return "", fmt.Errorf("%s names a proxy that is not of the form http://proxy.example.org:3128", s.from)
	}
	return s.value, nil
}

// certOf is the path of a file of certificates.
func (m Machine) certOf(s setting) (string, error) {
	path := s.value
	if rest, home := strings.CutPrefix(path, "~/"); home {
		path = filepath.Join(m.env("HOME"), rest)
	}
	if path != "" && !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s names a file of certificates (cert) by a path that is not absolute", s.from)
	}
	return path, nil
}

// pipSettings are the settings of `pip install`. Later files count above earlier ones,
// the section of the command above the global one, and variables above files.
func (m Machine) pipSettings() (map[string]setting, error) {
	global, install := map[string]setting{}, map[string]setting{}
	for _, path := range m.pipFiles() {
		text, err := read(path)
		if err != nil {
			return nil, err
		}
		sections, err := readINI(path, text)
		if err != nil {
			return nil, err
		}
		for name, value := range sections["global"] {
			global[name] = setting{value, path}
		}
		for name, value := range sections["install"] {
			install[name] = setting{value, path}
		}
	}
	for _, name := range []string{"index-url", "extra-index-url", "no-index", "proxy", "cert"} {
		if s := install[name]; s.value != "" {
			global[name] = s
		}
		variable := "PIP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if value := strings.TrimSpace(m.env(variable)); value != "" {
			global[name] = setting{value, variable}
		}
	}
	return global, nil
}

// pipFiles are the files that pip reads, the one that counts least first. What belongs to
// a virtual environment is not among them.
func (m Machine) pipFiles() (list []string) {
	const name = "pip.conf"
	named := m.env("PIP_CONFIG_FILE")
	if named == os.DevNull {
		return nil
	}
	shared := m.env("XDG_CONFIG_DIRS")
	if shared == "" {
		shared = m.Root + "/etc/xdg"
	}
	for _, dir := range filepath.SplitList(shared) {
		list = append(list, filepath.Join(dir, "pip", name))
	}
	list = append(list, m.Root+"/etc/"+name)
	if _, err := os.Stat(named); named != "" && err == nil {
		return append(list, named) // in place of the account's own
	}
	home, config := m.home()
	if home != "" {
		list = append(list, filepath.Join(home, ".pip", name))
	}
	if config != "" {
		list = append(list, filepath.Join(config, "pip", name))
	}
	return list
}

// home is the home folder of the account, and its folder of settings; empty where there
// is none.
func (m Machine) home() (home, config string) {
	home, config = m.env("HOME"), m.env("XDG_CONFIG_HOME")
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	return home, config
}
