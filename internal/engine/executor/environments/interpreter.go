package environments

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/engine/executor/shim/relay"
	"github.com/millrace/millrace/internal/safedial"
)

// Interpreters that the machine does not have come from the operator's mirror of
// python-build-standalone, through our view of the indexes. uv knows the hashes of
// those that it can install. Such an interpreter becomes part of the environment.

const pythonURL = "http://" + relay.Address + "/python"

// findPython sets python to the interpreter that is asked for. One of the mirror is
// beside the environment until that is done: a package could put something in its
// place.
const findPython = `found() { "$UV" python find --system ${PYTHON_VERSION:+"$PYTHON_VERSION"}; }
if [ -z "$PYTHON_MIRROR" ]; then
	python=$(found)
elif ! python=$(found 2>/dev/null); then
	UV_PYTHON_DOWNLOADS=manual $RELAY "$UV" python install --no-bin --install-dir .python --mirror "$PYTHON_MIRROR" ${PYTHON_VERSION:+"$PYTHON_VERSION"}
	for python in "$PWD"/.python/cpython-*.*.*-*/bin/python3; do :; done
fi
`

// keepPython puts an interpreter of the mirror into the environment, which knows it
// by the place that tasks find it at.
const keepPython = `
if [ -d .python ]; then
	if [ -e ` + buildFolder + `/python ] || [ -L ` + buildFolder + `/python ]; then echo "error: a package has files at the place of the interpreter: python" >&2; exit 1; fi
	"$python" -I -S -c 'import os
path = "` + buildFolder + `/pyvenv.cfg"
lines = open(path).read().splitlines()
open(path, "w").write("".join(("home = " + os.environ["PREFIX"] + "/python/bin" if line.startswith("home = ") else line) + "\n" for line in lines))'
	mv -T "${python%/bin/python3}" ` + buildFolder + `/python
	ln -sfn ../python/bin/python3 ` + buildFolder + `/bin/python
fi`

// pythonSettings are what the scripts above read.
func (s *Store) pythonSettings(version, prefix string) map[string]string {
	env := map[string]string{"PYTHON_VERSION": version, "PYTHON_MIRROR": "", "PREFIX": prefix}
	if s.PythonMirror != "" {
		env["PYTHON_MIRROR"] = pythonURL
	}
	return env
}

// dropOutlived removes an environment whose interpreter is gone, as after an upgrade of
// the machine, so that it is built again.
func (s *Store) dropOutlived(name string, lock environment.Lock) error {
	python := filepath.Join(s.trees.Dir(name), treeFolder, "bin", "python")
	if _, err := os.Lstat(python); err != nil || isConda(lock) || s.InPlace {
		return nil //nolint:nilerr // it is not here, has its own, or that of other machines
	}
	if _, err := os.Stat(python); !errors.Is(err, fs.ErrNotExist) {
		return nil //nolint:nilerr // whatever is wrong, building it again would not help
	}
	return s.trees.Drop(name)
}

// parseMirror reads the address of a mirror; nil where there is none.
func parseMirror(address string) (*url.URL, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // no mirror is not a failure
	}
	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("--python-mirror: it is not the address of a mirror such as https://mirror.example.org/python-build-standalone/releases/download")
	}
	return u, nil
}

// reachMirror reports whether the mirror answers, whatever it says: it need not have
// a first page.
func (x *index) reachMirror(ctx context.Context) error {
	if x.mirror == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, x.mirror.String()+"/", nil)
	if err != nil {
		return err
	}
	answer, err := x.direct.Do(r)
	if err != nil {
		return fmt.Errorf("--python-mirror %s cannot be reached: %s", x.mirror.Redacted(), safedial.Reason(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("--python-mirror %s answered %s", x.mirror.Redacted(), answer.Status)
	}
	return nil
}

var (
	pythonRelease = regexp.MustCompile(`^[0-9]{8}$`)
	pythonFileOf  = regexp.MustCompile(`^cpython-3\.[A-Za-z0-9.+_-]+\.tar\.(?:gz|zst)$`)
)

// servePython hands on an interpreter of the mirror, and nothing else of it.
func (v *visit) servePython(w http.ResponseWriter, r *http.Request) {
	release, file := r.PathValue("release"), r.PathValue("file")
	if v.mirror == nil || !pythonRelease.MatchString(release) || !pythonFileOf.MatchString(file) {
		http.NotFound(w, r)
		return
	}
	u := v.mirror.JoinPath(release, file)
	u.RawPath = strings.ReplaceAll(u.EscapedPath(), "+", "%2B") // some hosts read a plus as a space
	v.forward(w, r, v.direct, u)
}
