package images

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/millrace/millrace/internal/safedial"
)

const reachTime = 10 * time.Second

// Reach reports which registries cannot be asked from here.
func Reach(ctx context.Context, hosts []string, allowPrivate bool) error {
	ctx, stop := context.WithTimeout(ctx, reachTime)
	defer stop()
	var errs []error
	for _, host := range hosts {
		registry, err := name.NewRegistry(host)
		if err == nil {
			_, err = transport.Ping(ctx, registry, safedial.Transport(allowPrivate))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s cannot be reached: %w", canonical(host), err))
		}
	}
	return errors.Join(errs...)
}
