package offline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A bundle is a folder with content, and with a list of it that is written last. It is
// an OCI layout as well, so that other programs can read its images.
const (
	listFile     = "bundle.json"
	definitions  = "workflows"
	version      = 1
	indexFile    = "index.json"
	layoutFile   = "oci-layout"
	unfinished   = ".new-"
	maxListBytes = 64 << 20
)

// List says what a bundle has.
type List struct {
	Version   int          `json:"version"`
	Platform  string       `json:"platform"`
	Workflows []Definition `json:"workflows"`
	Items     []Item       `json:"items"`
}

// Definition is a workflow in a file of the bundle.
type Definition struct {
	File string `json:"file"`
	Name string `json:"name"`
	Blob
}

// Platform is that of this machine. What is in a bundle is of use on one like it.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// Writer makes a bundle. Its methods may be called at the same time.
type Writer struct {
	folder  string
	written atomic.Int64 // bytes

	mu   sync.Mutex
	list List
}

// Create makes a folder that is not there yet for a bundle.
func Create(folder string) (*Writer, error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of the bundle: %w", err)
	}
	w := &Writer{folder: folder, list: List{Version: version, Platform: Platform()}}
	return w, errors.Join(os.MkdirAll(filepath.Join(folder, blobFolder), 0o700), os.Mkdir(filepath.Join(folder, definitions), 0o700))
}

// Folder is where the content lies.
func (w *Writer) Folder() Folder { return Folder(w.folder) }

// Put adds content.
func (w *Writer) Put(r io.Reader) (b Blob, err error) {
	c, err := w.Begin()
	if err != nil {
		return b, err
	}
	_, err = io.Copy(c, r)
	return c.End(err == nil, err)
}

// Content is some that is being written.
type Content struct {
	w    *Writer
	file *os.File
	sum  hash.Hash
	blob Blob
}

// Begin begins to add content.
func (w *Writer) Begin() (*Content, error) {
	f, err := os.CreateTemp(w.folder, unfinished)
	return &Content{w: w, file: f, sum: sha256.New()}, err
}

// Write adds to it.
func (c *Content) Write(p []byte) (int, error) {
	n, err := c.file.Write(p)
	c.sum.Write(p[:n])
	c.blob.Size += int64(n)
	c.w.written.Add(int64(n))
	return n, err
}

// SHA256 is the hash of what was written.
func (c *Content) SHA256() string { return hex.EncodeToString(c.sum.Sum(nil)) }

// End keeps the content or drops it.
func (c *Content) End(keep bool, err error) (Blob, error) {
	c.blob.SHA256 = c.SHA256()
	err = errors.Join(err, c.file.Close())
	if !keep || err != nil {
		return c.blob, errors.Join(err, os.Remove(c.file.Name()))
	}
	return c.blob, os.Rename(c.file.Name(), filepath.Join(c.w.folder, blobPath(c.blob.SHA256)))
}

// PutFile adds the content of a file.
func (w *Writer) PutFile(path string) (b Blob, err error) {
	f, err := os.Open(path)
	if err != nil {
		return b, err
	}
	defer f.Close()
	return w.Put(f)
}

// Add adds an item, once.
func (w *Writer) Add(item Item) {
	if w.Has(item.Kind, item.Name) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list.Items = append(w.list.Items, item)
}

// Has reports whether an item was added.
func (w *Writer) Has(kind Kind, name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.list.Items, func(i Item) bool { return i.Kind == kind && i.Name == name })
}

// Watch tells every so often how much has been written, where that has changed, until
// stop.
func (w *Writer) Watch(every time.Duration, tell func(bytes int64)) (stop func()) {
	ended, last := make(chan struct{}), int64(0)
	var watching sync.WaitGroup
	watching.Go(func() {
		for tick := time.Tick(every); ; {
			select {
			case <-ended:
				return
			case <-tick:
				if now := w.written.Load(); now != last {
					last = now
					tell(now)
				}
			}
		}
	})
	return func() { close(ended); watching.Wait() }
}

// AddWorkflow adds the definition of a workflow, in a file that is named after its id.
func (w *Writer) AddWorkflow(id, name string, definition []byte) error {
	d := Definition{File: definitions + "/" + id + ".json", Name: name}
	sum := sha256.Sum256(definition)
	d.SHA256, d.Size = hex.EncodeToString(sum[:]), int64(len(definition))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list.Workflows = append(w.list.Workflows, d)
	return os.WriteFile(filepath.Join(w.folder, d.File), definition, 0o600)
}

// Close writes the list and returns its hash, which covers all that the bundle has.
func (w *Writer) Close() (list List, sum string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, err := json.MarshalIndent(w.list, "", "  ")
	if err != nil {
		return list, "", err
	}
	index, err := w.index()
	if err != nil {
		return list, "", err
	}
	for name, text := range map[string][]byte{indexFile: index, layoutFile: []byte(`{"imageLayoutVersion":"1.0.0"}`), listFile: text} {
		err = errors.Join(err, os.WriteFile(filepath.Join(w.folder, name), text, 0o600))
	}
	found := sha256.Sum256(text)
	return w.list, hex.EncodeToString(found[:]), err
}

// index lists the images as OCI layouts do. The manifest is the first content of an image.
func (w *Writer) index() ([]byte, error) {
	type descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int64             `json:"size"`
		Platform    map[string]string `json:"platform"`
		Annotations map[string]string `json:"annotations"`
	}
	manifests := []descriptor{}
	for _, item := range w.list.Items {
		if item.Kind != Image {
			continue
		}
		text, err := w.Folder().Read(item.Blobs[0].SHA256, item.Blobs[0].Size)
		if err != nil {
			return nil, err
		}
		d := descriptor{
			MediaType: "application/vnd.oci.image.manifest.v1+json", Digest: item.Value, Size: item.Blobs[0].Size,
			Platform: map[string]string{"os": runtime.GOOS, "architecture": runtime.GOARCH}, Annotations: map[string]string{"org.opencontainers.image.ref.name": item.Name},
		}
		if err := json.Unmarshal(text, &struct{ MediaType *string }{&d.MediaType}); err != nil {
			return nil, err
		}
		manifests = append(manifests, d)
	}
	return json.MarshalIndent(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}, "", "  ")
}
