package engine

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
)

// Images makes root file systems out of container images.
type Images interface {
	// Resolve finds the digest that a reference stands for at the moment.
	Resolve(ctx context.Context, ref string) (digest string, err error)
	// Root is the image's root, with the variables that it sets. It stays until
	// release is called, and as long as a submitted attempt names it.
	Root(ctx context.Context, ref, digest string) (path string, env []string, release func(), err error)
}

// image is one that a run uses. What it is called and where it is can be read
// once the channel for it is closed.
type image struct {
	named   chan struct{}
	here    chan struct{} // nil until somebody needs more than its name
	digest  string
	root    string
	env     []string
	release func()
	err     error
}

// album holds the images of one run: each is resolved once, so that all its
// tasks see the same, and fetched beside the carrying, since that can take
// minutes.
type album struct {
	images  map[string]*image
	arrived chan struct{} // something was fetched, or could not be
	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup
}

func (a *album) open(ctx context.Context) {
	a.images, a.arrived = map[string]*image{}, make(chan struct{}, 1)
	a.ctx, a.stop = context.WithCancel(ctx)
}

// close ends what is still being fetched, and lets go of the rest.
func (a *album) close() {
	a.stop()
	a.work.Wait()
	for _, i := range a.images {
		if i.release != nil {
			i.release()
		}
	}
}

// named reports whether it is known what a node's image is, or that it cannot
// be known, and whether that is all there is to wait for. The first who asks has
// it looked up.
func (c *carrier) named(ctx context.Context, n *node) bool {
	if n.Image == "" || c.noImages(ctx) != nil {
		return true
	}
	i := c.album.images[n.Image]
	if i == nil {
		i = &image{}
		c.album.images[n.Image] = i
		i.named = c.album.do(func(ctx context.Context) {
			i.digest, i.err = c.e.Images.Resolve(ctx, n.Image)
		})
	}
	return closed(i.named) && (i.here == nil || closed(i.here))
}

// fetched reports whether a node's image is here, or will not come. It was
// named before, and is needed: nothing was computed from it yet.
func (c *carrier) fetched(n *node) bool {
	i := c.album.images[n.Image]
	if i == nil || i.here == nil && i.err != nil {
		return true // none, or none to be had
	}
	if i.here == nil {
		i.here = c.album.do(func(ctx context.Context) {
			i.root, i.env, i.release, i.err = c.e.Images.Root(ctx, n.Image, i.digest)
		})
	}
	return closed(i.here)
}

// do works beside the carrying, and wakes it when that is done.
func (a *album) do(work func(context.Context)) (done chan struct{}) {
	done = make(chan struct{})
	a.work.Go(func() {
		work(a.ctx)
		close(done)
		select {
		case a.arrived <- struct{}{}:
		default:
		}
	})
	return done
}

func closed(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// noImages is why this server can use none.
func (c *carrier) noImages(ctx context.Context) error {
	caps, err := c.e.Driver.Capabilities(ctx)
	switch {
	case err != nil:
		return err
	case c.e.Images == nil:
		return fault.Unavailable("this server runs no container images: leave `image` empty to use the programs of the machine")
	case !caps.Images:
		return fault.Unavailable("an image needs the sandbox, and this server runs its tasks without one (--sandbox none): leave `image` empty to use the programs of the machine")
	}
	return nil
}

// imageOf is the image of a node that is about to start, or nil if it has none.
func (c *carrier) imageOf(ctx context.Context, n *node) (*image, error) {
	if n.Image == "" {
		return nil, nil
	}
	if err := c.noImages(ctx); err != nil {
		return nil, err
	}
	if i := c.album.images[n.Image]; i != nil {
		return i, i.err
	}
	return nil, errors.New("a node starts before its image was asked for")
}

// ours are the variables that an image cannot set: they name places that are
// not its own.
var ours = map[string]bool{"HOME": true, "TMPDIR": true, "USER": true}

// into makes an image the root of an attempt. What it sets gives way to the
// platform and to the author.
func (i *image) into(s *executor.Spec) {
	if i == nil {
		return
	}
	s.Root = i.root
	for _, variable := range i.env {
		name, value, _ := strings.Cut(variable, "=")
		if _, set := s.Env[name]; !set && !ours[name] {
			s.Env[name] = value
		}
	}
}
