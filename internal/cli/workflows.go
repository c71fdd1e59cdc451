package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/definitions"
	"github.com/millrace/millrace/internal/cli/gitfile"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
	"github.com/millrace/millrace/internal/definitionfile"
)

type workflowsCommand struct {
	List   workflowsList   `cmd:"" default:"withargs" aliases:"ls" help:"List the team's workflows."`
	Get    workflowsGet    `cmd:"" aliases:"view" help:"Show a workflow: parameters, inputs, steps."`
	Apply  workflowsApply  `cmd:"" help:"Create or update a workflow from a file."`
	Export workflowsExport `cmd:"" help:"Print a workflow as a file that apply takes."`
	Delete workflowsDelete `cmd:"" aliases:"rm" help:"Delete a workflow; its runs stay listed."`

	Move         workflowsMove         `cmd:"" aliases:"mv" help:"Move workflows to a folder."`
	RenameFolder workflowsRenameFolder `cmd:"" help:"Rename a folder of workflows."`
	Favorite     workflowsFavorite     `cmd:"" aliases:"star" help:"Mark workflows as favorites, or remove the mark."`

	Create  workflowsCreate  `cmd:"" help:"Create a workflow that follows a Git repository."`
	Refresh workflowsRefresh `cmd:"" help:"Refresh a workflow from its repository."`
	Detach  workflowsDetach  `cmd:"" help:"Detach a workflow from its repository."`
	Init    workflowsInit    `cmd:"" help:"Create millrace.yaml, a workflow to keep in Git."`
	Push    workflowsPush    `cmd:"" help:"Check millrace.yaml, then commit and push it with git."`
}

type workflowsList struct {
	session.Flags `embed:""`
	Folder        string `env:"-" help:"Only workflows in this folder and its subfolders."`
	Favorite      bool   `env:"-" help:"Only your favorites."`
}

// Run lists them all.
func (c *workflowsList) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	list, err := s.Workflows()
	if err != nil {
		return err
	}
	empty := len(list) == 0
	list, marked, err := c.chosen(s, list)
	if err != nil {
		return err
	}
	return s.Emit(list, func() {
		if empty {
			s.Note("The team has no workflows yet: create one with millrace workflows apply workflow.json")
			return
		}
		rows := [][]string{{"NAME", "ID", "FOLDER", "KIND", "STEPS", "REVISION", "LAST RUN", "UPDATED"}}
		for _, f := range list {
			last := "–"
			if len(f.LastRuns) > 0 {
				last = string(f.LastRuns[0].Status)
			}
			name := f.Name
			if marked[f.ID] {
				name = "* " + name
			}
			rows = append(rows, []string{name, f.ID, cmp.Or(f.Folder, "–"), cmp.Or(kindOf(f.Kind), "–"), strconv.Itoa(f.NodeCount), strconv.Itoa(f.Revision), last, s.Ago(f.UpdatedAt.Time)})
		}
		s.Table(rows)
	})
}

// workflowArg names a workflow.
type workflowArg struct {
	Name string `arg:"" name:"workflow" help:"ID or name."`
}

// at opens a session and finds the workflow.
func (a workflowArg) at(c session.Flags, w screen.Console) (*session.Session, api.Workflow, error) {
	s, err := c.Open(w)
	if err != nil {
		return nil, api.Workflow{}, err
	}
	f, err := s.Workflow(a.Name)
	return s, f, err
}

type workflowsGet struct {
	session.Flags `embed:""`
	workflowArg   `embed:""`
}

// Run shows what a person needs to run it.
func (c *workflowsGet) Run(w screen.Console) error {
	s, f, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	return s.Emit(f, func() {
		s.Facts("name", f.Name, "id", f.ID, "kind", kindOf(f.Kind), "description", f.Description, "license", f.License, "revision", strconv.Itoa(f.Revision), "by", f.CreatedBy.Name, "updated", s.Ago(f.UpdatedAt.Time), "follows", followed(f.Git))
		definitions.Describe(s.Console, f.Definition)
		problems(s, f.Definition, f.Problems)
		for _, p := range f.Warnings {
			s.Say("\nNote: %s", screen.Clean(p.Message))
		}
	})
}

