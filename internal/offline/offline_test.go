package offline_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/offline"
)

// made makes a bundle with two items and a workflow.
func made(t *testing.T) (folder string, sum string, contents []offline.Blob) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "bundle")
	w, err := offline.Create(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "another one"} {
		b, err := w.Put(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, b)
		for range 2 { // the second is the first
			w.Add(offline.Item{Kind: offline.Package, Name: b.SHA256, Value: text, Blobs: []offline.Blob{b}})
		}
	}
	w.Add(offline.Item{Kind: offline.Commit, Name: "https://git.example.org/x main", Value: "c1"})
	if err := w.AddWorkflow("wf_1", "One", []byte(`{"nodes":[]}`)); err != nil {
		t.Fatal(err)
	}
	list, sum, err := w.Close()
	if err != nil || len(list.Items) != 3 {
		t.Fatal(list, err)
	}
	return folder, sum, contents
}

// load takes a bundle in, and returns what was loaded of it in order.
func load(ctx context.Context, bundle, data string, check func(offline.Item) error) (names []string, err error) {
	b, err := offline.Open(bundle)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return names, b.Load(ctx, offline.Loading{
		Data: data, Into: "offline", Copying: func(int) {},
		Check: func(i offline.Item, _ offline.Folder) error {
			if check == nil {
				return nil
			}
			return check(i)
		},
		Loaded: func(i offline.Item, _, _ int) { names = append(names, i.Value) },
	})
}

