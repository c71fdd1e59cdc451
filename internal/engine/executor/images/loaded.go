package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/millrace/millrace/internal/offline"
)

// maxManifest is what a registry may send, too.
const maxManifest = 4 << 20 // bytes

// loadedImage is an image of which everything is here.
type loadedImage struct {
	folder   offline.Folder
	text     []byte
	manifest *v1.Manifest
}

// openLoaded opens an image by the digest of its manifest.
func openLoaded(folder offline.Folder, digest v1.Hash) (v1.Image, error) {
	text, err := folder.Read(digest.Hex, maxManifest)
	if err != nil {
		return nil, err
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(loadedImage{folder, text, manifest})
}

// loaded is an image that was loaded; false where it was not.
func (s *Store) loaded(ref name.Digest) (from source, ok bool) {
	hash, err := v1.NewHash(ref.DigestStr())
	if err != nil {
		return from, false
	}
	manifest, err := s.Loaded.Open(hash.Hex)
	if err != nil {
		return from, false
	}
	return source{
		image: func(context.Context) (v1.Image, error) { return openLoaded(s.Loaded, hash) },
		layer: func(_ context.Context, hash v1.Hash) (io.ReadCloser, error) { return s.Loaded.Open(hash.Hex) },
	}, manifest.Close() == nil
}

func (i loadedImage) MediaType() (types.MediaType, error) { return i.manifest.MediaType, nil }

func (i loadedImage) RawManifest() ([]byte, error) { return i.text, nil }

func (i loadedImage) RawConfigFile() ([]byte, error) {
	return i.folder.Read(i.manifest.Config.Digest.Hex, maxConfig)
}

func (i loadedImage) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) {
	return nil, errors.New("layers are read from their files")
}

// CheckLoaded reports what is wrong with an image in a folder, or missing there.
func CheckLoaded(folder offline.Folder, reference, digest string) error {
	ref, err := name.ParseReference(reference)
	if err != nil || ref.Name() != reference {
		return errors.New("it has not the full name of an image")
	}
	hash, err := v1.NewHash(digest)
	if err != nil {
		return err
	}
	if err := checkPinned(folder, ref, hash); err != nil {
		return err
	}
	image, err := openLoaded(folder, hash)
	if err != nil {
		return err
	}
	s := &Store{Config: Config{MaxImage: defaultImage}}
	manifest, _, err := s.describe(image)
	if err != nil {
		return err
	}
	for _, layer := range manifest.Layers {
		f, err := folder.Open(layer.Digest.Hex)
		if err != nil {
			return fmt.Errorf("a layer is missing: %w", err)
		}
		info, err := f.Stat()
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if info.Size() != layer.Size {
			return defect("a layer is not as long as its manifest says")
		}
	}
	return nil
}

// checkPinned reports whether a reference that has a digest can stand for an image.
func checkPinned(folder offline.Folder, ref name.Reference, image v1.Hash) error {
	pinned, ok := pinnedTo(ref)
	if !ok || pinned == image {
		return nil
	}
	text, err := folder.Read(pinned.Hex, maxManifest)
	if err != nil {
		return err
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(text))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(index.Manifests, func(d v1.Descriptor) bool { return d.Digest == image }) {
		return errors.New("its digest stands for other images")
	}
	return nil
}

// Save writes an image as it is for this machine into a bundle.
func (s *Store) Save(ctx context.Context, reference string, to *offline.Writer) error {
	r, err := s.parse(reference)
	if err != nil {
		return err
	}
	if err := s.save(ctx, r, to); err != nil {
		return s.explain(ctx, r, err)
	}
	return nil
}

func (s *Store) save(ctx context.Context, r name.Reference, to *offline.Writer) error {
	digest, err := s.For("").Resolve(ctx, r.String())
	if err != nil {
		return err
	}
	from, err := s.sourceOf(r.Context().Digest(digest))
	if err != nil {
		return err
	}
	image, err := from.image(ctx)
	if err != nil {
		return err
	}
	manifest, _, err := s.describe(image)
	if err != nil {
		return err
	}
	item := offline.Item{Kind: offline.Image, Name: r.Name(), Value: digest}
	for _, read := range []func() ([]byte, error){image.RawManifest, image.RawConfigFile} {
		text, err := read()
		if err != nil {
			return err
		}
		blob, err := to.Put(bytes.NewReader(text))
		if err != nil {
			return err
		}
		item.Blobs = append(item.Blobs, blob)
	}
	for _, layer := range manifest.Layers {
		blob, err := s.saveLayer(ctx, from, layer, to)
		if err != nil {
			return err
		}
		item.Blobs = append(item.Blobs, blob)
	}
	index, err := s.indexOf(ctx, r, digest)
	if err != nil {
		return err
	}
	if index != nil {
		blob, err := to.Put(bytes.NewReader(index))
		if err != nil {
			return err
		}
		item.Blobs = append(item.Blobs, blob)
	}
	to.Add(item)
	return nil
}

// indexOf is the index that a reference is pinned to, if it is not pinned to the image
// itself: it proves that the image is meant.
func (s *Store) indexOf(ctx context.Context, r name.Reference, digest string) ([]byte, error) {
	pinned, ok := pinnedTo(r)
	if !ok || pinned.String() == digest {
		return nil, nil
	}
	if text, err := s.Loaded.Read(pinned.Hex, maxManifest); err == nil {
		return text, nil
	}
	p, err := s.puller()
	if err != nil {
		return nil, err
	}
	found, err := p.Get(ctx, r)
	if err != nil {
		return nil, err
	}
	return found.Manifest, nil
}

// saveLayer fetches a layer, which is as its digest says, and adds it.
func (s *Store) saveLayer(ctx context.Context, from source, layer v1.Descriptor, to *offline.Writer) (offline.Blob, error) {
	file := filepath.Join(s.Folder, layer.Digest.Hex)
	defer os.Remove(file)
	if err := s.fetch(ctx, from, layer, file); err != nil {
		return offline.Blob{}, err
	}
	return to.PutFile(file)
}
