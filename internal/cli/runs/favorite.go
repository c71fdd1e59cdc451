package runs

import (
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type runsFavorite struct {
	session.Flags `embed:""`
	Run_          []string `arg:"" name:"run" help:"IDs of the runs."`
	Remove        bool     `env:"-" help:"Remove the mark."`
}

// Run marks one after the other.
func (c *runsFavorite) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	return s.Mark(c.Run_, c.Remove)
}
