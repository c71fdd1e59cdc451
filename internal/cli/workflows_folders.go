package cli

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

// chosen are those of the list that were asked for, favorites first.
func (c *workflowsList) chosen(s *session.Session, list []api.WorkflowRow) (rows []api.WorkflowRow, marked map[string]bool, err error) {
	r, err := s.API.ListFavoritesWithResponse(s.Ctx, nil)
	if err != nil {
		return nil, nil, s.Explain(err)
	}
	marked = map[string]bool{}
	for _, id := range r.JSON200.Data.Workflows {
		marked[id] = true
	}
	folder := strings.Trim(c.Folder, "/")
	rows = slices.DeleteFunc(list, func(w api.WorkflowRow) bool {
		inside := folder == "" || w.Folder == folder || strings.HasPrefix(w.Folder, folder+"/")
		return !inside || c.Favorite && !marked[w.ID]
	})
	slices.SortStableFunc(rows, func(a, b api.WorkflowRow) int {
		switch {
		case marked[a.ID] == marked[b.ID]:
			return 0
		case marked[a.ID]:
			return -1
		}
		return 1
	})
	return rows, marked, nil
}

type workflowsMove struct {
	session.Flags `embed:""`
	Workflow      []string `arg:"" help:"IDs or names."`
	To            string   `env:"-" required:"" placeholder:"FOLDER" help:"For example, RNA/Single cell; empty: no folder."`
}

// Run moves one after the other.
func (c *workflowsMove) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	return session.Each(s, c.Workflow, func(name string) (api.Workflow, error) {
		id, err := s.WorkflowID(name)
		if err != nil {
			return api.Workflow{}, err
		}
		r, err := s.API.UpdateWorkflowWithResponse(s.Ctx, id, nil, api.WorkflowEdit{Folder: &c.To})
		if err != nil {
			return api.Workflow{}, s.Explain(err)
		}
		return r.JSON200.Data, nil
	}, func(f api.Workflow) {
		if f.Folder == "" {
			s.Say("%s is in no folder", screen.Clean(f.Name))
			return
		}
		s.Say("%s is in %s", screen.Clean(f.Name), screen.Clean(f.Folder))
	})
}

type workflowsRenameFolder struct {
	session.Flags `embed:""`
	From          string `arg:"" help:"The folder."`
	To            string `arg:"" help:"The new name; '' moves its workflows out of the folder."`
}

// Run says how many workflows went along.
func (c *workflowsRenameFolder) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.RenameFolderWithResponse(s.Ctx, nil, api.FolderRename{From: c.From, To: c.To})
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("%s moved", screen.Count(r.JSON200.Data.Moved, "workflow")) })
}

type workflowsFavorite struct {
	session.Flags `embed:""`
	Workflow      []string `arg:"" help:"IDs or names."`
	Remove        bool     `env:"-" help:"Remove the mark."`
}

// Run marks one after the other.
func (c *workflowsFavorite) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	var list []string
	for _, name := range c.Workflow {
		id, err := s.WorkflowID(name)
		if err != nil {
			return err
		}
		list = append(list, id)
	}
	return s.Mark(list, c.Remove)
}
