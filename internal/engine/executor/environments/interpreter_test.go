package environments_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	build "github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
)

// aPython is an archive as a mirror has it, made of the machine's own interpreter.
func aPython(t *testing.T) (archive []byte, version string) {
	t.Helper()
	out, err := exec.Command("/usr/bin/python3", "-I", "-c", "import os, sys; print(os.path.realpath(sys.executable), os.path.dirname(os.__file__), '%d.%d' % sys.version_info[:2])").Output()
	if err != nil {
		t.Skip("the machine has no Python: ", err)
	}
	program, library, version := "", "", ""
	if _, err := fmt.Sscan(string(out), &program, &library, &version); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	w := tar.NewWriter(z)
	add := func(file, name string) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil //nolint:nilerr // a link of the system's to nowhere
		}
		err = w.WriteHeader(&tar.Header{Name: "python/" + name, Mode: 0o755, Size: int64(len(text))})
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
	unneeded := map[string]bool{"test": true, "__pycache__": true, "dist-packages": true, "site-packages": true, "ensurepip": true, "idlelib": true, "lib2to3": true, "tkinter": true}
	err = filepath.WalkDir(library, func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && (unneeded[d.Name()] || strings.HasPrefix(d.Name(), "config-")) {
			return fs.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return add(path, "lib/python"+version+strings.TrimPrefix(path, library))
	})
	for _, name := range []string{"python" + version, "python3"} {
		if err == nil {
			err = add(program, "bin/"+name)
		}
	}
	if err != nil || w.Close() != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes(), version
}

func TestAnInterpreterThatTheMachineLacksComesFromTheMirror(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	archive, version := aPython(t)
	var asked atomic.Int32
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI != "/pythons/20260101/cpython-"+version+".99%2B20260101-any.tar.gz" {
			t.Errorf("the mirror is asked for %s", r.RequestURI)
		}
		asked.Add(1)
		_, _ = w.Write(archive)
	}))
	t.Cleanup(mirror.Close)
	sum := sha256.Sum256(archive)
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	offer := func(hash string) string {
		return fmt.Sprintf(`{"cpython-%[1]s.99-linux-%[2]s-gnu":{"name":"cpython","arch":{"family":%[2]q,"variant":null},"os":"linux","libc":"gnu","major":3,"minor":%[3]s,"patch":99,"prerelease":"",
			"url":"https://github.com/astral-sh/python-build-standalone/releases/download/20260101/cpython-%[1]s.99%%2B20260101-any.tar.gz","sha256":%[4]q,"variant":null,"build":"20260101"}}`,
			version, machine, strings.TrimPrefix(version, "3."), hash)
	}
	x := indextest.New(t)
	x.AddWheel("greeter", "1.0", map[string]string{
		"greeter.py": "import sys\ndef main(): print(sys.prefix, sys.base_prefix)\n", "greeter-1.0.dist-info/entry_points.txt": "[console_scripts]\ngreet = greeter:main\n",
	})
	x.AddWheel("impostor", "1.0", map[string]string{"impostor-1.0.data/data/python/bin/python3": "#!/bin/sh\n: > /work/environment/ran\n"})
	with := func(c *build.Config) { c.PythonMirror = mirror.URL + "/pythons/" }
	f := open(t, with, x.URL)
	f.OfferPythons(offer(hex.EncodeToString(sum[:])))
	spec := environment.Spec{Python: version, Pip: []string{"greeter"}}
	root, err := f.root(t, "a", spec)
	if err != nil {
		t.Fatal(err)
	}
	if says := inSandbox(t, root, "/environment/bin/greet"); says != "/environment /environment/python\n" {
		t.Errorf("it says %q", says)
	}
	if to, err := os.Readlink(filepath.Join(root, "bin", "python")); err != nil || to != "../python/bin/python3" {
		t.Errorf("its interpreter is %s, %v", to, err)
	}
	if _, err := f.root(t, "a", environment.Spec{Python: version, Pip: []string{"impostor"}}); err == nil || !strings.Contains(err.Error(), "place of the interpreter") {
		t.Errorf("a package in the interpreter's place: %v", err)
	}
	if list := found(t, f.folder, "ran"); len(list) > 0 {
		t.Errorf("something was run: %v", list)
	}
	// On a cluster it is found where it lies.
	cluster := open(t, func(c *build.Config) { with(c); c.InPlace = true }, x.URL)
	cluster.OfferPythons(offer(hex.EncodeToString(sum[:])))
	if root, err = cluster.root(t, "a", spec); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(root, "bin", "greet")).CombinedOutput(); err != nil || string(out) != root+" "+root+"/python\n" {
		t.Errorf("in its place it says %q, %v", out, err)
	}
	// Another file than uv knows is not taken, and nothing without a mirror.
	other := open(t, with, x.URL)
	other.OfferPythons(offer(strings.Repeat("0", 64)))
	before := asked.Load()
	if _, err := other.root(t, "a", spec); !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), "ash mismatch") || asked.Load() == before {
		t.Errorf("another file: %v", err)
	}
	none := open(t, nil, x.URL)
	none.OfferPythons(offer(hex.EncodeToString(sum[:])))
	before = asked.Load()
	if _, err := none.root(t, "a", spec); !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), "Python "+version) || asked.Load() != before {
		t.Errorf("without a mirror: %v", err)
	}
}
