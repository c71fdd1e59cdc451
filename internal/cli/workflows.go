package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
)

type workflowsCommand struct {
	List   workflowsList   `cmd:"" default:"withargs" aliases:"ls" help:"List the team's workflows."`
	Get    workflowsGet    `cmd:"" aliases:"view" help:"Show a workflow: parameters, inputs, nodes."`
	Apply  workflowsApply  `cmd:"" help:"Create or update a workflow from a file."`
	Export workflowsExport `cmd:"" help:"Print a workflow as a file that apply takes."`
	Delete workflowsDelete `cmd:"" aliases:"rm" help:"Delete a workflow; its runs stay listed."`
}

type workflowsList struct {
	common `embed:""`
}

// Run lists them all.
func (c *workflowsList) Run(w screen.World) error {
	s, err := c.open(w)
	if err != nil {
		return err
	}
	list, err := s.workflows()
	if err != nil {
		return err
	}
	return s.emit(list, func() {
		if len(list) == 0 {
			s.Note("The team has no workflows yet: create one with millrace workflows apply workflow.json")
			return
		}
		rows := [][]string{{"NAME", "ID", "NODES", "REVISION", "LAST RUN", "UPDATED"}}
		for _, f := range list {
			last := "–"
			if len(f.LastRuns) > 0 {
				last = string(f.LastRuns[0].Status)
			}
			rows = append(rows, []string{f.Name, f.ID, strconv.Itoa(f.NodeCount), strconv.Itoa(f.Revision), last, s.Ago(f.UpdatedAt.Time)})
		}
		s.Table(rows)
	})
}

func (s *session) workflows() ([]api.WorkflowRow, error) {
	return pages(0, func(cursor *string) ([]api.WorkflowRow, api.Page, error) {
		r, err := s.api.ListWorkflowsWithResponse(s.Ctx, &api.ListWorkflowsParams{Cursor: cursor})
		if err != nil {
			return nil, api.Page{}, s.explain(err)
		}
		return r.JSON200.Data, r.JSON200.Page, nil
	})
}

// pages reads a list until its end, or until it has most rows.
func pages[T any](most int, page func(cursor *string) ([]T, api.Page, error)) ([]T, error) {
	all := []T{}
	var cursor *string
	for {
		rows, p, err := page(cursor)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
		if most > 0 && len(all) >= most {
			return all[:most], nil
		}
		if !p.HasMore || p.NextCursor == nil {
			return all, nil
		}
		cursor = p.NextCursor
	}
}

