package workflows

import (
	"context"
	"encoding/json"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/search"
)

// The bounds of a search for steps.
const (
	maxSteps          = 20
	searchedWorkflows = 500
	searchedBytes     = 32 << 20
	searchedLargest   = 1 << 20 // of one definition
)

// Step is a node of a workflow.
type Step struct {
	Workflow     ids.Workflow
	WorkflowName string
	Node         string
	Name         string
}

// DefinitionStore reads definitions.
type DefinitionStore interface {
	// EachDefinition gives those of a team up to a size, the last changed first,
	// until most have been given or it is told false.
	EachDefinition(ctx context.Context, team ids.Team, largest, most int, give func(id ids.Workflow, name string, definition []byte) bool) error
}

// Steps are nodes whose name or id has all the words.
func (s *Service) Steps(ctx context.Context, caller access.Caller, words string) ([]Step, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	query, read := search.Parse(words), 0
	var found []Step
	err := s.stores.Definitions.EachDefinition(ctx, caller.Team, searchedLargest, searchedWorkflows, func(id ids.Workflow, name string, definition []byte) bool {
		read += len(definition)
		var d struct {
			Nodes []struct{ ID, Name, Type string }
		}
		if json.Unmarshal(definition, &d) != nil { // a definition was read when it was saved
			return true
		}
		for _, n := range d.Nodes {
			if n.Type != "note" && query.Finds(search.Endings(search.Words(n.Name, n.ID))) {
				found = append(found, Step{id, name, n.ID, n.Name})
			}
		}
		return len(found) < maxSteps && read < searchedBytes
	})
	return found[:min(len(found), maxSteps)], err
}
