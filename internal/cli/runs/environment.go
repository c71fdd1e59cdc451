package runs

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type runsEnvironment struct {
	session.Flags `embed:""`
	Run_          string `arg:"" name:"run" help:"ID of the run."`
	Node          string `arg:"" name:"step" help:"ID of the step."`
	Lock          bool   `env:"-" xor:"what" help:"Print only the lock file."`
	Log           bool   `env:"-" xor:"what" help:"Print only the end of the installation log."`
}

// Run shows what was built.
func (c *runsEnvironment) Run(w screen.Console) error {
	node, err := stepOf(c.Node)
	if err != nil {
		return err
	}
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	got, err := s.API.GetRunEnvironmentWithResponse(s.Ctx, c.Run_, node, nil)
	if err != nil {
		return s.Explain(err)
	}
	e := got.JSON200.Data
	switch {
	case c.Log:
		_, err = io.WriteString(s.Out, s.LogText(e.Log))
		return err
	case c.Lock && e.Lock == nil:
		return errors.New("the installed packages aren't known yet: the environment is " + string(e.State))
	case c.Lock:
		_, err = io.WriteString(s.Out, s.LogText(*e.Lock))
		return err
	}
	return s.Emit(e, func() {
		about := string(e.State)
		if e.Python != nil {
			about = fmt.Sprintf("%s, Python %s", e.State, *e.Python)
		}
		s.Note("%s", screen.Clean(about))
		if e.Error != nil {
			s.Note("%s", screen.Clean(*e.Error))
		}
		rows := [][]string{{"PACKAGE", "VERSION"}}
		for _, p := range e.Packages {
			rows = append(rows, []string{p.Name, p.Version})
		}
		s.Table(rows)
	})
}