// workflowID finds a workflow by its id or name.
func (s *session) workflowID(name string) (string, error) {
	if strings.HasPrefix(name, "wf_") {
		return name, nil
	}
	list, err := s.workflows()
	if err != nil {
		return "", err
	}
	var found []string
	for _, f := range list {
		if f.Name == name {
			found = append(found, f.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("the team has no workflow %q: see millrace workflows list", name)
	case 1:
		return found[0], nil
	default:
		return "", fmt.Errorf("%d workflows are called %q: name one by its id (%s)", len(found), name, strings.Join(found, ", "))
	}
}

func (s *session) workflow(name string) (api.Workflow, error) {
	id, err := s.workflowID(name)
	if err != nil {
		return api.Workflow{}, err
	}
	r, err := s.api.GetWorkflowWithResponse(s.Ctx, id, nil)
	if err != nil {
		return api.Workflow{}, s.explain(err)
	}
	return r.JSON200.Data, nil
}

// workflowArg names a workflow.
type workflowArg struct {
	Name string `arg:"" name:"workflow" help:"Id or name."`
}

// at opens a session and finds the workflow.
func (a workflowArg) at(c common, w screen.World) (*session, api.Workflow, error) {
	s, err := c.open(w)
	if err != nil {
		return nil, api.Workflow{}, err
	}
	f, err := s.workflow(a.Name)
	return s, f, err
}

type workflowsGet struct {
	common      `embed:""`
	workflowArg `embed:""`
}

// Run shows what a person needs to run it.
func (c *workflowsGet) Run(w screen.World) error {
	s, f, err := c.at(c.common, w)
	if err != nil {
		return err
	}
	return s.emit(f, func() {
		s.Facts("name", f.Name, "id", f.ID, "description", f.Description, "revision", strconv.Itoa(f.Revision), "by", f.CreatedBy.Name, "updated", s.Ago(f.UpdatedAt.Time))
		describe(s.World, f.Definition)
		s.problems(f.Problems)
	})
}

func (s *session) problems(list []api.Problem) {
	if len(list) == 0 {
		return
	}
	s.Say("\nIt cannot run yet:")
	for _, p := range list {
		s.Say("  %s: %s", screen.Clean(p.Path), screen.Clean(p.Message))
	}
}

type workflowsApply struct {
	common `embed:""`
	File   string `arg:"" help:"A definition, or what export printed; - is standard input."`
	Name   string `env:"-" help:"Name of the workflow. Default: the one in the file, else the file's own name."`
}

// Run tells what became of it.
func (c *workflowsApply) Run(w screen.World) error {
	s, err := c.open(w)
	if err != nil {
		return err
	}
	f, made, err := s.apply(c.File, c.Name)
	if err != nil {
		return err
	}
	return s.emit(f, func() {
		verb := "updated"
		if made {
			verb = "created"
		}
		s.Say("%s %s %s (revision %d)", verb, f.ID, screen.Clean(f.Name), f.Revision)
		s.problems(f.Problems)
	})
}

// apply makes the workflow of this name, or changes it to what the file says.
func (s *session) apply(path, name string) (f api.Workflow, made bool, err error) {
	in, err := readWorkflow(s.World, path, name)
	if err != nil {
		return f, false, err
	}
	list, err := s.workflows()
	if err != nil {
		return f, false, err
	}
	var ids []string
	for _, row := range list {
		if row.Name == in.Name {
			ids = append(ids, row.ID)
		}
	}
	switch len(ids) {
	case 0:
		key := rand.Text()
		r, err := s.api.CreateWorkflowWithResponse(s.Ctx, &api.CreateWorkflowParams{IdempotencyKey: &key}, in)
		if err != nil {
			return f, false, s.explain(err)
		}
		return r.JSON201.Data, true, nil
	case 1:
		edit := api.WorkflowEdit{Definition: in.Definition, Description: in.Description}
		r, err := s.api.UpdateWorkflowWithResponse(s.Ctx, ids[0], nil, edit)
		if err != nil {
			return f, false, s.explain(err)
		}
		return r.JSON200.Data, false, nil
	default:
		return f, false, fmt.Errorf("%d workflows are called %q (%s): rename or delete all but one", len(ids), in.Name, strings.Join(ids, ", "))
	}
}

type workflowsExport struct {
	common      `embed:""`
	workflowArg `embed:""`
	Output      string `short:"o" env:"-" placeholder:"FILE" help:"Write to this file."`
}

// exported is a workflow as a file.
type exported struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Definition  json.RawMessage `json:"definition"`
}

// Run prints what apply takes; it is JSON either way.
func (c *workflowsExport) Run(w screen.World) error {
	_, f, err := c.at(c.common, w)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(exported{f.Name, f.Description, f.Definition}); err != nil {
		return err
	}
	if c.Output == "" || c.Output == "-" {
		_, err = text.WriteTo(w.Out)
		return err
	}
	if err := os.WriteFile(c.Output, text.Bytes(), 0o644); err != nil {
		return err
	}
	w.Note("Wrote %s.", c.Output)
	return nil
}

type workflowsDelete struct {
	common      `embed:""`
	workflowArg `embed:""`
	Yes         bool `short:"y" env:"-" help:"Do not ask."`
}

// Run asks first: a deleted workflow is gone.
func (c *workflowsDelete) Run(w screen.World) error {
	s, f, err := c.at(c.common, w)
	if err != nil {
		return err
	}
	if err := s.Sure(c.Yes, fmt.Sprintf("Delete the workflow %s (%s) and cancel its runs?", screen.Clean(f.Name), f.ID)); err != nil {
		return err
	}
	r, err := s.api.DeleteWorkflowWithResponse(s.Ctx, f.ID, nil)
	if err != nil {
		return s.explain(err)
	}
	return s.emit(r.JSON200.Data, func() { s.Say("deleted %s", f.ID) })
}
