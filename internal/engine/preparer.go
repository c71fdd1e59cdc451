package engine

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/runs/admission"
)

// maxPreparation is how long a run is prepared. What is missing then is the run's to
// wait for.
const maxPreparation = 30 * time.Minute

// preparer fetches what queued runs need before they take capacity on a worker.
// Package admission decides which runs those are. Nothing here outlives the process.
// All methods may be called at the same time.
type preparer struct {
	images func(ids.Team) runimages.Store
	needed neededImages
	inputs preparedInputs
	ready  func(ids.Run) // called when nothing is missing any more

	mu   sync.Mutex
	runs map[ids.Run]*preparation
	work sync.WaitGroup
}

// neededImages says which images a run cannot start without, once it is known what
// each of them is.
type neededImages func(ctx context.Context, run ids.Run, images *runimages.Images, refs []string) []string

// preparedInputs are what runs take from elsewhere.
type preparedInputs interface {
	// Prepare fetches those of a run, until ctx ends.
	Prepare(ctx context.Context, team ids.Team, run ids.Run)
	// Release lets go of what was fetched for a run.
	Release(run ids.Run)
}

type preparation struct {
	images *runimages.Images
	stop   context.CancelFunc
	ready  bool
}

// newPreparer prepares nothing yet.
func newPreparer(images func(ids.Team) runimages.Store, needed neededImages, inputs preparedInputs, ready func(ids.Run)) *preparer {
	return &preparer{images: images, needed: needed, inputs: inputs, ready: ready, runs: map[ids.Run]*preparation{}}
}

// State are the runs that are prepared here; true once nothing is missing.
func (p *preparer) State() map[ids.Run]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := make(map[ids.Run]bool, len(p.runs))
	for id, one := range p.runs {
		state[id] = one.ready
	}
	return state
}

// Begin fetches what a run needs, until ctx ends.
func (p *preparer) Begin(ctx context.Context, id ids.Run, team ids.Team, needs []admission.Need) {
	limited, stop := context.WithTimeout(ctx, maxPreparation)
	one := &preparation{images: runimages.Open(ctx, p.images(team)), stop: stop}
	var refs []string
	for _, n := range needs {
		switch n.Kind {
		case admission.Image:
			refs = append(refs, n.Ref)
		case admission.Environment:
			refs = append(refs, runimages.EnvironmentRef(n.Ref))
		}
	}
	p.mu.Lock()
	p.runs[id] = one
	p.mu.Unlock()
	p.work.Go(func() {
		one.images.Prepare(limited, refs, func(refs []string) []string { return p.needed(limited, id, one.images, refs) })
		for _, n := range needs {
			if n.Kind == admission.Inputs {
				p.inputs.Prepare(limited, ids.Team(n.Ref), id)
			}
		}
		stop()
		p.mu.Lock()
		wanted := p.runs[id] == one
		one.ready = true
		p.mu.Unlock()
		if !wanted {
			one.images.Close()
			p.inputs.Release(id)
			return
		}
		p.ready(id)
	})
}

// Take hands over what is there for a run that starts; nil if nothing was
// prepared. The caller closes it.
func (p *preparer) Take(id ids.Run) *runimages.Images {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.runs[id]
	if one == nil || !one.ready {
		return nil
	}
	delete(p.runs, id)
	return one.images
}

// Drop ends the preparing of a run that will not start here.
func (p *preparer) Drop(id ids.Run) {
	p.mu.Lock()
	one := p.runs[id]
	delete(p.runs, id)
	ready := one != nil && one.ready
	p.mu.Unlock()
	if one != nil {
		one.stop()
	}
	if ready {
		one.images.Close()
		p.inputs.Release(id)
	}
}

// Close drops all and waits until nothing is fetched any more.
func (p *preparer) Close() {
	for id := range p.State() {
		p.Drop(id)
	}
	p.work.Wait()
}
