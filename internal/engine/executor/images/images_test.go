package images_test

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor/images"
)

// hub is a real registry on loopback. Requests pass through ahead first.
type hub struct {
	host string

	mu    sync.Mutex
	paths []string
	ahead func(http.ResponseWriter, *http.Request) bool // reports whether it answered
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{}
	next := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.paths = append(h.paths, r.Method+" "+r.URL.Path)
		ahead := h.ahead
		h.mu.Unlock()
		if ahead == nil || !ahead(w, r) {
			next.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	h.host = strings.TrimPrefix(server.URL, "http://")
	return h
}

func (h *hub) stepIn(ahead func(http.ResponseWriter, *http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ahead = ahead
}

// asked counts requests for what has the word in its path.
func (h *hub) asked(word string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.paths {
		if strings.HasPrefix(p, "GET") && strings.Contains(p, word) {
			n++
		}
	}
	return n
}

// push stores an image and returns its reference.
func (h *hub) push(t *testing.T, ref string, image v1.Image) string {
	t.Helper()
	ref = h.host + "/" + ref
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(parsed, image); err != nil {
		t.Fatal(err)
	}
	return ref
}

// file is one entry of a layer.
type file struct {
	name string
	kind byte // 0: a plain file
	text string
	link string
	mode int64
}

func layer(t *testing.T, files ...file) v1.Layer {
	t.Helper()
	return compressed(t, compression.GZip, files...)
}

func compressed(t *testing.T, how compression.Compression, files ...file) v1.Layer {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Typeflag: f.kind, Linkname: f.link, Mode: f.mode, Size: int64(len(f.text)), ModTime: time.Unix(1_600_000_000, 0)}
		if f.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if f.mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, f.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil }, tarball.WithCompression(how))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// image is one for this machine.
func image(t *testing.T, env []string, layers ...v1.Layer) v1.Image {
	t.Helper()
	i, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	config, err := i.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.Env = "linux", runtime.GOARCH, env
	if i, err = mutate.ConfigFile(i, config); err != nil {
		t.Fatal(err)
	}
	return i
}

// store is one as the runs of a team see it.
type store struct {
	*images.Store
	images.Team
}

func open(t *testing.T, c images.Config) store {
	t.Helper()
	if c.Folder == "" {
		c.Folder = filepath.Join(t.TempDir(), "images")
	}
	if c.InUse == nil {
		c.InUse = func() ([]string, error) { return nil, nil }
	}
	c.Log, c.Now, c.Pause = slog.New(slog.NewTextHandler(t.Output(), nil)), time.Now, time.Millisecond
	s, err := images.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return store{s, s.For("team_1")}
}

