package runs

import (
	"encoding/json"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
)

// CompareRuns answers GET /api/runs/compare.
func (a *API) CompareRuns(x *kernel.Exchange) (kernel.Answer, error) {
	first, err := x.InQuery("a")
	if err != nil {
		return kernel.Answer{}, err
	}
	second, err := x.InQuery("b")
	if err != nil {
		return kernel.Answer{}, err
	}
	c, err := a.Compare.Compare(x.Context(), x.Caller, ids.Run(first), ids.Run(second))
	if err != nil {
		return kernel.Answer{}, err
	}
	out := api.RunComparison{
		A: runRow(c.A, a.Now()), B: runRow(c.B, a.Now()), SameDefinition: len(c.Changes) == 0, DefinitionChanges: append([]string{}, c.Changes...),
		Parameters: []api.ComparedParameter{}, Inputs: []api.ComparedInput{}, Nodes: []api.ComparedNode{}, Outputs: []api.ComparedOutput{},
	}
	out.OutputCounts.Same, out.OutputCounts.Different, out.OutputCounts.OnlyA, out.OutputCounts.OnlyB = c.Same, c.Different, c.OnlyA, c.OnlyB
	for _, p := range c.Parameters {
		out.Parameters = append(out.Parameters, api.ComparedParameter{Name: p.Name, Same: p.Same, A: json.RawMessage(p.A), B: json.RawMessage(p.B)})
	}
	for _, f := range c.Inputs {
		out.Inputs = append(out.Inputs, api.ComparedInput{Name: f.Name, Same: f.Same, A: givenFiles(f.A), B: givenFiles(f.B)})
	}
	for _, n := range c.Nodes {
		out.Nodes = append(out.Nodes, api.ComparedNode{ID: n.ID, Name: n.Name, A: a.nodeOrNull(n.A), B: a.nodeOrNull(n.B)})
	}
	for _, o := range c.Outputs {
		out.Outputs = append(out.Outputs, api.ComparedOutput{
			NodeID: o.Node, Port: o.Port, Index: o.Shard, Name: o.Name, Same: o.Same, A: madeFile(o.A), B: madeFile(o.B),
		})
	}
	return kernel.OK(out)
}

func (a *API) nodeOrNull(n *runs.Node) *api.RunNode {
	if n == nil {
		return nil
	}
	out := NodeOut(*n, a.Now())
	return &out
}

func givenFiles(list []runs.GivenFile) []api.GivenFile {
	out := make([]api.GivenFile, len(list))
	for i, f := range list {
		out[i] = api.GivenFile{Key: f.Key, Name: f.Name, Sha256: kernel.OrNull(f.SHA256)}
		if !f.Gone {
			out[i].Size = &f.Contents
		}
	}
	return out
}

func madeFile(o *runs.Output) *api.GivenFile {
	if o == nil {
		return nil
	}
	size := o.Contents()
	return &api.GivenFile{Key: o.Key, Name: o.Name, Size: &size, Sha256: kernel.OrNull(o.SHA256)}
}
