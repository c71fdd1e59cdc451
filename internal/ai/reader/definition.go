package reader

import (
	"encoding/json"

	"github.com/millrace/millrace/internal/domain/graph"
)

// Arrange checks a suggested definition as strictly as a run would, and lays
// it out anew. When there are problems, there is no definition.
func Arrange(definition []byte) (json.RawMessage, []graph.Problem) {
	g, problems := graph.Parse(definition)
	if len(problems) == 0 {
		problems = g.Incomplete()
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return g.JSON(), nil
}
