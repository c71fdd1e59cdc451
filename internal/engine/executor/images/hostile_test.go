package images_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/millrace/millrace/internal/engine/executor/images"
)

func TestAnImageCannotReachOutOfItsRoot(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	if err := os.WriteFile(victim, []byte("untouched"), 0o644); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 30) + strings.TrimPrefix(outside, "/")
	for label, tt := range map[string]struct {
		files [][]file
		want  string // of the refusal; empty if the image is harmless once unpacked
	}{
		"a path that climbs":              {[][]file{{{name: up + "/victim", text: "hit"}}}, "leads out"},
		"a folder that climbs":            {[][]file{{{name: "a/../../x/", kind: tar.TypeDir}}}, "leads out"},
		"an absolute path":                {[][]file{{{name: victim, text: "inside"}}}, ""},
		"through an absolute link":        {[][]file{{{name: "l", kind: tar.TypeSymlink, link: outside}, {name: "l/victim", text: "hit"}}}, ""},
		"through a relative link":         {[][]file{{{name: "l", kind: tar.TypeSymlink, link: up}, {name: "l/victim", text: "hit"}}}, ""},
		"through a link of a lower layer": {[][]file{{{name: "l", kind: tar.TypeSymlink, link: outside}}, {{name: "l/victim", text: "hit"}}}, ""},
		"over a link":                     {[][]file{{{name: "l", kind: tar.TypeSymlink, link: victim}, {name: "l", text: "hit"}}}, ""},
		"a whiteout through a link":       {[][]file{{{name: "l", kind: tar.TypeSymlink, link: outside}}, {{name: "l/.wh.victim"}}}, ""},
		"an opaque link":                  {[][]file{{{name: "l", kind: tar.TypeSymlink, link: outside}}, {{name: "l/.wh..wh..opq"}}}, ""},
		"a whiteout of the parent":        {[][]file{{{name: "a/.wh..."}}}, "whiteout"},
		"a whiteout of itself":            {[][]file{{{name: "a/.wh.."}}}, "whiteout"},
		"a whiteout that climbs":          {[][]file{{{name: up + "/.wh.victim"}}}, "leads out"},
		"a hard link that climbs":         {[][]file{{{name: "h", kind: tar.TypeLink, link: up + "/victim"}}}, "leads out"},
		"a hard link to the host":         {[][]file{{{name: "h", kind: tar.TypeLink, link: victim}}}, "no folder"},
		"a hard link through a link":      {[][]file{{{name: "l", kind: tar.TypeSymlink, link: outside}, {name: "h", kind: tar.TypeLink, link: "l/victim"}}}, "no folder"},
		"a hard link to a link, written":  {[][]file{{{name: "l", kind: tar.TypeSymlink, link: victim}, {name: "h", kind: tar.TypeLink, link: "l"}}, {{name: "h", text: "hit"}}}, ""},
		"a hard link to a folder":         {[][]file{{{name: "d/", kind: tar.TypeDir}, {name: "h", kind: tar.TypeLink, link: "d"}}}, "leads to no file"},
		"links in a circle":               {[][]file{{{name: "a", kind: tar.TypeSymlink, link: "b"}, {name: "b", kind: tar.TypeSymlink, link: "a"}, {name: "a/x", text: "x"}}}, "circles"},
		"a file as a folder":              {[][]file{{{name: "a", text: "a"}, {name: "a/x", text: "x"}}}, "as a folder"},
		"etc behind a link":               {[][]file{{{name: "etc", kind: tar.TypeSymlink, link: outside}}}, ""},
		"its own passwd behind a link":    {[][]file{{{name: "etc/passwd", kind: tar.TypeSymlink, link: victim}, {name: "etc/resolv.conf", kind: tar.TypeSymlink, link: victim}}}, ""},
		"a deep path":                     {[][]file{{{name: strings.Repeat("a/", 200) + "x", text: "x"}}}, "deep"},
		"a deep path through links": {[][]file{{
			{name: strings.Repeat("a/", 100) + "x", text: "x"},
			{name: "l", kind: tar.TypeSymlink, link: strings.Repeat("a/", 100)},
			{name: "l/" + strings.Repeat("b/", 100) + "x", text: "x"},
		}}, "deep"},
		"a crowded top": {[][]file{many(600, "%d")}, "top folder"},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			s := open(t, images.Config{AllowPrivate: true})
			var layers []v1.Layer
			for _, files := range tt.files {
				layers = append(layers, layer(t, files...))
			}
			ref := h.push(t, "evil/"+strings.ReplaceAll(strings.ReplaceAll(label, " ", "-"), ",", ""), image(t, nil, layers...))
			if tt.want == "" {
				get(t, s, ref)
			} else if got := refuse(t, s, ref); !strings.Contains(got, tt.want) {
				t.Errorf("it says %q", got)
			}
			text, err := os.ReadFile(victim)
			names, derr := os.ReadDir(outside)
			if err != nil || derr != nil || string(text) != "untouched" || len(names) != 1 {
				t.Errorf("outside: %q, %v, %v, %v", text, err, names, derr)
			}
		})
	}
}

func many(n int, format string) []file {
	list := make([]file, n)
	for i := range list {
		list[i] = file{name: fmt.Sprintf(format, i), text: "x"}
	}
	return list
}

func TestPowersAreLeftOut(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), open(t, images.Config{AllowPrivate: true})
	root, _ := get(t, s, h.push(t, "evil/powers", image(t, nil, layer(t,
		file{name: "bin/su", text: "su", mode: 0o6755}, file{name: "bin/", kind: tar.TypeDir, mode: 0o7777}, file{name: "shared", text: "x", mode: 0o666},
		file{name: "disk", kind: tar.TypeBlock}, file{name: "mem", kind: tar.TypeChar}, file{name: "pipe", kind: tar.TypeFifo}))))
	want := []string{"-rw-r--r-- shared", "-rwxr-xr-x bin/su", "drwxr-xr-x bin"}
	var got []string
	for _, line := range tree(t, root) {
		if !strings.Contains(line, " etc") && !strings.Contains(line, " var") {
			got = append(got, line)
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the root has %q", got)
	}
}

