package runs

import (
	"context"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// Retry starts a run again as it was, or of the workflow as it is now, with
// other parameters and another size if they are given. What had succeeded and
// would be computed from the same is reused.
func (s *Service) Retry(ctx context.Context, caller access.Caller, id ids.Run, in New) (Run, error) {
	_, r, err := s.prepareRetry(ctx, caller, id, &in)
	if err != nil {
		return Run{}, err
	}
	return r, s.accept(ctx, &r, in)
}

// prepareRetry is the run that is retried, and the one that would be started;
// what it is given is completed in place.
func (s *Service) prepareRetry(ctx context.Context, caller access.Caller, id ids.Run, in *New) (old, r Run, err error) {
	if err := caller.Must(access.StartRuns); err != nil {
		return Run{}, Run{}, err
	}
	if old, err = s.store.Run(ctx, caller.Team, id); err != nil {
		return Run{}, Run{}, err
	}
	if old.Kind == Reported {
		return Run{}, Run{}, fault.Conflict("this run is executed by %s and only watched here: start it again where it ran", old.Engine).WithCode("reported_run")
	}
	if !old.Status.Terminal() {
		return Run{}, Run{}, fault.Conflict("the run is still %s: cancel it, or wait until it ends", old.Status)
	}
	r = old
	r.ID, r.RetryOf, r.CreatedAt, r.Status = ids.NewRun(), old.ID, s.now(), lifecycle.Queued
	r.Starter, r.For = starter(caller), ""
	in.Label = Label{Tags: old.Tags} // another attempt at the same thing has a name of its own
	r.ErrorCode, r.ErrorMessage, r.CreditsUsed, r.Progress, r.DoneNodes, r.Billed = "", "", 0, 0, 0, 0
	r.StartedAt, r.FinishedAt, r.BilledSince, r.CancelRequested = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	if in.Custom == nil && in.Profile == "" {
		in.Custom, in.Profile = sameSize(old.Size)
	}
	if in.Executor == "" {
		in.Executor = s.stillOffered(ctx, caller.Team, old.Executor)
	}
	if in.Inputs, err = s.asGiven(ctx, old); err != nil {
		return Run{}, Run{}, err
	}
	before, err := s.outputCopy(ctx, old)
	if err != nil {
		return Run{}, Run{}, err
	}
	if before != nil && len(in.Only) == 0 { // a part of a run is a test
		in.OutputTo = before.Still(ctx, old.asker(), s.targets)
	}
	in.literal = true
	if in.Current {
		if err := s.useCurrent(ctx, &r, in); err != nil {
			return Run{}, Run{}, err
		}
	}
	if in.Parameters == nil {
		in.Parameters = old.Parameters
	}
	if len(in.Only) > 0 {
		err = s.keepOnly(ctx, old, &r, in)
	}
	return old, r, err
}

func sameSize(size credits.Size) (*credits.Custom, string) {
	if size.GPU > 0 {
		return nil, credits.GPUProfile
	}
	return &credits.Custom{VCPU: size.VCPU, RAMGB: size.RAMGB}, ""
}

// useCurrent makes the run one of the workflow as it is now. What the workflow
// does not ask for any more is left out, and a value that was only the default
// follows the default.
func (s *Service) useCurrent(ctx context.Context, r *Run, in *New) error {
	src, err := s.submit.RunSource(ctx, r.Team, r.Workflow)
	if err != nil {
		return err
	}
	before, err := readRequirements(r.Definition)
	if err != nil {
		return err
	}
	now, err := readRequirements(src.Definition)
	if err != nil {
		return err
	}
	r.WorkflowName, r.Revision, r.Definition, r.Commit = src.Name, src.Revision, src.Definition, ""
	for name := range in.Inputs {
		if _, asked := now.Inputs[name]; !asked {
			delete(in.Inputs, name)
		}
	}
	if in.Parameters != nil {
		return nil
	}
	in.Parameters, err = now.following(before, r.Parameters)
	return err
}

// requirements is what a definition asks a run for.
type requirements struct {
	Parameters map[string]struct {
		Default json.RawMessage `json:"default"`
	} `json:"parameters"`
	Inputs map[string]json.RawMessage `json:"inputs"`
}

func readRequirements(definition []byte) (a requirements, err error) {
	return a, json.Unmarshal(definition, &a)
}

// following is an earlier run's values without those that are not asked for any
// more, and those that were its default where there is another one.
func (a requirements) following(before requirements, given []byte) ([]byte, error) {
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(given, &values); err != nil {
		return nil, err
	}
	for name, value := range values {
		param, known := a.Parameters[name]
		if !known || param.Default != nil && graph.SameValue(value, before.Parameters[name].Default) {
			delete(values, name)
		}
	}
	return json.Marshal(values)
}