// kindOf is the engine whose pipeline a workflow launches, for people.
func kindOf(e *api.PipelineEngine) string {
	if e == nil {
		return ""
	}
	return string(*e)
}

func problems(s *session.Session, definition json.RawMessage, list []api.Problem) {
	if len(list) == 0 {
		return
	}
	g, _ := definitions.ReadGraph(definition) // what cannot be read is a problem of the list
	s.Say("\nIt cannot run yet:")
	for _, p := range list {
		s.Say("  %s", screen.Clean(problemText(g, p)))
	}
}

// problemText says what is wrong with the step by its name, and where in the step.
func problemText(g definitions.Graph, p api.Problem) string {
	text := p.Message
	if p.Node != nil {
		if step := `"` + g.NameOf(*p.Node) + `"`; !strings.Contains(text, step) {
			text = step + ": " + text
		}
	}
	if p.Field != "" && p.Edge == nil {
		text += " (" + p.Field + ")"
	}
	return text
}

type workflowsApply struct {
	session.Flags `embed:""`
	File          string `arg:"" help:"A definition, or a file from export, in YAML or JSON; - for standard input."`
	Name          string `env:"-" help:"Name of the workflow. Default: the one in the file, else the file's own name."`
	License       string `env:"-" placeholder:"ID" help:"SPDX identifier of its license, such as MIT. Default: the one in the file."`
}

// Run tells what became of it.
func (c *workflowsApply) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	f, made, err := s.Apply(c.File, definitions.Naming{Name: c.Name, License: c.License})
	if err != nil {
		return err
	}
	return s.Emit(f, func() {
		verb := "updated"
		if made {
			verb = "created"
		}
		s.Say("%s %s %s (revision %d)", verb, f.ID, screen.Clean(f.Name), f.Revision)
		problems(s, f.Definition, f.Problems)
	})
}

type workflowsExport struct {
	session.Flags `embed:""`
	workflowArg   `embed:""`
	Output        string `short:"o" env:"-" placeholder:"FILE" help:"Write to this file: YAML if its name ends in .yaml or .yml, else JSON."`
}

// Run prints what apply takes.
func (c *workflowsExport) Run(w screen.Console) error {
	_, f, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	text, err := exported(gitfile.Workflow{Name: f.Name, Description: f.Description, License: f.License, Definition: f.Definition}, definitionfile.IsYAML(c.Output, nil))
	if err != nil {
		return err
	}
	if c.Output == "" || c.Output == "-" {
		_, err = w.Out.Write(text)
		return err
	}
	if err := os.WriteFile(c.Output, text, 0o644); err != nil {
		return err
	}
	w.Note("Wrote %s.", c.Output)
	return nil
}

// exported is a workflow as the text of a file.
func exported(f gitfile.Workflow, yaml bool) ([]byte, error) {
	if yaml {
		return gitfile.YAML(f)
	}
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	err := out.Encode(f)
	return text.Bytes(), err
}

type workflowsDelete struct {
	session.Flags `embed:""`
	workflowArg   `embed:""`
	Yes           bool `short:"y" env:"-" help:"Don't ask for confirmation."`
}

// Run asks first: a deleted workflow is gone.
func (c *workflowsDelete) Run(w screen.Console) error {
	s, f, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	if err := s.Sure(c.Yes, fmt.Sprintf("Delete the workflow %s (%s) and cancel its runs?", screen.Clean(f.Name), f.ID)); err != nil {
		return err
	}
	r, err := s.API.DeleteWorkflowWithResponse(s.Ctx, f.ID, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("deleted %s", f.ID) })
}
