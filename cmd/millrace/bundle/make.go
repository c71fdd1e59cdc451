// Package bundle makes bundles of what workflows need, and takes them in on machines
// without network.
package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/images"
	builds "github.com/millrace/millrace/internal/environments"
	"github.com/millrace/millrace/internal/git"
	"github.com/millrace/millrace/internal/offline"
	"github.com/millrace/millrace/internal/remote"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/workflows"
)

// Maker puts what workflows need into a bundle. Its stores are of its own, so that all is
// fetched anew.
type Maker struct {
	Out          *offline.Writer
	Images       *images.Store
	Environments *environments.Store
	Code         *git.Hosts
	Inputs       *remote.Inputs
	Say          func(format string, args ...any)
}

// Add adds a workflow with all that its steps name.
func (m *Maker) Add(ctx context.Context, w workflows.Workflow) error {
	g, problems := graph.Parse(w.Definition)
	if len(problems) > 0 {
		return fmt.Errorf("the definition of %s has a problem: %s", w.ID, problems[0].Message)
	}
	if err := m.addCode(ctx, w, g); err != nil {
		return err
	}
	for _, n := range g.Nodes {
		if err := m.addSoftware(ctx, w.Team, n); err != nil {
			return err
		}
	}
	if engine := pipeline.Of(g); engine != "" {
		m.Say("Note: %s launches a pipeline. %s itself, and what it fetches while it runs, are not in the bundle.", w.ID, engine.Title())
	}
	definition, err := withoutConnection(g.JSON())
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(map[string]any{"name": w.Name, "description": w.Description, "license": w.License, "definition": definition}, "", "  ")
	if err != nil {
		return err
	}
	return m.Out.AddWorkflow(string(w.ID), w.Name, text)
}

// addCode adds the code of a workflow, and that which it follows at the commit that it
// has come to.
func (m *Maker) addCode(ctx context.Context, w workflows.Workflow, g *graph.Graph) error {
	if w.Git != nil {
		m.Say("Fetching the code of %s at %s", w.Git.Git, w.Git.Commit)
		if _, err := m.Code.Save(ctx, w.Team, w.Git.Source, w.Git.Commit); err != nil {
			return err
		}
	}
	if g.Source == nil || g.Source.Git == "" {
		return nil
	}
	m.Say("Fetching the code of %s", g.Source.Git)
	commit, err := m.Code.Save(ctx, w.Team, *g.Source, "")
	if err == nil {
		m.Say("  at %s", commit)
	}
	return err
}

// addSoftware adds the image or the environment of a step.
func (m *Maker) addSoftware(ctx context.Context, team ids.Team, n *graph.Node) error {
	switch {
	case n.Image != "":
		m.Say("Fetching the image %s", n.Image)
		return m.Images.Save(ctx, n.Image, m.Out)
	case n.Environment != nil:
		m.Say("Building the environment of the step %s", n.ID)
		lock, err := m.Environments.For(team).Save(ctx, n.Environment.Canonical())
		if err == nil && lock.Python != "" {
			m.Say("  %d packages, for Python %s, which the other machine needs, too", len(lock.Packages), lock.Python)
		} else if err == nil {
			m.Say("  %d packages", len(lock.Packages))
		}
		return err
	}
	return nil
}

// AddInput adds what is at an address now, for everybody who may ask there.
func (m *Maker) AddInput(ctx context.Context, address string) error {
	a := addresses.Address{URL: address}
	if problem := a.Problem(); problem != "" {
		return fmt.Errorf("%q %s", address, problem)
	}
	if a.Pattern() || addresses.IsFolder(address) {
		return fmt.Errorf("%s is not one file: give the address of each", a.Shown())
	}
	m.Say("Fetching %s", a.Shown())
	found, failed := m.Inputs.Look(ctx, "", []addresses.Address{a}, func(int) bool { return false })
	if failed[0] != nil {
		return fmt.Errorf("%s: %w", a.Shown(), failed[0])
	}
	o := found[0][0]
	r, err := m.Inputs.Open(ctx, "", o, 0, -1)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Shown(), err)
	}
	defer r.Close()
	blob, err := m.Out.Put(r)
	if err == nil && o.Size >= 0 && blob.Size != o.Size {
		err = errors.New("it was cut off")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", a.Shown(), err)
	}
	m.Out.Add(offline.Item{Kind: offline.Input, Name: address, Value: blob.SHA256, Blobs: []offline.Blob{blob}})
	return nil
}

// withoutConnection is a definition whose code needs no credentials. What was loaded needs
// none, and the connection is not there on another machine.
func withoutConnection(definition []byte) (map[string]json.RawMessage, error) {
	var workflow, source map[string]json.RawMessage
	if err := json.Unmarshal(definition, &workflow); err != nil || workflow["source"] == nil {
		return workflow, err
	}
	err := json.Unmarshal(workflow["source"], &source)
	if err == nil {
		delete(source, "connection")
		workflow["source"], err = json.Marshal(source)
	}
	return workflow, err
}

// Records have the locks of teams, and keep to themselves what is built for a bundle.
type Records struct {
	Locks interface {
		EnvironmentBuild(ctx context.Context, team ids.Team, key string) (builds.Build, error)
	}

	mu    sync.Mutex
	built map[string]builds.Build
}

// EnvironmentBuild is what was built for the bundle, or the lock of the team.
func (r *Records) EnvironmentBuild(ctx context.Context, team ids.Team, key string) (builds.Build, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b, ok := r.built[string(team)+key]; ok {
		return b, nil
	}
	b, err := r.Locks.EnvironmentBuild(ctx, team, key)
	if err == nil && b.Lock == "" {
		err = fault.NotFound("nothing was chosen yet")
	}
	return builds.Build{Key: b.Key, Spec: b.Spec, State: builds.Waiting, Lock: b.Lock}, err
}

// SaveEnvironmentBuild keeps what is built for the bundle.
func (r *Records) SaveEnvironmentBuild(_ context.Context, team ids.Team, b builds.Build) (lock string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.built == nil {
		r.built = map[string]builds.Build{}
	}
	r.built[string(team)+b.Key] = b
	return b.Lock, nil
}

// EnvironmentUsed notes nothing: no run uses what is built for a bundle.
func (r *Records) EnvironmentUsed(context.Context, ids.Team, string, time.Time) (known bool, err error) {
	return true, nil
}
