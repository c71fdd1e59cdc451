package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/collab"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
)

// repository is a host with one, of which each commit has one file.
type repository struct {
	name    string
	head    string
	files   map[string]string // by commit
	err     error
	looking func() // before it answers
}

func (r *repository) Latest(context.Context, ids.Team, source.Source) (string, error) {
	head := r.head
	if r.looking != nil {
		r.looking()
	}
	return head, r.err
}

func (r *repository) File(_ context.Context, _ ids.Team, _ source.Source, commit string, f workflows.FileWanted) (string, []byte, error) {
	text, ok := r.files[commit]
	if !ok {
		return "", nil, fault.Invalid("there is no %s", f.Names[0])
	}
	return r.name, []byte(text), nil
}

const (
	firstCommit  = "1111111111111111111111111111111111111111"
	secondCommit = "2222222222222222222222222222222222222222"
	thirdCommit  = "3333333333333333333333333333333333333333"
)

// follow makes a workflow from a repository with two commits.
func (b *bench) follow() (*repository, workflows.Workflow) {
	b.t.Helper()
	r := &repository{name: "millrace.yaml", head: firstCommit, files: map[string]string{
		firstCommit:  "nodes:\n- id: a\n  command: echo one\n",
		secondCommit: "nodes:\n- id: a\n  command: echo two\n",
		thirdCommit:  "nodes:\n- id: a\n  command: echo three\n",
	}}
	b.FollowGit(r, nil)
	w, err := b.Create(b.t.Context(), b.owner, workflows.New{Git: &source.Source{Git: "https://example.org/lab/x.git", Ref: "main"}})
	if err != nil {
		b.t.Fatal(err)
	}
	return r, w
}

// nobody is at the document.
type nobody struct{ collab.Passes }

func (nobody) Lost(context.Context, []sharing.Pass) ([]sharing.Pass, error) { return nil, nil }

// open has people edit together.
func (b *bench) open(w workflows.Workflow) workflows.Live {
	b.t.Helper()
	s := collab.New(collab.Options{Documents: b.db, Definitions: b.Service, Passes: nobody{}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
	b.GoLive(s)
	if _, err := s.ApplyDefinition(b.t.Context(), workflows.LiveDefinition{Team: w.Team, Workflow: w.ID, Definition: w.Definition, Author: access.Author{User: w.CreatedBy}}); err != nil {
		b.t.Fatal(err)
	}
	if now, err := b.db.Workflow(b.t.Context(), w.Team, w.ID); err != nil || now.DocumentSeq == 0 {
		b.t.Fatalf("there is no document: %v", err)
	}
	return s
}

func TestAWorkflowFollowsItsRepository(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for _, live := range []bool{false, true} {
			r, w := b.follow()
			if w.Name != "x" || w.Git.Commit != firstCommit || w.Revision != 1 || len(w.Problems) > 0 {
				t.Fatalf("made %+v", w)
			}
			if live {
				b.open(w)
			}
			refresh := func(commit, command string, revision int) {
				t.Helper()
				w, err := b.Refresh(t.Context(), b.owner, w.ID)
				if err != nil || w.Git.Commit != commit || w.Revision != revision || !strings.Contains(string(w.Definition), command) || !w.Confirmed {
					t.Errorf("live %v: at %s, revision %d: %s %v", live, w.Git.Commit, w.Revision, w.Definition, err)
				}
				stored, err := b.Workflow(t.Context(), b.owner, w.ID)
				if err != nil || *stored.Git != *w.Git || stored.Revision != revision {
					t.Errorf("live %v: stored is %+v: %v", live, stored.Git, err)
				}
			}
			refresh(firstCommit, "echo one", 1)
			r.head = secondCommit
			refresh(secondCommit, "echo two", 2)
			refresh(secondCommit, "echo two", 2)
			r.head, r.files["same"] = "same", r.files[secondCommit]
			refresh("same", "echo two", 2)
			rev, err := b.Revision(t.Context(), b.owner, w.ID, 2)
			if err != nil || rev.Summary != "commit 2222222" || rev.CreatedBy != b.owner.User || !rev.Confirmed {
				t.Errorf("the revision is %+v: %v", rev, err)
			}
			if _, err := b.Update(t.Context(), b.owner, w.ID, workflows.Edit{Definition: steps(1)}); !coded(err, "follows_git") || !strings.Contains(err.Error(), "/detach") {
				t.Errorf("edited: %v", err)
			}
			if _, err := b.Restore(t.Context(), b.owner, w.ID, 1); !coded(err, "follows_git") {
				t.Errorf("restored: %v", err)
			}
			renamed, err := b.Update(t.Context(), b.owner, w.ID, workflows.Edit{Name: text("Mine")})
			if err != nil || renamed.Name != "Mine" || renamed.Git == nil {
				t.Errorf("renamed: %v", err)
			}
			if _, err := b.Detach(t.Context(), b.owner, w.ID); err != nil {
				t.Error(err)
			}
			if after := b.define(b.owner, w.ID, 3); after.Git != nil || after.NodeCount != 3 {
				t.Errorf("detached: %+v", after)
			}
			if _, err := b.Refresh(t.Context(), b.owner, w.ID); !coded(err, "not_from_git") {
				t.Errorf("refreshed after all: %v", err)
			}
		}
	})
}