// files are all below a folder, with their modes.
func files(t *testing.T, folder string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			list = append(list, info.Mode().String()+" "+strings.TrimPrefix(path, folder))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestABundleIsLoadedAndLoadedAgain(t *testing.T) {
	t.Parallel()
	bundle, sum, contents := made(t)
	data := t.TempDir()
	if _, err := os.Lstat(filepath.Join(bundle, "oci-layout")); err != nil {
		t.Error(err)
	}
	b, err := offline.Open(bundle)
	if err != nil || b.SHA256 != sum || b.Close() != nil {
		t.Fatalf("its hash is %s, want %s, %v", b.SHA256, sum, err)
	}
	var before []string
	for range 2 {
		if _, err := load(t.Context(), bundle, data, nil); err != nil {
			t.Fatal(err)
		}
		if after := files(t, data); before != nil && !slices.Equal(before, after) {
			t.Errorf("the second time there is %v, before %v", after, before)
		} else {
			before = after
		}
	}
	f := offline.Folder(filepath.Join(data, "offline"))
	if value, known, err := f.Lookup(offline.Package, contents[1].SHA256); value != "another one" || !known || err != nil {
		t.Errorf("it has %q %t %v", value, known, err)
	}
	if text, err := f.Read(contents[1].SHA256, 100); string(text) != "another one" || err != nil {
		t.Errorf("it has %q %v", text, err)
	}
	if value, known, err := f.Lookup(offline.Commit, "https://git.example.org/x main"); value != "c1" || !known || err != nil {
		t.Errorf("it has %q %t %v", value, known, err)
	}
	if _, known, err := f.Lookup(offline.Commit, "https://git.example.org/x other"); known || err != nil {
		t.Errorf("another branch is known, %v", err)
	}
	if _, known, err := offline.Folder("").Lookup(offline.Commit, ""); known || err != nil {
		t.Errorf("nothing has something, %v", err)
	}
	if _, err := f.Open(strings.Repeat("0", 64)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, line := range before[1:] {
		if !strings.HasPrefix(line, "drwx------ ") && !strings.HasPrefix(line, "-rw------- ") {
			t.Errorf("others may read %s", line)
		}
	}
}

// A bundle may come from anybody. What is wrong with it is found before it is used, and
// nothing is written outside of the folder, or kept of an item that is not whole.
func TestAHostileBundleIsRefused(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	inList := func(from, to string) func(string, string) error {
		return func(bundle, _ string) error {
			file := filepath.Join(bundle, "bundle.json")
			text, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(text), from) {
				return errors.Join(err, errors.New(from+" is not in the list"))
			}
			return os.WriteFile(file, []byte(strings.ReplaceAll(string(text), from, to)), 0o600)
		}
	}
	instead := func(put func(blob string) error) func(string, string) error {
		return func(_, blob string) error { return errors.Join(os.Remove(blob), put(blob)) }
	}
	for name, tt := range map[string]struct {
		change func(bundle, blob string) error
		want   string
	}{
		"no list":             {func(bundle, _ string) error { return os.Remove(filepath.Join(bundle, "bundle.json")) }, "no bundle"},
		"no JSON":             {inList(`"version": 1`, `"version: 1`), "cannot be read"},
		"another format":      {inList(`"version": 1`, `"version": 2`), "the format 2"},
		"another machine":     {inList(offline.Platform(), "plan9/386"), "plan9/386"},
		"another kind":        {inList(`"kind": "commit"`, `"kind": "../../../x"`), "does not know"},
		"a hash is a path":    {inList(`"sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"`, `"sha256": "../../secret"`), "not named by a hash"},
		"a size below zero":   {inList(`"size": 3`, `"size": -3`), "not named by a hash"},
		"a size beyond disks": {inList(`"size": 3`, `"size": 9223372036854775807`), "does not fit"},
		"a workflow's path":   {inList("workflows/wf_1.json", "workflows/../../secret.json"), "not the name of a workflow's file"},
		"another workflow": {func(bundle, _ string) error {
			return os.WriteFile(filepath.Join(bundle, "workflows", "wf_1.json"), []byte(`{"nodes":[1]}`), 0o600)
		}, "damaged, or was changed"},
		"other content":      {func(_, blob string) error { return os.WriteFile(blob, []byte("two"), 0o600) }, "damaged, or was changed"},
		"longer content":     {func(_, blob string) error { return os.WriteFile(blob, []byte("one and more"), 0o600) }, "damaged, or was changed"},
		"shorter content":    {func(_, blob string) error { return os.Truncate(blob, 2) }, "damaged, or was changed"},
		"no content":         {instead(func(string) error { return nil }), "no such file"},
		"a link outward":     {instead(func(blob string) error { return os.Symlink(secret, blob) }), "cannot be loaded"},
		"a link to a device": {instead(func(blob string) error { return os.Symlink("/dev/zero", blob) }), "cannot be loaded"},
		"a pipe":             {instead(func(blob string) error { return syscall.Mkfifo(blob, 0o600) }), "not a plain file"},
		"a folder":           {instead(func(blob string) error { return os.Mkdir(blob, 0o700) }), "not a plain file"},
		"a folder that leads outward": {func(bundle, _ string) error {
			blobs := filepath.Join(bundle, "blobs")
			return errors.Join(os.Rename(blobs, secret+".blobs"), os.Symlink(secret+".blobs", blobs))
		}, "cannot be loaded"},
	} {
		t.Run(name, func(t *testing.T) {
			bundle, _, contents := made(t)
			if err := tt.change(bundle, filepath.Join(bundle, "blobs/sha256", contents[0].SHA256)); err != nil {
				t.Fatal(err)
			}
			above := t.TempDir()
			data := filepath.Join(above, "data")
			if err := os.Mkdir(data, 0o700); err != nil {
				t.Fatal(err)
			}
			names, err := load(t.Context(), bundle, data, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(names) > 0 {
				t.Errorf("%v of it was loaded: %v", names, err)
			}
			for _, line := range files(t, above) {
				if strings.HasPrefix(line, "-") {
					t.Errorf("it leaves %s", line)
				}
			}
			// A whole one is loaded afterwards.
			whole, _, _ := made(t)
			if names, err := load(t.Context(), whole, data, nil); err != nil || len(names) != 3 {
				t.Errorf("then %v is loaded: %v", names, err)
			}
		})
	}
}

// An item that its kind refuses, or that a command was ended in the middle of, is not
// there, and those before it are.
func TestAnItemIsLoadedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	bundle, _, contents := made(t)
	for name, tt := range map[string]struct {
		check func(i offline.Item, stop func()) error
		want  error
	}{
		"refused": {func(i offline.Item, _ func()) error {
			if i.Value == "one" {
				return nil
			}
			return fs.ErrInvalid
		}, fs.ErrInvalid},
		"ended": {func(_ offline.Item, stop func()) error { stop(); return nil }, context.Canceled},
	} {
		data := t.TempDir()
		ctx, stop := context.WithCancel(t.Context())
		names, err := load(ctx, bundle, data, func(i offline.Item) error { return tt.check(i, stop) })
		f := offline.Folder(filepath.Join(data, "offline"))
		_, first, _ := f.Lookup(offline.Package, contents[0].SHA256)
		_, second, _ := f.Lookup(offline.Package, contents[1].SHA256)
		if ended := name == "ended" && len(names) == 0; !errors.Is(err, tt.want) && !ended || second || !ended && !first {
			t.Errorf("%s: %v is loaded: %v", name, names, err)
		}
		if _, err := load(t.Context(), bundle, data, nil); err != nil {
			t.Errorf("%s: the second time: %v", name, err)
		}
		for _, line := range files(t, data) {
			if strings.Contains(line, ".new-") {
				t.Errorf("%s: %s is left", name, line)
			}
		}
	}
}

// The owner of the data folder may have put links where root loads a bundle.
func TestNothingIsWrittenOutsideOfTheDataFolder(t *testing.T) {
	t.Parallel()
	bundle, _, _ := made(t)
	for _, link := range []string{"offline", "offline/names", "offline/blobs/sha256"} {
		data, elsewhere := t.TempDir(), t.TempDir()
		path := filepath.Join(data, link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(elsewhere, path)); err != nil {
			t.Fatal(err)
		}
		if _, err := load(t.Context(), bundle, data, nil); err == nil {
			t.Errorf("%s leads elsewhere, and the bundle is loaded", link)
		}
		if left := files(t, elsewhere); len(left) > 1 {
			t.Errorf("by way of %s there is %v", link, left)
		}
	}
}

func TestWhatIsLoadedBelongsToTheOwnerOfTheDataFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to others")
	}
	bundle, _, _ := made(t)
	data := t.TempDir()
	if err := os.Chown(data, 4242, 4243); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t.Context(), bundle, data, nil); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			if s := info.Sys().(*syscall.Stat_t); s.Uid != 4242 || s.Gid != 4243 {
				t.Errorf("%s belongs to %d:%d", path, s.Uid, s.Gid)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// One bundle is loaded at a time: whoever loads one removes what others left.
func TestOneBundleIsLoadedAtATime(t *testing.T) {
	t.Parallel()
	bundle, _, _ := made(t)
	data := t.TempDir()
	var inside error
	_, err := load(t.Context(), bundle, data, func(offline.Item) error {
		_, inside = load(t.Context(), bundle, data, nil)
		return nil
	})
	if err != nil || inside == nil || !strings.Contains(inside.Error(), "another bundle is being loaded") {
		t.Errorf("%v, inside %v", err, inside)
	}
}

// The index of a bundle is that of an OCI layout.
func TestImagesOfABundleAreInItsIndex(t *testing.T) {
	t.Parallel()
	w, err := offline.Create(filepath.Join(t.TempDir(), "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	for reference, manifest := range map[string]string{"a/b:1": `{"mediaType":"application/vnd.docker.distribution.manifest.v2+json"}`, "a/b:2": `{}`} {
		b, err := w.Put(strings.NewReader(manifest))
		if err != nil {
			t.Fatal(err)
		}
		w.Add(offline.Item{Kind: offline.Image, Name: reference, Value: "sha256:" + b.SHA256, Blobs: []offline.Blob{b}})
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(string(w.Folder()), "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Manifests []struct {
			MediaType, Digest string
			Annotations       map[string]string
		}
	}
	if err := json.Unmarshal(text, &index); err != nil || len(index.Manifests) != 2 {
		t.Fatalf("%s, %v", text, err)
	}
	for _, m := range index.Manifests {
		want := map[string]string{"a/b:1": "application/vnd.docker.distribution.manifest.v2+json", "a/b:2": "application/vnd.oci.image.manifest.v1+json"}[m.Annotations["org.opencontainers.image.ref.name"]]
		if m.MediaType != want || !strings.HasPrefix(m.Digest, "sha256:") {
			t.Errorf("the index has %+v", m)
		}
	}
	if _, err := offline.Create(string(w.Folder())); err == nil {
		t.Error("a folder that is there becomes a bundle")
	}
}
