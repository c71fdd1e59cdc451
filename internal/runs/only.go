package runs

import (
	"context"
	"encoding/json"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/reuse"
)

// testTag distinguishes runs of some nodes from those of the whole workflow.
const testTag = "test"

// keepOnly cuts the run down to some nodes and what comes before them. What
// comes before is taken as it was where it succeeded, so that it is reused
// even when it has been edited since.
func (s *Service) keepOnly(ctx context.Context, old Run, r *Run, in *New) error {
	nodes, err := s.details.NodesOf(ctx, old.ID)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for _, n := range nodes {
		done[n.ID] = n.State == lifecycle.NodeSucceeded
	}
	definition, wrong, err := reuse.Part(r.Definition, old.Definition, in.Only, done)
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fault.Problems(wrong, "%s", wrong[0].Sentence())
	}
	r.Definition, in.Label = definition, Label{Tags: []string{testTag}}
	return in.dropUnasked(definition)
}

// dropUnasked leaves out values and files that the definition does not ask for.
func (n *New) dropUnasked(definition []byte) error {
	a, err := readRequirements(definition)
	if err != nil {
		return err
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(n.Parameters, &values); err != nil {
		return err
	}
	for name := range values {
		if _, asked := a.Parameters[name]; !asked {
			delete(values, name)
		}
	}
	for name := range n.Inputs {
		if _, asked := a.Inputs[name]; !asked {
			delete(n.Inputs, name)
		}
	}
	n.Parameters, err = json.Marshal(values)
	return err
}
