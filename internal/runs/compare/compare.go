// Package compare sets two runs side by side: what they were given, how their
// definitions differ, how their steps went and which outputs are the same.
package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// Service compares runs.
type Service struct {
	Runs    *runs.Service
	Details runs.DetailStore
	Known   runs.AddressStore
	Memory  *bounds.Memory // of the server; nil: without end
}

// Comparison is two runs side by side.
type Comparison struct {
	A, B       runs.Run
	Parameters []ComparedValue
	Inputs     []ComparedFiles
	Changes    []string // from the definition of A to that of B
	Nodes      []ComparedNode
	Outputs    []ComparedOutput // those that differ first
	Same       int              // outputs
	Different  int
	OnlyA      int
	OnlyB      int
}

// ComparedValue is a parameter; nil where a run has none of that name.
type ComparedValue struct {
	Name string
	A, B json.RawMessage
	Same bool
}

// ComparedFiles are the files of an input.
type ComparedFiles struct {
	Name string
	A, B []runs.GivenFile
	Same bool // the same bytes in the same order
}

// ComparedNode is a step; nil where a run has none of that id.
type ComparedNode struct {
	ID, Name string
	A, B     *runs.Node
}

// ComparedOutput is a file that both runs, or one of them, made.
type ComparedOutput struct {
	Node, Port, Name string
	Shard            int
	A, B             *runs.Output
	Same             bool
}

const maxCompared = 1000 // outputs that are listed

// Compare sets two runs of the caller's team side by side.
func (s *Service) Compare(ctx context.Context, caller access.Caller, first, second ids.Run) (Comparison, error) {
	var c Comparison
	var err error
	if c.A, err = s.Runs.Run(ctx, caller, first); err != nil {
		return c, err
	}
	if c.B, err = s.Runs.Run(ctx, caller, second); err != nil {
		return c, err
	}
	release, err := s.Memory.Reserve(len(c.A.Definition) + len(c.B.Definition))
	if err != nil {
		return c, err
	}
	defer release()
	if !bytes.Equal(c.A.Definition, c.B.Definition) {
		before, _ := graph.Salvage(c.A.Definition)
		after, _ := graph.Salvage(c.B.Definition)
		c.Changes = graph.Differences(before, after)
	}
	if err := c.compareValues(); err != nil {
		return c, err
	}
	if err := s.compareInputs(ctx, caller.Team, &c); err != nil {
		return c, err
	}
	if err := s.compareNodes(ctx, &c); err != nil {
		return c, err
	}
	return c, s.compareOutputs(ctx, &c)
}

func (c *Comparison) compareValues() error {
	var a, b map[string]json.RawMessage
	if err := json.Unmarshal(c.A.Parameters, &a); err != nil {
		return err
	}
	if err := json.Unmarshal(c.B.Parameters, &b); err != nil {
		return err
	}
	for _, name := range bothKeys(a, b) {
		c.Parameters = append(c.Parameters, ComparedValue{Name: name, A: a[name], B: b[name], Same: bytes.Equal(a[name], b[name])})
	}
	return nil
}

