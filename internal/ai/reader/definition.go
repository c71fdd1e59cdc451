package reader

import (
	"encoding/json"

	"github.com/millrace/millrace/internal/domain/graph"
)

// Arrange checks a suggested definition as strictly as a run would, and lays
// it out anew: where nodes stand is no business of who suggests them. When
// there are problems, there is no definition.
func Arrange(definition []byte) (json.RawMessage, []graph.Problem) {
	g, problems := graph.Parse(withoutPositions(definition))
	if len(problems) == 0 {
		problems = g.Incomplete()
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return g.JSON(), nil
}

// withoutPositions leaves what it cannot read as it is: Parse says what is
// wrong with it.
func withoutPositions(definition []byte) []byte {
	var root map[string]json.RawMessage
	var nodes []map[string]json.RawMessage
	if json.Unmarshal(definition, &root) != nil || json.Unmarshal(root["nodes"], &nodes) != nil {
		return definition
	}
	placed := false
	for _, n := range nodes {
		_, has := n["position"]
		placed = placed || has
		delete(n, "position")
	}
	if !placed {
		return definition
	}
	list, err := json.Marshal(nodes)
	if err != nil {
		return definition
	}
	root["nodes"] = list
	if definition, err = json.Marshal(root); err != nil {
		return nil
	}
	return definition
}