// sparse is a file of GNU tar that claims to be huge and has nothing in it.
func sparse(t *testing.T, size int64) []byte {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	records := map[string]string{
		"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "huge", "GNU.sparse.realsize": fmt.Sprint(size),
	}
	// The writer makes no sparse files, but lets their records pass under
	// another vendor's name of the same length.
	for k, v := range records {
		delete(records, k)
		records[strings.Replace(k, "GNU.", "ABC.", 1)] = v
	}
	body := append([]byte("0\n"), make([]byte, 510)...)
	if err := w.WriteHeader(&tar.Header{Name: "huge", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(body)), PAXRecords: records, Format: tar.FormatPAX}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(text.Bytes(), []byte("ABC.sparse"), []byte("GNU.sparse"))
}

func TestBombsAreDefused(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	zeros := strings.Repeat("\x00", 3<<20)
	var trailing bytes.Buffer // an end of the archive, followed by more and more
	w := gzip.NewWriter(&trailing)
	for range 8 {
		if _, err := io.WriteString(w, zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	raw := func(text []byte) v1.Image {
		return image(t, nil, static.NewLayer(text, types.DockerLayer))
	}
	for label, tt := range map[string]struct {
		image v1.Image
		want  string
	}{
		"a large file":       {image(t, nil, layer(t, file{name: "a", text: zeros})), "larger than 2 MB"},
		"many small layers":  {image(t, nil, layer(t, file{name: "a", text: zeros[:1<<20]}), layer(t, file{name: "a", text: zeros[:1<<20]}), layer(t, file{name: "b", text: "x"})), "larger than 2 MB"},
		"too many files":     {image(t, nil, layer(t, many(101, "d/%d")...)), "too many files"},
		"folders from names": {image(t, nil, layer(t, many(2, "%d/"+strings.Repeat("a/", 60)+"x")...)), "too many files"},
		"a file of holes":    {raw(sparse(t, 1<<40)), "larger than 2 MB"},
		"an endless end":     {raw(trailing.Bytes()), "larger than 2 MB"},
		"noise":              {raw([]byte(strings.Repeat("noise", 1000))), "cannot be read"},
		"noise, compressed":  {raw(append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0}, "noise"...)), "cannot be read"},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			s := open(t, images.Config{AllowPrivate: true, MaxImage: 2 << 20, MaxEntries: 100})
			if got := refuse(t, s, h.push(t, "bomb/"+strings.ReplaceAll(strings.ReplaceAll(label, ",", ""), " ", "-"), tt.image)); !strings.Contains(got, tt.want) {
				t.Errorf("it says %q", got)
			}
		})
	}
}

// Few bytes must not keep us busy: a folder emptied again and again, links that
// lead a long way round.
func TestWorkIsBounded(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	emptied := many(200, "d/%d")
	for range 150 {
		emptied = append(emptied, file{name: "d/.wh..wh..opq"})
	}
	round := []file{{name: "a/x", text: "x"}, {name: "l", kind: tar.TypeSymlink, link: strings.Repeat("a/../", 800)}}
	round = append(round, many(50, "l/%d")...)
	for label, files := range map[string][]file{"emptied": emptied, "round": round} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			s := open(t, images.Config{AllowPrivate: true, MaxEntries: 400})
			if got := refuse(t, s, h.push(t, "busy/"+label, image(t, nil, layer(t, files...)))); !strings.Contains(got, "too long to unpack") {
				t.Errorf("it says %q", got)
			}
		})
	}
}

func TestWhatDoesNotMatchItsDigestIsRefused(t *testing.T) {
	t.Parallel()
	good := image(t, nil, layer(t, file{name: "a", text: "a"}))
	m, err := good.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	wrongDiff, err := good.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	wrongDiff = wrongDiff.DeepCopy()
	wrongDiff.RootFS.DiffIDs[0].Hex = strings.Repeat("0", 64)
	lying, err := mutate.ConfigFile(good, wrongDiff)
	if err != nil {
		t.Fatal(err)
	}
	foreign := func(arch string) v1.Image {
		c := wrongDiff.DeepCopy()
		c.Architecture = arch
		i, err := mutate.ConfigFile(good, c)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	swap := func(word string, size int64) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, word) {
				return false
			}
			_, _ = w.Write(bytes.Repeat([]byte("x"), int(size)))
			return true
		}
	}
	for label, tt := range map[string]struct {
		image v1.Image
		ahead func(http.ResponseWriter, *http.Request) bool
		want  string
	}{
		"a swapped layer":         {good, swap(m.Layers[0].Digest.Hex, m.Layers[0].Size), "what its digest says"},
		"a longer layer":          {good, swap(m.Layers[0].Digest.Hex, m.Layers[0].Size+9), "says"},
		"a swapped configuration": {good, swap(m.Config.Digest.Hex, m.Config.Size), "cannot be used: "},
		"a lying configuration":   {lying, nil, "what its configuration says"},
		"another machine":         {foreign("s390x"), nil, "built for linux/s390x"},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			h, s := newHub(t), open(t, images.Config{AllowPrivate: true})
			ref := h.push(t, "evil/digest", tt.image)
			h.stepIn(tt.ahead)
			if got := refuse(t, s, ref); !strings.Contains(got, tt.want) {
				t.Errorf("it says %q", got)
			}
		})
	}
}