// get makes a root, which the test lets go of at its end.
func get(t *testing.T, s store, ref string) (root string, env []string) {
	t.Helper()
	digest, err := s.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	root, env, release, err := s.Root(t.Context(), ref, digest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return root, env
}

// refuse is the sentence that an image is refused with.
func refuse(t *testing.T, s store, ref string) string {
	t.Helper()
	digest, err := s.Resolve(t.Context(), ref)
	if err == nil {
		_, _, _, err = s.Root(t.Context(), ref, digest)
	}
	if !fault.Is(err, fault.KindUnavailable) {
		t.Fatalf("%v is not unavailable", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Folder, "sha256", "*")); len(left)+len(hidden(t, s)) != 0 {
		t.Errorf("%v is left behind", left)
	}
	return err.Error()
}

func hidden(t *testing.T, s store) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.Folder, "sha256", ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tree lists what is in a root with its kind and mode.
func tree(t *testing.T, root string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		list = append(list, info.Mode().String()+" "+strings.TrimPrefix(path, root+"/"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

func TestLayersLieOverOneAnother(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), open(t, images.Config{AllowPrivate: true})
	ref := h.push(t, "lab/tool:1", image(t, []string{"PATH=/opt/bin:/bin", "LANG=C.UTF-8", "BAD", "=x", "NUL=a\x00--bind"},
		layer(t, file{name: "bin/", kind: tar.TypeDir}, file{name: "bin/tool", text: "one", mode: 0o4755}, file{name: "gone", text: "x"},
			file{name: "lib", kind: tar.TypeSymlink, link: "usr/lib"}, file{name: "usr/lib/a.so", text: "a"},
			file{name: "data/old", text: "old"}, file{name: "data/sub/old", text: "old"}, file{name: "keep/a", text: "a"}, file{name: "keep/b", text: "b"},
			file{name: "etc/shadow", text: "secret", mode: 0o600}, file{name: "etc/passwd", text: "root:x:0:0::/root:/bin/sh"}, file{name: "closed/", kind: tar.TypeDir, mode: 0o700}),
		compressed(t, compression.ZStd, file{name: "./bin/tool", text: "two", mode: 0o755}, file{name: ".wh.gone"}, file{name: "lib/b.so", text: "b"},
			file{name: "data/new", text: "new"}, file{name: "data/.wh..wh..opq"}, file{name: "keep/.wh.b"}, file{name: "/abs", text: "abs"},
			file{name: "bin/alias", kind: tar.TypeLink, link: "bin/tool"}, file{name: "closed/in", text: "in"}),
	))
	root, env := get(t, s, ref)
	if want := []string{"PATH=/opt/bin:/bin", "LANG=C.UTF-8"}; !slices.Equal(env, want) {
		t.Errorf("it sets %q", env)
	}
	for name, want := range map[string]string{
		"bin/tool": "two", "bin/alias": "two", "usr/lib/a.so": "a", "usr/lib/b.so": "b", "data/new": "new", "keep/a": "a", "abs": "abs",
		"etc/passwd": "root:x:0:0::/root:/bin/sh\ntask:x:1000:1000::/tmp:/bin/sh\n", "etc/resolv.conf": "", "closed/in": "in",
	} {
		if got := read(t, root, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"gone", "data/old", "data/sub", "keep/b", "data/.wh..wh..opq"} {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for _, line := range tree(t, root) {
		if mode := line[:10]; !slices.Contains([]string{"drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x", "Lrwxrwxrwx"}, mode) {
			t.Error(line)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "usr/lib/a.so")); err != nil || info.ModTime().Unix() != 1_600_000_000 {
		t.Errorf("times are lost: %v, %v", info.ModTime(), err)
	}
}

func TestADigestNeedsNoRegistryTwice(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), open(t, images.Config{AllowPrivate: true})
	one := image(t, nil, layer(t, file{name: "v", text: "1"}))
	other := image(t, nil, layer(t, file{name: "v", text: "arm"}))
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}},
		mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}})
	repo, err := name.NewRepository(h.host + "/lab/multi")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(repo.Tag("latest"), index); err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	pinned := repo.Digest(digest.String()).String()
	root, _ := get(t, s, pinned)
	if got := read(t, root, "v"); got != "1" {
		t.Errorf("the image of another machine: %q", got)
	}
	h.stepIn(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "down", http.StatusBadGateway)
		return true
	})
	if again, _ := get(t, s, pinned); again != root {
		t.Errorf("%s became %s", root, again)
	}
	if _, err := s.Resolve(t.Context(), repo.Tag("latest").String()); !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), "502") {
		t.Errorf("a tag without its registry: %v", err)
	}
}

func TestATagThatMovedIsNoticed(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), open(t, images.Config{AllowPrivate: true})
	ref := h.push(t, "lab/tool", image(t, nil, layer(t, file{name: "v", text: "1"})))
	before, err := s.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	h.push(t, "lab/tool", image(t, nil, layer(t, file{name: "v", text: "2"})))
	root, _ := get(t, s, ref)
	if got := read(t, root, "v"); got != "2" {
		t.Errorf("the tag still means %q", got)
	}
	old, _, release, err := s.Root(t.Context(), ref, before)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if got := read(t, old, "v"); got != "1" {
		t.Errorf("the digest means %q", got)
	}
}

func TestManyPullsOfOneImageAreOne(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	folder := filepath.Join(t.TempDir(), "images")
	stores := []store{open(t, images.Config{Folder: folder, AllowPrivate: true}), open(t, images.Config{Folder: folder, AllowPrivate: true})}
	ref := h.push(t, "lab/tool:1", image(t, nil, layer(t, file{name: "v", text: "1"})))
	digest, err := stores[0].Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	before := h.asked("/blobs/")
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			root, _, release, err := stores[i%2].Root(t.Context(), ref, digest)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if _, err := os.Stat(filepath.Join(root, "v")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := h.asked("/blobs/") - before; n != 2 { // the configuration and a layer
		t.Errorf("%d blobs were fetched", n)
	}
}
