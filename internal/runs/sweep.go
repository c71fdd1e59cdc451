package runs

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// Sweep is several runs that were started together and differ in some
// parameters.
type Sweep struct {
	ID           ids.Sweep
	Team         ids.Team
	Workflow     ids.Workflow
	WorkflowName string
	Name         string
	Note         string
	Varied       []string // parameters, in order
	Starter      Starter
	CreatedAt    time.Time
	Runs         int
}

// SweepStore keeps sweeps.
type SweepStore interface {
	// SubmitSweep accepts all the runs of a sweep, each with its hold, or none.
	SubmitSweep(ctx context.Context, s Sweep, list []Run, hold credits.Amount, record *access.IdempotencyRecord) error
	Sweep(ctx context.Context, team ids.Team, id ids.Sweep) (Sweep, error)
	// Sweeps lists those before the cursor, newest first.
	Sweeps(ctx context.Context, team ids.Team, before ids.Sweep, limit int) ([]Sweep, error)
	// RunsOfSweep are lean rows with their parameters, oldest first.
	RunsOfSweep(ctx context.Context, team ids.Team, id ids.Sweep, limit int) ([]Run, error)
}

const (
	maxSweep      = 100      // runs
	maxSweepBytes = 64 << 20 // that their rows take up together
	maxSweepRows  = 1000     // of a table: retries belong to it, too
)

// NewSweep is what somebody wants to sweep.
type NewSweep struct {
	New
	Vary map[string][]json.RawMessage

	// OnceAll records the answer with the effect; nil without an idempotency key.
	OnceAll func(Sweep, []Run) (*access.IdempotencyRecord, error)
}

// SubmitSweep accepts a run for each combination of the values that vary, or
// says what is wrong with the first that cannot run.
func (s *Service) SubmitSweep(ctx context.Context, caller access.Caller, in NewSweep) (Sweep, []Run, error) {
	if err := caller.Must(access.StartRuns); err != nil {
		return Sweep{}, nil, err
	}
	if err := s.full(ctx); err != nil {
		return Sweep{}, nil, err
	}
	src, err := s.submit.RunSource(ctx, caller.Team, in.Workflow)
	if err != nil {
		return Sweep{}, nil, err
	}
	combinations, err := combinations(in.Parameters, in.Vary, maxSweep)
	if err != nil {
		return Sweep{}, nil, err
	}
	sweep := Sweep{
		ID: ids.NewSweep(), Team: caller.Team, Workflow: in.Workflow, WorkflowName: src.Name, Varied: slices.Sorted(maps.Keys(in.Vary)),
		Starter: starter(caller), CreatedAt: s.now(), Runs: len(combinations),
	}
	list, err := s.sweepRuns(ctx, &sweep, src, in, combinations)
	if err != nil {
		return sweep, nil, err
	}
	var record *access.IdempotencyRecord
	if in.OnceAll != nil {
		if record, err = in.OnceAll(sweep, list); err != nil {
			return sweep, nil, err
		}
	}
	if err := s.sweeps.SubmitSweep(ctx, sweep, list, credits.HoldSeconds*list[0].Price, record); err != nil {
		return sweep, nil, err
	}
	s.engine.Wake()
	return sweep, list, nil
}

// sweepRuns are the runs of a sweep, checked. They differ in their parameters
// alone, so that the rest is looked at once.
func (s *Service) sweepRuns(ctx context.Context, sweep *Sweep, src Source, in NewSweep, combinations []map[string]json.RawMessage) ([]Run, error) {
	release, err := s.memory.Reserve(len(src.Definition) + len(in.Parameters))
	if err != nil {
		return nil, err
	}
	defer release()
	g, err := runnable(src.Definition)
	if err != nil {
		return nil, err
	}
	var list []Run
	size := 0
	for i, values := range combinations {
		one := in.New
		if one.Parameters, err = json.Marshal(values); err != nil {
			return nil, err
		}
		r := Run{
			ID: ids.NewRun(), Team: sweep.Team, Workflow: sweep.Workflow, WorkflowName: src.Name, Revision: src.Revision, Definition: src.Definition,
			Starter: sweep.Starter, Status: lifecycle.Queued, CreatedAt: sweep.CreatedAt, Sweep: sweep.ID,
		}
		inputs, err := checkGiven(g, &r, one)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if err := s.checkSecrets(ctx, &r, g, in.guarded); err != nil {
				return nil, err
			}
			if err := s.checkInputs(ctx, &r, inputs); err != nil {
				return nil, err
			}
			if err := s.checkSize(ctx, &r, g); err != nil {
				return nil, err
			}
			sweep.Name, sweep.Note = r.Name, r.Note
		} else {
			r.Inputs, r.Addresses, r.Needs, r.Price, r.Executor = list[0].Inputs, list[0].Addresses, list[0].Needs, list[0].Price, list[0].Executor
		}
		r.Name, r.Note = sweepName(sweep.Varied, values, maxName), ""
		list = append(list, r)
		if size += len(r.Definition) + len(r.Parameters) + 2*len(r.Inputs); size > maxSweepBytes {
			return nil, fault.Invalid("these %d runs would take up more than 64 MB: start fewer at once", len(combinations)).WithCode("sweep_too_large")
		}
	}
	return list, nil
}

// Sweeps lists the team's sweeps, newest first.
func (s *Service) Sweeps(ctx context.Context, caller access.Caller, before ids.Sweep, limit int) (list []Sweep, more bool, err error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, false, err
	}
	list, err = s.sweeps.Sweeps(ctx, caller.Team, before, limit+1)
	if len(list) > limit {
		return list[:limit], true, err
	}
	return list, false, err
}
