package session

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/connect"
	"github.com/millrace/millrace/internal/cli/definitions"
	"github.com/millrace/millrace/internal/cli/transfer"
)

// Teams are the caller's.
func (s *Session) Teams() ([]api.TeamRow, error) {
	r, err := s.API.ListTeamsWithResponse(s.Ctx)
	if err != nil {
		return nil, s.Explain(err)
	}
	return r.JSON200.Data, nil
}

// Team finds one of the caller's teams by its id or name.
func (s *Session) Team(name string) (api.TeamRow, error) {
	list, err := s.Teams()
	if err != nil {
		return api.TeamRow{}, err
	}
	var found []api.TeamRow
	for _, t := range list {
		if t.ID == name || strings.EqualFold(t.Name, name) {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return api.TeamRow{}, fmt.Errorf("you have no team %q: see millrace teams", name)
	case 1:
		return found[0], nil
	default:
		return api.TeamRow{}, fmt.Errorf("%d of your teams are called %q: use the ID, see millrace teams", len(found), name)
	}
}

// Workflows are all of the team.
func (s *Session) Workflows() ([]api.WorkflowRow, error) {
	return Pages(0, func(cursor *string) ([]api.WorkflowRow, api.Page, error) {
		r, err := s.API.ListWorkflowsWithResponse(s.Ctx, &api.ListWorkflowsParams{Cursor: cursor})
		if err != nil {
			return nil, api.Page{}, s.Explain(err)
		}
		return r.JSON200.Data, r.JSON200.Page, nil
	})
}

// Pages reads a list until its end, or until it has most rows.
func Pages[T any](most int, page func(cursor *string) ([]T, api.Page, error)) ([]T, error) {
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

// WorkflowID finds a workflow by its id or name.
func (s *Session) WorkflowID(name string) (string, error) {
	if strings.HasPrefix(name, "wf_") {
		return name, nil
	}
	list, err := s.Workflows()
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
		return "", fmt.Errorf("%d workflows are called %q: use the ID (%s)", len(found), name, strings.Join(found, ", "))
	}
}

// Workflow finds one by its id or name.
func (s *Session) Workflow(name string) (api.Workflow, error) {
	id, err := s.WorkflowID(name)
	if err != nil {
		return api.Workflow{}, err
	}
	r, err := s.API.GetWorkflowWithResponse(s.Ctx, id, nil)
	if err != nil {
		return api.Workflow{}, s.Explain(err)
	}
	return r.JSON200.Data, nil
}

// Folder is where downloads go.
func (s *Session) Folder(path string, force bool) (*transfer.Folder, error) {
	f := &transfer.Folder{Console: s.Console, HTTP: s.Calls.HTTP, Force: force}
	return f, f.Open(path)
}

// EachFile gives the team's files until more says no.
func (s *Session) EachFile(more func(api.File) bool) error {
	limit := 200
	for params := (api.ListFilesParams{Limit: &limit}); ; {
		r, err := s.API.ListFilesWithResponse(s.Ctx, &params)
		if err != nil {
			return s.Explain(err)
		}
		for _, f := range r.JSON200.Data {
			if !more(f) {
				return nil
			}
		}
		if params.Cursor = r.JSON200.Page.NextCursor; params.Cursor == nil {
			return nil
		}
	}
}

// File finds one by its key, or by its name where only one has it.
func (s *Session) File(name string) (found api.File, err error) {
	named := 0
	err = s.EachFile(func(f api.File) bool {
		if f.Key == name {
			found, named = f, 1
			return false
		}
		if f.Name == name {
			found = f
			named++
		}
		return true
	})
	switch {
	case err != nil:
		return found, err
	case named == 0:
		return found, fmt.Errorf("the team has no file %q: see millrace files ls", name)
	case named > 1:
		return found, fmt.Errorf("%d files are called %q: use the key, see millrace files ls", named, name)
	default:
		return found, nil
	}
}

// Apply makes the workflow of this name, or changes it to what the file says.
func (s *Session) Apply(path string, says definitions.Naming) (f api.Workflow, made bool, err error) {
	in, err := definitions.ReadWorkflow(s.Console, path, says)
	if err != nil {
		return f, false, err
	}
	list, err := s.Workflows()
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
		r, err := s.API.CreateWorkflowWithResponse(s.Ctx, &api.CreateWorkflowParams{IdempotencyKey: &key}, in)
		if err != nil {
			return f, false, s.Explain(err)
		}
		return r.JSON201.Data, true, nil
	case 1:
		edit := api.WorkflowEdit{Definition: in.Definition, Description: in.Description, License: in.License}
		r, err := s.API.UpdateWorkflowWithResponse(s.Ctx, ids[0], nil, edit)
		if err != nil {
			return f, false, s.Explain(err)
		}
		return r.JSON200.Data, false, nil
	default:
		return f, false, fmt.Errorf("%d workflows are called %q (%s): rename or delete all but one", len(ids), in.Name, strings.Join(ids, ", "))
	}
}

// ConnectionID finds a connection of the team by its id or name; none stays none.
func (s *Session) ConnectionID(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	return connect.Session{Console: s.Console, API: s.API, Emit: s.Emit, Explain: s.Explain}.Find(name)
}

// OutputTarget is where outputs are to be copied, by a connection of its own or the one
// that is used anyway; nil: nowhere.
func (s *Session) OutputTarget(url, connection, otherwise string) (*api.OutputTarget, error) {
	if url == "" {
		return nil, nil //nolint:nilnil // most runs have none
	}
	id, err := s.ConnectionID(connection)
	if id == "" {
		id = otherwise
	}
	if err == nil && id == "" {
		err = errors.New("--output-to needs a connection that can write to it: --connection or --output-connection")
	}
	return &api.OutputTarget{URL: url, Connection: id}, err
}
