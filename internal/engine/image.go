package engine

import (
	"context"
	"errors"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/runimages"
)

// Images makes root file systems out of container images.
type Images = runimages.Store

// imageResolved reports whether it is known what a node's image is, or that it cannot
// be known.
func (r *runner) imageResolved(ctx context.Context, n *node) bool {
	return n.Image == "" || r.e.imagesUnavailable(ctx) != nil || r.images.Resolved(n.Image)
}

// imagesUnavailable is why this server can use none.
func (e *Engine) imagesUnavailable(ctx context.Context) error {
	caps, err := e.Driver.Capabilities(ctx)
	switch {
	case err != nil:
		return err
	case e.Images == nil:
		return fault.Unavailable("this server runs no container images: leave `image` empty to use the programs of the machine")
	case !caps.Images:
		return fault.Unavailable("%s", caps.NoImages)
	}
	return nil
}

// imageOf is the image of a node, of which at least the name is known, or nil if
// it has none.
func (r *runner) imageOf(ctx context.Context, n *node) (*runimages.Image, error) {
	if n.Image == "" {
		return nil, nil
	}
	if err := r.e.imagesUnavailable(ctx); err != nil {
		return nil, err
	}
	if i := r.images.Image(n.Image); i != nil {
		return i, i.ResolveErr
	}
	return nil, errors.New("a node starts before its image was asked for")
}
