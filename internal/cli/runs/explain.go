package runs

import (
	"encoding/json"

	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type runsExplain struct {
	session.Flags `embed:""`
	Run_          string `arg:"" name:"run" help:"ID of the run."`
}

// Run has the server's model say why a run failed.
func (c *runsExplain) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	got, err := s.API.ExplainRunWithResponse(s.Ctx, c.Run_, nil)
	if err != nil {
		return s.Explain(err)
	}
	said := got.JSON200.Data
	return s.Emit(said, func() {
		s.Say("%s", screen.CleanLines(said.Text))
		if said.Edit == nil {
			return
		}
		if value, err := json.Marshal(said.Edit.Value); err == nil {
			s.Say("\nProposed edit of step %s: set %s to %s", said.Edit.Node, said.Edit.Field, screen.Clean(string(value)))
		}
	})
}
