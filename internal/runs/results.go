package runs

import (
	"context"
	"encoding/json"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Results are what a run shows to people outside its team: no command, no
// variable, no log and no name of who started it.
type Results struct {
	Run     Run
	Steps   []SharedStep
	Edges   [][2]string // source and target
	Values  map[string]json.RawMessage
	Outputs []Listed
	Next    string // the key of an output to go on after; empty: there are no more
}

// SharedStep is a step of the graph, and how it went.
type SharedStep struct {
	Node
	At graph.Position
}

// SharedRun is a run of a team, for whoever holds a link to its results.
func (s *Service) SharedRun(ctx context.Context, team ids.Team, id ids.Run) (Run, error) {
	return s.store.Run(ctx, team, id)
}

// Results are those of a run of a team, with the parameters of these names, for
// whoever holds a link to them. Outputs that are gone are left out.
func (s *Service) Results(ctx context.Context, team ids.Team, id ids.Run, shown []string, q OutputQuery) (Results, error) {
	r, err := s.store.Run(ctx, team, id)
	if err != nil {
		return Results{}, err
	}
	release, err := s.memory.Reserve(len(r.Definition))
	if err != nil {
		return Results{}, err
	}
	defer release()
	if r.Sweep != "" {
		r.Name = "" // it is made of the values that vary, which were not ticked
	}
	out := Results{Run: r, Values: map[string]json.RawMessage{}}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(r.Parameters, &values); err != nil {
		return out, err
	}
	for _, name := range shown {
		if value, there := values[name]; there {
			out.Values[name] = value
		}
	}
	known, err := s.details.NodesOf(ctx, id)
	if err != nil {
		return out, err
	}
	g, _ := graph.Salvage(r.Definition)
	places := map[string]graph.Position{}
	for _, n := range g.Nodes {
		places[n.ID] = n.Position
	}
	for _, n := range NodesIn(r, known) {
		out.Steps = append(out.Steps, SharedStep{Node: n, At: places[n.ID]})
	}
	for _, e := range g.Edges {
		out.Edges = append(out.Edges, [2]string{e.Source, e.Target})
	}
	list, err := s.details.OutputsOf(ctx, id)
	if err != nil {
		return out, err
	}
	out.Outputs, out.Next, _, err = s.listed(ctx, r, g, list, q)
	return out, err
}