func coded(err error, code string) bool {
	known, ok := errors.AsType[*fault.Error](err)
	return ok && known.Code == code
}

// The license of the file is the workflow's; where the file names none, it stays.
func TestALicenseComesWithTheFile(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		r, w := b.follow()
		r.files["mit"], r.files["none"] = "license: mit\ndefinition: {nodes: [{id: a, command: echo mit}]}", "nodes: [{id: a, command: echo none}]"
		for _, commit := range []string{"mit", "none"} {
			r.head = commit
			if got, err := b.Refresh(t.Context(), b.owner, w.ID); err != nil || got.License != "MIT" {
				t.Errorf("at %s the license is %q: %v", commit, got.License, err)
			}
		}
		again, err := b.Create(t.Context(), b.owner, workflows.New{Git: &source.Source{Git: "https://example.org/lab/x.git", Ref: "main"}, License: "CC0-1.0"})
		if err != nil || again.License != "CC0-1.0" {
			t.Errorf("the license is %q: %v", again.License, err)
		}
	})
}

// What a trigger brings is not run by schedules until a member stands behind it.
func TestWhatATriggerBringsIsNotConfirmed(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for _, live := range []bool{false, true} {
			r, w := b.follow()
			if live {
				b.open(w)
			}
			refresher := &workflows.Refresher{Workflows: b.Service, Log: slog.New(slog.DiscardHandler)}
			next := func(want bool) {
				t.Helper()
				if found, err := refresher.Next(t.Context()); err != nil || found != want {
					t.Fatalf("live %v: found %v, want %v: %v", live, found, want, err)
				}
			}
			trigger := schedules.Trigger{ID: ids.NewTrigger(), Team: w.Team, Workflow: w.ID, TokenHash: string(w.ID), Action: schedules.ActionRefresh, CreatedBy: b.owner.User, CreatedAt: b.clock.Now()}
			if err := b.db.InsertTrigger(t.Context(), trigger, 20, nil); err != nil {
				t.Fatal(err)
			}
			call := func() {
				t.Helper()
				if err := b.db.AskForRefresh(t.Context(), trigger, nil, b.clock.Now()); err != nil {
					t.Fatal(err)
				}
			}
			confirmed := func(want int) {
				t.Helper()
				if s, err := b.db.ConfirmedSource(t.Context(), w.Team, w.ID); err != nil || s.Revision != want {
					t.Errorf("live %v: schedules run revision %d, want %d: %v", live, s.Revision, want, err)
				}
			}
			next(false)
			r.head = secondCommit
			call()
			call()
			next(true)
			next(false)
			now, err := b.Workflow(t.Context(), b.owner, w.ID)
			if err != nil || now.Git.Commit != secondCommit || now.Revision != 2 || now.Confirmed {
				t.Errorf("live %v: %+v at revision %d, confirmed %v: %v", live, now.Git, now.Revision, now.Confirmed, err)
			}
			if rev, err := b.Revision(t.Context(), b.owner, w.ID, 2); err != nil || rev.GuestName != "Git" {
				t.Errorf("it was made by %q: %v", rev.GuestName, err)
			}
			confirmed(1)
			// Once a minute, and none is forgotten.
			r.head = thirdCommit
			call()
			next(false)
			b.clock.Pass(time.Minute)
			r.looking = call // while the host is asked, somebody pushes
			next(true)
			r.looking = nil
			next(false)
			b.clock.Pass(time.Minute)
			next(true)
			next(false)
			confirmed(1)
			if now, err := b.Refresh(t.Context(), b.owner, w.ID); err != nil || now.Revision != 3 || !now.Confirmed {
				t.Errorf("live %v: refreshed to revision %d, confirmed %v: %v", live, now.Revision, now.Confirmed, err)
			}
			confirmed(3)
			b.clock.Pass(time.Minute)
		}
	})
}

