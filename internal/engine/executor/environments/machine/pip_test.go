package machine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/engine/executor/environments/machine"
)

// with is a machine with files and variables. Files are named from its root, in which
// the home folder is home.
func with(t *testing.T, files, variables map[string]string) machine.Machine {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return machine.Machine{Root: root, Env: func(name string) string {
		if value, set := variables[name]; set {
			return strings.ReplaceAll(value, "ROOT", root)
		}
		if name == "HOME" {
			return filepath.Join(root, "home")
		}
		return ""
	}}
}

func TestWhatPipIsTold(t *testing.T) {
	t.Parallel()
	index := func(of string) string { return "[global]\nindex-url = https://" + of + ".example/simple\n" }
	only := func(of ...string) machine.Pip {
		var p machine.Pip
		for _, one := range of {
			p.Indexes = append(p.Indexes, "https://"+one+".example/simple")
		}
		return p
	}
	everywhere := map[string]string{
		"etc/xdg/pip/pip.conf": index("xdg"), "etc/pip.conf": index("etc"), "home/.pip/pip.conf": index("old"), "home/.config/pip/pip.conf": index("home"), "named": index("named"),
	}
	for name, tt := range map[string]struct {
		files, variables map[string]string
		want             machine.Pip
	}{
		"nothing":                      {nil, nil, machine.Pip{Default: true}},
		"a variable":                   {everywhere, map[string]string{"PIP_INDEX_URL": "https://env.example/simple"}, only("env")},
		"an empty variable":            {everywhere, map[string]string{"PIP_INDEX_URL": ""}, only("home")},
		"the account's file":           {everywhere, nil, only("home")},
		"its older place":              {map[string]string{"etc/pip.conf": index("etc"), "home/.pip/pip.conf": index("old")}, nil, only("old")},
		"its folder of settings":       {map[string]string{"config/pip/pip.conf": index("config")}, map[string]string{"XDG_CONFIG_HOME": "ROOT/config"}, only("config")},
		"the machine's file":           {map[string]string{"etc/xdg/pip/pip.conf": index("xdg"), "etc/pip.conf": index("etc")}, nil, only("etc")},
		"a shared file":                {map[string]string{"etc/xdg/pip/pip.conf": index("xdg")}, nil, only("xdg")},
		"another shared folder":        {map[string]string{"site/pip/pip.conf": index("site")}, map[string]string{"XDG_CONFIG_DIRS": "/nowhere:ROOT/site"}, only("site")},
		"a named file":                 {everywhere, map[string]string{"PIP_CONFIG_FILE": "ROOT/named"}, only("named")},
		"beside a named file":          {map[string]string{"named": "[global]\n", "etc/pip.conf": index("etc"), "home/.pip/pip.conf": index("old")}, map[string]string{"PIP_CONFIG_FILE": "ROOT/named"}, only("etc")},
		"a named file that is missing": {everywhere, map[string]string{"PIP_CONFIG_FILE": "ROOT/missing"}, only("home")},
		"no files":                     {everywhere, map[string]string{"PIP_CONFIG_FILE": os.DevNull}, machine.Pip{Default: true}},
		"no home":                      {everywhere, map[string]string{"HOME": ""}, only("etc")},
		"a section of the command":     {map[string]string{"etc/pip.conf": "[install]\nindex-url=https://install.example/simple\n" + index("etc")}, nil, only("install")},
		"another section":              {map[string]string{"etc/pip.conf": "[search]\nindex-url=https://search.example/simple\n"}, nil, machine.Pip{Default: true}},
		"more indexes come first": {
			map[string]string{"etc/pip.conf": "# ours\n[global]\nextra-index-url =\n    https://a.example/simple\n\n    # and\n    https://b.example/simple\nindex_url: https://c.example/simple\n"},
			nil, only("a", "b", "c"),
		},
		"one more, and the usual one": {nil, map[string]string{"PIP_EXTRA_INDEX_URL": "https://a.example/simple"}, machine.Pip{Indexes: only("a").Indexes, Default: true}},
		"the same one twice":          {nil, map[string]string{"PIP_EXTRA_INDEX_URL": "https://a.example/simple https://a.example/simple", "PIP_INDEX_URL": "https://a.example/simple"}, only("a")},
		"a proxy":                     {map[string]string{"etc/pip.conf": "[global]\nproxy = user:secret@proxy.example:3128\n"}, nil, machine.Pip{Default: true, Proxy: "http://user:secret@proxy.example:3128"}},
		"a proxy by a variable":       {map[string]string{"etc/pip.conf": "[global]\nproxy = file.example\n"}, map[string]string{"PIP_PROXY": "socks5://env.example:1080/"}, machine.Pip{Default: true, Proxy: "socks5://env.example:1080/"}},
		"a proxy of the command":      {map[string]string{"etc/pip.conf": "[global]\nproxy = a.example\n[install]\nproxy = https://b.example\n"}, nil, machine.Pip{Default: true, Proxy: "https://b.example"}},
		"certificates":                {map[string]string{"etc/pip.conf": "[global]\ncert = /etc/ssl/ours.pem\n"}, nil, machine.Pip{Default: true, Cert: "/etc/ssl/ours.pem"}},
		"certificates of the account": {nil, map[string]string{"PIP_CERT": "~/ours.pem", "HOME": "/home/ada"}, machine.Pip{Default: true, Cert: "/home/ada/ours.pem"}},
		"an index that is allowed":    {map[string]string{"etc/pip.conf": "[global]\nno-index = false\ntimeout = 10\n" + "index-url = https://a.example/simple"}, nil, only("a")},
	} {
		got, err := with(t, tt.files, tt.variables).Pip()
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// What is wrong is said with the file and its line, and never with the address.
func TestWhatPipCannotBeTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text, says string
	}{
		"a setting outside":   {"index-url = https://secret.example\n", "pip.conf, line 1"},
		"no setting":          {"[global]\n\nsecret\n", "pip.conf, line 3"},
		"no name":             {"[global]\n= secret\n", "pip.conf, line 2"},
		"an open section":     {"[global\n", "pip.conf, line 1"},
		"a section twice":     {"[global]\n[global]\n", "pip.conf, line 2"},
		"a setting twice":     {"[global]\nindex-url = https://secret.example\nindex_url = https://secret.example\n", "pip.conf, line 3"},
		"a path":              {"[global]\nindex-url = /secret\n", "pip.conf names something that is not an address"},
		"another scheme":      {"[global]\nindex-url = file:///secret\n", "pip.conf names something that is not an address"},
		"two addresses":       {"[global]\nindex-url = https://secret.example\n  https://secret2.example\n", "pip.conf names something that is not an address"},
		"a password":          {"[global]\nindex-url = https://user:secret@packages.example/simple\n", "pip.conf names an address with credentials, which the server takes only from --pip-index-url"},
		"a password in extra": {"[global]\nextra-index-url = https://secret@packages.example/simple\n", "credentials"},
		"a proxy by a path":   {"[global]\nproxy = /secret\n", "pip.conf names a proxy that is not of the form"},
		"a proxy of a kind":   {"[global]\nproxy = ftp://user:secret@proxy.example\n", "pip.conf names a proxy that is not of the form"},
		"a proxy with more":   {"[global]\nproxy = http://proxy.example/secret\n", "pip.conf names a proxy that is not of the form"},
		"a relative file":     {"[global]\ncert = secret.pem\n", "pip.conf names a file of certificates (cert) by a path that is not absolute"},
		"no index":            {"[global]\nno-index = True\nindex-url = https://secret.example\n", "no-index"},
		"too much":            {strings.Repeat("# secret\n", 1<<17), "more than 1 MB"},
	} {
		m := with(t, map[string]string{"etc/pip.conf": tt.text}, nil)
		p, err := m.Pip()
		if err == nil || !strings.Contains(err.Error(), m.Root+"/etc/pip.conf") || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret") || len(p.Indexes) > 0 {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if _, err := with(t, nil, map[string]string{"PIP_INDEX_URL": "https://user:secret@packages.example/simple"}).Pip(); err == nil || !strings.Contains(err.Error(), "PIP_INDEX_URL names an address with credentials") {
		t.Error(err)
	}
}
