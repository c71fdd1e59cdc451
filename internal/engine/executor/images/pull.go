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
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"
)

const (
	maxConfig = 4 << 20 // bytes
	maxLayers = 256
	atOnce    = 3 // layers of one image

	fetchTries = 3
	stall      = time.Minute // in which a registry has to send
	leastPiece = 256 << 10   // bytes
)

// build pulls an image and fills a folder with its root.
func (s *Store) build(ctx context.Context, ref name.Digest, dir string) (m meta, err error) {
	p, err := s.puller()
	if err != nil {
		return m, err
	}
	manifest, config, err := s.describe(ctx, p, ref)
	if err != nil {
		return m, err
	}
	u, err := newUnpacker(filepath.Join(dir, rootFolder), s.MaxImage, s.MaxEntries)
	if err != nil {
		return m, err
	}
	defer u.close()
	if err := s.layers(ctx, source{p, ref.Context()}, manifest, config, u); err != nil {
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
func (s *Store) describe(ctx context.Context, p *remote.Puller, ref name.Digest) (*v1.Manifest, *v1.ConfigFile, error) {
	found, err := p.Get(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	image, err := found.Image()
	if err != nil {
		return nil, nil, err
	}
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

// source is where layers are.
type source struct {
	puller *remote.Puller
	repo   name.Repository
}

// layers fetches some layers ahead of the one that is being unpacked.
func (s *Store) layers(ctx context.Context, from source, m *v1.Manifest, c *v1.ConfigFile, u *unpacker) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce + 1)
	files, there := make([]string, len(m.Layers)), make([]chan struct{}, len(m.Layers))
	for i := range files {
		files[i], there[i] = filepath.Join(filepath.Dir(u.root.Name()), strconv.Itoa(i)), make(chan struct{})
	}
	g.Go(func() error {
		for i, file := range files {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-there[i]:
			}
			if err := u.layer(ctx, file, c.RootFS.DiffIDs[i]); err != nil {
				return err
			}
			if err := os.Remove(file); err != nil {
				return err
			}
		}
		return nil
	})
	for i, layer := range m.Layers {
		g.Go(func() error {
			err := s.fetch(ctx, from, layer, files[i])
			if err == nil {
				close(there[i])
			}
			return err
		})
	}
	return g.Wait()
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

var errStalled = errors.New("the registry stopped sending")

// fetchOnce gives up on a registry that sends next to nothing. What was read is
// checked against the layer's digest by the library, at its end.
func fetchOnce(ctx context.Context, from source, layer v1.Descriptor, file string) (err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	l, err := from.puller.Layer(ctx, from.repo.Digest(layer.Digest.String()))
	if err != nil {
		return err
	}
	body, err := l.Compressed()
	if err != nil {
		return err
	}
	defer body.Close()
	w, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	lively := &lively{r: body, timer: time.AfterFunc(stall, func() { stop(errStalled) })}
	defer lively.timer.Stop()
	n, err := io.Copy(w, io.LimitReader(lively, layer.Size+1))
	switch {
	case context.Cause(ctx) == errStalled:
		return errStalled
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

// lively puts off a timer whenever enough has arrived.
type lively struct {
	r     io.Reader
	timer *time.Timer
	got   int
}

func (l *lively) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.got += n; l.got >= leastPiece {
		l.got = 0
		l.timer.Reset(stall)
	}
	return n, err
}

// transient reports whether a failure may be gone the next time.
func transient(err error) bool {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return true
	}
	for _, e := range []error{io.ErrUnexpectedEOF, io.EOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed, errStalled, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
