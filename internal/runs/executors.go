package runs

import (
	"context"
	"slices"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/offers"
)

// What workers have for runs.
type (
	Worker     = offers.Worker
	Wanted     = offers.Wanted
	Chosen     = offers.Chosen
	Load       = offers.Load
	Executor   = offers.Executor
	Waiting    = offers.Waiting
	QueueState = offers.QueueState
	WaitReason = offers.WaitReason
)

// Executors are those that workers offer now, in order of preference.
func (s *Service) Executors(ctx context.Context, caller access.Caller) ([]Executor, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	workers, _, err := s.offersFor(ctx, caller.Team)
	if err != nil {
		return nil, err
	}
	list := offers.Gather(workers)
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name
	}
	loads, err := s.details.ExecutorLoads(ctx, names)
	offers.SetLoads(list, loads)
	return list, err
}

// Sizes are the sizes that runs can have.
type Sizes struct {
	Capacities []credits.Size // of each executor whose capacity is known
	GPU        bool           // whether a run can have one
}

// Sizes tells somebody who may start runs but reads nothing of the team, a guest, which sizes
// runs can have.
func (s *Service) Sizes(ctx context.Context, caller access.Caller) (Sizes, error) {
	if err := caller.Must(access.StartRuns); err != nil {
		return Sizes{}, err
	}
	workers, allowed, err := s.offersFor(ctx, caller.Team)
	if err != nil {
		return Sizes{}, err
	}
	sizes := Sizes{GPU: s.OffersGPU(ctx, allowed)}
	for _, e := range offers.Gather(workers) {
		if e.Total != (credits.Size{}) {
			sizes.Capacities = append(sizes.Capacities, e.Total)
		}
	}
	return sizes, nil
}

// offersFor are the workers of the executors that a team may use, and those executors;
// nil are all.
func (s *Service) offersFor(ctx context.Context, team ids.Team) (workers []Worker, allowed []string, err error) {
	if workers, err = s.engine.Offers(ctx); err != nil {
		return nil, nil, err
	}
	allowed, err = s.submit.ExecutorsOf(ctx, team)
	return offers.AllowedOf(workers, allowed), allowed, err
}

// stillOffered is an executor that a run was given earlier, if it is there still and the
// team may use it.
func (s *Service) stillOffered(ctx context.Context, team ids.Team, name string) string {
	workers, _, err := s.offersFor(ctx, team)
	if err != nil || !slices.ContainsFunc(workers, func(o Worker) bool { return o.Executor == name }) {
		return ""
	}
	return name
}
