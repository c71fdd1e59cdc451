package executors

import (
	"context"
	"errors"

	"github.com/millrace/millrace/cmd/millrace/sources"
	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/images"
)

// Software is where the tasks of an executor have images, environments and code
// from Git.
type Software struct {
	Images       *images.Store
	Environments *environments.Store
	Sources      *sources.Store
}

// SoftwareOfAll is that of all executors of a server.
type SoftwareOfAll struct {
	Sources *sources.Store // of the server, and of executors that have none of their own
	Each    []Software
}

// NoEnvironments is why none of them gets an environment, if none does.
func (all *SoftwareOfAll) NoEnvironments(spec environment.Spec) (problem string) {
	for _, one := range all.Each {
		if problem = one.Environments.ProblemWith(spec); problem == "" {
			return ""
		}
	}
	return problem
}

// CleanImages removes what is left over of images that were not unpacked to the
// end.
func (all *SoftwareOfAll) CleanImages(context.Context) (err error) {
	for _, one := range all.Each {
		err = errors.Join(err, one.Images.Clean())
	}
	return err
}

// CleanEnvironments removes what is left over of builds.
func (all *SoftwareOfAll) CleanEnvironments(ctx context.Context) (err error) {
	for _, one := range all.Each {
		err = errors.Join(err, one.Environments.Clean(ctx))
	}
	return err
}

// CleanSources removes what is left over of code.
func (all *SoftwareOfAll) CleanSources(ctx context.Context) (err error) {
	for s := range all.stores() {
		err = errors.Join(err, s.Clean(ctx))
	}
	return err
}

// Close ends what is being fetched and built.
func (all *SoftwareOfAll) Close() (err error) {
	for s := range all.stores() {
		err = errors.Join(err, s.Close())
	}
	for _, one := range all.Each {
		err = errors.Join(err, one.Environments.Close())
	}
	return err
}

func (all *SoftwareOfAll) stores() map[*sources.Store]bool {
	list := map[*sources.Store]bool{all.Sources: true}
	for _, one := range all.Each {
		list[one.Sources] = true
	}
	return list
}
