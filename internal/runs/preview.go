package runs

import (
	"context"
	"encoding/json"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/reuse"
)

// PreviewRetry says what a retry would take from the run, and why not the
// rest. It starts nothing, and refuses what Retry would refuse as wrong.
func (s *Service) PreviewRetry(ctx context.Context, caller access.Caller, id ids.Run, in New) ([]reuse.Node, error) {
	old, r, err := s.prepareRetry(ctx, caller, id, &in)
	if err != nil {
		return nil, err
	}
	release, err := s.memory.Reserve(len(old.Definition) + len(r.Definition) + len(in.Parameters))
	if err != nil {
		return nil, err
	}
	defer release()
	g, err := runnable(r.Definition)
	if err != nil {
		return nil, err
	}
	given, err := checkGiven(g, &r, in)
	if err != nil {
		return nil, err
	}
	inputs := given.Keys() // what lies elsewhere is looked at when the run starts
	if err := s.checkFiles(ctx, &r, inputs); err != nil {
		return nil, err
	}
	before, err := s.ended(ctx, old)
	if err != nil {
		return nil, err
	}
	now := reuse.Run{Graph: g, Inputs: inputs}
	now.Values, _ = g.CheckParameters(r.Parameters)
	return reuse.Foretell(before, now), nil
}

// ended is a run with what it has come to.
func (s *Service) ended(ctx context.Context, r Run) (reuse.Ended, error) {
	e := reuse.Ended{States: map[string]lifecycle.NodeState{}, Items: map[string]reuse.Items{}}
	e.Graph, _ = graph.Salvage(r.Definition)
	e.Values, _ = e.Graph.CheckParameters(r.Parameters)
	if err := json.Unmarshal(r.Inputs, &e.Inputs); err != nil {
		return e, err
	}
	nodes, err := s.details.NodesOf(ctx, r.ID)
	if err != nil {
		return e, err
	}
	kept, err := s.details.KeptShards(ctx, r.ID)
	if err != nil {
		return e, err
	}
	for _, n := range nodes {
		e.States[n.ID] = n.State
		if n.Shards != nil {
			e.Items[n.ID] = reuse.Items{Total: *n.Shards, Failed: n.ShardsFailed, Kept: kept[n.ID]}
		}
	}
	e.Deleted, err = s.details.NodesWithoutOutputs(ctx, r.ID)
	return e, err
}
