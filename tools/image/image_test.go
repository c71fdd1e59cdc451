package main

import (
	"archive/tar"
	"bufio"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/millrace/millrace/tools/spdx"
)

// made builds an image of this test's own program, and reads it back.
func made(t *testing.T, recipe string, platforms ...string) (v1.ImageIndex, v1.Hash) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "image")
	o := order{Recipe: recipe, Version: "v1.2.3", Commit: "c0ffee", Time: time.Unix(1_700_000_000, 0).UTC(), Lock: "../../web/package-lock.json"}
	if recipe == "millrace" {
		o.UV = filepath.Join(t.TempDir(), "uv")
	}
	var programs []string
	for _, p := range platforms {
		programs = append(programs, p+"="+self)
		if o.UV != "" {
			uv := o.UV + "-" + strings.ReplaceAll(p, "/", "-")
			if err := errors.Join(os.WriteFile(uv, []byte("uv"), 0o600), os.WriteFile(uv+".LICENSE", []byte("free"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	digest, err := run(o, out, programs)
	if err != nil {
		t.Fatal(err)
	}
	return opened(t, out), digest
}

func opened(t *testing.T, path string) v1.ImageIndex {
	t.Helper()
	top, err := layout.ImageIndexFromPath(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := top.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		t.Fatal(m, err)
	}
	index, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestTheSameProgramsMakeTheSameImage(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds each image twice")
	}
	t.Parallel()
	for recipe := range recipes {
		_, first := made(t, recipe, "linux/"+runtime.GOARCH)
		index, second := made(t, recipe, "linux/"+runtime.GOARCH)
		if first != second {
			t.Errorf("%s is %v and %v", recipe, first, second)
		}
		if err := validate.Image(here(t, index)); err != nil {
			t.Error(recipe, err)
		}
		if recipe != "millrace" {
			continue
		}
		if info, err := os.Stat(filepath.Join(unpacked(t, here(t, index)), "uv")); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("uv is %v, %v", info, err)
		}
	}
}

func TestTheImageTrustsAuthoritiesOfTheModule(t *testing.T) {
	t.Parallel()
	pool, n := x509.NewCertPool(), strings.Count(authorities(), "BEGIN CERTIFICATE")
	if n < 100 || !pool.AppendCertsFromPEM([]byte(authorities())) {
		t.Errorf("%d authorities", n)
	}
}

func TestNoOtherFolderIsReplaced(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	for range 2 { // an empty folder, then an image
		if _, err := run(order{Recipe: "millrace-attempt"}, out, []string{"linux/" + runtime.GOARCH + "=" + self}); err != nil {
			t.Fatal(err)
		}
	}
	mine := filepath.Join(out, "results.csv")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(order{Recipe: "millrace-attempt"}, out, []string{"linux/" + runtime.GOARCH + "=" + self}); err == nil {
		t.Error("a folder with other files was replaced")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

func TestAnImageSaysWhatItIsMadeOf(t *testing.T) {
	t.Parallel()
	index, _ := made(t, "millrace", "linux/amd64", "linux/arm64")
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) != 4 {
		t.Fatal(m, err)
	}
	for i := 1; i < len(m.Manifests); i += 2 {
		d := m.Manifests[i]
		if of := d.Annotations["vnd.docker.reference.digest"]; of != m.Manifests[i-1].Digest.String() {
			t.Errorf("the attestation is of %s", of)
		}
		attested, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		said := statements(t, attested)
		self, _ := os.Executable()
		sum, _ := spdx.Sum(self)
		for kind, words := range map[string][]string{
			spdx.PredicateType: {sum, "pkg:golang/github.com/google/go-containerregistry@", "pkg:npm/react@"},
			provenanceType:     {sum, "c0ffee", runtime.Version(), certificates, `"name":"uv"`},
		} {
			for _, w := range words {
				if !strings.Contains(said[kind], w) {
					t.Errorf("%s does not say %q", kind, w)
				}
			}
		}
		if strings.Contains(said[spdx.PredicateType], "pkg:npm/vitest@") {
			t.Error("what only development needs is in the list")
		}
	}
}

func statements(t *testing.T, attested v1.Image) map[string]string {
	t.Helper()
	layers, err := attested.Layers()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, l := range layers {
		r, err := l.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		var s statement
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		said[s.PredicateType] = string(text)
	}
	return said
}

func TestWhatCannotBeBuiltIsRefused(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"nothing": {}, "no platform": {text}, "no program": {"linux/amd64=/nowhere"}, "not a program": {"linux/amd64=" + text},
	} {
		if _, err := run(order{Recipe: "millrace-attempt"}, filepath.Join(t.TempDir(), "out"), args); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := run(order{Recipe: "other"}, filepath.Join(t.TempDir(), "out"), []string{"linux/amd64=" + text}); err == nil {
		t.Error("an unknown recipe: no error")
	}
}

// TestTheImageServes starts what `make image` wrote, with nothing but what is in it.
func TestTheImageServes(t *testing.T) {
	at := os.Getenv("MILLRACE_TEST_IMAGES")
	if at == "" {
		t.Skip("MILLRACE_TEST_IMAGES names no images: make test-deploy does")
	}
	index := opened(t, filepath.Join(at, "millrace"))
	image := here(t, index)
	root := unpacked(t, image)
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--unshare-all", "--share-net", "--uid", "65532", "--gid", "65532", "--die-with-parent", "--clearenv", "--bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--chdir", file.Config.WorkingDir}
	for _, e := range file.Config.Env {
		name, value, _ := strings.Cut(e, "=")
		args = append(args, "--setenv", name, value)
	}
	args = append(append(append(args, "--"), file.Config.Entrypoint...), file.Config.Cmd...)
	server := exec.Command("bwrap", append(args, "--listen", "127.0.0.1:0", "--min-free-disk", "1MB")...)
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		_, address, found := strings.Cut(lines.Text(), "(listening on ")
		if !found {
			continue
		}
		resp, err := http.Get("http://" + strings.TrimSuffix(address, ")") + "/api/health/ready")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(resp.Body)
			t.Errorf("%s: %s", resp.Status, text)
		}
		return
	}
	t.Error("the server did not start")
}

// here is the image for this machine.
func here(t *testing.T, index v1.ImageIndex) v1.Image {
	t.Helper()
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Manifests {
		if d.Platform.OS == runtime.GOOS && d.Platform.Architecture == runtime.GOARCH {
			image, err := index.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	t.Fatal("no image for this machine")
	return nil
}

func unpacked(t *testing.T, image v1.Image) string {
	t.Helper()
	root := t.TempDir()
	for _, folder := range []string{"proc", "dev"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := mutate.Extract(image)
	defer r.Close()
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, os.FileMode(h.Mode)&os.ModePerm)
		} else {
			var text []byte
			if text, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(to, text, os.FileMode(h.Mode)&os.ModePerm)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
