package workflows

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/license"
	"github.com/millrace/millrace/internal/domain/tags"
)

// Revision is a definition that was, or is, the workflow's.
type Revision struct {
	Number        int
	CreatedBy     ids.User
	CreatedByName string
	Guest         string // who drew it, by an invitation of CreatedBy
	GuestName     string
	CreatedAt     time.Time
	UpdatedAt     time.Time
	Summary       string
	Definition    []byte // only when one is read
	Closed        bool   // a run used it: the next edit opens another
	Confirmed     bool   // a member stands behind it
}

// RevisionStore keeps revisions.
type RevisionStore interface {
	// Revisions lists at most limit revisions below the number before, newest
	// first.
	Revisions(ctx context.Context, team ids.Team, id ids.Workflow, before, limit int) ([]Revision, error)
	Revision(ctx context.Context, team ids.Team, id ids.Workflow, number int) (Revision, error)
	// ConfirmRevision says that a member stands behind the current definition,
	// unless it is another by now; closes ends the revision.
	ConfirmRevision(ctx context.Context, team ids.Team, id ids.Workflow, number int, fingerprint string, closes bool) (confirmed bool, err error)
}

// revisionWindow is how long one author's edits stay one revision.
const revisionWindow = 5 * time.Minute

// Edit is what to change; nil stays as it is.
type Edit struct {
	Name        *string
	Description *string
	License     *string
	Definition  []byte
	Tags        []string
	Folder      *string

	// IfMatch are the ETags the caller will overwrite; nil is any.
	IfMatch []string
}

// Update changes a workflow. Two who edit different fields at once both win.
func (s *Service) Update(ctx context.Context, caller access.Caller, id ids.Workflow, e Edit) (Workflow, error) {
	if err := caller.Must(access.EditWorkflows); err != nil {
		return Workflow{}, err
	}
	g, err := s.checked(ctx, caller.Team, e)
	if err != nil {
		return Workflow{}, err
	}
	w, err := s.save(ctx, saving{team: caller.Team, id: id, by: access.Author{User: caller.User}, exactly: e.IfMatch != nil}, func(w *Workflow) (*graph.Graph, string, error) {
		if e.IfMatch != nil && !matches(e.IfMatch, w.ETag()) {
			return nil, "", fault.Stale("the workflow has changed since you read it: read it again, then repeat your change").WithCode("stale")
		}
		if e.Name != nil {
			w.Name = strings.TrimSpace(*e.Name)
		}
		if e.Description != nil {
			w.Description = *e.Description
		}
		if e.License != nil {
			w.License, _ = license.Checked(*e.License)
		}
		if e.Tags != nil {
			w.Tags, _ = tags.Checked(e.Tags)
		}
		if e.Folder != nil {
			w.Folder, _ = CheckedFolder(*e.Folder)
		}
		return g, "", nil
	})
	return s.looked(ctx, w, err)
}

func matches(wanted []string, etag string) bool {
	for _, t := range wanted {
		if t == "*" || t == etag {
			return true
		}
	}
	return false
}

// Restore makes an earlier revision's definition the current one, as a new
// revision.
func (s *Service) Restore(ctx context.Context, caller access.Caller, id ids.Workflow, number int) (Workflow, error) {
	if err := caller.Must(access.EditWorkflows); err != nil {
		return Workflow{}, err
	}
	rev, err := s.stores.Revisions.Revision(ctx, caller.Team, id, number)
	if err != nil {
		return Workflow{}, err
	}
	g, malformed := graph.Parse(rev.Definition)
	if len(malformed) > 0 {
		return Workflow{}, fault.Problems(malformed, "revision %d cannot be restored: %s", number, first(malformed))
	}
	w, err := s.save(ctx, saving{team: caller.Team, id: id, by: access.Author{User: caller.User}}, func(*Workflow) (*graph.Graph, string, error) {
		return g, fmt.Sprintf("restored revision %d", number), nil
	})
	return s.looked(ctx, w, err)
}

// saving is who saves which workflow.
type saving struct {
	team    ids.Team
	id      ids.Workflow
	by      access.Author
	exactly bool // the definition must be made of what is there
	fromGit bool // it comes from where the workflow follows
}

// save reads, changes and writes, again whenever somebody was faster. change
// returns the definition (nil: the same) and a summary that makes it a
// revision of its own. Where people edit together, a definition becomes an
// edit of theirs.
func (s *Service) save(ctx context.Context, by saving, change func(*Workflow) (*graph.Graph, string, error)) (Workflow, error) {
	if err := s.hasRoom(ctx); err != nil {
		return Workflow{}, err
	}
	for {
		before, err := s.synced(ctx, by.team, by.id)
		if err != nil {
			return Workflow{}, err
		}
		after := before
		g, summary, err := change(&after)
		if err != nil {
			return Workflow{}, err
		}
		if g != nil && before.Git != nil && !by.fromGit {
			return Workflow{}, errFollowsGit(by.id)
		}
		if g != nil && before.DocumentSeq > 0 && s.live != nil {
			d := LiveDefinition{Team: by.team, Workflow: by.id, Definition: g.JSON(), Author: by.by, Summary: summary}
			if by.exactly {
				d.Seq = before.DocumentSeq
			}
			if done, err := s.live.ApplyDefinition(ctx, d); err != nil {
				return Workflow{}, err
			} else if !done {
				continue
			}
			if err := s.standBehind(ctx, by, g); err != nil {
				return Workflow{}, err
			}
			if calledAlike(before, after) {
				return s.stores.Workflows.Workflow(ctx, by.team, by.id)
			}
			by.exactly = false // what it was to match is what it was made of
			change = named(before, after)
			continue
		}
		if g != nil {
			after.define(g, nil)
		}
		var rev *Revision
		switch {
		case !bytes.Equal(before.Definition, after.Definition):
			if rev, err = s.revision(ctx, by.by, before, g, summary); err != nil {
				return Workflow{}, err
			}
			after.Revision = rev.Number
		case calledAlike(before, after):
			return before, nil
		}
		after.UpdatedAt = s.now()
		if saved, err := s.stores.Workflows.SaveWorkflow(ctx, after, rev); err != nil || saved {
			after.Version++
			return after, err
		}
	}
}

