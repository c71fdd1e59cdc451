package cli

import (
	"fmt"

	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type teamsCommand struct {
	List teamsList `cmd:"" default:"withargs" aliases:"ls" help:"List your teams."`
	Use  teamsUse  `cmd:"" help:"Use this team from now on."`
}

type teamsList struct {
	session.Flags `embed:""`
}

// Run marks the team that commands act in.
func (c *teamsList) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	list, err := s.Teams()
	if err != nil {
		return err
	}
	me, err := s.API.GetMeWithResponse(w.Ctx, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(list, func() {
		rows := [][]string{{"", "NAME", "ID", "ROLE", "PLAN"}}
		for _, t := range list {
			mark := ""
			if t.ID == me.JSON200.Data.Team.ID {
				mark = "*"
			}
			rows = append(rows, []string{mark, t.Name, t.ID, string(t.Role), t.Plan})
		}
		s.Table(rows)
	})
}

type teamsUse struct {
	session.Flags `embed:""`
	Name          string `arg:"" name:"team" help:"ID or name of the team."`
}

// Run keeps the choice with the credentials; the server's own choice for
// other devices stays.
func (c *teamsUse) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	kept, ok := s.Calls.As.(*line.KeptToken)
	if !ok {
		return fmt.Errorf("MILLRACE_TOKEN is set: choose the team with --team or MILLRACE_TEAM")
	}
	s.Calls.Team = "" // the old choice may be gone
	t, err := s.Team(c.Name)
	if err != nil {
		return err
	}
	err = kept.Keep.Update(func(ring *line.Keyring) error {
		if g := ring.Servers[s.Server]; g != nil {
			g.Team = t.ID
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.Emit(t, func() { s.Tell("Using team %s (%s).", screen.Clean(t.Name), t.ID) })
}
