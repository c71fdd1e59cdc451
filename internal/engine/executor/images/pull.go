package images

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/internal/engine/executor/treecache"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/safedial"
)

const (
	maxConfig = 4 << 20 // bytes
	maxLayers = 256
	atOnce    = 3 // layers of one image

	fetchTries = 3
)

// buildWhileSpace builds where there is space, and as long as there is some.
func (t Team) buildWhileSpace(ctx context.Context, ref name.Digest, dir string) (m meta, err error) {
	if err := treecache.AwaitSpace(ctx, t.store.Disk); err != nil {
		return m, err
	}
	ctx, cancel := treecache.WhileSpace(ctx, t.store.Disk)
	defer cancel()
	m, err = t.build(ctx, ref, dir)
	if err != nil && errors.Is(context.Cause(ctx), treecache.ErrNoSpace) {
		return m, treecache.ErrNoSpace // rather than what it looked like from inside
	}
	return m, err
}

// build pulls an image and fills a folder with its root.
func (t Team) build(ctx context.Context, ref name.Digest, dir string) (m meta, err error) {
	s := t.store
	from, err := s.sourceOf(ref)
	if err != nil {
		return m, err
	}
	describing, stop := context.WithTimeout(ctx, resolveTime)
	defer stop()
	image, err := from.image(describing)
	if err != nil {
		return m, err
	}
	manifest, config, err := s.describe(image)
	if err != nil {
		return m, err
	}
	u, err := newUnpacker(filepath.Join(dir, rootFolder), s.MaxImage, s.MaxEntries)
	if err != nil {
		return m, err
	}
	defer u.close()
	if err := t.layers(ctx, from, manifest, config, u); err != nil {
		return m, err
	}
	if err := u.addEssentials(); err != nil {
		return m, err
	}
	return meta{
		Reference: ref.String(), Env: variables(config.Config.Env), Bytes: u.occupied, Entries: s.MaxEntries - u.entries, PulledAt: s.Now(),
	}, nil
}

const maxVariables = 64 << 10 // bytes

// variables are those that can be set at all. A NUL would end one, and what
// follows be taken for an option of the sandbox.
func variables(env []string) []string {
	var list []string
	left := maxVariables
	for _, variable := range env {
		name, _, ok := strings.Cut(variable, "=")
		if left -= len(variable); ok && name != "" && left > 0 && !strings.ContainsRune(variable, 0) {
			list = append(list, variable)
		}
	}
	return list
}

// describe reads manifest and configuration, and refuses what is unreasonable
// before any of it is fetched. Both are as their digests say.
func (s *Store) describe(image v1.Image) (*v1.Manifest, *v1.ConfigFile, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return nil, nil, err
	}
	if err := s.check(manifest); err != nil {
		return nil, nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, nil, err
	}
	p0 := platform()
	switch {
	case len(config.RootFS.DiffIDs) != len(manifest.Layers):
		return nil, nil, defect("its configuration does not match its layers")
	case config.OS != "" && config.OS != p0.OS, config.Architecture != "" && config.Architecture != p0.Architecture:
		return nil, nil, defectf("it was built for %s/%s, and this machine is %s", printable(config.OS), printable(config.Architecture), p0)
	}
	return manifest, config, nil
}

func (s *Store) check(m *v1.Manifest) error {
	if m.Config.Size < 0 || m.Config.Size > maxConfig {
		return defect("its configuration is too large")
	}
	if len(m.Layers) > maxLayers {
		return defectf("it has more than %d layers", maxLayers)
	}
	var total int64
	for _, layer := range m.Layers {
		if len(layer.URLs) > 0 || !layer.MediaType.IsDistributable() {
			return defect("some of its layers are not in its registry")
		}
		if layer.Size < 0 || layer.Size > s.MaxImage {
			return tooLarge(s.MaxImage)
		}
		if total += layer.Size; total > s.MaxImage {
			return tooLarge(s.MaxImage)
		}
	}
	return nil
}