// standBehind confirms a definition that a member has just sent as a whole,
// whoever drew parts of it before.
func (s *Service) standBehind(ctx context.Context, by saving, g *graph.Graph) error {
	w, err := s.stores.Workflows.Workflow(ctx, by.team, by.id)
	if err != nil || w.Confirmed || by.by.Guest != "" || w.Fingerprint != g.Fingerprint() {
		return err
	}
	_, err = s.stores.Revisions.ConfirmRevision(ctx, by.team, by.id, w.Revision, w.Fingerprint, false)
	return err
}

// Confirm says that the caller stands behind the current revision, of which
// guests may have drawn parts: from now on schedules and triggers run it.
func (s *Service) Confirm(ctx context.Context, caller access.Caller, id ids.Workflow, number int) (Revision, error) {
	if err := caller.Must(access.EditWorkflows); err != nil {
		return Revision{}, err
	}
	w, err := s.synced(ctx, caller.Team, id)
	if err != nil {
		return Revision{}, err
	}
	confirmed := false
	if w.Revision == number {
		if confirmed, err = s.stores.Revisions.ConfirmRevision(ctx, caller.Team, id, number, w.Fingerprint, true); err != nil {
			return Revision{}, err
		}
	}
	if _, err := s.stores.Revisions.Revision(ctx, caller.Team, id, number); err != nil {
		return Revision{}, err
	}
	if !confirmed {
		return Revision{}, fault.Conflict("the workflow has changed since: look at revision %d and confirm that", w.Revision).WithCode("not_current")
	}
	return s.stores.Revisions.Revision(ctx, caller.Team, id, number)
}

// named changes what a workflow is besides its definition, and leaves alone what
// others may have changed meanwhile.
func named(before, like Workflow) func(*Workflow) (*graph.Graph, string, error) {
	return func(w *Workflow) (*graph.Graph, string, error) {
		for _, f := range []struct {
			is        *string
			was, like string
		}{{&w.Name, before.Name, like.Name}, {&w.Description, before.Description, like.Description}, {&w.License, before.License, like.License}, {&w.Folder, before.Folder, like.Folder}} {
			if f.like != f.was {
				*f.is = f.like
			}
		}
		if !slices.Equal(like.Tags, before.Tags) {
			w.Tags = like.Tags
		}
		if w.Git != nil && like.Git != nil { // nobody detached it meanwhile
			w.Git = like.Git
		}
		return nil, "", nil
	}
}

// calledAlike reports whether two are the same but for their definitions.
func calledAlike(a, b Workflow) bool {
	return a.Name == b.Name && a.Description == b.Description && a.License == b.License && slices.Equal(a.Tags, b.Tags) && a.Folder == b.Folder && a.Git == b.Git
}

// revision is the one that a new definition belongs to: the current one while
// its author goes on within the sitting, else the next.
func (s *Service) revision(ctx context.Context, by access.Author, w Workflow, g *graph.Graph, summary string) (*Revision, error) {
	now := s.now()
	current, err := s.stores.Revisions.Revision(ctx, w.Team, w.ID, w.Revision)
	if err != nil {
		return nil, err
	}
	rev := &Revision{Number: w.Revision + 1, CreatedBy: by.User, Guest: by.Guest, GuestName: by.GuestName, CreatedAt: now}
	same := current.CreatedBy == by.User && current.Guest == by.Guest
	if summary == "" && same && now.Sub(current.CreatedAt) < revisionWindow && !current.Closed {
		rev = &current
	}
	rev.UpdatedAt, rev.Summary = now, summary
	if summary == "" {
		rev.Summary, err = s.summary(ctx, w, rev.Number, g)
	}
	return rev, err
}

// summary says what a revision changed against the one before it.
func (s *Service) summary(ctx context.Context, w Workflow, number int, g *graph.Graph) (string, error) {
	if number == 1 {
		return "created", nil
	}
	base := w.Definition
	if number == w.Revision {
		rev, err := s.stores.Revisions.Revision(ctx, w.Team, w.ID, number-1)
		if err != nil {
			return "", err
		}
		base = rev.Definition
	}
	old, _ := graph.Salvage(base)
	return graph.Changes(old, g), nil
}

// Revisions lists a workflow's revisions, newest first.
func (s *Service) Revisions(ctx context.Context, caller access.Caller, id ids.Workflow, before, limit int) (list []Revision, more bool, err error) {
	if _, err := s.Workflow(ctx, caller, id); err != nil {
		return nil, false, err
	}
	list, err = s.stores.Revisions.Revisions(ctx, caller.Team, id, before, limit+1)
	if len(list) > limit {
		return list[:limit], true, err
	}
	return list, false, err
}

// Revision is one of them, with its definition.
func (s *Service) Revision(ctx context.Context, caller access.Caller, id ids.Workflow, number int) (Revision, error) {
	if err := caller.Must(access.Read); err != nil {
		return Revision{}, err
	}
	return s.stores.Revisions.Revision(ctx, caller.Team, id, number)
}
