package outputto

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Targets are where outputs are copied to. What it says in a foreseen fault may be
// shown.
type Targets interface {
	// FitsTarget is nil where a connection of the team is for a target.
	FitsTarget(ctx context.Context, team ids.Team, t Target) error
	// CheckTarget is nil where it may also write there now.
	CheckTarget(ctx context.Context, team ids.Team, t Target) error
}

// Asker is whose outputs are to be copied.
type Asker struct {
	Team  ids.Team
	Run   ids.Run
	Guest bool
}

// Fits is nil where the connection of a target is for it, or there is no target.
func (t *Target) Fits(ctx context.Context, a Asker, targets Targets) error {
	switch {
	case t == nil:
		return nil
	case a.Guest:
		return fault.Forbidden("your link does not let you copy outputs elsewhere: ask whoever sent it").WithCode("output_to_not_allowed")
	case targets == nil:
		return fault.Invalid("this server copies no outputs elsewhere")
	}
	return targets.FitsTarget(ctx, a.Team, t.For(a.Run))
}

// Still is the target of an earlier run, or nil where its connection is gone, so that
// nobody can get there any more.
func (t Target) Still(ctx context.Context, a Asker, targets Targets) *Target {
	if fault.Is(t.Fits(ctx, a, targets), fault.KindNotFound) {
		return nil
	}
	return &t
}

// lookTime is how long the other side may take to answer before a run is accepted.
const lookTime = 10 * time.Second

// Check asks whether outputs can be copied to a target, and is what a run keeps of that;
// nil without a target.
func (t *Target) Check(ctx context.Context, a Asker, targets Targets) (*Copy, error) {
	if err := t.Fits(ctx, a, targets); err != nil || t == nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err := targets.CheckTarget(limited, a.Team, t.For(a.Run))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &Copy{Target: *t}, unreachable(t.For(a.Run), err)
}