func tooLarge(limit int64) error {
	if limit < 1<<30 {
		return defectf("it is larger than %d MB", limit>>20)
	}
	return defectf("it is larger than %d GB", limit>>30)
}

// source is where an image is.
type source struct {
	image func(context.Context) (v1.Image, error)
	layer func(context.Context, v1.Hash) (io.ReadCloser, error)
}

// sourceOf is what was loaded of an image, or else its registry.
func (s *Store) sourceOf(ref name.Digest) (source, error) {
	if from, ok := s.loaded(ref); ok {
		return from, nil
	}
	p, err := s.puller()
	return source{
		image: func(ctx context.Context) (v1.Image, error) {
			found, err := p.Get(ctx, ref)
			if err != nil {
				return nil, err
			}
			return found.Image()
		},
		layer: func(ctx context.Context, hash v1.Hash) (io.ReadCloser, error) {
			l, err := p.Layer(ctx, ref.Context().Digest(hash.String()))
			if err != nil {
				return nil, err
			}
			return l.Compressed()
		},
	}, err
}

// layers fetches some layers ahead of the one that is being unpacked.
func (t Team) layers(ctx context.Context, from source, m *v1.Manifest, c *v1.ConfigFile, u *unpacker) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce + 1)
	files, there := make([]string, len(m.Layers)), make([]chan struct{}, len(m.Layers))
	for i := range files {
		files[i], there[i] = filepath.Join(filepath.Dir(u.root.Name()), strconv.Itoa(i)), make(chan struct{})
	}
	inBackground := func(work func() error) { g.Go(func() error { return panics.Catch(work) }) }
	inBackground(func() error {
		for i, file := range files {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-there[i]:
			}
			if err := t.unpack(ctx, u, file, c.RootFS.DiffIDs[i]); err != nil {
				return err
			}
			if err := os.Remove(file); err != nil {
				return err
			}
		}
		return nil
	})
	for i, layer := range m.Layers {
		inBackground(func() error {
			err := t.store.fetch(ctx, from, layer, files[i])
			if err == nil {
				close(there[i])
			}
			return err
		})
	}
	return g.Wait()
}

// unpack waits for the team's turn and unpacks a layer that was fetched.
func (t Team) unpack(ctx context.Context, u *unpacker, file string, want v1.Hash) error {
	giveBack, err := t.store.unpacks.Take(ctx, t.team)
	if err != nil {
		return err
	}
	defer giveBack()
	return u.layer(ctx, file, want)
}

// fetch downloads a layer. A connection that breaks is made again a few times.
func (s *Store) fetch(ctx context.Context, from source, layer v1.Descriptor, file string) error {
	pause := s.Pause
	for try := 1; ; try++ {
		err := fetchOnce(ctx, from, layer, file)
		if err == nil || try == fetchTries || ctx.Err() != nil || !transient(err) {
			return err
		}
		select {
		case <-time.After(pause):
			pause *= 3
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fetchOnce gives up on a registry that sends too slowly. What was read is checked
// against the layer's digest by the library, at its end.
func fetchOnce(ctx context.Context, from source, layer v1.Descriptor, file string) (err error) {
	ctx, transfer := safedial.WatchSpeed(ctx)
	defer transfer.End()
	defer func() { err = transfer.Err(err) }()
	body, err := from.layer(ctx, layer.Digest)
	if err != nil {
		return err
	}
	defer body.Close()
	w, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	n, err := io.Copy(w, io.LimitReader(transfer.Reader(body), layer.Size+1))
	switch {
	case err != nil && !transient(err) && !isLocal(err) && ctx.Err() == nil:
		return defectf("a layer is not what its digest says")
	case err == nil && n != layer.Size:
		return defectf("a layer is not as long as its manifest says")
	}
	return err
}

// isLocal reports whether it is our own disk that failed.
func isLocal(err error) bool {
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	return path || link
}

// transient reports whether a failure may be gone the next time.
func transient(err error) bool {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return true
	}
	for _, e := range []error{io.ErrUnexpectedEOF, io.EOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed, safedial.ErrSlow, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
