package images_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/millrace/millrace/internal/engine/executor/images"
	"github.com/millrace/millrace/internal/offline"
)

// load takes a bundle in as the command does, and returns the folder.
func load(t *testing.T, bundle string) offline.Folder {
	t.Helper()
	folder, err := tryLoad(t, bundle)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func tryLoad(t *testing.T, bundle string) (offline.Folder, error) {
	t.Helper()
	b, err := offline.Open(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	data := t.TempDir()
	err = b.Load(t.Context(), offline.Loading{
		Data: data, Into: "offline", Loaded: func(offline.Item, int, int) {}, Copying: func(int) {},
		Check: func(i offline.Item, f offline.Folder) error { return images.CheckLoaded(f, i.Name, i.Value) },
	})
	return offline.Folder(filepath.Join(data, "offline")), err
}

// An image that was loaded is there by its tag and by its digest, without its registry,
// and again after it had to make room.
func TestALoadedImageNeedsNoRegistry(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	ref := h.push(t, "lab/tool:1", image(t, []string{"A=b"}, layer(t, file{name: "v", text: "one"}), layer(t, file{name: "w", text: "two"})))
	out, err := offline.Create(filepath.Join(t.TempDir(), "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	from := open(t, images.Config{AllowPrivate: true})
	digest, err := from.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: image(t, []string{"A=b"}, layer(t, file{name: "v", text: "one"}), layer(t, file{name: "w", text: "two"})), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}},
	})
	repo, err := name.NewRepository(h.host + "/lab/multi")
	if err == nil {
		err = remote.WriteIndex(repo.Tag("latest"), index)
	}
	if err != nil {
		t.Fatal(err)
	}
	above, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	all := []string{ref, h.host + "/lab/tool@" + digest, repo.Digest(above.String()).String()}
	for _, each := range all {
		if err := from.Save(t.Context(), each, out); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := out.Close(); err != nil {
		t.Fatal(err)
	}
	loaded := load(t, string(out.Folder()))
	before := h.asked("")
	for range 2 { // the second finds nothing unpacked
		s := open(t, images.Config{Loaded: loaded})
		for _, each := range all {
			root, env := get(t, s, each)
			if read(t, root, "v")+read(t, root, "w") != "onetwo" || len(env) != 1 {
				t.Errorf("%s has %q and %q", each, read(t, root, "v"), env)
			}
		}
	}
	if h.asked("") != before {
		t.Error("the registry was asked")
	}
	// A bundle can be made of what was loaded.
	again, err := offline.Create(filepath.Join(t.TempDir(), "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range all {
		if err := open(t, images.Config{Loaded: loaded}).Save(t.Context(), each, again); err != nil {
			t.Error(err)
		}
	}
	// What an operator does not allow is not allowed because it is here.
	if said := refuse(t, open(t, images.Config{Loaded: loaded, Registries: []string{"registry.example.org"}}), ref); !strings.Contains(said, "not allowed") {
		t.Error(said)
	}
	// Another one is named in what is missing.
	if said := refuse(t, open(t, images.Config{Loaded: loaded, AllowPrivate: true}), "127.0.0.1:1/lab/other:2"); !strings.Contains(said, "127.0.0.1:1/lab/other:2 is not here") || !strings.Contains(said, "millrace admin bundle --load") {
		t.Error(said)
	}
}

// An image that is not whole, or not what its digest says, is not loaded.
func TestAHostileImageIsNotLoaded(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	from := open(t, images.Config{AllowPrivate: true})
	save := func(ref, text string) (*offline.Writer, offline.Item) {
		t.Helper()
		w, err := offline.Create(filepath.Join(t.TempDir(), "bundle"))
		if err == nil {
			err = from.Save(t.Context(), h.push(t, ref, image(t, nil, layer(t, file{name: "v", text: text}))), w)
		}
		if err != nil {
			t.Fatal(err)
		}
		list, _, err := w.Close()
		if err != nil {
			t.Fatal(err)
		}
		return w, list.Items[0]
	}
	_, other := save("lab/other:1", "2")
	for want, change := range map[string]func(*offline.Item){
		"layer is missing":         func(i *offline.Item) { i.Blobs = i.Blobs[:2] },
		"no such file":             func(i *offline.Item) { i.Blobs = i.Blobs[1:] },
		"its digest stands for":    func(i *offline.Item) { i.Name = h.host + "/lab/tool@sha256:" + i.Blobs[1].SHA256 },
		"non-hex character":        func(i *offline.Item) { i.Value = "sha256:../../x" },
		"it has not the full name": func(i *offline.Item) { i.Name = "tool" },
		"open ":                    func(i *offline.Item) { i.Name = h.host + "/lab/tool@" + other.Value },
	} {
		w, item := save("lab/tool:1", "1")
		change(&item)
		hostile, err := offline.Create(filepath.Join(t.TempDir(), "bundle"))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range item.Blobs {
			f, err := w.Folder().Open(b.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			_, err = hostile.Put(f)
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		hostile.Add(item)
		if _, _, err := hostile.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := tryLoad(t, string(hostile.Folder())); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
