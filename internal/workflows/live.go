package workflows

import (
	"bytes"
	"context"
	"reflect"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Live is where people edit workflows together. A workflow that was opened
// there has a document; that is the truth, and the definition follows it.
type Live interface {
	// SyncDefinition brings the definition up to what the document says now, and reports
	// whether it had to.
	SyncDefinition(ctx context.Context, team ids.Team, id ids.Workflow) (moved bool, err error)
	// ApplyDefinition makes the document say a definition, as an edit that everybody in
	// the room sees, and syncs it. Nothing is done when the document has
	// moved on from d.Seq, unless that is 0.
	ApplyDefinition(ctx context.Context, d LiveDefinition) (done bool, err error)
}

// LiveDefinition is a definition that comes from, or goes to, a live document.
type LiveDefinition struct {
	Team       ids.Team
	Workflow   ids.Workflow
	Definition []byte
	Seq        int64 // of the document
	Author     access.Author
	Summary    string // makes it a revision of its own
}

// GoLive says where people edit together, before the first request.
func (s *Service) GoLive(l Live) { s.live = l }

// synced is a workflow with everything that was edited until now.
func (s *Service) synced(ctx context.Context, team ids.Team, id ids.Workflow) (Workflow, error) {
	w, err := s.stores.Workflows.Workflow(ctx, team, id)
	if err != nil || s.live == nil || w.DocumentSeq == 0 {
		return w, err
	}
	moved, err := s.live.SyncDefinition(ctx, team, id)
	if err != nil || !moved && w.DocumentSeq == w.SyncedSeq {
		return w, err
	}
	return s.stores.Workflows.Workflow(ctx, team, id)
}

// Stored is a workflow as it was last saved, with all its problems, for whoever
// edits its document.
func (s *Service) Stored(ctx context.Context, team ids.Team, id ids.Workflow) (Workflow, error) {
	w, err := s.stores.Workflows.Workflow(ctx, team, id)
	return s.looked(ctx, w, err)
}

// SaveFromDocument keeps what a document says as the workflow's definition. It is never
// refused: what saving would refuse becomes a problem.
func (s *Service) SaveFromDocument(ctx context.Context, d LiveDefinition) (Workflow, error) {
	w, err := s.settleDrawing(ctx, d)
	return s.looked(ctx, w, err)
}

func (s *Service) settleDrawing(ctx context.Context, d LiveDefinition) (Workflow, error) {
	g, malformed := graph.Salvage(d.Definition)
	for {
		before, err := s.stores.Workflows.Workflow(ctx, d.Team, d.Workflow)
		if err != nil || before.SyncedSeq >= d.Seq {
			return before, err
		}
		after := before
		after.define(g, malformed)
		after.SyncedSeq = d.Seq
		var rev *Revision
		if !bytes.Equal(before.Definition, after.Definition) || !reflect.DeepEqual(before.Problems, after.Problems) {
			if rev, err = s.revision(ctx, d.Author, before, g, d.Summary); err != nil {
				return before, err
			}
			after.Revision, after.UpdatedAt = rev.Number, s.now()
		}
		if saved, err := s.stores.Workflows.SaveSynced(ctx, after, rev); err != nil || saved {
			return after, err
		}
	}
}
