// Package channeltest is a conda channel on loopback with small packages of its
// own, for the tests of others.
package channeltest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
)

// Prefix stands in the files of packages for where they are installed.
const Prefix = "/opt/" + "placeholder_placeholder_placeholder_placeholder_placeholder_placeholder_placeholder_placeholder"

// Channel is a channel. All methods may be called at the same time.
type Channel struct {
	URL string

	mu      sync.Mutex
	records map[string]map[string]any // by folder and file
	files   map[string][]byte         // by folder/file
	asked   []string                  // paths
	sent    map[string]int            // how often each was sent
}

// Platform is that of this machine.
var Platform = environment.Platforms[runtime.GOARCH]

// New starts a channel that ends with the test.
func New(t *testing.T, name string) *Channel {
	t.Helper()
	c := &Channel{records: map[string]map[string]any{}, files: map[string][]byte{}, sent: map[string]int{}}
	server := httptest.NewServer(http.StripPrefix("/"+name+"/", http.HandlerFunc(c.serve)))
	t.Cleanup(server.Close)
	c.URL = server.URL + "/" + name
	return c
}

// NeedTool gives an index the tool that installs conda packages. It skips a test
// where the tool is not there, and fails it where everything must be.
func NeedTool(t *testing.T, x *indextest.Index) {
	t.Helper()
	wheels, _ := filepath.Glob(filepath.Join(os.Getenv("MILLRACE_TEST_WHEELS"), "py_rattler-*.whl"))
	if len(wheels) == 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("the wheel of py-rattler is not in MILLRACE_TEST_WHEELS: run by scripts/with-uv")
		}
		t.Skip("the wheel of py-rattler is not in MILLRACE_TEST_WHEELS: scripts/with-uv fetches it")
	}
	content, err := os.ReadFile(wheels[0])
	if err != nil {
		t.Fatal(err)
	}
	x.AddFile("py-rattler", filepath.Base(wheels[0]), content)
}

// Tools is a folder in which the tests of a machine share the installed tool.
func Tools() string { return filepath.Join(os.Getenv("MILLRACE_TEST_WHEELS"), "installed") }

// Package is one that a channel has.
type Package struct {
	Name, Version string
	Depends       []string
	Python        bool              // noarch: python, with an entry point for each of Scripts
	Scripts       []string          // such as greet = greeter:main
	Files         map[string]string // those in bin can be executed
	Links         map[string]string // symbolic ones, by name
	Say           map[string]any    // what the channel says of it otherwise
}

func (p Package) folder() string {
	if p.Python {
		return environment.NoPlatform
	}
	return Platform
}

// Add adds a package.
func (c *Channel) Add(p Package) {
	file := p.Name + "-" + p.Version + "-0.conda"
	content := p.archive()
	sum := sha256.Sum256(content)
	record := p.index()
	record["sha256"], record["size"] = hex.EncodeToString(sum[:]), len(content)
	maps.Copy(record, p.Say)
	c.Put(p.folder(), file, record, content)
}

// Put adds anything under the name of a file.
func (c *Channel) Put(folder, file string, record any, content []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records[folder] == nil {
		c.records[folder] = map[string]any{}
	}
	c.records[folder][file] = record
	c.files[folder+"/"+file] = content
}

// Asked are the paths that were asked for.
func (c *Channel) Asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// Sent is how often a path was sent, rather than said to be as it was.
func (c *Channel) Sent(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent[path]
}

func (p Package) index() map[string]any {
	index := map[string]any{"name": p.Name, "version": p.Version, "build": "0", "build_number": 0, "depends": append([]string{}, p.Depends...), "subdir": p.folder()}
	if p.Python {
		index["noarch"] = "python"
	}
	return index
}

// archive is the package as a file.
func (p Package) archive() []byte {
	paths := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		sum := sha256.Sum256([]byte(p.Files[name]))
		entry := map[string]any{"_path": name, "path_type": "hardlink", "sha256": hex.EncodeToString(sum[:]), "size_in_bytes": len(p.Files[name])}
		if strings.Contains(p.Files[name], Prefix) {
			entry["prefix_placeholder"], entry["file_mode"] = Prefix, "text"
		}
		paths = append(paths, entry)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Links)) {
		paths = append(paths, map[string]any{"_path": name, "path_type": "softlink"})
	}
	info := map[string]string{"info/index.json": text(p.index()), "info/paths.json": text(map[string]any{"paths": paths, "paths_version": 1})}
	if p.Python {
		info["info/link.json"] = text(map[string]any{"noarch": map[string]any{"type": "python", "entry_points": append([]string{}, p.Scripts...)}, "package_metadata_version": 1})
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	stem := p.Name + "-" + p.Version + "-0"
	for _, part := range []struct {
		name    string
		content []byte
	}{{"metadata.json", []byte(`{"conda_pkg_format_version": 2}`)}, {"pkg-" + stem + ".tar.zst", packed(p.Files, p.Links)}, {"info-" + stem + ".tar.zst", packed(info, nil)}} {
		size := uint64(len(part.content))
		w, err := z.CreateRaw(&zip.FileHeader{Name: part.name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(part.content), CompressedSize64: size, UncompressedSize64: size})
		if err == nil {
			_, err = w.Write(part.content)
		}
		must(err)
	}
	must(z.Close())
	return b.Bytes()
}

func packed(files, links map[string]string) []byte {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	must(err)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		mode := int64(0o644)
		if strings.HasPrefix(name, "bin/") {
			mode = 0o755
		}
		must(w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(files[name]))}))
		_, err := w.Write([]byte(files[name]))
		must(err)
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		must(w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: links[name], Mode: 0o777}))
	}
	must(w.Close())
	must(z.Close())
	return b.Bytes()
}

func text(v any) string {
	b, err := json.Marshal(v)
	must(err)
	return string(b)
}

// must is for what happens in memory only.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (c *Channel) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r.URL.Path)
	folder, file, _ := strings.Cut(r.URL.Path, "/")
	if content, ok := c.files[r.URL.Path]; ok {
		_, _ = w.Write(content)
		return
	}
	if file != "repodata.json" || c.records[folder] == nil {
		http.NotFound(w, r)
		return
	}
	list := text(map[string]any{"info": map[string]any{"subdir": folder, "base_url": "https://elsewhere.example/"}, "packages": map[string]any{}, "packages.conda": c.records[folder], "removed": []string{}})
	sum := sha256.Sum256([]byte(list))
	tag := `"` + hex.EncodeToString(sum[:]) + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	c.sent[r.URL.Path]++
	_, _ = w.Write([]byte(list))
}
