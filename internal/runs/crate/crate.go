// Package crate describes a run so that others need no Millrace to understand it: as
// a Workflow Run RO-Crate of the Provenance Run Crate profile, with the definition
// and the outputs in it.
package crate

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/runs/archive"
)

// The files of a crate beside the outputs, which are in folders.
const (
	metadataFile = "ro-crate-metadata.json"
	workflowFile = "workflow.json"
	readmeFile   = "README.md"
)

// Origin is where a run comes from.
type Origin struct {
	Team          string // its name
	License       string // of the workflow, by its SPDX identifier; empty: none is stated
	EngineVersion string // of the engine that carried out a pipeline; empty: not known
}

// Origins knows where runs come from.
type Origins interface {
	// OriginOf is that of a run of a team. The license is the one that the workflow
	// states now; a workflow that was deleted states none.
	OriginOf(ctx context.Context, team ids.Team, id ids.Run) (Origin, error)
}

// Service makes crates.
type Service struct {
	Runs    *runs.Service
	Details runs.DetailStore
	Known   runs.AddressStore
	Origins Origins
	Version string // of Millrace
	Now     func() time.Time
}

// Crate is a run of the caller's team with its outputs, to be written as a zip. What
// it names of this server begins with base. Outputs that are missing or have changed
// are a conflict.
func (s *Service) Crate(ctx context.Context, caller access.Caller, id ids.Run, base string) (archive.Archive, error) {
	r, err := s.Runs.Run(ctx, caller, id)
	if err != nil {
		return archive.Archive{}, err
	}
	c := contents{run: r, base: base, version: s.Version, at: s.Now()}
	if c.outputs, _, err = s.Runs.Outputs(ctx, caller, id, runs.OutputQuery{}); err != nil {
		return archive.Archive{}, err
	}
	if c.produced, err = s.Details.OutputsOf(ctx, id); err != nil {
		return archive.Archive{}, err
	}
	if c.nodes, err = s.Runs.NodesOf(ctx, r); err != nil {
		return archive.Archive{}, err
	}
	if c.inputs, err = s.inputs(ctx, caller.Team, r); err != nil {
		return archive.Archive{}, err
	}
	if c.origin, err = s.Origins.OriginOf(ctx, caller.Team, id); err != nil {
		return archive.Archive{}, err
	}
	trace, err := s.Runs.Trace(ctx, caller, id)
	if err == nil {
		c.tasks, err = lastAttempts(ctx, trace)
	}
	if err != nil {
		return archive.Archive{}, err
	}
	return c.archive(s.Runs.OpenOutput)
}

// contents is all that a crate is made of.
type contents struct {
	run      runs.Run
	nodes    []runs.Node   // steps, and processes of the pipeline that one of them launched
	tasks    tasks         // of both
	inputs   []input       // by name
	outputs  []runs.Listed // that are in the crate
	produced []runs.Output // by all steps
	origin   Origin
	base     string // of addresses on this server
	version  string // of Millrace
	at       time.Time
}

// archive is the crate. open reads an output.
func (c contents) archive(open func(context.Context, runs.Output) (io.ReadCloser, error)) (archive.Archive, error) {
	g, _ := graph.Salvage(c.run.Definition)
	a := archive.Archive{Outputs: c.outputs, Open: open, At: c.at}
	d := newDescription(c, g, a.Names())
	metadata, err := json.MarshalIndent(d.document(), "", "  ")
	if err != nil {
		return archive.Archive{}, err
	}
	a.First = []archive.Text{{Name: metadataFile, Data: metadata}, {Name: workflowFile, Data: g.JSON()}, {Name: readmeFile, Data: d.readme()}}
	return a, nil
}

// maxItems is how many items of a step are described one by one. Those of a step that
// has more are described together.
const maxItems = 1000

// tasks are the last attempts of the items of each step, in order.
type tasks map[string]*stepTasks

// stepTasks are those of one step.
type stepTasks struct {
	items []runs.TraceTask // none where there are more than maxItems
	many  bool
}

// lastAttempts reads the last attempt of each item.
func lastAttempts(ctx context.Context, trace func(context.Context, func(runs.TraceTask) error) error) (tasks, error) {
	all := tasks{}
	err := trace(ctx, func(t runs.TraceTask) error {
		all.add(t)
		return nil
	})
	return all, err
}

// add takes an attempt that is later than those of its item before.
func (all tasks) add(t runs.TraceTask) {
	step := all[t.Node]
	if step == nil {
		step = &stepTasks{}
		all[t.Node] = step
	}
	last := len(step.items) - 1
	switch {
	case step.many:
	case last >= 0 && step.items[last].Shard == t.Shard:
		step.items[last] = t
	case last+1 == maxItems:
		step.items, step.many = nil, true
	default:
		step.items = append(step.items, t)
	}
}

// input is what a run was given under one name.
type input struct {
	name   string
	folder string // the address of a folder in a bucket whose files these are; empty: none
	files  []runs.GivenFile
}

func (s *Service) inputs(ctx context.Context, team ids.Team, r runs.Run) (list []input, err error) {
	var given map[string][]string
	if err := json.Unmarshal(r.Inputs, &given); err != nil {
		return nil, err
	}
	var keys []string
	for _, some := range given {
		keys = append(keys, some...)
	}
	known, err := s.Details.FilesAmong(ctx, team, keys)
	if err != nil {
		return nil, err
	}
	elsewhere, err := s.Known.AddressesOf(ctx, team, r.ID)
	if err != nil {
		return nil, err
	}
	for _, o := range elsewhere {
		known[o.URL] = runs.GivenFile{Key: o.URL, Name: o.Name(), Size: o.Size, SHA256: o.Learnt}
	}
	for name, keys := range given {
		one := input{name: name}
		for _, key := range keys {
			if addresses.IsFolder(key) {
				one.folder = key
				for _, o := range addresses.Below(key, elsewhere) {
					one.files = append(one.files, known[o.URL])
				}
				continue
			}
			f, there := known[key]
			if !there {
				f = runs.GivenFile{Key: key, Gone: true}
			}
			one.files = append(one.files, f)
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b input) int { return strings.Compare(a.name, b.name) })
	return list, nil
}
