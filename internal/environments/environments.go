// Package environments is the software that was built for a team's nodes: what
// was asked for, what was chosen, and how building it went. What may be asked
// for is decided in domain/environment; building is the engine's.
package environments

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
)

// State is how far an environment has come.
type State string

// The states. A lock stays once it is there, whatever comes after.
const (
	Waiting  State = "waiting" // nobody has needed it yet
	Building State = "building"
	Ready    State = "ready"
	Failed   State = "failed"
)

// MaxLog is how much is kept of the log of a build, in bytes.
const MaxLog = 64 << 10

// Build is an environment of a team, as it was last built.
type Build struct {
	Key       string // of what was asked for
	Spec      string // in its canonical form
	State     State
	Lock      string // empty until it is known
	Error     string // why it failed
	Log       string // the end of it
	UpdatedAt time.Time
	UsedAt    time.Time // by a run, to the day; what nobody knows is zero
}

// Environment is that of a node of a run.
type Environment struct {
	Build
	Python   string // empty until it is known
	Packages []environment.Locked
}

// Store keeps what was built for a team.
type Store interface {
	// EnvironmentBuild is fault.KindNotFound where nothing was built.
	EnvironmentBuild(ctx context.Context, team ids.Team, key string) (Build, error)
	// EnvironmentBuilds are a team's by key, from after a key on, without logs.
	EnvironmentBuilds(ctx context.Context, team ids.Team, after string, limit int) ([]Build, error)
	// RunDefinition is what a run of the team executes.
	RunDefinition(ctx context.Context, team ids.Team, id ids.Run) ([]byte, error)
}

// Service answers for a team.
type Service struct{ store Store }

// NewService makes a service.
func NewService(s Store) *Service { return &Service{s} }

// All are the environments of the caller's team by key, from after a key on.
func (s *Service) All(ctx context.Context, caller access.Caller, after string, limit int) ([]Build, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	return s.store.EnvironmentBuilds(ctx, caller.Team, after, limit)
}

// OfNode is the environment of a node of a run.
func (s *Service) OfNode(ctx context.Context, caller access.Caller, id ids.Run, node string) (e Environment, err error) {
	if err := caller.Must(access.Read); err != nil {
		return e, err
	}
	definition, err := s.store.RunDefinition(ctx, caller.Team, id)
	if err != nil {
		return e, err
	}
	g, wrong := graph.Parse(definition)
	if len(wrong) > 0 {
		return e, fault.Conflict("the definition of this run cannot be read any more: %s", wrong[0].Message)
	}
	n, ok := g.Node(node)
	if !ok || n.Environment == nil {
		return e, fault.NotFound("the run has no step `%s` with an environment", node)
	}
	e.Build, err = s.store.EnvironmentBuild(ctx, caller.Team, n.Environment.Key())
	if fault.Is(err, fault.KindNotFound) {
		e.Build, err = Build{Key: n.Environment.Key(), Spec: n.Environment.Canonical(), State: Waiting}, nil
	}
	if e.Lock == "" {
		e.Lock = n.Environment.Lock
	}
	if lock, parseErr := environment.ParseLock(e.Lock); parseErr == nil {
		e.Python, e.Packages = lock.Python, lock.Packages
	}
	return e, err
}
