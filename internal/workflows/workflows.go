// Package workflows keeps a team's workflows: named definition graphs with
// their revisions, which can be edited, shared and run.
package workflows

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/graph/guarded"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/license"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/domain/search"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/domain/tags"
)

// Row is a workflow in a list.
type Row struct {
	ID            ids.Workflow
	Team          ids.Team
	Name          string
	Description   string
	Revision      int
	NodeCount     int
	Tags          []string
	Kind          pipeline.Engine // whose pipeline it launches; empty: none
	Folder        string          // names with slashes between them; empty: none
	CreatedBy     ids.User
	CreatedByName string
	CreatedAt     time.Time
	UpdatedAt     time.Time
	LastRuns      []LastRun // the newest first
}

// LastRun is how a run of a workflow went, for a glance.
type LastRun struct {
	ID         ids.Run
	Status     string
	Took       time.Duration
	FinishedAt time.Time
}

// Workflow is one workflow with its definition.
type Workflow struct {
	Row
	License     string // by its SPDX identifier; empty: none is stated
	Definition  []byte // JSON
	Fingerprint string // of the definition, without positions and looks
	Problems    []graph.Problem
	Warnings    []graph.Problem // what does not keep it from running
	Version     int             // counts saves
	Confirmed   bool            // a member stands behind the definition: schedules and triggers may run it

	Git *Followed // where its definition comes from; nil: it is edited here

	Source        *source.Source // of a definition that is to be saved
	SourceProblem string         // what its host said when it was last asked

	// While people edit it together, the document is the truth: how far that
	// has come, and how much of it the definition holds. 0: there is none.
	DocumentSeq int64
	SyncedSeq   int64
}

