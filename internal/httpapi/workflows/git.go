package workflows

import (
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/workflows"
)

// gitWindow is how often a team has Git hosts asked while somebody waits.
var gitWindow = limits.Window{Most: 30, Per: time.Minute}

func (a *API) takeGit(x *kernel.Exchange) error {
	rule := limits.Rule{Name: "git", Bucket: "git " + string(x.Caller.Team), Window: gitWindow}
	s, err := a.Limiter.TakeHit(x.Context(), rule.Bucket, rule.Window, a.Now())
	if err != nil {
		return err
	}
	if x.CountedBy(rule, s); !s.Allowed {
		return fault.Limited(s.Reset, "a team reads workflows from Git at most %d times a minute; wait and try again", gitWindow.Most)
	}
	return nil
}

// gitIn is the repository that a new workflow is to follow; nil: none.
func (a *API) gitIn(x *kernel.Exchange, in *api.NewGit) (*source.Source, error) {
	if in == nil {
		return nil, nil //nolint:nilnil // it follows nothing
	}
	if err := a.takeGit(x); err != nil {
		return nil, err
	}
	x.TakeLonger()
	return &source.Source{
		Git: in.Git, Ref: kernel.OrEmpty(in.Ref), Path: kernel.OrEmpty(in.Path), Connection: kernel.OrEmpty(in.Connection),
	}, nil
}

func gitOut(f *workflows.Followed) *api.FollowedGit {
	if f == nil {
		return nil
	}
	return &api.FollowedGit{
		Git: f.Git, Ref: kernel.OrNull(f.Ref), Path: kernel.OrNull(f.Path), Connection: kernel.OrNull(f.Connection),
		Commit: f.Commit, RefreshedAt: api.At(f.RefreshedAt), Problem: kernel.OrNull(f.Problem),
	}
}

// RefreshWorkflow answers POST /api/workflows/{id}/refresh.
func (a *API) RefreshWorkflow(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.Workflows.Workflow(x.Context(), x.Caller, workflow(x)); err != nil {
		return kernel.Answer{}, err
	}
	if err := a.takeGit(x); err != nil {
		return kernel.Answer{}, err
	}
	w, err := a.Workflows.Refresh(x.Context(), x.Caller, workflow(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	return workflowAnswer(w), nil
}

// DetachWorkflow answers POST /api/workflows/{id}/detach.
func (a *API) DetachWorkflow(x *kernel.Exchange) (kernel.Answer, error) {
	w, err := a.Workflows.Detach(x.Context(), x.Caller, workflow(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	return workflowAnswer(w), nil
}