// meanwhile is where people edit together, and somebody does something besides.
type meanwhile struct {
	workflows.Live
	do func()
}

func (d meanwhile) ApplyDefinition(ctx context.Context, l workflows.LiveDefinition) (bool, error) {
	done, err := d.Live.ApplyDefinition(ctx, l)
	d.do()
	return done, err
}

// What is detached while a refresh is under way stays so.
func TestARefreshDoesNotUndoDetaching(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		r, w := b.follow()
		b.GoLive(meanwhile{b.open(w), func() {
			if _, err := b.Detach(t.Context(), b.owner, w.ID); err != nil {
				t.Error(err)
			}
		}})
		r.head = secondCommit
		if now, err := b.Refresh(t.Context(), b.owner, w.ID); err != nil || now.Git != nil {
			t.Errorf("it follows %+v: %v", now.Git, err)
		}
		if now, err := b.Workflow(t.Context(), b.owner, w.ID); err != nil || now.Git != nil {
			t.Errorf("it follows %+v: %v", now.Git, err)
		}
	})
}

// A folder that is renamed while a workflow in it is saved stays renamed.
func TestSavingDoesNotUndoTheRenamingOfAFolder(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.create(b.owner)
		if _, err := b.Update(t.Context(), b.owner, w.ID, workflows.Edit{Folder: text("old")}); err != nil {
			t.Fatal(err)
		}
		w, err := b.Stored(t.Context(), w.Team, w.ID)
		if err != nil {
			t.Fatal(err)
		}
		b.GoLive(meanwhile{b.live(w), func() {
			if _, err := b.RenameFolder(t.Context(), b.owner, "old", "new"); err != nil {
				t.Error(err)
			}
		}})
		now, err := b.Update(t.Context(), b.owner, w.ID, workflows.Edit{Name: text("other"), Definition: steps(3)})
		if err != nil || now.Folder != "new" || now.Name != "other" || now.NodeCount != 3 {
			t.Errorf("%q in %q with %d nodes: %v", now.Name, now.Folder, now.NodeCount, err)
		}
	})
}

// What a trigger asked for is not forgotten while its repository is fetched.
func TestASlowRepositoryIsRefreshedInTheEnd(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		r, w := b.follow()
		trigger := schedules.Trigger{ID: ids.NewTrigger(), Team: w.Team, Workflow: w.ID, TokenHash: string(w.ID), Action: schedules.ActionRefresh, CreatedBy: b.owner.User, CreatedAt: b.clock.Now()}
		if err := b.db.InsertTrigger(t.Context(), trigger, 20, nil); err != nil {
			t.Fatal(err)
		}
		refresher := &workflows.Refresher{Workflows: b.Service, Log: slog.New(slog.DiscardHandler)}
		next := func(want bool) {
			t.Helper()
			if found, err := refresher.Next(t.Context()); err != nil || found != want {
				t.Fatalf("found %v, want %v: %v", found, want, err)
			}
		}
		call := func(head string) {
			t.Helper()
			r.head, r.err = head, fault.Unavailable("it is being fetched").WithCode("git_fetching")
			if err := b.db.AskForRefresh(t.Context(), trigger, nil, b.clock.Now()); err != nil {
				t.Fatal(err)
			}
			next(true)
			next(false)
		}
		call(secondCommit)
		r.err = nil
		b.clock.Pass(2 * time.Minute)
		next(true)
		if now, err := b.Workflow(t.Context(), b.owner, w.ID); err != nil || now.Git.Commit != secondCommit {
			t.Errorf("%+v: %v", now.Git, err)
		}
		// But not for ever.
		b.clock.Pass(time.Hour)
		call(thirdCommit)
		b.clock.Pass(20 * time.Minute)
		next(true)
		b.clock.Pass(time.Hour)
		next(false)
		if now, err := b.Workflow(t.Context(), b.owner, w.ID); err != nil || now.Git.Problem != "it is being fetched" {
			t.Errorf("%+v: %v", now.Git, err)
		}
	})
}

// Two who refresh at once never leave the older commit behind.
func TestAnOlderCommitDoesNotWin(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		r, w := b.follow()
		r.head = secondCommit
		r.looking = func() { // while we have seen the second, somebody brings the third
			r.looking, r.head = nil, thirdCommit
			if _, err := b.Refresh(t.Context(), b.owner, w.ID); err != nil {
				t.Error(err)
			}
		}
		if now, err := b.Refresh(t.Context(), b.owner, w.ID); err != nil || now.Git.Commit != thirdCommit {
			t.Errorf("%+v: %v", now.Git, err)
		}
	})
}

