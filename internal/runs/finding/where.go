package finding

import (
	"context"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Kind is a kind of thing that people send one another links to.
type Kind string

// The kinds.
const (
	Workflow Kind = "workflow"
	Run      Kind = "run"
	Sweep    Kind = "sweep"
	Analysis Kind = "analysis"
	File     Kind = "file"
)

// kindOf tells by an id what it names. A file goes by its key.
func kindOf(id string) Kind {
	switch prefix, _, _ := strings.Cut(id, "_"); prefix {
	case "wf":
		return Workflow
	case "run":
		return Run
	case "swp":
		return Sweep
	case "an":
		return Analysis
	}
	return File
}

// OwnerStore knows the team that something belongs to.
type OwnerStore interface {
	// OwnerOf is the team of a thing; fault.KindNotFound if there is no such thing.
	OwnerOf(ctx context.Context, kind Kind, id string) (ids.Team, error)
}

// Where tells what an id names and which of the given teams it belongs to. What
// belongs to another team is not found.
func (s *Service) Where(ctx context.Context, teams []ids.Team, id string) (Kind, ids.Team, error) {
	kind := kindOf(id)
	team, err := s.owners.OwnerOf(ctx, kind, id)
	if fault.Is(err, fault.KindNotFound) || err == nil && !slices.Contains(teams, team) {
		return "", "", fault.NotFound("no such workflow, run, sweep, file or analysis in your teams")
	}
	return kind, team, err
}
