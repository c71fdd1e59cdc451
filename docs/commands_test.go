package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Lines that would give something of ours to strangers, or something of theirs to us.
var harmful = map[string]func(line string) bool{
	"installs a stranger's package: ours are on no package index":                 installsByName,
	"installs a stranger's package with ours":                                     regexp.MustCompile(`^dependencies\b.*["']millrace\b`).MatchString,
	"has Nextflow send the token to its maker's cloud: -with-tower needs a value": regexp.MustCompile(`\bnextflow\b[^\n]*-with-tower(\s*$|\s+-|["'` + "`" + `])`).MatchString,
	"has Nextflow send the token to its maker's cloud: without -with-tower it ignores the variable": func(line string) bool {
		return strings.Contains(line, "TOWER_API_ENDPOINT") && !strings.Contains(line, "-with-tower")
	},
}

var (
	byName   = regexp.MustCompile(`(pip3?|uvx?|pipx)\b[^\n]*(\b(install|add|run)\b|--with|--from)[^\n]*[\s'"=](millrace|millrace-python|snakemake-logger-plugin-millrace)(\[|[\s'"=<>~)` + "`" + `]|$)`)
	withHash = regexp.MustCompile(`'(millrace-python|snakemake-logger-plugin-millrace)(\[pandas\])? @ (…|https://millrace\.example\.org/clients/[^']*#sha256=[^']+)'`)
)

// installsByName reports whether a line installs a package of ours by its name. With an
// address of a server and a hash it is that very file.
func installsByName(line string) bool { return byName.MatchString(withHash.ReplaceAllString(line, "")) }

// What people are told to type, in the documentation, the list of changes, the description
// of the API, the app, the clients and the command line, harms nobody who types it.
func TestNoLineToTypeDoesHarm(t *testing.T) {
	for _, line := range []string{"pip install millrace", "`pip install millrace[pandas]`", "uv add millrace", "pip install millrace-python", "pip install 'millrace-python @ https://millrace.example.org/clients/a.whl'", "pip install 'millrace-python[pandas] @ https://elsewhere.example/a.whl#sha256=00'", "uvx --from millrace millrace", "uv run --with=millrace script.py", "nextflow run main.nf -with-tower", `"nextflow run main.nf -with-tower",`, "`TOWER_API_ENDPOINT=…` and a token are all it needs", `dependencies = ["httpx", "millrace>=0.1.0"]`} {
		if len(harms(line)) == 0 {
			t.Errorf("%s is not found", line)
		}
	}
	for _, root := range []string{".", "../README.md", "../CHANGELOG.md", "../api/openapi.yaml", "../web/src", "../clients", "../internal/cli", "../internal/domain", "../cmd", "../examples", "../deploy", "../CONTRIBUTING.md"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || !strings.Contains(".md .ipynb .ts .tsx .py .go .yaml .toml", filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			for i, line := range strings.Split(string(text), "\n") {
				for _, harm := range harms(line) {
					t.Errorf("%s:%d %s", path, i+1, harm)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func harms(line string) (list []string) {
	for harm, found := range harmful {
		if found(line) {
			list = append(list, harm)
		}
	}
	return list
}