// ETag changes with the name, the description, the license and the definition, but
// not with where its nodes are drawn.
func (w Workflow) ETag() string {
	h := sha256.New()
	for _, part := range []string{w.Name, w.Description, w.License, w.Fingerprint} {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return `"` + hex.EncodeToString(h.Sum(nil)[:16]) + `"`
}

// Store keeps workflows. Every method takes the team,
// so a query across teams cannot be written by accident.
type Store interface {
	InsertWorkflow(ctx context.Context, w Workflow, rev Revision, r *access.IdempotencyRecord) error
	Workflow(ctx context.Context, team ids.Team, id ids.Workflow) (Workflow, error)
	// Workflows lists at most limit rows older than the cursor, newest first.
	Workflows(ctx context.Context, team ids.Team, before ids.Workflow, limit int) ([]Row, error)
	// SaveWorkflow writes w, and its definition as rev unless that is nil. When
	// somebody has saved since w.Version was read, it writes nothing and says
	// so.
	SaveWorkflow(ctx context.Context, w Workflow, rev *Revision) (saved bool, err error)
	// SaveSynced does the same with what the document came to by w.SyncedSeq,
	// unless the definition holds more of it already.
	SaveSynced(ctx context.Context, w Workflow, rev *Revision) (saved bool, err error)
	// DeleteWorkflow removes a workflow and calls its runs off; they stay
	// listed.
	DeleteWorkflow(ctx context.Context, team ids.Team, id ids.Workflow, by string, now time.Time) error
}

// SecretStore knows the names of secrets.
type SecretStore interface {
	// MissingSecrets are those of the names that the team has no secret for.
	MissingSecrets(ctx context.Context, team ids.Team, names []string) ([]string, error)
}

// Stores is what this room asks of the database, by what it is about.
type Stores struct {
	Workflows   Store
	Revisions   RevisionStore
	Secrets     SecretStore
	Follow      FollowStore
	Folders     FolderStore
	Definitions DefinitionStore
}

// Service answers the questions a team asks about its workflows.
type Service struct {
	stores Stores
	live   Live // nil: nobody edits together
	now    func() time.Time

	noEnvironments func(environment.Spec) string
	full           func(context.Context) error // whether there is no room for more
	repositories   Repositories                // nil: nothing comes from Git
	memory         *bounds.Memory
}

// NewService makes the room.
func NewService(stores Stores, now func() time.Time) *Service {
	return &Service{stores: stores, now: now}
}

// RefuseWhile has workflows neither made nor changed while a check returns an error, such as
// that of a full disk.
func (s *Service) RefuseWhile(full func(context.Context) error) { s.full = full }

func (s *Service) hasRoom(ctx context.Context) error {
	if s.full == nil {
		return nil
	}
	return s.full(ctx)
}

// New is what a workflow starts as.
type New struct {
	Name        string
	Description string
	License     string
	Definition  []byte // nil: an empty one
	Tags        []string
	Folder      string
	Git         *source.Source // to follow; it has the definition then

	// Once records the answer with the effect; nil without an idempotency key.
	Once func(Workflow) (*access.IdempotencyRecord, error)
}

const (
	maxName        = 200
	maxDescription = 10_000
)

// MaxPerTeam is how many workflows a team may have.
const MaxPerTeam = 10_000

// Create adds a workflow to the caller's team.
func (s *Service) Create(ctx context.Context, caller access.Caller, in New) (Workflow, error) {
	if err := caller.Must(access.EditWorkflows); err != nil {
		return Workflow{}, err
	}
	if err := s.hasRoom(ctx); err != nil {
		return Workflow{}, err
	}
	followed, release, err := s.fill(ctx, caller.Team, &in)
	if err != nil {
		return Workflow{}, err
	}
	defer release()
	g, err := s.checked(ctx, caller.Team, Edit{Name: &in.Name, Description: &in.Description, License: &in.License, Definition: in.Definition, Tags: in.Tags, Folder: &in.Folder})
	if err != nil {
		return Workflow{}, err
	}
	w := blank()
	if g != nil {
		w.define(g, nil)
	}
	now := s.now()
	w.ID, w.Team, w.Name, w.Description = ids.NewWorkflow(), caller.Team, strings.TrimSpace(in.Name), in.Description
	w.License, _ = license.Checked(in.License)
	w.Tags, _ = tags.Checked(in.Tags)
	w.Folder, _ = CheckedFolder(in.Folder)
	w.CreatedBy, w.CreatedByName, w.CreatedAt, w.UpdatedAt = caller.User, caller.Name, now, now
	w.Git, w.Confirmed = followed, true
	unknown, err := s.looseProblems(ctx, w.Team, w.Definition)
	if err != nil {
		return Workflow{}, err
	}
	shown := w
	shown.Problems, shown.Warnings = append(slices.Clip(w.Problems), unknown...), append(slices.Clip(w.Warnings), containersUnused(w.Definition)...)
	var record *access.IdempotencyRecord
	if in.Once != nil {
		if record, err = in.Once(shown); err != nil {
			return Workflow{}, err
		}
	}
	rev := Revision{Number: 1, CreatedBy: caller.User, CreatedAt: now, UpdatedAt: now, Summary: "created"}
	if followed != nil {
		rev.Summary = "created from commit " + short(followed.Commit)
	}
	return shown, s.stores.Workflows.InsertWorkflow(ctx, w, rev, record)
}

// blank is what a workflow is before anybody has drawn anything.
var blank = sync.OnceValue(func() Workflow {
	w := Workflow{Row: Row{Revision: 1}, Version: 1}
	w.define(graph.Empty(), nil)
	return w
})

// define gives a workflow a definition. malformed is what saving would refuse in it.
func (w *Workflow) define(g *graph.Graph, malformed []graph.Problem) {
	w.Definition, w.Fingerprint, w.NodeCount = g.JSON(), g.Fingerprint(), g.NodeCount()
	w.Problems, w.Warnings = g.Problems(malformed), g.Warnings()
	w.Source, w.SourceProblem, w.Kind = g.Source, "", pipeline.Of(g)
}

// checked finds everything that is wrong with what was sent. The graph is nil
// when no definition was.
func (s *Service) checked(ctx context.Context, team ids.Team, e Edit) (*graph.Graph, error) {
	var wrong []fault.Detail
	if e.Name != nil {
		name := strings.TrimSpace(*e.Name)
		if n := utf8.RuneCountInString(name); n == 0 || n > maxName || strings.ContainsFunc(name, unicode.IsControl) {
			wrong = append(wrong, fault.Detail{Path: "name", Message: "needs 1 to 200 characters in one line"})
		}
	}
	if e.Description != nil {
		if n := utf8.RuneCountInString(*e.Description); n > maxDescription || strings.ContainsRune(*e.Description, 0) {
			wrong = append(wrong, fault.Detail{Path: "description", Message: "needs at most 10,000 characters, none of them NUL"})
		}
	}
	if e.License != nil {
		if _, message := license.Checked(*e.License); message != "" {
			wrong = append(wrong, fault.Detail{Path: "license", Message: message})
		}
	}
	_, faults := tags.Checked(e.Tags)
	wrong = append(wrong, faults...)
	if e.Folder != nil {
		if _, message := CheckedFolder(*e.Folder); message != "" {
			wrong = append(wrong, fault.Detail{Path: "folder", Message: message})
		}
	}
	var g *graph.Graph
	if e.Definition != nil {
		parsed, malformed := graph.Parse(e.Definition)
		if len(malformed) > 0 {
			problems, _, err := s.findings(ctx, team, e.Definition)
			if err != nil {
				return nil, err
			}
			wrong = append(wrong, problems...)
		}
		g = parsed
	}
	if len(wrong) > 0 {
		return nil, fault.Problems(wrong, "%s", first(wrong))
	}
	return g, nil
}

// first is the sentence that stands for all the problems. Those of a definition, which
// have codes, say themselves what they are about.
func first(wrong []fault.Detail) string {
	text := wrong[0].Sentence()
	if n := len(wrong) - 1; n > 0 {
		text += " (and more; see details)"
	}
	return text
}

// Validate lists everything that keeps a definition from being saved or run, and
// what is probably a mistake.
func (s *Service) Validate(ctx context.Context, caller access.Caller, definition []byte) (problems, warnings []graph.Problem, err error) {
	return s.findings(ctx, caller.Team, definition)
}

// findings lists what an editor of the definition is told.
func (s *Service) findings(ctx context.Context, team ids.Team, definition []byte) (problems, warnings []graph.Problem, err error) {
	g, malformed := graph.Salvage(definition)
	loose, err := s.looseProblems(ctx, team, definition)
	return append(g.Problems(malformed), loose...), append(g.Warnings(), containersUnused(definition)...), err
}

// looseProblems are problems that come and go with the team's secrets and the
// server's tools, so that they are found when somebody looks and not kept with
// the definition.
func (s *Service) looseProblems(ctx context.Context, team ids.Team, definition []byte) ([]graph.Problem, error) {
	unbuilt := s.unbuildable(definition)
	var names []string
	all := guarded.UnknownSecrets(definition, func(name string) bool {
		names = append(names, name)
		return false
	})
	if len(all) == 0 {
		return unbuilt, nil
	}
	missing, err := s.stores.Secrets.MissingSecrets(ctx, team, names)
	return append(unbuilt, guarded.UnknownSecrets(definition, func(name string) bool { return !slices.Contains(missing, name) })...), err
}

// looked adds to a workflow's problems those that depend on the team.
func (s *Service) looked(ctx context.Context, w Workflow, err error) (Workflow, error) {
	if err != nil {
		return w, err
	}
	unknown, err := s.looseProblems(ctx, w.Team, w.Definition)
	w.Problems, w.Warnings = append(slices.Clip(w.Problems), unknown...), append(slices.Clip(w.Warnings), containersUnused(w.Definition)...)
	if w.SourceProblem != "" {
		w.Problems = append(w.Problems, graph.Problem{Path: "source", Message: w.SourceProblem, Code: graph.SourceUnreachable, Field: "source"})
	}
	return w, err
}

// Workflow is one workflow of the caller's team.
func (s *Service) Workflow(ctx context.Context, caller access.Caller, id ids.Workflow) (Workflow, error) {
	if err := caller.Must(access.Read); err != nil {
		return Workflow{}, err
	}
	w, err := s.synced(ctx, caller.Team, id)
	return s.looked(ctx, w, err)
}

// Shared is the one workflow that a guest's link is for.
func (s *Service) Shared(ctx context.Context, guest access.Caller) (Workflow, error) {
	if guest.Guest == nil {
		return Workflow{}, fault.Forbidden("this is for the guests of a share link")
	}
	return s.synced(ctx, guest.Team, guest.Guest.Workflow)
}

// Workflows lists the team's workflows whose names have all the words, newest
// first. The list goes on before next, if that is one.
func (s *Service) Workflows(ctx context.Context, caller access.Caller, words string, before ids.Workflow, limit int) (rows []Row, next ids.Workflow, err error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, "", err
	}
	rows, last, err := search.Find(search.ParseParts(words), limit, Row{ID: before}, func(w Row) string { return w.Name }, func(after Row, n int) ([]Row, error) {
		return s.stores.Workflows.Workflows(ctx, caller.Team, after.ID, n)
	})
	if last != nil {
		next = last.ID
	}
	return rows, next, err
}

// Delete removes a workflow. Members may delete only what they made.
func (s *Service) Delete(ctx context.Context, caller access.Caller, id ids.Workflow) error {
	w, err := s.stores.Workflows.Workflow(ctx, caller.Team, id)
	if err != nil {
		return err
	}
	mine := w.CreatedBy == caller.User && caller.May(access.EditWorkflows)
	if !mine && !caller.May(access.DeleteAnyWorkflow) {
		return fault.Forbidden("only admins and owners can delete someone else's workflow")
	}
	return s.stores.Workflows.DeleteWorkflow(ctx, caller.Team, id, caller.Name, s.now())
}