func bothKeys[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func (s *Service) compareInputs(ctx context.Context, team ids.Team, c *Comparison) error {
	var a, b map[string][]string
	if err := json.Unmarshal(c.A.Inputs, &a); err != nil {
		return err
	}
	if err := json.Unmarshal(c.B.Inputs, &b); err != nil {
		return err
	}
	var keys []string
	for _, list := range slices.Concat(slices.Collect(maps.Values(a)), slices.Collect(maps.Values(b))) {
		keys = append(keys, list...)
	}
	known, err := s.Details.FilesAmong(ctx, team, keys)
	if err != nil {
		return err
	}
	takenA, err := s.taken(ctx, team, c.A.ID)
	if err != nil {
		return err
	}
	takenB, err := s.taken(ctx, team, c.B.ID)
	if err != nil {
		return err
	}
	files := func(keys []string, taken map[string]runs.GivenFile) (list []runs.GivenFile) {
		for _, key := range keys {
			if addresses.IsFolder(key) {
				list = append(list, inFolder(key, taken)...)
				continue
			}
			f, there := known[key]
			if !there {
				f, there = taken[key]
			}
			if !there {
				f = runs.GivenFile{Key: key, Name: path.Base(key), Gone: true}
			}
			list = append(list, f)
		}
		return list
	}
	for _, name := range bothKeys(a, b) {
		one := ComparedFiles{Name: name, A: files(a[name], takenA), B: files(b[name], takenB)}
		one.Same = slices.EqualFunc(one.A, one.B, func(f, g runs.GivenFile) bool {
			return f.Key == g.Key && !addresses.Is(f.Key) || f.SHA256 != "" && f.SHA256 == g.SHA256
		})
		c.Inputs = append(c.Inputs, one)
	}
	return nil
}

// inFolder are the files of a folder that lies elsewhere, in order.
func inFolder(folder string, taken map[string]runs.GivenFile) (list []runs.GivenFile) {
	for _, key := range slices.Sorted(maps.Keys(taken)) {
		if strings.HasPrefix(key, folder) {
			list = append(list, taken[key])
		}
	}
	return list
}

// taken are the inputs of a run that lie elsewhere, as it has read them.
func (s *Service) taken(ctx context.Context, team ids.Team, id ids.Run) (map[string]runs.GivenFile, error) {
	list, err := s.Known.AddressesOf(ctx, team, id)
	files := map[string]runs.GivenFile{}
	for _, o := range list {
		files[o.URL] = runs.GivenFile{Key: o.URL, Name: o.Name(), Size: o.Size, Contents: o.Size, SHA256: o.Learnt}
	}
	return files, err
}

func (s *Service) compareNodes(ctx context.Context, c *Comparison) error {
	lists := [2][]runs.Node{}
	for i, r := range []runs.Run{c.A, c.B} {
		known, err := s.Details.NodesOf(ctx, r.ID)
		if err != nil {
			return err
		}
		lists[i] = runs.NodesIn(r, known)
	}
	at := map[string]int{}
	for i := range lists[0] {
		n := &lists[0][i]
		at[n.ID] = len(c.Nodes)
		c.Nodes = append(c.Nodes, ComparedNode{ID: n.ID, Name: n.Name, A: n})
	}
	for i := range lists[1] {
		n := &lists[1][i]
		if place, both := at[n.ID]; both {
			c.Nodes[place].B, c.Nodes[place].Name = n, n.Name
			continue
		}
		c.Nodes = append(c.Nodes, ComparedNode{ID: n.ID, Name: n.Name, B: n})
	}
	return nil
}

func (s *Service) compareOutputs(ctx context.Context, c *Comparison) error {
	type place struct {
		node, port, name string
		shard            int
		nth              int // of those of one name, which lay in several folders
	}
	at := map[place]int{}
	for i, r := range []runs.Run{c.A, c.B} {
		list, err := s.Details.OutputsOf(ctx, r.ID)
		if err != nil {
			return err
		}
		seen := map[place]int{}
		for _, o := range list {
			p := place{node: o.Node, port: o.Port, name: o.Name, shard: o.Shard}
			seen[p]++
			p.nth = seen[p]
			if _, there := at[p]; !there {
				at[p] = len(c.Outputs)
				c.Outputs = append(c.Outputs, ComparedOutput{Node: o.Node, Port: o.Port, Name: o.Name, Shard: o.Shard})
			}
			if i == 0 {
				c.Outputs[at[p]].A = &o
			} else {
				c.Outputs[at[p]].B = &o
			}
		}
	}
	for i := range c.Outputs {
		o := &c.Outputs[i]
		switch {
		case o.B == nil:
			c.OnlyA++
		case o.A == nil:
			c.OnlyB++
		case o.A.SHA256 == o.B.SHA256:
			o.Same = true
			c.Same++
		default:
			c.Different++
		}
	}
	slices.SortStableFunc(c.Outputs, func(a, b ComparedOutput) int {
		switch {
		case a.Same == b.Same:
			return 0
		case b.Same:
			return -1
		}
		return 1
	})
	c.Outputs = c.Outputs[:min(len(c.Outputs), maxCompared)]
	return nil
}
