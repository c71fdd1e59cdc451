package runs

import (
	"context"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// Automatic is how a run is started that nobody starts by hand. It is accepted
// only while the member in whose name it is may start runs.
type Automatic struct {
	Starter Starter
	For     ids.User
	Firing  *Firing     // by a schedule
	Trigger ids.Trigger // by a trigger
}

// SubmitAutomatic accepts a run of what a member last confirmed of a workflow,
// or says everything that is wrong with it.
func (s *Service) SubmitAutomatic(ctx context.Context, team ids.Team, in New, a Automatic) (Run, error) {
	src, err := s.submit.ConfirmedSource(ctx, team, in.Workflow)
	if err != nil {
		return Run{}, err
	}
	r := Run{
		ID: ids.NewRun(), Team: team, Workflow: in.Workflow, WorkflowName: src.Name, Revision: src.Revision, Definition: src.Definition,
		Starter: a.Starter, For: a.For, Firing: a.Firing, Trigger: a.Trigger, Status: lifecycle.Queued, CreatedAt: s.now(),
	}
	return r, s.accept(ctx, &r, in)
}

// CheckGiven finds what is wrong with what runs of a workflow are to be given,
// also while the workflow itself is not complete.
func (s *Service) CheckGiven(ctx context.Context, team ids.Team, in New) error {
	src, err := s.submit.ConfirmedSource(ctx, team, in.Workflow)
	if err != nil {
		return err
	}
	release, err := s.memory.Reserve(len(src.Definition) + len(in.Parameters))
	if err != nil {
		return err
	}
	defer release()
	g, malformed := graph.Parse(src.Definition)
	if len(malformed) > 0 {
		return nil // whoever runs it is told
	}
	r := Run{Team: team, Workflow: in.Workflow}
	inputs, err := checkGiven(g, &r, in)
	if in.OutputTo != nil && len(in.OutputTo.Problems()) == 0 { // whatever is wrong with parameters, which may come later
		if err := in.OutputTo.Fits(ctx, r.asker(), s.targets); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if list, _ := inputs.Addresses(); len(list) > 0 { // what is there counts when a run starts
		if err := s.mayReach(&r); err != nil {
			return err
		}
		if err := s.remote.Fits(ctx, team, list); err != nil {
			return err
		}
	}
	return s.checkFiles(ctx, &r, inputs.Keys())
}

// Own reports whether a run is the caller's: theirs, or started in their name.
func (r Run) Own(caller access.Caller) bool {
	return r.Starter.ID == caller.Subject() || r.For != "" && r.For == caller.User
}
