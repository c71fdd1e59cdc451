// Package runimages holds the container images of one run: each is resolved
// once, so that all its tasks see the same, and fetched in the background, since
// that can take minutes.
package runimages

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/panics"
)

// Store makes root file systems out of container images.
type Store interface {
	// Resolve finds the digest that a reference stands for at the moment.
	Resolve(ctx context.Context, ref string) (digest string, err error)
	// Root is the image's root, with the variables that it sets. It stays until
	// release is called, and as long as a submitted attempt names it.
	Root(ctx context.Context, ref, digest string) (path string, env []string, release func(), err error)
}

// Images are those of one run. One goroutine owns it.
type Images struct {
	store   Store
	images  map[string]*Image
	changed chan struct{} // something was fetched, or could not be
	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup
}

// Image is one that a run uses. What it is called and where it is can be read
// once Resolved and Fetched have reported true.
type Image struct {
	Digest     string
	ResolveErr error // why it is not known what it is

	fetchErr error // why it cannot be fetched

	environment bool // it is one, and no image

	resolved chan struct{}
	fetched  chan struct{} // nil until somebody needs more than its name
	root     string
	env      []string
	release  func()
}

// Open begins without any image. The caller closes it.
func Open(ctx context.Context, s Store) *Images {
	i := &Images{store: s, images: map[string]*Image{}, changed: make(chan struct{}, 1)}
	i.ctx, i.stop = context.WithCancel(ctx)
	return i
}

// Close ends what is still being fetched, and lets go of the rest.
func (all *Images) Close() {
	all.stop()
	all.work.Wait()
	for _, i := range all.images {
		if i.release != nil {
			i.release()
		}
	}
}

// Changed receives when something was fetched, or could not be.
func (all *Images) Changed() <-chan struct{} { return all.changed }

// Image is one that was asked for, or nil.
func (all *Images) Image(ref string) *Image { return all.images[ref] }

// Resolved reports whether it is known what an image is, or that it cannot be
// known. The first who asks has it looked up.
func (all *Images) Resolved(ref string) bool {
	i := all.images[ref]
	if i == nil {
		i = &Image{environment: strings.HasPrefix(ref, environmentPrefix)}
		all.images[ref] = i
		i.resolved = all.Background(&i.ResolveErr, func(ctx context.Context) (err error) {
			i.Digest, err = all.store.Resolve(ctx, ref)
			return err
		})
	}
	return IsClosed(i.resolved)
}

// Fetched reports whether an image is here, or will not come. It was named
// before, and is needed: nothing was computed from it yet.
func (all *Images) Fetched(ref string) bool {
	i := all.images[ref]
	if i == nil || i.ResolveErr != nil {
		return true // none, or none to be had
	}
	if i.fetched == nil {
		i.fetched = all.Background(&i.fetchErr, func(ctx context.Context) (err error) {
			i.root, i.env, i.release, err = all.store.Root(ctx, ref, i.Digest)
			return err
		})
	}
	return IsClosed(i.fetched)
}

// Forget has an image that could not be fetched be fetched again by the next who needs
// it.
func (all *Images) Forget(ref string) {
	if i := all.images[ref]; i != nil && i.fetched != nil && IsClosed(i.fetched) && i.fetchErr != nil {
		i.fetched, i.fetchErr = nil, nil
	}
}

// Err is why an image that was fetched cannot be used.
func (i *Image) Err() error {
	err := cmp.Or(i.ResolveErr, i.fetchErr)
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.Unavailable("the image or environment was not there within %d minutes: try again later, or use a smaller one", maxTime/time.Minute)
	}
	return err
}

// Prepare resolves images, then fetches one after the other of those that are
// needed once it is known what all of them are. It returns when each is here, or
// will not come, or when ctx ends.
func (all *Images) Prepare(ctx context.Context, refs []string, needed func(refs []string) []string) {
	if all.each(ctx, refs, all.Resolved) {
		all.each(ctx, needed(refs), all.Fetched)
	}
}

// each waits until something holds of one image after the other; false if ctx
// ends first.
func (all *Images) each(ctx context.Context, refs []string, holds func(ref string) bool) bool {
	for _, ref := range refs {
		for !holds(ref) {
			select {
			case <-all.changed:
			case <-ctx.Done():
				return false
			}
		}
	}
	return true
}

// maxTime is how long one image may take.
const maxTime = 30 * time.Minute

// Background runs work in the background, until Close. When the work has ended, its error,
// or its panic as an error, is in failed, and the channel is closed.
func (all *Images) Background(failed *error, work func(context.Context) error) (done chan struct{}) {
	done = make(chan struct{})
	all.work.Go(func() {
		ctx, cancel := context.WithTimeout(all.ctx, maxTime)
		defer cancel()
		*failed = panics.Catch(func() error { return work(ctx) })
		close(done)
		select {
		case all.changed <- struct{}{}:
		default:
		}
	})
	return done
}

// IsClosed reports whether a channel is.
func IsClosed(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
