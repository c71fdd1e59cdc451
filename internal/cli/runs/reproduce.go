package runs

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/reproduce"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
	"github.com/millrace/millrace/internal/cli/transfer"
)

type runsReproduce struct {
	session.Flags `embed:""`
	Run_          string `arg:"" name:"run" help:"ID of the run."`
	Node          string `arg:"" name:"step" help:"ID of the step, or of an item, such as align/3."`
	Shard         *int   `env:"-" help:"Item of a step that runs once per item, from 0."`
	To            string `env:"-" required:"" help:"Folder to write to."`
	Force         bool   `env:"-" help:"Replace existing files that differ."`
}

// Run fetches what a step was given, and writes how to do it again.
func (c *runsReproduce) Run(w screen.Console) error {
	of, err := placeOf(c.Node, c.Shard)
	if err != nil {
		return err
	}
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	got, err := s.API.GetRecipeWithResponse(s.Ctx, c.Run_, of.Node, &api.GetRecipeParams{Shard: &of.Item})
	if err != nil {
		return s.Explain(err)
	}
	r := got.JSON200.Data
	folder, err := s.Folder(c.To, c.Force)
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, f := range r.Files {
		if err := folder.Fetch(transfer.File{Path: f.Path, URL: f.URL, Sum: text(f.Sha256), Size: f.Size}); err != nil {
			return s.Explain(err)
		}
	}
	software, err := c.software(s, of.Node, r)
	if err != nil {
		return err
	}
	if err := reproduce.Write(c.To, reproduce.Step{Run: c.Run_, Node: of.Node, Recipe: r, Software: software, Force: c.Force}); err != nil {
		return err
	}
	return s.Emit(r, func() {
		s.Say("%s", filepath.Join(c.To, "run.sh"))
		s.Note("To run step %s again like attempt %d: %s/run.sh", of, r.Attempt, strings.TrimSuffix(c.To, "/"))
	})
}

// software is what the step was installed, by the lock that the run has kept.
func (c *runsReproduce) software(s *session.Session, node string, r api.Recipe) (*reproduce.Software, error) {
	if !r.Environment {
		return nil, nil //nolint:nilnil // most steps have none
	}
	got, err := s.API.GetRunEnvironmentWithResponse(s.Ctx, c.Run_, node, nil)
	if err != nil {
		return nil, s.Explain(err)
	}
	e := got.JSON200.Data
	if e.Lock == nil {
		return nil, errors.New("the packages installed for the step aren't known: its environment is " + string(e.State))
	}
	return &reproduce.Software{Python: text(e.Python), Lock: *e.Lock}, nil
}
