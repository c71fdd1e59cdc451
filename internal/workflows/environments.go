package workflows

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/graph"
)

// SayNoEnvironments has problem say why this server cannot build an environment,
// if it cannot.
func (s *Service) SayNoEnvironments(problem func(environment.Spec) string) {
	s.noEnvironments = problem
}

// unbuildable lists where a definition asks for environments that this server
// cannot build.
func (s *Service) unbuildable(definition []byte) (list []graph.Problem) {
	var d struct {
		Nodes []struct {
			ID          string            `json:"id"`
			Name        string            `json:"name"`
			Environment *environment.Spec `json:"environment"`
		} `json:"nodes"`
	}
	if s.noEnvironments == nil || !bytes.Contains(definition, []byte(`"environment"`)) || json.Unmarshal(definition, &d) != nil {
		return nil
	}
	for i, n := range d.Nodes {
		if n.Environment == nil {
			continue
		}
		if why := s.noEnvironments(*n.Environment); why != "" {
			list = append(list, graph.Problem{Path: fmt.Sprintf("nodes[%d].environment", i), Message: why, Code: graph.EnvironmentUnavailable, Node: n.ID, Field: "environment", Subject: graph.Label(n.Name, n.ID)})
		}
	}
	return list
}
