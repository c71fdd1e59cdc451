package runs

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type runsDelete struct {
	session.Flags `embed:""`
	Run_          []string `arg:"" name:"run" help:"Ids of the runs."`
}

// Run deletes one after the other.
func (c *runsDelete) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	done := []api.Deleted{}
	for _, id := range c.Run_ {
		r, err := s.API.DeleteRunWithResponse(s.Ctx, id, nil)
		if err != nil {
			return s.Explain(err)
		}
		done = append(done, r.JSON200.Data)
	}
	return s.Emit(done, func() {
		for _, d := range done {
			s.Say("%s is deleted", d.ID)
		}
	})
}
