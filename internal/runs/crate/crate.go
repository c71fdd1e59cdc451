// Package crate describes a run so that others need no Millrace to understand it: as
// a Workflow Run RO-Crate of the Provenance Run Crate profile, with the definition
// and the outputs in it.
package crate

import (
	"context"
	"encoding/json"
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
)

// Service makes crates.
type Service struct {
	Runs    *runs.Service
	Details runs.DetailStore
	Known   runs.AddressStore
	Now     func() time.Time
}

// Crate is a run of the caller's team with its outputs, to be written as a zip.
// Outputs that are missing or have changed are a conflict.
func (s *Service) Crate(ctx context.Context, caller access.Caller, id ids.Run) (archive.Archive, error) {
	r, err := s.Runs.Run(ctx, caller, id)
	if err != nil {
		return archive.Archive{}, err
	}
	outputs, _, err := s.Runs.Outputs(ctx, caller, id, runs.OutputQuery{})
	if err != nil {
		return archive.Archive{}, err
	}
	nodes, err := s.Details.NodesOf(ctx, id)
	if err != nil {
		return archive.Archive{}, err
	}
	inputs, err := s.inputs(ctx, caller.Team, r)
	if err != nil {
		return archive.Archive{}, err
	}
	g, _ := graph.Salvage(r.Definition)
	a := archive.Archive{Outputs: outputs, Open: s.Runs.OpenOutput, At: s.Now()}
	described := newDescription(r, g, nodes, inputs, outputs, a.Names(), a.At)
	metadata, err := json.MarshalIndent(described.document(), "", "  ")
	if err != nil {
		return archive.Archive{}, err
	}
	a.First = []archive.Text{{Name: metadataFile, Data: metadata}, {Name: workflowFile, Data: g.JSON()}}
	return a, nil
}

// input is what a run was given under one name.
type input struct {
	name  string
	files []runs.GivenFile
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
