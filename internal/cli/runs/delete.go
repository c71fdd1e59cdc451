package runs

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type runsDelete struct {
	session.Flags `embed:""`
	Run_          []string `arg:"" name:"run" help:"IDs of the runs."`
	Yes           bool     `short:"y" env:"-" help:"Don't ask for confirmation."`
}

// Run asks a person first, then deletes one after the other.
func (c *runsDelete) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	if err := s.Confirm(c.Yes, fmt.Sprintf("Delete %s with their outputs?", strings.Join(c.Run_, ", "))); err != nil {
		return err
	}
	return session.Each(s, c.Run_, func(id string) (api.Deleted, error) {
		r, err := s.API.DeleteRunWithResponse(s.Ctx, id, nil)
		if err != nil {
			return api.Deleted{}, s.Explain(err)
		}
		return r.JSON200.Data, nil
	}, func(d api.Deleted) { s.Say("deleted %s", d.ID) })
}
