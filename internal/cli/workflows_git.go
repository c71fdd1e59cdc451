package cli

import (
	"crypto/rand"
	"fmt"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/gitfile"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type workflowsCreate struct {
	session.Flags `embed:""`
	Git           string `required:"" env:"-" placeholder:"ADDRESS" help:"The repository with the millrace.yaml or millrace.json to follow."`
	Ref           string `env:"-" help:"A branch, a tag or a commit. Default: the default branch."`
	Path          string `env:"-" help:"Folder containing the file. Default: the top folder."`
	Connection    string `env:"-" help:"ID or name of the connection for a private repository."`
	Name          string `env:"-" help:"Name of the workflow. Default: the one in the file, else the repository's."`
	License       string `env:"-" placeholder:"ID" help:"SPDX identifier of its license, such as MIT. Default: the one in the file."`
}

// Run makes a workflow that follows a repository.
func (c *workflowsCreate) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	connection, err := s.ConnectionID(c.Connection)
	if err != nil {
		return err
	}
	key := rand.Text()
	r, err := s.API.CreateWorkflowWithResponse(s.Ctx, &api.CreateWorkflowParams{IdempotencyKey: &key}, api.NewWorkflow{
		Name: c.Name, License: orNil(c.License), Git: &api.NewGit{Git: c.Git, Ref: orNil(c.Ref), Path: orNil(c.Path), Connection: orNil(connection)},
	})
	if err != nil {
		return s.Explain(err)
	}
	f := r.JSON201.Data
	return s.Emit(f, func() {
		s.Say("created %s %s at commit %.7s", f.ID, screen.Clean(f.Name), f.Git.Commit)
		problems(s, f.Definition, f.Problems)
	})
}

// followed is where a definition comes from, for people.
func followed(g *api.FollowedGit) string {
	if g == nil {
		return ""
	}
	text := g.Git
	if g.Ref != nil {
		text += " " + *g.Ref
	}
	return fmt.Sprintf("%s at commit %.7s", screen.Clean(text), g.Commit)
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

type workflowsRefresh struct {
	session.Flags `embed:""`
	workflowArg   `embed:""`
}

// Run brings what is in Git now.
func (c *workflowsRefresh) Run(w screen.Console) error {
	s, before, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	r, err := s.API.RefreshWorkflowWithResponse(s.Ctx, before.ID, nil)
	if err != nil {
		return s.Explain(err)
	}
	f := r.JSON200.Data
	return s.Emit(f, func() {
		if before.Git != nil && before.Git.Commit == f.Git.Commit {
			s.Say("%s is at commit %.7s: no changes", f.ID, f.Git.Commit)
		} else {
			s.Say("refreshed %s to commit %.7s (revision %d)", f.ID, f.Git.Commit, f.Revision)
		}
		problems(s, f.Definition, f.Problems)
	})
}

type workflowsDetach struct {
	session.Flags `embed:""`
	workflowArg   `embed:""`
	Yes           bool `short:"y" env:"-" help:"Don't ask for confirmation."`
}

// Run asks first: a workflow does not begin to follow again.
func (c *workflowsDetach) Run(w screen.Console) error {
	s, f, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	if err := s.Sure(c.Yes, fmt.Sprintf("Detach the workflow %s (%s) from Git? Later pushes no longer change it.", screen.Clean(f.Name), f.ID)); err != nil {
		return err
	}
	r, err := s.API.DetachWorkflowWithResponse(s.Ctx, f.ID, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("detached %s: it can be edited here now", f.ID) })
}

type workflowsInit struct {
	session.Flags `embed:""`
	From          string `env:"-" placeholder:"WORKFLOW" help:"ID or name of the workflow to write. Default: a small example."`
	Folder        string `env:"-" default:"." help:"Folder to write to."`
	Force         bool   `env:"-" help:"Replace an existing file."`
}

// Run writes millrace.yaml.
func (c *workflowsInit) Run(w screen.Console) error {
	text := gitfile.Template
	if c.From != "" {
		_, f, err := workflowArg{c.From}.at(c.Flags, w)
		if err != nil {
			return err
		}
		if text, err = gitfile.YAML(gitfile.Workflow{Name: f.Name, Description: f.Description, License: f.License, Definition: f.Definition}); err != nil {
			return err
		}
	}
	if err := gitfile.Write(c.Folder, text, c.Force); err != nil {
		return err
	}
	w.Note("Wrote %s. Commit and push it with millrace workflows push.", gitfile.Name)
	return nil
}

type workflowsPush struct {
	session.Flags `embed:""`
	From          string `env:"-" placeholder:"WORKFLOW" help:"ID or name of a workflow to write to the file first."`
	Folder        string `env:"-" default:"." help:"Folder of the file, in a Git repository."`
	Message       string `short:"m" env:"-" default:"Change the workflow" help:"Commit message."`
	Refresh       string `env:"-" placeholder:"WORKFLOW" help:"ID or name of the workflow that follows the repository; it is refreshed afterwards."`
	Force         bool   `env:"-" help:"Push even if the workflow has problems."`
}

// Run has the server look at the file, then git commit and push it.
func (c *workflowsPush) Run(w screen.Console) error {
	if c.From != "" {
		if err := (&workflowsInit{Flags: c.Flags, From: c.From, Folder: c.Folder, Force: true}).Run(w); err != nil {
			return err
		}
	}
	definition, err := gitfile.Read(c.Folder)
	if err != nil {
		return err
	}
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.ValidateDefinitionWithResponse(s.Ctx, nil, api.ValidateRequest{Definition: definition})
	if err != nil {
		return s.Explain(err)
	}
	if list := r.JSON200.Data.Problems; len(list) > 0 {
		problems(s, definition, list)
		if !c.Force {
			return fmt.Errorf("%s has problems: fix them, or use --force", gitfile.Name)
		}
	}
	if err := (gitfile.Git{Folder: c.Folder, Says: w.Err}).Push(w.Ctx, c.Message); err != nil {
		return err
	}
	if c.Refresh == "" {
		return nil
	}
	return (&workflowsRefresh{Flags: c.Flags, workflowArg: workflowArg{c.Refresh}}).Run(w)
}
