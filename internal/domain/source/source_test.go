package source

import (
	"strings"
	"testing"
)

func TestAddressesOfRepositories(t *testing.T) {
	t.Parallel()
	const none = "is not the address"
	for git, want := range map[string]string{ // an address, or a part of the error
		"https://github.com/you/analysis.git":        "https://github.com/you/analysis.git",
		"http://127.0.0.1:3000/x":                    "http://127.0.0.1:3000/x",
		"https://[::1]:8443/x":                       "https://[::1]:8443/x",
		"ssh://git@github.com/you/analysis.git":      "ssh://github.com/you/analysis.git",
		"git@github.com:you/analysis.git":            "ssh://github.com/you/analysis.git",
		"host.example.org:/srv/git/x":                "ssh://host.example.org/srv/git/x",
		"https://ada@github.com/x":                   "has a user",
		"https://ada:pw@github.com/x":                "has a user",
		"ssh://git:pw@github.com/x":                  "has a user",
		"https://github.com":                         none,
		"https://github.com/":                        none,
		"https:///x":                                 none,
		"https://github.com/x?token=1":               none,
		"https://github.com/x#main":                  none,
		"https://github.com/x\n":                     none,
		"https://github.com/x%00":                    none,
		"https://github.com/%ff":                     none,
		"https://-github.com/x":                      none,
		"https://git hub.com/x":                      none,
		"https://github.com:port/x":                  none,
		"file:///etc/passwd":                         none,
		"ext::sh -c id":                              none,
		"git://github.com/x":                         none,
		"HTTPS//github.com/x":                        none,
		"-oProxyCommand=id:x":                        none,
		"git@-oProxyCommand=id:x":                    none,
		"/srv/git/x":                                 none,
		"../x":                                       none,
		"git@github.com:":                            none,
		"git@github.com://x":                         none,
		"":                                           none,
		"https://" + strings.Repeat("a", 300) + "/x": none,
	} {
		u, err := Source{Git: git}.Address()
		switch {
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %s", git, err, want)
		case err == nil && u.String() != want:
			t.Errorf("%q is %s, want %s", git, u, want)
		}
	}
}

func TestNamesOfBranchesAndTags(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]bool{
		"main": true, "v1.2": true, "feature/x": true, strings.Repeat("ab", 20): true, "a@b": true, "übung": true,
		"": false, "-x": false, "/x": false, "x/": false, "a//b": false, ".x": false, "a/.b": false, "x.lock": false, "x.lock/y": false, "x.": false,
		"a..b": false, "a@{1}": false, "@": false, "a b": false, "a~1": false, "a^": false, "a:b": false, "a?": false, "a*": false, "a[b": false, `a\b`: false, "a\x00": false, "a\n": false,
	} {
		if ValidRef(ref) != want {
			t.Errorf("%q: %v", ref, !want)
		}
	}
}

func TestFoldersOfRepositories(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string]bool{
		"a": true, "a/b": true, "a/b/": true, "..a": true, "a b": true,
		"": false, "/": false, "/a": false, "..": false, "../a": false, "a/..": false, "a/../b": false, ".": false, "./a": false, "a//b": false,
		".git": false, "a/.GIT/hooks": false, `a\b`: false, "a\x00b": false, "a\n": false,
	} {
		if ValidFolder(folder) != want {
			t.Errorf("%q: %v", folder, !want)
		}
	}
}