func TestWhatCannotBeHadFromGitIsSaid(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		r, w := b.follow()
		member, viewer := storetest.Join(t, b.db, b.owner, "eve", access.Member), storetest.Join(t, b.db, b.owner, "bob", access.Viewer)
		if _, err := b.Refresh(t.Context(), viewer, w.ID); !fault.Is(err, fault.KindForbidden) {
			t.Errorf("a viewer refreshed: %v", err)
		}
		if _, err := b.Detach(t.Context(), viewer, w.ID); !fault.Is(err, fault.KindForbidden) {
			t.Errorf("a viewer detached: %v", err)
		}
		for name, tt := range map[string]struct {
			err  error
			file string
			code string
			path string
		}{
			"no host":         {fault.Unavailable("there is no host"), "", "git_unreachable", "git"},
			"no branch":       {fault.Invalid("it has no branch"), "", "git_unreachable", "git"},
			"no connection":   {fault.NotFound("no such connection"), "", "git_unreachable", "git.connection"},
			"no file":         {nil, "", "git_no_definition", "git"},
			"no YAML":         {nil, "a: [", "git_invalid_definition", "millrace.yaml"},
			"no workflow":     {nil, "nodes: [{id: 1a}]", "git_invalid_definition", "nodes[0].id"},
			"no license":      {nil, "license: mine\ndefinition: {nodes: []}", "git_invalid_definition", "license"},
			"no object":       {nil, "- a", "git_invalid_definition", "millrace.yaml"},
			"nested too deep": {nil, strings.Repeat("[", 5000), "git_invalid_definition", "millrace.yaml"},
		} {
			r.head, r.err = name, tt.err
			if tt.file != "" {
				r.files[name] = tt.file
			}
			_, err := b.Refresh(t.Context(), member, w.ID)
			known, ok := errors.AsType[*fault.Error](err)
			if !ok || known.Kind != fault.KindInvalid || known.Code != tt.code || len(known.Details) == 0 || known.Details[0].Path != tt.path {
				t.Errorf("%s: %#v", name, err)
				continue
			}
			now, err := b.Workflow(t.Context(), b.owner, w.ID)
			if err != nil || now.Git.Problem != known.Message || now.Git.Commit != firstCommit || now.Revision != 1 {
				t.Errorf("%s: %+v: %v", name, now.Git, err)
			}
		}
		r.head, r.err = firstCommit, nil
		if now, err := b.Refresh(t.Context(), member, w.ID); err != nil || now.Git.Problem != "" {
			t.Errorf("mended: %+v %v", now.Git, err)
		}
		r.err = fault.Unavailable("no sandbox").WithCode("sandbox_missing")
		if _, err := b.Refresh(t.Context(), member, w.ID); !coded(err, "sandbox_missing") {
			t.Errorf("what is our fault: %v", err)
		}
	})
}

// The commands of a workflow from Git find what lies beside its definition, at
// the same commit.
func TestCommandsFindWhatLiesBesideTheDefinition(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		const plain, uses = "nodes: [{id: a, command: ls}]", "nodes: [{id: a, command: 'ls $SOURCE_DIR'}]"
		for file, want := range map[string]string{
			plain: "",
			uses:  `{"connection":"conn_1","git":"https://example.org/x","path":"analysis","ref":"` + firstCommit + `"}`,
			"source: {path: scripts, submodules: true}\n" + uses: `{"connection":"conn_1","git":"https://example.org/x","path":"analysis/scripts","ref":"` + firstCommit + `","submodules":true}`,
			"source: {git: 'https://example.org/y'}\n" + uses:    `{"git":"https://example.org/y"}`,
			"source: {ref: v1}\n" + plain:                        `{"connection":"conn_1","git":"https://example.org/x","path":"analysis","ref":"v1"}`,
		} {
			b.FollowGit(&repository{name: "millrace.yaml", head: firstCommit, files: map[string]string{firstCommit: file}}, nil)
			w, err := b.Create(t.Context(), b.owner, workflows.New{Git: &source.Source{Git: "https://example.org/x", Path: "analysis", Connection: "conn_1"}})
			if err != nil {
				t.Fatal(err)
			}
			var d struct {
				Source json.RawMessage `json:"source"`
			}
			if err := json.Unmarshal(w.Definition, &d); err != nil || string(d.Source) != want {
				t.Errorf("of %q the code is %s, want %s: %v", file, d.Source, want, err)
			}
		}
	})
}
